"""A small GPT on real text in each format: which gradients are lost, and what that does to the loss.

The loss is divided by `averaged_over`, as that of one of so many micro-batches is. AdamW divides by the gradient's own
size, so to the update the factor is next to nothing; to fp16, whose smallest number is 6e-8, it is everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd import backward

from labs.data import draw_passages, load_text
from labs.model import build_model
from labs.programs.formats.arithmetic import Format
from labs.programs.formats.scaling import new_scaler
from labs.spec import FormatsOptions, Model

_SHAPE = Model(layers=2, hidden=64, heads=4, kv_heads=4, ffn_hidden=256, vocab=256)
_SEQUENCE, _ROWS = 32, 8


@dataclass(frozen=True)
class Way:
    """How the model is computed: matrix products in `compute` under autocast where that is not None, weights kept in
    `weights`, with or without loss scaling."""

    name: str
    compute: torch.dtype | None = None
    weights: torch.dtype = torch.float32
    scaled: bool = False


WAYS = (
    Way("fp32"),
    Way("bf16", torch.bfloat16),
    Way("bf16 weights as well", None, torch.bfloat16),
    Way("fp16", torch.float16),
    Way("fp16 with loss scaling", torch.float16, scaled=True),
)


@dataclass(frozen=True)
class Training:
    """`losses` of every step in nats; `scales` they were made with; the last step's gradients in fp32, as they were
    updated with."""

    losses: list[float]
    scales: list[float]
    gradients: Tensor


def train(way: Way, options: FormatsOptions, seed: int, device: torch.device) -> Training:
    """The same weights and the same text for every way."""
    model = build_model(_SHAPE, _SEQUENCE, seed).to(device, way.weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    scaler = new_scaler(device, options.growth_interval, enabled=way.scaled)
    losses, scales = list[float](), list[float]()
    for tokens, targets in _batches(options.steps, seed, device):
        with torch.autocast(device.type, dtype=way.compute, enabled=way.compute is not None):
            loss: Tensor = model(tokens, targets)
        losses.append(float(loss.detach()))
        scales.append(scaler.get_scale())
        optimizer.zero_grad()
        backward(scaler.scale(loss / options.averaged_over))
        scaler.step(optimizer)  # skips the step where a gradient is infinite
        scaler.update()
    return Training(losses, scales, _flat_gradients(model))


def _batches(steps: int, seed: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    text = load_text()
    for step in range(1, steps + 1):
        passages = draw_passages(text, _SEQUENCE, _ROWS, (seed, step)).to(device)
        yield passages[:, :-1].contiguous(), passages[:, 1:].contiguous()


def _flat_gradients(model: nn.Module) -> Tensor:
    """Of all parameters as one vector."""
    return torch.cat([each.grad.flatten().float() for each in model.parameters() if each.grad is not None])


def shares_by_exponent(gradients: Tensor) -> dict[int, float]:
    """How large gradients are: the share of those from 2^k up to 2^(k+1), by k. Zeros are left out."""
    sizes = gradients[gradients != 0].abs()
    exponents = torch.frexp(sizes).exponent - 1
    lowest = int(exponents.min())
    counts = torch.bincount(exponents - lowest).tolist()
    return {lowest + number: count / len(sizes) for number, count in enumerate(counts)}


def share_lost(gradients: Tensor, number_format: Format, scale: float) -> float:
    """Of the gradients that are not zero, those that are zero in the format when multiplied by `scale`."""
    sizes = gradients[gradients != 0].double()
    return float(((sizes * scale).to(number_format.dtype).float() == 0).float().mean())
