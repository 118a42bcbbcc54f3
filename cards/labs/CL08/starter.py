import torch
import torch.distributed as dist


class Zero1:
    """An optimizer that keeps its state only for the parameters of this rank."""

    def __init__(self, params, cls, **kw):
        """params: parameters, or groups of them as torch.optim takes them; cls(params, **kw): the optimizer to cut."""

    def step(self):
        """Update this rank's parameters, and let every rank have all of them. Gradients are averaged already."""
