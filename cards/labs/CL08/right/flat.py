# a flat buffer for each group, shards of equal length, one all-gather each
import torch
import torch.distributed as dist


class Zero1:
    def __init__(self, params, cls, **kw):
        params = list(params)
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.groups, mine = [], []
        for group in groups:
            members = list(group["params"])
            length = sum(p.numel() for p in members)
            part = -(-length // self.n)
            flat = torch.zeros(part * self.n, dtype=members[0].dtype)
            torch.cat([p.data.reshape(-1) for p in members], out=flat[:length])
            shard = torch.nn.Parameter(flat[self.rank * part : (self.rank + 1) * part].clone())
            del flat
            self.groups.append((members, shard, part))
            mine.append({**group, "params": [shard]})
        self.optimizer = cls(mine, **kw)

    def step(self):
        for members, shard, part in self.groups:
            start, stop = self.rank * part, (self.rank + 1) * part
            shard.grad = torch.zeros_like(shard)
            at = 0
            for p in members:
                lo, hi = max(start, at), min(stop, at + p.numel())
                if lo < hi and p.grad is not None:
                    shard.grad[lo - start : hi - start] = p.grad.reshape(-1)[lo - at : hi - at]
                at += p.numel()
        kept = [[p.data.clone() for p in members if p.grad is None] for members, _, _ in self.groups]
        self.optimizer.step()
        for (members, shard, part), old in zip(self.groups, kept):
            shard.grad = None
            flat = torch.empty(part * self.n, dtype=shard.dtype)
            dist.all_gather_single(flat, shard.data)
            at = 0
            for p in members:
                if p.grad is not None:
                    p.data.copy_(flat[at : at + p.numel()].reshape(p.shape))
                at += p.numel()
            old = iter(old)
            for p in members:
                if p.grad is None:
                    p.data.copy_(next(old))
