# mistake: uneven-owners, also state-not-cut
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.owners, own = {}, []
        for group in groups:
            mine = []
            for i, p in enumerate(group["params"]):
                self.owners[p] = i % dist.get_world_size()
                if self.owners[p] == dist.get_rank():
                    mine.append(p)
            own.append({**group, "params": mine})
        self.optimizer = cls(own, **kw)

    def step(self):
        self.optimizer.step()
        for p, owner in self.owners.items():
            dist.broadcast(p.data, owner)
