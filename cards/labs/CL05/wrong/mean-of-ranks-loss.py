# mistake: mean-of-means
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    count = torch.tensor(1 if tokens else 0)
    dist.all_reduce(count)
    return loss_sum / max(tokens, 1) * dist.get_world_size() / count / len(accumulation)
