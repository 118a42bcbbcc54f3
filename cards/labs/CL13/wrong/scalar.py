# mistake: not-per-token, also another-sum
import torch
import torch.distributed as dist


class VocabParallelCrossEntropy(torch.autograd.Function):
    """Three numbers a token travel: the greatest logit, the sum of exponentials, the target's logit."""

    @staticmethod
    def forward(ctx, logits, target):
        part = logits.shape[1]
        index = target - dist.get_rank() * part
        is_mine = (index >= 0) & (index < part)
        index = index.where(is_mine, 0)

        greatest = logits.amax(1)
        dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
        logits = logits - greatest[:, None]
        picked = logits.gather(1, index[:, None]).squeeze(1) * is_mine
        dist.all_reduce(picked)
        exponentials = logits.exp()
        total = exponentials.sum(1)
        dist.all_reduce(total)

        ctx.save_for_backward(exponentials / total[:, None], index, is_mine)
        return total.log() - picked

    @staticmethod
    def backward(ctx, incoming):
        softmax, index, is_mine = ctx.saved_tensors
        hit = torch.zeros_like(softmax).scatter_(1, index[:, None], is_mine[:, None].to(softmax.dtype))
        return (softmax - hit) * incoming[:, None], None


def vocab_parallel_cross_entropy(logits, target):
    return VocabParallelCrossEntropy.apply(logits, target).mean()
