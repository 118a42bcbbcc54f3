from contextlib import contextmanager

import torch
import torch.distributed as dist


class DDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *inputs):
        return self.module(*inputs)

    def finish(self):
        """Return when every gradient is the mean over all ranks."""

    @contextmanager
    def no_sync(self):
        """Inside, backward sends nothing."""
        yield
