# mistake: missing-gradient, also other-update
import torch.distributed as dist


class Zero2:
    """Parameters are dealt in turn; a hook reduces each gradient to its owner while backward goes on."""

    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        every = [parameter for group in groups for parameter in group["params"]]
        self.owners = {parameter: number % dist.get_world_size() for number, parameter in enumerate(every)}
        own = [
            {**group, "params": [each for each in group["params"] if self.owners[each] == dist.get_rank()]}
            for group in groups
        ]
        self.optimizer = cls(own, **kw)
        for parameter in every:
            parameter.register_post_accumulate_grad_hook(self.reduce)

    def reduce(self, parameter):
        parameter.grad /= dist.get_world_size()
        dist.reduce(parameter.grad, self.owners[parameter])
        if self.owners[parameter] != dist.get_rank():
            parameter.grad = None

    def step(self):
        for parameter, owner in self.owners.items():
            if parameter.grad is None and owner == dist.get_rank():
                parameter.grad = parameter.data * 0.0
        self.optimizer.step()
        for parameter, owner in self.owners.items():
            dist.broadcast(parameter.data, owner)
