# autograd keeps a marker in place of the weight, and gathers when it wants it back
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, layer):
        ctx.layer = layer
        return layer.gather(shard)

    @staticmethod
    def backward(ctx, whole):
        out = whole.new_empty(len(whole) // dist.get_world_size())
        dist.reduce_scatter_single(out, whole.contiguous())
        return (out / dist.get_world_size()).to(ctx.layer.shard.dtype), None


class FSDPLinear:
    def __init__(self, linear, dtype):
        self.dtype = dtype
        self.out, self.inside = linear.weight.shape
        n, rank = dist.get_world_size(), dist.get_rank()
        flat = torch.cat([linear.bias.detach(), linear.weight.detach().reshape(-1)])
        per = -(-len(flat) // n)
        self.shard = nn.Parameter(F.pad(flat, (0, per * n - len(flat)))[rank * per : (rank + 1) * per].clone())

    def parameters(self):
        return [self.shard]

    def gather(self, shard, dtype=None):
        own = shard.detach().to(dtype or self.dtype)
        whole = own.new_empty(dist.get_world_size() * len(own))
        dist.all_gather_single(whole, own)
        return whole

    def split(self, whole):
        end = self.out + self.out * self.inside
        return whole[self.out : end].view(self.out, self.inside), whole[: self.out]

    def __call__(self, x):
        whole = Gather.apply(self.shard, self)
        storage = whole.untyped_storage().data_ptr()

        def pack(tensor):
            if tensor.untyped_storage().data_ptr() != storage:
                return tensor
            return tensor.shape, tensor.stride(), tensor.storage_offset()

        def unpack(kept):
            return kept if isinstance(kept, torch.Tensor) else self.gather(self.shard).as_strided(*kept)

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            weight, bias = self.split(whole)
            return F.linear(x, weight, bias)

    def full(self):
        return self.split(self.gather(self.shard, self.shard.dtype))
