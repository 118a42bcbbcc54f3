import torch
import torch.distributed as dist


def vocab_parallel_cross_entropy(logits, target):
    """The loss of each token.

    logits: [tokens, V/n], this rank's part of the vocabulary: words rank·V/n up to (rank + 1)·V/n.
    target: [tokens], the right word of each token, from 0 to V − 1; the same on every rank.
    """
