# the largest parameters first, each to the rank that has least
import torch
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [dict(params=params)]
        groups = [dict(g, params=list(g["params"])) for g in groups]
        self.order = [p for g in groups for p in g["params"]]
        load = [0] * dist.get_world_size()
        self.owner = {}
        for p in sorted(self.order, key=lambda p: -p.numel()):
            rank = load.index(min(load))
            self.owner[id(p)] = rank
            load[rank] += p.numel()
        me = dist.get_rank()
        own = [dict(g, params=[p for p in g["params"] if self.owner[id(p)] == me]) for g in groups]
        own = [g for g in own if g["params"]]
        self.inner = cls(own, **kw) if own else None

    @torch.no_grad()
    def step(self):
        if self.inner:
            self.inner.step()
        for p in self.order:
            dist.broadcast(p, self.owner[id(p)])
