# collectives of torch.distributed.nn that know their backward, gradients reduced by hooks
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as collectives


class Parallel(torch.nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block
        for parameter in [*block.norm.parameters(), block.row.bias]:
            parameter.register_hook(self.reduced)

    @staticmethod
    def reduced(gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient

    def forward(self, x):
        whole = torch.cat(collectives.all_gather(self.block.norm(x)))
        part = torch.nn.functional.gelu(self.block.column(whole)) @ self.block.row.weight.T
        own = collectives.reduce_scatter(
            torch.empty_like(x), [p.contiguous() for p in part.chunk(dist.get_world_size())]
        )
        return own + self.block.row.bias + x

    def finish(self):
        pass


def sequence_parallel(block):
    return Parallel(block)
