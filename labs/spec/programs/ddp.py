"""Data parallelism written out by hand: what the `ddp` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity, repeated
from labs.spec.shapes import nearest_divisors
from labs.violations import Violation

MAX_PARAMETERS = 20_000_000  # every rank holds them, their gradients and a copy of these
MAX_FLOPS = 2e12  # of all ranks: some seconds of a laptop
_FP32_BYTES = 4

BucketBytes = Annotated[int, Field(ge=1024, le=2**31)]
LinkSpeed = Annotated[float, Field(ge=1e5, le=1e12)]


class DdpOptions(Options):
    """`layers` square linear layers `width` wide on `batch` rows in all, gradients averaged in buckets.

    The first of `bucket_bytes` and of `links_bytes_per_second` is the one that quantities are about; links are played,
    not real. Rank 0 has `extra_batches` more than the others' `batches` of uneven data, and a collective that nobody
    else enters is given up after `timeout_seconds`.
    """

    title: ClassVar[str] = "Data parallelism by hand"
    about: ClassVar[str] = (
        "Hooks, buckets and an all-reduce each, held against one process; uneven data with and without a join; and "
        "what of a link's time backward hides."
    )
    axis: ClassVar[Literal["data", "pipeline"] | None] = "data"
    fewest_ranks: ClassVar[int] = 2
    figures: ClassVar[Mapping[str, Figure]] = {
        "difference": Figure(
            "Gradient held against that of one process", "layer", "largest relative difference", y_log=True
        ),
        "arrival": Figure("Gradients arrive during backward", "there since backward began", "there", "s", "B"),
        "exposed": Figure("What backward does not hide", "bucket", "after backward", "B", "s", x_log=True),
        "uneven": Figure("Steps on uneven data", "rank", "steps done"),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "buckets": Quantity("All-reduces of one backward", "count"),
        "payload_bytes": Quantity("Handed to all-reduces in one backward", "bytes"),
        "summed_ratio": Quantity("How much too long a gradient is that is summed and not averaged", "count"),
        "largest_difference": Quantity("Largest relative difference from one process", "count"),
        "steps_without_join": Quantity("Steps until a rank waits for others that have no data", "count"),
        "steps_with_join": Quantity("Steps when those join with zeros", "count"),
        "waited_seconds": Quantity("Time until the waiting rank gave up", "seconds"),
        "link_seconds": Quantity("Time the link needs for one backward's buckets", "seconds"),
        "tail_seconds": Quantity("Of it, the bucket that is full last", "seconds"),
        "exposed_seconds": Quantity("Time the link needs after backward has ended", "seconds"),
        "backward_seconds": Quantity("Time of backward", "seconds"),
        "break_even_bytes_per_second": Quantity("Link at which only the last bucket shows", "bytes_per_second"),
    }

    program: Literal["ddp"] = "ddp"
    width: Annotated[int, Field(ge=8, le=2048)] = 256
    layers: Annotated[int, Field(ge=2, le=64)] = 8
    batch: Annotated[int, Field(ge=2, le=4096)] = 64
    bucket_bytes: Annotated[tuple[BucketBytes, ...], Field(min_length=1, max_length=8)] = (2**20, 2**18, 2**22)
    links_bytes_per_second: Annotated[tuple[LinkSpeed, ...], Field(min_length=1, max_length=4)] = (1e9, 1e8, 1e10)
    batches: Annotated[int, Field(ge=1, le=50)] = 4
    extra_batches: Annotated[int, Field(ge=1, le=50)] = 2
    timeout_seconds: Annotated[float, Field(ge=0.2, le=5)] = 1.0
    repeats: Annotated[int, Field(ge=1, le=20)] = 5

    @property
    def layer_bytes(self) -> int:
        """One layer's gradient, in fp32; there are no biases."""
        return _FP32_BYTES * self.width * self.width

    @property
    def gradient_bytes(self) -> int:
        return self.layers * self.layer_bytes

    def layers_in_buckets(self, bucket_bytes: int) -> tuple[int, ...]:
        """How many layers' gradients each bucket takes, in the order of backward: one is closed as soon as it has
        reached `bucket_bytes`."""
        each = -(-bucket_bytes // self.layer_bytes)
        full, rest = divmod(self.layers, each)
        return (each,) * full + ((rest,) if rest else ())

    def check(self, ranks: int) -> Iterator[Violation]:
        if self.batch % ranks:
            message = f"{self.batch} rows do not make {ranks} equal shares."
            accepted = nearest_divisors(self.batch, ranks) if self.batch < ranks else f"a multiple of {ranks}"
            yield Violation("options.batch", self.batch, message, accepted, ("parallel.data",))
        yield from repeated("bucket_bytes", self.bucket_bytes)
        yield from repeated("links_bytes_per_second", self.links_bytes_per_second)
        parameters = self.layers * self.width**2
        if parameters > MAX_PARAMETERS:
            message = f"{self.layers} layers of width {self.width:,} are {parameters:,} parameters."
            most = f"at most {int((MAX_PARAMETERS / self.layers) ** 0.5):,} at this depth"
            yield Violation("options.width", self.width, message, most, ("options.layers",))
        flops = 6.0 * parameters * self.batch * (2 + ranks) * (self.repeats + 4 + self.batches + self.extra_batches)
        if flops > MAX_FLOPS:
            message = f"All of it takes about {flops:.1e} FLOPs; a run may use {MAX_FLOPS:.0e}."
            yield Violation("options.batch", self.batch, message, "fewer rows, repeats, layers or a smaller width")
