# mistake: not-sent, also other-update, owners-differ
import torch
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        groups = [{**g, "params": list(g["params"])} for g in groups]
        self.every = [p for g in groups for p in g["params"]]
        n, rank = dist.get_world_size(), dist.get_rank()
        self.owner = {p: i % n for i, p in enumerate(self.every)}
        own = [{**g, "params": [p for p in g["params"] if self.owner[p] == rank]} for g in groups]
        own = [g for g in own if g["params"]]
        self.optimizer = cls(own, **kw) if own else None

    def step(self):
        if self.optimizer:
            self.optimizer.step()
