# mistake: empty-micro-batch
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    total = torch.tensor(sum(accumulation))
    dist.all_reduce(total)
    mean = loss_sum / torch.tensor(float(tokens), dtype=torch.float64)
    return mean * tokens / total * dist.get_world_size()
