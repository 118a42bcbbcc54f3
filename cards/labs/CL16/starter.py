import torch
import torch.distributed as dist


def run_stage(actions, module, inputs, loss, like):
    """Carry out this rank's actions, such as ["F0", "F1", "B0", ...].

    module(x): this stage's layers. inputs: the micro-batches on the first stage, None elsewhere.
    loss(i, y): the loss of micro-batch i on the last stage, None elsewhere.
    like: a tensor of the shape and dtype that crosses every boundary.
    Returns the mean loss on the last stage, None elsewhere.
    """
