# single tensors, and the small gradients in one call
import torch
import torch.distributed as dist


class AllGather(torch.autograd.Function):
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


class ReduceScatter(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: AllGather.backward(ctx, x))
    backward = staticmethod(lambda ctx, g: AllGather.forward(ctx, g))


class Wrapped:
    def __init__(self, block):
        self.block = block

    def __call__(self, x):
        block = self.block
        hidden = torch.nn.functional.gelu(block.column(AllGather.apply(block.norm(x))))
        return ReduceScatter.apply(hidden @ block.row.weight.T).add(block.row.bias).add(x)

    def finish(self):
        small = [self.block.norm.weight, self.block.norm.bias, self.block.row.bias]
        flat = torch.cat([p.grad for p in small])
        dist.all_reduce(flat)
        for p, grad in zip(small, flat.split([p.numel() for p in small])):
            p.grad.copy_(grad)


def sequence_parallel(block):
    return Wrapped(block)
