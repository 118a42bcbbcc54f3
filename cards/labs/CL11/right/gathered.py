# everybody tells its squares
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    group = mesh["tensor"].get_group()
    own = torch.tensor([sum(float(p.grad.square().sum()) for p in parameters if p.is_sharded)], dtype=torch.float64)
    every = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(every, own, group=group)
    shared = torch.nn.utils.get_total_norm([p.grad for p in parameters if not p.is_sharded])
    norm = torch.cat([*every, shared.reshape(1).double() ** 2]).sum().sqrt()
    torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    return norm
