# mistake: local-norm, also another-factor, another-norm
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    return torch.nn.utils.clip_grad_norm_(parameters, max_norm)
