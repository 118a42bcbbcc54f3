"""Gradient compression: what can be asked for, and what it is tested with."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families.row import Row
from labs.spec.run import Compression, RunSpec
from labs.violations import Violation

_TWO_AND_FOUR = ({"data": 2}, {"data": 4})
_BUCKETS = {"bucket_bytes": 50_000}
_NINE_IN_TEN = "Nine in ten values of a gradient are not sent in this step."

ROWS: tuple[Row, ...] = (
    Row(
        "fp16-gradients",
        "fp16 gradients",
        "compression",
        _TWO_AND_FOUR,
        compression={"kind": "fp16"},
        tolerance=1e-5,
        why="Gradients are rounded to 11 bits, and added in them.",
    ),
    Row(
        "bf16-gradients",
        "bf16 gradients",
        "compression",
        _TWO_AND_FOUR,
        _BUCKETS,
        compression={"kind": "bf16"},
        tolerance=1e-4,
        why="Gradients are rounded to 8 bits, and added in them.",
    ),
    Row(
        "bf16-gradients-plain",
        "bf16 gradients, no error feedback",
        "compression",
        ({"data": 2},),
        compression={"kind": "bf16", "error_feedback": False},
        tolerance=1e-4,
        why="Gradients are rounded to 8 bits, and added in them.",
    ),
    *(
        Row(
            f"{kind}{suffix}",
            f"{title}{words}",
            "compression",
            layouts,
            _BUCKETS,
            compression={"kind": kind, "error_feedback": feedback, **settings},
            tolerance=tolerance,
            why=why,
        )
        for kind, title, settings, tolerance, why in (
            ("top-k", "Top-k", {"density": 0.1}, 0.03, _NINE_IN_TEN),
            ("random-k", "Random-k", {"density": 0.1}, 0.06, _NINE_IN_TEN + " Chance chooses, not size."),
            ("one-bit", "1-bit", {}, 0.01, "Of each value only the sign is sent."),
            ("powersgd", "PowerSGD", {"rank": 2}, 0.03, "Of each matrix's gradient two directions are sent."),
        )
        for feedback, suffix, words, layouts in (
            (True, "", " with error feedback", _TWO_AND_FOUR),
            (False, "-plain", ", no error feedback", ({"data": 2},)),
        )
    ),
)


def check_compression(spec: RunSpec) -> Iterator[Violation]:
    """Where gradients can be compressed, and which settings a kind has."""
    compression = spec.compression
    if compression.kind != "none":
        yield from _check_place(spec)
    used = {"top-k": ("density",), "random-k": ("density",), "powersgd": ("rank",)}.get(compression.kind, ())
    for name in ("density", "rank"):
        value, default = getattr(compression, name), getattr(Compression(), name)
        if name not in used and value != default:
            message = f"Compression {compression.kind!r} has no {name}."
            yield Violation(f"compression.{name}", value, message, str(default), ("compression.kind",))
    if compression.kind == "none" and not compression.error_feedback:
        message = "Without compression there is no error to feed back."
        yield Violation("compression.error_feedback", False, message, "True", ("compression.kind",))


def _check_place(spec: RunSpec) -> Iterator[Violation]:
    """It replaces the all-reduce of DDP's buckets, and works on fp32 gradients."""
    kind, parallel = spec.compression.kind, spec.parallel
    if parallel.zero:
        message = f"Compressed gradients take the place of DDP's all-reduce; ZeRO-{parallel.zero} has none."
        yield Violation("compression.kind", kind, message, "none", ("parallel.zero",))
    if spec.training.state_layout not in ("fp32", "torch-amp"):
        message = f"Gradients in {spec.training.state_layout} are in 16 bits already."
        yield Violation("compression.kind", kind, message, "none", ("training.state_layout",))
    wide = [axis for axis in ("tensor", "pipeline", "context", "expert") if getattr(parallel, axis) > 1]
    if wide:
        message = f"Compression goes with data parallelism only, not with {' and '.join(wide)} parallelism."
        yield Violation("compression.kind", kind, message, "none", tuple(f"parallel.{axis}" for axis in wide))
