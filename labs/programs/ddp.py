"""Data parallelism written out: hooks, buckets, an all-reduce each, and what goes wrong with uneven data.

Each rank has the whole network and its share of the rows. In backward a hook on every weight notices when its gradient
is there; gradients are dealt into buckets in that order, and a full bucket's all-reduce starts at once, while backward
goes on. Divided by the number of ranks, the sums are the gradient of the mean over all rows (Li et al. 2020, "PyTorch
Distributed: Experiences on Accelerating Data Parallel Training", section 3.2).

A collective needs everybody. A rank with more data than the others waits for ranks that are through, until its group's
time-out; with a *join* those go on taking part, with zeros (section 4.1 there).

What hides how much is played over a link that does not exist, with backward's own, measured times: bucket i starts when
it is full and the one before it is through, and takes 2(n−1)/n of its bytes over B. What is still under way when
backward has ended is exposed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs.programs.running import Bench
from labs.spec import DdpOptions


def measure(options: DdpOptions, bench: Bench) -> dict[str, float]:
    """All of it on every rank; quantities are about the first bucket size and the first link."""
    network, rows = _network(options, bench), _rows(options, bench)
    exact = _exactness(options, bench, network, rows)
    uneven = _uneven(options, bench, network, rows)
    return exact | uneven | _overlap(options, bench, network, rows)


def _network(options: DdpOptions, bench: Bench) -> nn.Sequential:
    """The same on every rank: the seed is."""
    torch.manual_seed(bench.seed)
    layers = [nn.Linear(options.width, options.width, bias=False) for _ in range(options.layers)]
    each = [part for layer in layers for part in (layer, nn.Tanh())]
    return nn.Sequential(*each).to(bench.device)


def _rows(options: DdpOptions, bench: Bench) -> tuple[Tensor, Tensor]:
    """Inputs and targets of the whole batch: (batch, width) each, the same on every rank."""
    generator = torch.Generator().manual_seed(bench.seed + 1)
    x, y = (torch.randn(options.batch, options.width, generator=generator) for _ in range(2))
    return x.to(bench.device), y.to(bench.device)


def _loss(network: nn.Module, rows: tuple[Tensor, Tensor]) -> Tensor:
    loss: Tensor = ((network(rows[0]) - rows[1]) ** 2).mean()
    return loss


def _backward(network: nn.Module, rows: tuple[Tensor, Tensor]) -> None:
    network.zero_grad()
    _loss(network, rows).backward()  # type: ignore[no-untyped-call]


def _gradients(network: nn.Module) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]


# --- buckets


@dataclass
class Bucket:
    """Gradients that travel together. `full_at` is on the clock of `time.perf_counter`."""

    gradients: list[Tensor] = field(default_factory=list)
    full_at: float = 0.0
    flat: Tensor | None = None
    work: dist.Work | None = None

    @property
    def size_bytes(self) -> int:
        return sum(each.nbytes for each in self.gradients)


class Buckets:
    """The buckets of one backward, filled by hooks; `sends` says whether a full one is all-reduced."""

    def __init__(self, network: nn.Module, bucket_bytes: int, sends: bool) -> None:
        self.filled: list[Bucket] = [Bucket()]
        self.arrivals: list[tuple[float, int]] = []
        self._most, self._sends = bucket_bytes, sends
        self._hooks = [
            each.register_post_accumulate_grad_hook(self._is_there)  # type: ignore[no-untyped-call]
            for each in network.parameters()
        ]

    def _is_there(self, parameter: Tensor) -> None:
        assert parameter.grad is not None
        bucket = self.filled[-1]
        bucket.gradients.append(parameter.grad)
        self.arrivals.append((time.perf_counter(), parameter.grad.nbytes))
        if bucket.size_bytes >= self._most:
            self._close(bucket)
            self.filled.append(Bucket())

    def _close(self, bucket: Bucket) -> None:
        bucket.full_at = time.perf_counter()
        if self._sends:
            bucket.flat = torch.cat([each.flatten() for each in bucket.gradients])
            bucket.work = dist.all_reduce(bucket.flat, async_op=True)

    def finish(self, divisor: int) -> None:
        """Close the last bucket, wait for all, and put the sums over `divisor` where the gradients were."""
        for hook in self._hooks:
            hook.remove()
        if self.filled[-1].gradients:
            self._close(self.filled[-1])
        else:
            self.filled.pop()
        for bucket in self.filled:
            if bucket.work is None or bucket.flat is None:
                continue
            bucket.work.wait()
            parts = torch.split(bucket.flat / divisor, [each.numel() for each in bucket.gradients])
            for gradient, part in zip(bucket.gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))


def _averaged(
    options: DdpOptions, network: nn.Module, rows: tuple[Tensor, Tensor], divisor: int
) -> tuple[list[Tensor], Buckets]:
    """The gradients after a backward on this rank's rows, summed over the ranks and divided."""
    buckets = Buckets(network, options.bucket_bytes[0], sends=True)
    _backward(network, rows)
    buckets.finish(divisor)
    return _gradients(network), buckets


def _exactness(options: DdpOptions, bench: Bench, network: nn.Module, rows: tuple[Tensor, Tensor]) -> dict[str, float]:
    """By hand against one process that has all rows."""
    _backward(network, rows)
    alone = _gradients(network)
    share = options.batch // bench.ranks
    mine = slice(bench.rank * share, (bench.rank + 1) * share)
    ours, buckets = _averaged(options, network, (rows[0][mine], rows[1][mine]), bench.ranks)
    apart = bench.largest([_apart(one, other) for one, other in zip(ours, alone, strict=True)])
    for layer, each in enumerate(apart, 1):
        bench.point_of_all("difference", "averaged", layer, max(each, 1e-12))
    summed, _ = _averaged(options, network, (rows[0][mine], rows[1][mine]), 1)
    return {
        "buckets": len(buckets.filled),
        "payload_bytes": sum(bucket.size_bytes for bucket in buckets.filled),
        "largest_difference": max(apart),
        "summed_ratio": float(_length(summed) / _length(alone)),
    }


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())


def _length(gradients: Sequence[Tensor]) -> float:
    return float(torch.stack([each.norm() for each in gradients]).norm())


# --- uneven data


def _uneven(options: DdpOptions, bench: Bench, network: nn.Module, rows: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Rank 0 has more batches than the others: without a join it waits for nobody, with one all take all steps."""
    mine = options.batches + (options.extra_batches if bench.rank == 0 else 0)
    # of gloo everywhere: a time-out of NCCL ends the process
    impatient = dist.new_group(timeout=timedelta(seconds=options.timeout_seconds), backend="gloo")
    dist.barrier()  # the short time-out is for what is missing, not for who is late
    done, waited = _step_while_data_lasts(network, rows, mine, impatient, bench)
    dist.barrier()
    joined = _step_with_join(network, rows, mine, bench)
    for name, steps in (("without a join", done), ("with a join", joined)):
        bench.point("uneven", name, bench.rank, steps)
    waited, done_by_most, joined_by_most = bench.largest([waited, float(done), float(joined)])
    bench.say(
        f"without a join rank 0 waited {waited:.2f} s in its step {options.batches + 1} for ranks that were through"
    )
    return {"steps_without_join": done_by_most, "steps_with_join": joined_by_most, "waited_seconds": waited}


def _step_while_data_lasts(
    network: nn.Module, rows: tuple[Tensor, Tensor], batches: int, group: dist.ProcessGroup | None, bench: Bench
) -> tuple[int, float]:
    """Steps done, and seconds waited in the one that never ended."""
    for step in range(batches):
        _backward(network, rows)
        began = time.perf_counter()
        try:
            dist.all_reduce(torch.cat([each.flatten().cpu() for each in _gradients(network)]), group=group)
        except RuntimeError:
            return step, time.perf_counter() - began
    return batches, 0.0


def _step_with_join(network: nn.Module, rows: tuple[Tensor, Tensor], batches: int, bench: Bench) -> int:
    """As many steps as the rank with most data has: before each all say whether they still have some, and who has none
    takes part with zeros."""
    step = 0
    while True:
        has_data = step < batches
        having = torch.tensor([float(has_data)], device=bench.device)
        dist.all_reduce(having)
        if not having.item():
            return step
        if has_data:
            _backward(network, rows)
        gradients = torch.cat([each.flatten() for each in _gradients(network)])
        dist.all_reduce(gradients if has_data else torch.zeros_like(gradients))
        step += 1


# --- overlap


def _overlap(options: DdpOptions, bench: Bench, network: nn.Module, rows: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Backward's own times, rank 0's, and a played link under them."""
    share = slice(0, options.batch // bench.ranks)
    mine = (rows[0][share], rows[1][share])
    arrivals, backward = _arrivals(options, bench, network, mine)
    there = 0.0
    for at, size in arrivals:
        there += size
        bench.point_of_all("arrival", "gradients", at, there)
    on_wire = 2 * (bench.ranks - 1) / bench.ranks
    asked: list[tuple[float, float, float]] = []
    for link in options.links_bytes_per_second:
        for size in options.bucket_bytes:
            played = _play(arrivals, size, on_wire / link)
            exposed = max(0.0, played[-1][1] - backward)
            bench.point_of_all("exposed", f"{link:.3g} B/s", size, exposed)
            asked.append((sum(end - start for start, end in played), played[-1][1] - played[-1][0], exposed))
    link_seconds, tail_seconds, exposed_seconds = asked[0]
    hidden = options.gradient_bytes - _last_bucket_bytes(arrivals, options.bucket_bytes[0])
    until_last_but_one = max(arrivals[-1][0] - arrivals[0][0], 1e-9)
    return {
        "link_seconds": link_seconds,
        "tail_seconds": tail_seconds,
        "exposed_seconds": exposed_seconds,
        "backward_seconds": backward,
        "break_even_bytes_per_second": on_wire * hidden / until_last_but_one,
    }


def _arrivals(
    options: DdpOptions, bench: Bench, network: nn.Module, rows: tuple[Tensor, Tensor]
) -> tuple[list[tuple[float, int]], float]:
    """When each gradient was there, in seconds since backward began, and when it had ended: of the fastest of several
    backwards, for what disturbs one only ever adds to it."""
    best: tuple[list[tuple[float, int]], float] | None = None
    for _ in range(options.repeats + 1):
        network.zero_grad()
        loss = _loss(network, rows)
        buckets = Buckets(network, options.bucket_bytes[0], sends=False)
        began = time.perf_counter()
        loss.backward()  # type: ignore[no-untyped-call]
        seconds = time.perf_counter() - began
        buckets.finish(1)
        if best is None or seconds < best[1]:
            best = [(at - began, size) for at, size in buckets.arrivals], seconds
    assert best is not None
    return best


def _play(
    arrivals: Sequence[tuple[float, int]], bucket_bytes: int, seconds_per_byte: float
) -> list[tuple[float, float]]:
    """When each bucket is on the link: from when it is full and the link is free."""
    played: list[tuple[float, float]] = []
    filled, free_at = 0, 0.0
    for index, (at, size) in enumerate(arrivals):
        filled += size
        if filled >= bucket_bytes or index == len(arrivals) - 1:
            start = max(at, free_at)
            free_at = start + filled * seconds_per_byte
            played.append((start, free_at))
            filled = 0
    return played


def _last_bucket_bytes(arrivals: Sequence[tuple[float, int]], bucket_bytes: int) -> int:
    filled, last = 0, 0
    for _, size in arrivals:
        filled += size
        last = filled
        if filled >= bucket_bytes:
            filled = 0
    return last
