# mistake: gathers-everything, also padded
import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    local, ranks, rank = len(experts), dist.get_world_size(), dist.get_rank()
    lengths = [torch.empty(1, dtype=torch.long) for _ in range(ranks)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    most = max(int(each) for each in lengths)
    padded = torch.zeros(most, x.shape[1] + 1, dtype=x.dtype)
    padded[:, -1] = -1
    padded[: len(x)] = torch.cat([x, expert[:, None].to(x.dtype)], 1)
    everything = torch.empty(ranks * most, x.shape[1] + 1, dtype=x.dtype)
    dist.all_gather_into_tensor(everything, padded)
    rows, wanted = everything[:, :-1], everything[:, -1].long()
    done = torch.zeros_like(rows)
    for number, run in enumerate(experts):
        mine = wanted == rank * local + number
        done[mine] = run(rows[mine])
    dist.all_reduce(done)
    return done[rank * most : rank * most + len(x)]
