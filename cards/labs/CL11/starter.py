import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    """Scale all gradients so that the norm of the whole gradient is at most max_norm; return the norm before.

    parameters: an iterator, as model.parameters() gives it. parameter.is_sharded says whether each tensor rank holds
        another part of it; if not, all hold the same. parameter.grad may be None.
    mesh: a DeviceMesh with the dimensions "data" and "tensor"; mesh.get_group("tensor") is a process group.
    """
