# mistake: not-waited, also other-update, owners-differ
import torch
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        groups = [{**group, "params": list(group["params"])} for group in groups]
        every = [parameter for group in groups for parameter in group["params"]]
        self.owners = {parameter: number % dist.get_world_size() for number, parameter in enumerate(every)}
        own = [
            {**group, "params": [each for each in group["params"] if self.owners[each] == dist.get_rank()]}
            for group in groups
        ]
        self.optimizer = cls(own, **kw)

    def step(self):
        self.optimizer.step()
        for parameter, owner in self.owners.items():
            dist.broadcast(parameter.data, owner, async_op=True)
