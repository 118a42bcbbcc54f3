# buckets of a few parameters, each flat
from contextlib import contextmanager

import torch
import torch.distributed as dist


class DDP(torch.nn.Module):
    def __init__(self, module, size=4):
        super().__init__()
        self.module = module
        params = list(module.parameters())[::-1]
        self.buckets = [params[i : i + size] for i in range(0, len(params), size)]
        self.where = {p: i for i, bucket in enumerate(self.buckets) for p in bucket}
        self.sync = True
        self.reset()
        for t in params + list(module.buffers()):
            dist.broadcast(t.data, src=0)
        for p in params:
            p.register_post_accumulate_grad_hook(self.hook)

    def reset(self):
        self.missing = [set(bucket) for bucket in self.buckets]
        self.sent = []

    def hook(self, p):
        if not self.sync:
            return
        self.missing[self.where[p]].discard(p)
        while len(self.sent) < len(self.buckets) and not self.missing[len(self.sent)]:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in bucket]
        flat = torch.cat([g.reshape(-1) for g in grads])
        self.sent.append((bucket, flat, dist.all_reduce(flat, op=dist.ReduceOp.AVG, async_op=True)))

    def forward(self, *a, **k):
        return self.module(*a, **k)

    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        for bucket, flat, work in self.sent:
            work.wait()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.reshape(p.shape).clone()
        self.reset()

    @contextmanager
    def no_sync(self):
        before, self.sync = self.sync, False
        yield
        self.sync = before
