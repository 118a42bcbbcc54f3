# hooks on the nodes that accumulate gradients
from contextlib import contextmanager

import torch
import torch.distributed as dist


class DDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.parameters_in_order = list(module.parameters())[::-1]
        self.active, self.position, self.works, self.seen, self.nodes = True, 0, [], set(), []
        for tensor in list(module.parameters()) + list(module.buffers()):
            dist.broadcast(tensor.detach(), 0)
        for number, parameter in enumerate(self.parameters_in_order):
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_, number=number: self.arrived(number))
            self.nodes.append(node)

    def arrived(self, number):
        if self.active:
            self.seen.add(number)
            while self.position in self.seen:
                self.start()

    def start(self):
        parameter = self.parameters_in_order[self.position]
        self.position += 1
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        self.works.append(dist.all_reduce(parameter.grad, async_op=True))

    def forward(self, *inputs):
        return self.module(*inputs)

    def finish(self):
        while self.position < len(self.parameters_in_order):
            self.start()
        for work in self.works:
            work.wait()
        for parameter in self.parameters_in_order:
            parameter.grad.div_(dist.get_world_size())
        self.position, self.works, self.seen = 0, [], set()

    @contextmanager
    def no_sync(self):
        self.active = False
        try:
            yield
        finally:
            self.active = True
