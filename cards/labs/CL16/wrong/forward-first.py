# mistake: other-order, also numbers-ignored
import torch
import torch.distributed as dist


def run_stage(actions, module, inputs, loss, like):
    """Receive what an action needs, do it, and begin to send what came out; nobody waits for a send before the end."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    micro_batches = len(actions) // 2
    alive, sends, total = {}, [], 0.0
    for action in sorted(actions, key=lambda each: (each[0] != "F", int(each[1:]))):
        i = int(action[1:])
        if action[0] == "F":
            x = inputs[i] if rank == 0 else received(like, rank - 1).requires_grad_()
            y = module(x)
            if rank == last:
                y = loss(i, y) / micro_batches
                total += y.item()
            else:
                sends.append(dist.isend(y.detach(), rank + 1))
            alive[i] = x, y
        else:
            x, y = alive.pop(i)
            y.backward(None if rank == last else received(like, rank + 1))
            if rank > 0:
                sends.append(dist.isend(x.grad, rank - 1))
    for send in sends:
        send.wait()
    return total if rank == last else None


def received(like, source):
    tensor = torch.empty_like(like)
    dist.recv(tensor, source)
    return tensor
