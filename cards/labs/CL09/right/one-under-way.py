# asynchronous: the reduction of one gradient goes on while the next is computed
import torch.distributed as dist


class Zero2:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = (
            [dict(g, params=list(g["params"])) for g in params]
            if isinstance(params[0], dict)
            else [dict(params=params)]
        )
        flat = [p for g in groups for p in g["params"]]
        per = -(-len(flat) // dist.get_world_size())
        self.owner = {p: place // per for place, p in enumerate(flat)}
        me = dist.get_rank()
        self.inner = cls([dict(g, params=[p for p in g["params"] if self.owner[p] == me]) for g in groups], **kw)
        self.pending = None
        for p in flat:
            p.register_post_accumulate_grad_hook(self.start)

    def finish(self):
        if self.pending is None:
            return
        work, p = self.pending
        work.wait()
        self.pending = None
        if self.owner[p] == dist.get_rank():
            p.grad.div_(dist.get_world_size())
        else:
            p.grad = None

    def start(self, p):
        self.finish()
        self.pending = dist.reduce(p.grad, self.owner[p], async_op=True), p

    def step(self):
        self.finish()
        self.inner.step()
        for p, owner in self.owner.items():
            dist.broadcast(p.data, owner)
