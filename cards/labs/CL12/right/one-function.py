# one function for both directions
import torch
import torch.distributed as dist
from torch.nn import Linear, Parameter


class AllReduce(torch.autograd.Function):
    """In one direction or in the other."""

    @staticmethod
    def forward(ctx, x, is_forward):
        ctx.is_forward = is_forward
        x = x.clone()
        if is_forward:
            dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        if not ctx.is_forward:
            gradient = gradient.clone()
            dist.all_reduce(gradient)
        return gradient, None


class ColumnLinear(Linear):
    def __init__(self, weight, bias):
        torch.nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        self.weight = Parameter(weight.view(n, -1, weight.shape[1])[rank].clone())
        self.bias = None if bias is None else Parameter(bias.view(n, -1)[rank].clone())

    def forward(self, x):
        return super().forward(AllReduce.apply(x, False))


class RowLinear(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        n, rank = dist.get_world_size(), dist.get_rank()
        self.weight = Parameter(weight.unflatten(1, (n, -1))[:, rank].clone())
        self.bias = None if bias is None else Parameter(bias)

    def forward(self, x):
        y = AllReduce.apply(x @ self.weight.T, True)
        return y if self.bias is None else self.bias + y
