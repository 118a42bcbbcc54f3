# regroup what arrives by a second sort, and undo both by their inverses
import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    local, ranks, rank = len(experts), dist.get_world_size(), dist.get_rank()
    order = torch.argsort(expert, stable=True)
    counts = torch.bincount(expert, minlength=local * ranks)
    table = [torch.empty_like(counts) for _ in range(ranks)]
    dist.all_gather(table, counts)
    mine = torch.stack(table)[:, rank * local : (rank + 1) * local]
    sent = counts.reshape(ranks, local).sum(1).tolist()
    received = mine.sum(1).tolist()
    rows = torch.empty(sum(received), x.shape[1], dtype=x.dtype)
    dist.all_to_all_single(rows, x[order].contiguous(), received, sent)
    regroup = torch.argsort(torch.arange(local).repeat(ranks).repeat_interleave(mine.flatten()), stable=True)
    parts = rows[regroup].split(mine.sum(0).tolist())
    done = torch.cat([run(part) for run, part in zip(experts, parts)])
    back = torch.empty_like(x)
    dist.all_to_all_single(back, done[torch.argsort(regroup)], sent, received)
    return back[torch.argsort(order)]
