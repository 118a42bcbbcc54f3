# mistake: another-expert, also padded
import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    """Sorted by expert there and back, with as many rows for each rank as there are."""
    local, ranks = len(experts), dist.get_world_size()
    expert = expert % ranks * local + expert // ranks
    order = torch.argsort(expert)
    counts = torch.bincount(expert, minlength=local * ranks)
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts)
    sent = counts.view(ranks, local).sum(1).tolist()
    received = theirs.view(ranks, local).sum(1).tolist()
    rows = x.new_empty(sum(received), x.shape[1])
    dist.all_to_all_single(rows, x[order], received, sent)
    mine = torch.arange(local).repeat(ranks).repeat_interleave(theirs)
    done = torch.empty_like(rows)
    for number, run in enumerate(experts):
        done[mine == number] = run(rows[mine == number])
    back = torch.empty_like(x)
    dist.all_to_all_single(back, done, sent, received)
    out = torch.empty_like(x)
    out[order] = back
    return out
