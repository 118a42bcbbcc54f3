# messages to each other rank, own rows without one
import torch
import torch.distributed as dist


def _exchange(parts, like):
    """One part for each rank; `like` makes room for what comes from each."""
    rank = dist.get_rank()
    got = [like(source) for source in range(len(parts))]
    got[rank] = parts[rank]
    waiting = []
    for other in range(len(parts)):
        if other != rank:
            waiting.append(dist.irecv(got[other], other))
            waiting.append(dist.isend(parts[other].contiguous(), other))
    for each in waiting:
        each.wait()
    return got


def moe_dispatch(x, expert, experts):
    local, ranks = len(experts), dist.get_world_size()
    places = [[torch.nonzero(expert == rank * local + e).flatten() for e in range(local)] for rank in range(ranks)]
    counts = [torch.tensor([len(each) for each in own]) for own in places]
    theirs = [each.tolist() for each in _exchange(counts, lambda _: torch.empty(local, dtype=torch.long))]
    rows = _exchange([x[torch.cat(own)] for own in places], lambda r: x.new_empty(sum(theirs[r]), x.shape[1]))
    done = [
        torch.cat([run(part) for run, part in zip(experts, given.split(lengths))])
        for given, lengths in zip(rows, theirs)
    ]
    back = _exchange(done, lambda r: x.new_empty(sum(map(len, places[r])), x.shape[1]))
    out = torch.empty_like(x)
    for own, made in zip(places, back):
        out[torch.cat(own)] = made
    return out
