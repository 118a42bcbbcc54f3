# mistake: padded
import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    local, ranks = len(experts), dist.get_world_size()
    counts = torch.bincount(expert, minlength=local * ranks)
    most = counts.max().reshape(1)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    places = [torch.nonzero(expert == e).flatten() for e in range(local * ranks)]
    padded = torch.zeros(local * ranks, int(most), x.shape[1], dtype=x.dtype)
    for e, each in enumerate(places):
        padded[e, : len(each)] = x[each]
    rows = torch.empty_like(padded)
    dist.all_to_all_single(rows, padded)
    done = torch.empty_like(rows)
    for place in range(local * ranks):
        done[place] = experts[place % local](rows[place])
    back = torch.empty_like(rows)
    dist.all_to_all_single(back, done)
    out = torch.empty_like(x)
    for e, each in enumerate(places):
        out[each] = back[e, : len(each)]
    return out
