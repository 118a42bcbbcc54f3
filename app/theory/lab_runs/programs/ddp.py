"""What the `ddp` program should count: buckets and bytes, the steps on uneven data, and a link's time."""

from __future__ import annotations

from collections.abc import Iterator

from app.theory.collectives import ring_all_reduce_bytes
from app.theory.lab_runs.programs.parts import Expected, Point
from labs.spec import DdpOptions


def expect(options: DdpOptions, ranks: int) -> Expected:
    """Quantities about the first bucket size and the first link. How long backward takes, and so what it hides, depends
    on the machine."""
    layers, link = options.layers_in_buckets(options.bucket_bytes[0]), options.links_bytes_per_second[0]
    sent = ring_all_reduce_bytes(options.gradient_bytes, ranks)
    quantities = {
        "buckets": float(len(layers)),
        "payload_bytes": float(options.gradient_bytes),
        "summed_ratio": float(ranks),
        "steps_without_join": float(options.batches),
        "steps_with_join": float(options.batches + options.extra_batches),
        "waited_seconds": options.timeout_seconds,
        "link_seconds": sent / link,
        "tail_seconds": sent * layers[-1] / options.layers / link,
    }
    return Expected(tuple(_points(options, ranks)), quantities)


def _points(options: DdpOptions, ranks: int) -> Iterator[Point]:
    """What is left however long backward takes: the last bucket, which is full only when backward has ended."""
    sent = ring_all_reduce_bytes(options.gradient_bytes, ranks)
    for link in options.links_bytes_per_second:
        for size in sorted(options.bucket_bytes):
            last = options.layers_in_buckets(size)[-1] / options.layers
            yield Point("exposed", link_name(link), size, sent * last / link)
    for rank in range(ranks):
        for name, steps in (
            ("without a join", options.batches),
            ("with a join", options.batches + options.extra_batches),
        ):
            yield Point("uneven", name, rank, steps)


def link_name(bytes_per_second: float) -> str:
    """As the program names the series of a link."""
    return f"{bytes_per_second:.3g} B/s"
