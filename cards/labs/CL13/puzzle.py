import torch
import torch.distributed as dist


class VocabParallelCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        index = target - dist.get_rank() * logits.shape[1]
        is_mine = (index >= 0) & (index < logits.shape[1])
        index = index.where(is_mine, 0)
        pass  # arranged
        ctx.save_for_backward(logits.exp() / total[:, None], index, is_mine)
        return total.log() - picked

    @staticmethod
    def backward(ctx, incoming):
        softmax, index, is_mine = ctx.saved_tensors
        hit = torch.zeros_like(softmax).scatter_(1, index[:, None], is_mine[:, None].to(softmax.dtype))
        return (softmax - hit) * incoming[:, None], None


def vocab_parallel_cross_entropy(logits, target):
    return VocabParallelCrossEntropy.apply(logits, target)
