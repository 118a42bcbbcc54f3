"""Collectives by algorithm and size: what the `collectives` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity, repeated
from labs.violations import Violation

Algorithm = Literal[
    "ring",
    "tree",
    "naive",
    "server",
    "ring reduce-scatter",
    "ring all-gather",
    "library all-reduce",
    "library all-gather",
    "library reduce-scatter",
    "library broadcast",
    "library all-to-all",
]
Size = Annotated[int, Field(ge=4, le=2**26)]
_VALUE_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
MAX_MEMORY_BYTES = 2e9  # of all ranks, which hold a few tensors of the largest size each
MAX_TRAFFIC_BYTES = 4e10  # a laptop moves about a gigabyte a second between its ranks
_TENSORS = 5


def _beside_its_law(title: str) -> Figure:
    """Times by size, and what α and B fitted to them say."""
    return Figure(title, "size", "time", "B", "s", x_log=True, y_log=True, fitted=("α",), is_affine=True)


class CollectivesOptions(Options):
    """All-reduces (and both halves of a ring's) written out in messages, beside what the library offers."""

    title: ClassVar[str] = "Collectives"
    about: ClassVar[str] = "What rings, trees and servers send, how long they take, and what α and B explain of it."
    axis: ClassVar[Literal["data", "pipeline"] | None] = "data"
    fewest_ranks: ClassVar[int] = 2
    may_span_hosts: ClassVar[bool] = True
    figures: ClassVar[Mapping[str, Figure]] = {
        "seconds": _beside_its_law("Time, as the slowest rank sees it"),
        "bytes_sent": Figure("Sent by the busiest rank", "size", "sent", "B", "B", x_log=True, y_log=True),
        "messages_sent": Figure("Messages from the busiest rank", "size", "messages", "B", "", x_log=True),
        "ping_pong": _beside_its_law("One message between two ranks"),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "ring_bytes_sent": Quantity("Ring: sent by the busiest rank at the largest size", "bytes"),
        "tree_bytes_sent": Quantity("Tree: sent by the busiest rank at the largest size", "bytes"),
        "naive_bytes_sent": Quantity("Naive: sent by the busiest rank at the largest size", "bytes"),
        "server_bytes_sent": Quantity("Parameter server: sent by the server at the largest size", "bytes"),
        "ring_messages_sent": Quantity("Ring: messages from the busiest rank at the largest size", "count"),
        "tree_messages_sent": Quantity("Tree: messages from the busiest rank at the largest size", "count"),
        "largest_error": Quantity("Largest difference from the library's result", "count"),
        "latency_seconds": Quantity("α, fitted to the ping-pong", "seconds"),
        "bytes_per_second": Quantity("B, fitted to the ping-pong", "bytes_per_second"),
    }

    program: Literal["collectives"] = "collectives"
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1, max_length=11)] = (
        "ring",
        "tree",
        "naive",
        "server",
        "library all-reduce",
    )
    sizes_bytes: Annotated[tuple[Size, ...], Field(min_length=2, max_length=12)] = (
        1_024,
        8_192,
        65_536,
        524_288,
        4_194_304,
    )
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    dtype: Literal["fp32", "bf16", "fp16"] = "fp32"

    @property
    def value_bytes(self) -> int:
        return _VALUE_BYTES[self.dtype]

    def check(self, ranks: int) -> Iterator[Violation]:
        for index, size in enumerate(self.sizes_bytes):
            if size % self.value_bytes:
                message = f"{size:,} bytes hold no whole number of {self.dtype} values."
                accepted = f"a multiple of {self.value_bytes}"
                yield Violation(f"options.sizes_bytes.{index}", size, message, accepted, ("options.dtype",))
        yield from repeated("algorithms", self.algorithms)
        yield from repeated("sizes_bytes", self.sizes_bytes)
        largest, total = max(self.sizes_bytes), sum(self.sizes_bytes)
        if _TENSORS * ranks * largest > MAX_MEMORY_BYTES:
            message = f"{ranks} ranks would hold {_TENSORS} tensors each of {largest:,} bytes."
            most = int(MAX_MEMORY_BYTES / _TENSORS / ranks)
            yield Violation("options.sizes_bytes", self.sizes_bytes, message, f"at most {most:,} bytes")
        # the naive all-reduce, which sends the most: n(n−1) tensors between all ranks
        traffic = ranks * (ranks - 1) * total * len(self.algorithms) * (self.repeats + 2.0)
        if traffic > MAX_TRAFFIC_BYTES:
            message = f"All of it may send {traffic:.1e} bytes; a run may send {MAX_TRAFFIC_BYTES:.0e}."
            yield Violation("options.sizes_bytes", self.sizes_bytes, message, "smaller sizes, or fewer repeats")
