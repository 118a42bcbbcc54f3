# mistake: weights-reduced, also all-reduced, more-bytes
import torch
import torch.distributed as dist
import torch.nn.functional as F


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.new_empty(x.shape[0] * dist.get_world_size(), *x.shape[1:])
        dist.all_gather_into_tensor(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, g):
        out = g.new_empty(g.shape[0] // dist.get_world_size(), *g.shape[1:])
        dist.reduce_scatter_tensor(out, g.contiguous())
        return out


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.new_empty(x.shape[0] // dist.get_world_size(), *x.shape[1:])
        dist.reduce_scatter_tensor(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, g):
        out = g.new_empty(g.shape[0] * dist.get_world_size(), *g.shape[1:])
        dist.all_gather_into_tensor(out, g.contiguous())
        return out


class SequenceParallel(torch.nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        b = self.block
        whole = _Gather.apply(b.norm(x))
        y = F.linear(F.gelu(b.column(whole)), b.row.weight)
        return x + _Scatter.apply(y) + b.row.bias

    def finish(self):
        b = self.block
        grads = [p.grad for p in b.parameters()]
        flat = torch.cat([g.reshape(-1) for g in grads])
        dist.all_reduce(flat)
        for g, new in zip(grads, flat.split([g.numel() for g in grads])):
            g.copy_(new.view_as(g))


def sequence_parallel(block):
    return SequenceParallel(block)
