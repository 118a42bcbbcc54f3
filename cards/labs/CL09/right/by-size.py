# the largest parameters first, each to the rank that has least; no optimizer where nothing is owned
import torch
import torch.distributed as dist


class Zero2:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [dict(params=params)]
        self.order = [p for g in groups for p in g["params"]]
        load, self.home = [0] * dist.get_world_size(), {}
        for p in sorted(self.order, key=lambda p: -p.numel()):
            self.home[p] = load.index(min(load))
            load[self.home[p]] += p.numel()
        rank = dist.get_rank()
        own = [dict(g, params=[p for p in g["params"] if self.home[p] == rank]) for g in groups]
        own = [g for g in own if g["params"]]
        self.inner = cls(own, **kw) if own else None
        for p in self.order:
            p.register_post_accumulate_grad_hook(self.gone)

    def gone(self, p):
        mean = p.grad
        p.grad = None
        dist.reduce(mean, self.home[p], op=dist.ReduceOp.AVG)
        if self.home[p] == dist.get_rank():
            p.grad = mean

    @torch.no_grad()
    def step(self):
        if self.inner:
            self.inner.step()
        for p in self.order:
            dist.broadcast(p, self.home[p])
