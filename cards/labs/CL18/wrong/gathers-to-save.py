# mistake: ranks-talk
import torch
import torch.distributed as dist

SHARDED = ("shard", "exp_avg", "exp_avg_sq")


def save(state, rank, n):
    out = dict(state)
    for k in SHARDED:
        parts = [torch.empty_like(state[k]) for _ in range(n)]
        dist.all_gather(parts, state[k])
        out[k] = torch.cat(parts)
    return out


def load(files, rank, n):
    f = files[0]
    per = -(-f["length"] // n)
    out = dict(f)
    for k in SHARDED:
        w = torch.cat([f[k][: f["length"]], f[k].new_zeros(per * n)])
        out[k] = w[rank * per : (rank + 1) * per].clone()
    return out
