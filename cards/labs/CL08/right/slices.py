# consecutive parameters, and one optimizer for each group
import torch
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        if not isinstance(params[0], dict):
            params = [{"params": params}]
        self.all, self.optimizers = [], []
        n, rank = dist.get_world_size(), dist.get_rank()
        for group in params:
            members = list(group["params"])
            options = {key: value for key, value in group.items() if key != "params"}
            per = -(-len(members) // n)
            for place, p in enumerate(members):
                self.all.append((p, place // per))
            own = members[rank * per : (rank + 1) * per]
            if own:
                self.optimizers.append(cls(own, **{**kw, **options}))

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()
        for p, owner in self.all:
            dist.broadcast(p.data, owner)
