# consecutive parameters over all groups, and one optimizer for each group
import torch
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        if not isinstance(params[0], dict):
            params = [{"params": params}]
        groups = [{**group, "params": list(group["params"])} for group in params]
        n, rank = dist.get_world_size(), dist.get_rank()
        per = -(-sum(len(group["params"]) for group in groups) // n)
        self.all, self.optimizers = [], []
        for group in groups:
            own = []
            for p in group["params"]:
                owner = len(self.all) // per
                self.all.append((p, owner))
                if owner == rank:
                    own.append(p)
            options = {key: value for key, value in group.items() if key != "params"}
            if own:
                self.optimizers.append(cls(own, **{**kw, **options}))

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()
        for p, owner in self.all:
            dist.broadcast(p.data, owner)
