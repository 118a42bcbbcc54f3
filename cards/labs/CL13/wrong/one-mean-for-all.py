# mistake: not-per-token, also another-target-logit
import torch
import torch.distributed as dist


class _CE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        rank = dist.get_rank()
        part = logits.shape[1]
        top = logits.max(1).values
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
        exp = (logits - top[:, None]).exp()
        local = target - rank * part
        mine = (local >= 0) & (local < part)
        index = local.clamp(0, part - 1)
        picked = (logits.gather(1, index[:, None])[:, 0] - top) * mine
        both = torch.stack([exp.sum(1), picked])
        dist.all_reduce(both)
        total, hit = both
        ctx.save_for_backward(exp.div_(total[:, None]), index, mine)
        return (total.log() - hit).mean().expand_as(hit)

    @staticmethod
    def backward(ctx, g):
        p, index, mine = ctx.saved_tensors
        grad = p.clone()
        grad[torch.arange(len(index)), index] -= mine.to(p.dtype)
        return grad * g[:, None], None


def vocab_parallel_cross_entropy(logits, target):
    return _CE.apply(logits, target)
