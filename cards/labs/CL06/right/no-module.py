# a plain class, with flags of who has a gradient
import torch
import torch.distributed as dist


class DDP:
    def __init__(self, module):
        self.module = module
        self.params = [p for p in module.parameters() if p.requires_grad]
        self.quiet = 0
        self.turn = len(self.params) - 1
        self.done = {}
        self.pending = []
        for t in module.state_dict().values():
            dist.broadcast(t, 0)
        for i, p in enumerate(self.params):
            p.register_post_accumulate_grad_hook(lambda p, i=i: self._arrived(i))

    def __call__(self, *args):
        return self.module(*args)

    def _arrived(self, i):
        if self.quiet:
            return
        self.done[i] = True
        while self.turn >= 0 and self.done.get(self.turn):
            self._go()

    def _go(self):
        p = self.params[self.turn]
        grad = torch.zeros_like(p.data) if p.grad is None else p.grad
        self.pending.append((p, grad, dist.all_reduce(grad, async_op=True)))
        self.turn -= 1

    def finish(self):
        while self.turn >= 0:
            self._go()
        for p, grad, work in self.pending:
            work.wait()
            p.grad = grad.div_(dist.get_world_size())
        self.turn, self.done, self.pending = len(self.params) - 1, {}, []

    def no_sync(self):
        return self

    def __enter__(self):
        self.quiet += 1

    def __exit__(self, *_):
        self.quiet -= 1
