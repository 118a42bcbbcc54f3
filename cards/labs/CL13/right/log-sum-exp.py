# a log-sum-exp of log-sum-exps, gathered
import torch
import torch.distributed as dist


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        n, part = dist.get_world_size(), logits.shape[1]
        rows = torch.arange(len(target))
        mine = target // part == dist.get_rank()
        own = torch.zeros(2, len(target), dtype=logits.dtype)
        own[0] = logits.logsumexp(1)
        own[1, mine] = logits[rows[mine], target[mine] % part]
        every = [torch.empty_like(own) for _ in range(n)]
        dist.all_gather(every, own)
        every = torch.stack(every)
        total = every[:, 0].logsumexp(0)
        ctx.save_for_backward(logits, total, rows[mine], target[mine] % part)
        return total - every[:, 1].sum(0)

    @staticmethod
    def backward(ctx, incoming):
        logits, total, rows, columns = ctx.saved_tensors
        gradient = (logits - total[:, None]).exp()
        gradient[rows, columns] -= 1
        return gradient * incoming[:, None], None


def vocab_parallel_cross_entropy(logits, target):
    return Loss.apply(logits, target)
