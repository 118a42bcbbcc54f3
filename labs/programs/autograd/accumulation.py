"""A batch in pieces: when the gradients that add up are those of the whole, and when they are not.

The mean over a batch is the mean of the means of its pieces, if all are of one size and no row's result depends on
another row. So each piece's loss is divided by the number of pieces, and backward adds up the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.autograd import backward

from labs.programs.autograd.network import (
    Task,
    ThreeLayers,
    difference,
    gradients,
    length,
    losses,
    new_network,
    new_task,
)
from labs.programs.running import Bench
from labs.spec import AutogradOptions

_TOO_LARGE = 1e6  # a loss at which training is over


def accumulate(network: nn.Module, task: Task, parts: int, divisor: float) -> list[Tensor]:
    """The gradient after one backward pass for each of `parts` equal pieces, each loss divided by `divisor`."""
    network.zero_grad()
    for piece in task.pieces(parts):
        backward(losses(network, piece).mean() / divisor)
    return gradients(network)


def compare_with_one_batch(options: AutogradOptions, bench: Bench) -> float:
    """By the number of pieces: how far the accumulated gradient is from one batch's, and how long it is where the
    division was forgotten. Returns the latter for `pieces`."""
    for name, dtype, with_batch_norm in (
        ("fp64", torch.float64, False),
        ("fp32", torch.float32, False),
        ("fp32 with batch norm", torch.float32, True),
    ):
        network = new_network(options.width, bench.seed, bench.device, dtype, with_batch_norm)
        task = new_task(options.batch, options.width, bench.seed, bench.device, dtype)
        whole = accumulate(network, task, 1, 1)
        for parts in options.ways_to_cut:
            bench.point("accumulated", name, parts, difference(accumulate(network, task, parts, parts), whole))
            if dtype == torch.float64:
                ratio = length(accumulate(network, task, parts, 1)) / length(whole)
                bench.point("undivided", "not divided", parts, ratio)
                divided = length(accumulate(network, task, parts, parts)) / length(whole)
                bench.point("undivided", "divided", parts, divided)
    return ratio


def train_undivided(options: AutogradOptions, bench: Bench) -> None:
    """The division forgotten: to SGD a rate that many times as large, to Adam, which divides by the gradient's own
    size, next to nothing."""
    sgd = _optimizer(torch.optim.SGD, options.sgd_rate)
    sgd_faster = _optimizer(torch.optim.SGD, options.sgd_rate * options.pieces)
    adam = _optimizer(torch.optim.Adam, options.adam_rate)
    for name, make, divisor in (
        ("SGD", sgd, options.pieces),
        ("SGD, not divided", sgd, 1),
        (f"SGD, {options.pieces} times the rate", sgd_faster, options.pieces),
        ("Adam", adam, options.pieces),
        ("Adam, not divided", adam, 1),
    ):
        for step, loss in enumerate(_train(options, bench, make, divisor), start=1):
            bench.point("training", name, step, loss)


MakeOptimizer = Callable[[ThreeLayers], torch.optim.Optimizer]


def _optimizer(kind: Callable[..., torch.optim.Optimizer], rate: float) -> MakeOptimizer:
    return lambda network: kind(network.parameters(), lr=rate)


def _train(options: AutogradOptions, bench: Bench, make: MakeOptimizer, divisor: int) -> Iterator[float]:
    """The loss of every step, until it is out of all bounds."""
    network = new_network(options.width, bench.seed, bench.device)
    optimizer = make(network)
    for step in range(options.steps):
        task = new_task(options.batch, options.width, bench.seed, bench.device, step=step)
        loss = float(losses(network, task).mean().detach())
        if not math.isfinite(loss) or loss > _TOO_LARGE:
            return
        yield loss
        accumulate(network, task, options.pieces, divisor)
        optimizer.step()


def count_tokens(options: AutogradOptions, bench: Bench) -> float:
    """Unequal pieces: what a row of each counts for, by the mean of means and by dividing by all rows.

    autograd is asked: the gradient of the loss by one row's loss is what that row counts for.
    Returns the largest over the smallest, by the mean of means.
    """
    counts = options.token_counts
    network = new_network(options.width, bench.seed, bench.device, torch.float64)
    task = new_task(sum(counts), options.width, bench.seed, bench.device, torch.float64)
    x, y = (torch.split(rows, list(counts)) for rows in (task.x, task.y))
    pieces = [Task(*piece) for piece in zip(x, y, strict=True)]
    whole = accumulate(network, task, 1, 1)
    weights: list[float] = []
    for name, divisors in (
        ("mean of means", [len(counts) * count for count in counts]),
        ("divided by all tokens", [sum(counts)] * len(counts)),
    ):
        network.zero_grad()
        found = [_weigh(network, piece, divisor) for piece, divisor in zip(pieces, divisors, strict=True)]
        weights = weights or found
        for count, weight in zip(counts, found, strict=True):
            bench.point("unequal", name, count, weight * sum(counts))
        bench.say(f"Unequal pieces, {name}: the gradient is off by {difference(gradients(network), whole):.2g}.")
    return max(weights) / min(weights)


def _weigh(network: nn.Module, piece: Task, divisor: int) -> float:
    """Backward for a piece's losses over `divisor`; what each of them counted for."""
    each = losses(network, piece)
    each.retain_grad()
    backward(each.sum() / divisor)
    assert each.grad is not None, "it was retained"
    return float(each.grad[0])
