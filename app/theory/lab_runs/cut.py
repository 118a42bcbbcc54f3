"""What tensor parallelism cuts of a layer: each tensor's part on one rank. Source: Shoeybi et al. 2019, section 3."""

from __future__ import annotations

from dataclasses import replace

from app.theory.transformer import Tensor

_BY_OUTPUTS = ("token embedding", "head", "query", "key", "value", "MLP up", "MLP gate")
_BY_INPUTS = ("attention output", "MLP down")


def cut_over_tensor(tensor: Tensor, ranks: int) -> Tensor:
    """A rank's part of `tensor`: some of its outputs, some of its inputs, or, where it is not cut, all of it."""
    rows, *columns = tensor.shape
    if tensor.name in _BY_OUTPUTS:
        return replace(tensor, shape=(rows // ranks, *columns))
    if tensor.name in _BY_INPUTS:
        return replace(tensor, shape=(rows, *(each // ranks for each in columns)))
    return tensor
