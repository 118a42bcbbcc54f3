# what goes out and what comes in next in one batch_isend_irecv
import torch
import torch.distributed as dist


def run_stage(actions, module, inputs, loss, like):
    rank, n = dist.get_rank(), dist.get_world_size()
    m = len(actions) // 2

    def wanted(action):
        """What an action needs of a neighbour: a buffer and whose it is."""
        if action is None:
            return None
        source = rank - 1 if action.startswith("F") else rank + 1
        return (torch.empty_like(like), source) if 0 <= source < n else None

    def exchange(outgoing, incoming):
        operations = []
        if outgoing is not None:
            operations.append(dist.P2POp(dist.isend, *outgoing))
        if incoming is not None:
            operations.append(dist.P2POp(dist.irecv, *incoming))
        if operations:
            for work in dist.batch_isend_irecv(operations):
                work.wait()
        return None if incoming is None else incoming[0]

    kept, mean = {}, 0
    arrived = exchange(None, wanted(actions[0]))
    for action, following in zip(actions, [*actions[1:], None]):
        i, outgoing = int(action[1:]), None
        if action.startswith("F"):
            x = inputs[i] if rank == 0 else arrived.requires_grad_()
            y = module(x)
            if rank + 1 < n:
                outgoing = (y.detach(), rank + 1)
            else:
                y = loss(i, y).div(m)
                mean = mean + y.detach()
            kept[i] = (x, y)
        else:
            x, y = kept.pop(i)
            torch.autograd.backward([y], [arrived])
            outgoing = (x.grad, rank - 1) if rank > 0 else None
        x = y = None
        arrived = exchange(outgoing, wanted(following))
    return mean if rank == n - 1 else None
