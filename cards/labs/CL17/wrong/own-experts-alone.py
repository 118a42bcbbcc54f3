# mistake: left-as-they-came
import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    local, rank = len(experts), dist.get_rank()
    out = x.clone()
    for number, run in enumerate(experts):
        mine = expert == rank * local + number
        out[mine] = run(x[mine])
    return out
