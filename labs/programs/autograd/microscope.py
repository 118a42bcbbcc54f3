"""What backward computes, seen by hooks, and where it leaves it.

With rows as samples, hᵢ = φ(zᵢ), zᵢ = hᵢ₋₁ Wᵢᵀ and δᵢ = ∂L/∂zᵢ, backward is two formulas for every layer:

  ∂L/∂Wᵢ = δᵢᵀ hᵢ₋₁             an outer product, added up over the rows; it needs the input saved by forward
  δᵢ₋₁   = δᵢ Wᵢ ⊙ φ′(zᵢ₋₁)     what is passed on; it needs the weight

(Rumelhart, Hinton, Williams 1986.) Each takes as many FLOPs as forward, which is why backward takes twice as many.
"""

from __future__ import annotations

import weakref
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.autograd import backward
from torch.nn import functional

from labs.programs.autograd.network import Task, ThreeLayers, difference, gradients, length, losses
from labs.programs.running import Bench


class _Seen:
    """What a layer took in, `h`, and the gradient of what it gave out, `delta`: both (rows, width)."""

    def __init__(self, layer: nn.Linear) -> None:
        self.weight = layer.weight
        self.h = self.delta = torch.empty(0)
        self._hook = layer.register_forward_hook(self._forward)

    def _forward(self, _layer: nn.Module, taken: tuple[Tensor], given: Tensor) -> None:
        self.h = taken[0].detach()
        given.register_hook(self._backward)  # type: ignore[no-untyped-call]
        self._hook.remove()  # one pass is enough

    def _backward(self, gradient: Tensor) -> None:
        self.delta = gradient


def check_formulas(network: ThreeLayers, task: Task, bench: Bench) -> None:
    """Both formulas of every layer, from what hooks saw, held against what autograd has computed."""
    seen = [_Seen(layer) for layer in network.layers]
    backward(losses(network, task).mean())
    for number, each in enumerate(seen, start=1):
        assert each.weight.grad is not None, "backward has reached the weight"
        bench.point("formulas", "∂W = δᵀh", number, difference([each.delta.T @ each.h], [each.weight.grad]))
    for number, (before, each) in enumerate(pairwise(seen), start=2):
        slope = 1 - each.h.square()  # φ′ of tanh, by what it gave: h = tanh(z)
        passed_on = (each.delta @ each.weight.detach()) * slope
        bench.point("formulas", "δ before = δW ⊙ φ′", number, difference([passed_on], [before.delta]))


def keep_adding(network: nn.Module, task: Task, passes: int, bench: Bench) -> float:
    """Backward adds to `.grad`. Returns how long it is after so many passes, over its length after one."""
    ratio = 0.0
    for name, keeps in (("set to None before each", False), ("kept", True)):
        network.zero_grad()
        first = 0.0
        for number in range(1, passes + 1):
            if not keeps:
                network.zero_grad(set_to_none=True)
            backward(losses(network, task).mean())
            now = length(gradients(network))
            first = first or now
            ratio = now / first
            bench.point("kept", name, number, ratio)
    return ratio


def bytes_freed(network: nn.Module, task: Task, set_to_none: bool) -> int:
    """How many bytes of gradients are gone after `zero_grad`: storages that nobody refers to any more."""
    backward(losses(network, task).mean())
    storages = [parameter.grad.untyped_storage() for parameter in network.parameters() if parameter.grad is not None]
    watched = [(weakref.ref(storage), storage.nbytes()) for storage in storages]
    del storages
    network.zero_grad(set_to_none=set_to_none)
    return sum(size for reference, size in watched if reference() is None)


def tied_contributions(width: int, device: torch.device) -> tuple[list[Tensor], Tensor]:
    """A table that is both embedding and output matrix: the gradients of its two uses, and its `.grad`.

    Every use is a tensor of its own in the graph, an alias of the table; autograd adds up what comes back from them.
    """
    table = nn.Parameter(torch.randn(width, width, dtype=torch.float64, device=device))
    tokens = torch.arange(width, device=device)
    came: list[Tensor] = []
    embedding, output = table.view_as(table), table.view_as(table)
    for use in (embedding, output):
        use.register_hook(came.append)  # type: ignore[no-untyped-call]
    logits = functional.embedding(tokens, embedding) @ output.T
    backward(functional.cross_entropy(logits, tokens.roll(-1)))
    assert table.grad is not None, "backward has reached the table"
    return came, table.grad
