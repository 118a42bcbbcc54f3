import torch
import torch.distributed as dist


class ColumnLinear(torch.nn.Module):
    """Gives this rank's part of x · weightᵀ + bias; x is whole."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight = torch.nn.Parameter(weight)
        self.bias = None if bias is None else torch.nn.Parameter(bias)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


class RowLinear(torch.nn.Module):
    """Gives the whole x · weightᵀ + bias; x is this rank's part."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight = torch.nn.Parameter(weight)
        self.bias = None if bias is None else torch.nn.Parameter(bias)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)
