# mistake: state-not-cut, also sent-twice
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
        self.optimizer = cls(groups, **kw)

    def step(self):
        self.optimizer.step()
