# a hook on a view of x, a sum in place
import torch
import torch.distributed as dist


def part(tensor, dim):
    size = tensor.shape[dim] // dist.get_world_size()
    return torch.nn.Parameter(tensor.narrow(dim, dist.get_rank() * size, size).clone())


def summed(gradient):
    gradient = gradient.contiguous().clone()
    dist.all_reduce(gradient)
    return gradient


class ColumnLinear(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight = part(weight, 0)
        self.bias = part(bias, 0) if bias is not None else None

    def forward(self, x):
        own = x.view_as(x)
        if own.requires_grad:
            own.register_hook(summed)
        return torch.nn.functional.linear(own, self.weight, self.bias)


class RowLinear(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight = part(weight, 1)
        self.bias = torch.nn.Parameter(bias) if bias is not None else None

    def forward(self, x):
        y = x @ self.weight.T
        dist.all_reduce(y.data)
        return y + self.bias if self.bias is not None else y
