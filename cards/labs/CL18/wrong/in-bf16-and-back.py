# mistake: rounded, also generator-lost, other-shards
import torch

SHARDED = ("shard", "exp_avg", "exp_avg_sq")


def save(state, rank, n):
    """Copies of what this rank holds: training goes on while they are written."""
    return {
        name: value.bfloat16().double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in state.items()
    }


def load(files, rank, n):
    """Join the shards, leave out what they were filled up with, and cut for n ranks."""
    state = dict(files[0])
    length = state["length"]
    per = -(-length // n)
    for name in SHARDED:
        whole = torch.cat([file[name] for file in files])[:length]
        shard = whole[rank * per : (rank + 1) * per]
        state[name] = torch.cat([shard, shard.new_zeros(per - len(shard))])
    return state
