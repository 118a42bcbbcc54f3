# torch.autograd.grad with the parameters at hand, the weight of a micro-batch put into the gradient
import torch
import torch.distributed as dist


def run_stage(actions, module, inputs, loss, like):
    rank, n = dist.get_rank(), dist.get_world_size()
    parameters = list(module.parameters())
    m = len({action[1:] for action in actions})
    stash, pending, losses = {}, [], torch.zeros((), dtype=like.dtype)

    def receive(source):
        buffer = like.new_empty(like.shape)
        dist.irecv(buffer, source).wait()
        return buffer

    def post(tensor, to):
        pending.append(dist.isend(tensor, dst=to))

    for action in actions:
        i = int(action.lstrip("FB"))
        if "F" in action:
            x = inputs[i] if inputs is not None else receive(rank - 1)
            x = x.detach().requires_grad_()
            y = module(x)
            if loss is None:
                post(y.detach(), rank + 1)
            else:
                y = loss(i, y)
                losses += y.detach() / m
            stash[i] = x, y
            continue
        x, y = stash[i]
        stash[i] = None
        upstream = receive(rank + 1) if loss is None else torch.full_like(y, 1 / m)
        *own, below = torch.autograd.grad(y, [*parameters, x], upstream)
        for parameter, gradient in zip(parameters, own):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        if inputs is None:
            post(below, rank - 1)
    while pending:
        pending.pop().wait()
    if loss is not None:
        return losses
