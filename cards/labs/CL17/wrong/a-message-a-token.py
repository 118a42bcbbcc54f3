# mistake: one-by-one
import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    local, ranks, rank = len(experts), dist.get_world_size(), dist.get_rank()
    lengths = [torch.empty(1, dtype=torch.long) for _ in range(ranks)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    most = max(int(each) for each in lengths)
    wanted = torch.full((most,), -1)
    wanted[: len(x)] = expert
    table = [torch.empty_like(wanted) for _ in range(ranks)]
    dist.all_gather(table, wanted)
    out = torch.empty_like(x)
    for source in range(ranks):
        for place in range(int(lengths[source])):
            home, number = divmod(int(table[source][place]), local)
            if home == source:
                if rank == source:
                    out[place] = experts[number](x[place : place + 1])[0]
            elif rank == source:
                dist.send(x[place].clone(), home)
                row = torch.empty_like(x[place])
                dist.recv(row, home)
                out[place] = row
            elif rank == home:
                row = torch.empty(x.shape[1], dtype=x.dtype)
                dist.recv(row, source)
                dist.send(experts[number](row[None])[0].contiguous(), source)
    return out
