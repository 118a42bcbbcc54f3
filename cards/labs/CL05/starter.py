import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    """What backward() is called on for this micro-batch.

    loss_sum: the losses of its valid tokens, added up.
    tokens: how many those are.
    accumulation: the counts of all micro-batches of this rank in this step, this one included.
    """
