# mistake: micro-batches-apart
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    total = torch.tensor(tokens)
    dist.all_reduce(total)
    return loss_sum * dist.get_world_size() / total.clamp(min=1) / len(accumulation)
