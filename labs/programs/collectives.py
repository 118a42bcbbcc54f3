"""What collectives send and how long they take, by algorithm and by size.

Every algorithm does its work once to be checked and counted: on small whole numbers, whose sums no type here rounds, so
that it must agree with the library to the last bit. Then it is timed, all ranks beginning together; what counts is the
time until the last of them is done.

Beside that, two of the ranks time single messages. The latency and the bandwidth that explain these times best make a
prediction of what a ring and a tree should take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labs.collectives import library
from labs.collectives.cost import Cost, fit_cost
from labs.collectives.naive import naive_all_reduce
from labs.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from labs.collectives.server import server_all_reduce
from labs.collectives.tree import tree_all_reduce
from labs.collectives.wire import Wire
from labs.programs.running import DTYPES, Bench
from labs.spec.programs import CollectivesOptions

Collective = Callable[[Tensor, Wire], None]

ALL_REDUCES: Mapping[str, Collective] = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "naive": naive_all_reduce,
    "server": server_all_reduce,
}
HALVES: Mapping[str, Collective] = {
    "ring reduce-scatter": ring_reduce_scatter,
    "ring all-gather": ring_all_gather,
}
WRITTEN_OUT = {**ALL_REDUCES, **HALVES}
_PREDICTED: Mapping[str, Callable[[Cost, float, int], float]] = {"ring": Cost.ring_seconds, "tree": Cost.tree_seconds}


def measure(options: CollectivesOptions, bench: Bench) -> dict[str, float]:
    """Times, messages and bytes by size; α and B; the largest difference from the library's results."""
    found: dict[str, float] = {}
    for size in sorted(options.sizes_bytes):
        for name in options.algorithms:
            if name in WRITTEN_OUT:
                error, sent, messages = _checked(name, _whole_numbers(options, bench, size))
                error, sent, messages = bench.largest([error, sent, messages])
                bench.point_of_all("bytes_sent", name, size, sent)
                bench.point_of_all("messages_sent", name, size, messages)
                found["largest_error"] = max(found.get("largest_error", 0.0), error)
                found |= {f"{name}_bytes_sent": sent, f"{name}_messages_sent": messages}  # the largest size comes last
            work = _work(name, _zeros(options, bench, size))
            bench.point_of_all("seconds", name, size, bench.seconds_together(work, options.repeats))
    cost = _ping_pong(options, bench)
    _predict(options, bench, cost)
    quantities = {name: value for name, value in found.items() if name in options.quantities}
    return quantities | {"latency_seconds": cost.latency_seconds, "bytes_per_second": cost.bytes_per_second}


def _work(name: str, tensor: Tensor) -> Callable[[], Any]:
    if name not in WRITTEN_OUT:
        return library.prepare(name.removeprefix("library "), tensor)
    return partial(WRITTEN_OUT[name], tensor, Wire())


def _zeros(options: CollectivesOptions, bench: Bench, size: int) -> Tensor:
    """Zeros stay zeros, however often they are added up; and they take as long as other numbers."""
    dtype = DTYPES[options.dtype]
    return torch.zeros(size // dtype.itemsize, dtype=dtype, device=bench.device)


def _whole_numbers(options: CollectivesOptions, bench: Bench, size: int) -> Tensor:
    """0 to 7 over and over, beginning elsewhere on each rank: of eight ranks the sums stay below 64."""
    zeros = _zeros(options, bench, size)
    places = torch.arange(len(zeros), device=bench.device)
    return zeros + ((places + 3 * bench.rank) % 8).to(zeros.dtype)


def _checked(name: str, tensor: Tensor) -> tuple[float, float, float]:
    """The largest difference between a collective's result and the library's, and the bytes and messages it sent.

    Of a ring's halves one leaves the sums in each rank's own chunk only, and the other begins with them there.
    """
    wire, expected = Wire(), tensor.clone()
    dist.all_reduce(expected)
    if name == "ring all-gather":
        tensor.zero_()
        _own_chunk(tensor, wire).copy_(_own_chunk(expected, wire))
    WRITTEN_OUT[name](tensor, wire)
    if name == "ring reduce-scatter":
        tensor, expected = _own_chunk(tensor, wire), _own_chunk(expected, wire)
    error = (tensor - expected).abs().max().item() if len(tensor) else 0.0
    return error, wire.bytes_sent, wire.messages_sent


def _own_chunk(tensor: Tensor, wire: Wire) -> Tensor:
    return tensor.tensor_split(wire.ranks)[wire.rank]


def _ping_pong(options: CollectivesOptions, bench: Bench) -> Cost:
    """α and B of one message from rank 0 to rank 1: half of the time of a message there and one back."""
    sizes = sorted(options.sizes_bytes)
    seconds = []
    for size in sizes:
        there_and_back = partial(_to_and_fro, _zeros(options, bench, size), Wire())
        seconds.append(bench.seconds_together(there_and_back, options.repeats) / 2)
        bench.point_of_all("ping_pong", "measured", size, seconds[-1])
    cost = fit_cost(sizes, seconds)
    for size in sizes:
        bench.point_of_all("ping_pong", "α + S/B", size, cost.message_seconds(size))
    bench.say(f"α = {cost.latency_seconds * 1e6:.0f} µs, B = {cost.bytes_per_second / 1e6:.0f} MB/s")
    return cost


def _to_and_fro(tensor: Tensor, wire: Wire) -> None:
    if wire.rank == 0:
        wire.send(tensor, 1)
        wire.receive(tensor, 1)
    elif wire.rank == 1:
        wire.receive(tensor, 0)
        wire.send(tensor, 0)


def _predict(options: CollectivesOptions, bench: Bench, cost: Cost) -> None:
    for name in (name for name in options.algorithms if name in _PREDICTED):
        for size in sorted(options.sizes_bytes):
            bench.point_of_all("seconds", f"{name} by α and B", size, _PREDICTED[name](cost, size, bench.ranks))
    threshold = cost.ring_wins_from_bytes(bench.ranks)
    bench.say("by α and B a ring beats a tree " + (f"from {threshold:,.0f} bytes on" if threshold else "at any size"))
