# every parameter cut into n shards, a reduce-scatter and an all-gather of each
import torch
import torch.distributed as dist


class Zero2:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        self.shards, mine = {}, []
        for group in groups:
            own = []
            for p in group["params"]:
                shard = torch.nn.Parameter(self.cut(p.data)[self.rank].clone())
                self.shards[p] = shard
                own.append(shard)
                p.register_post_accumulate_grad_hook(self.scatter)
            mine.append({**group, "params": own})
        self.optimizer = cls(mine, **kw)

    def cut(self, value):
        length = -(-value.numel() // self.n)
        return torch.nn.functional.pad(value.reshape(-1), (0, length * self.n - value.numel())).view(self.n, length)

    def scatter(self, p):
        whole = self.cut(p.grad)
        p.grad = None
        out = torch.empty_like(whole[0])
        dist.reduce_scatter_single(out, whole.reshape(-1))
        self.shards[p].grad = out / self.n

    def step(self):
        self.optimizer.step()
        for p, shard in self.shards.items():
            shard.grad = None
            whole = shard.data.new_empty(self.n * len(shard))
            dist.all_gather_single(whole, shard.data)
            p.data.copy_(whole[: p.numel()].view_as(p))
