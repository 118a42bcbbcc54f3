"""Units engineers type, as data: what each measures and how many base units it is.

Base units are byte, second, FLOP, token and 1. A dimension is the exponents of the first four.
Bits are not bytes: `Gb` is an eighth of `GB`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Dimension = tuple[int, int, int, int]

NONE: Dimension = (0, 0, 0, 0)
BYTES: Dimension = (1, 0, 0, 0)
SECONDS: Dimension = (0, 1, 0, 0)
FLOP: Dimension = (0, 0, 1, 0)
TOKENS: Dimension = (0, 0, 0, 1)

DIMENSIONS: Mapping[str, Dimension] = {
    "bytes": BYTES,
    "seconds": SECONDS,
    "flop": FLOP,
    "tokens": TOKENS,
    "count": NONE,
    "fraction": NONE,
    "bytes_per_second": (1, -1, 0, 0),
    "flop_per_second": (0, -1, 1, 0),
    "tokens_per_second": (0, -1, 0, 1),
}

# What to call a dimension when the answer has another one.
NAMES: Mapping[Dimension, str] = {
    NONE: "a plain number",
    BYTES: "bytes",
    SECONDS: "time",
    FLOP: "FLOPs",
    TOKENS: "tokens",
    (1, -1, 0, 0): "a bandwidth",
    (0, -1, 1, 0): "a compute rate",
    (0, -1, 0, 1): "a token rate",
}

EXAMPLES: Mapping[str, str] = {
    "bytes": "112 GB",
    "seconds": "5.9 ms",
    "flop": "6.9e14 FLOPs",
    "tokens": "4.2M tokens",
    "count": "24",
    "fraction": "17.9 %",
    "bytes_per_second": "25 GB/s",
    "flop_per_second": "312 TFLOP/s",
    "tokens_per_second": "3500 tokens/s",
}


@dataclass(frozen=True)
class Unit:
    """A unit: `factor` base units of `dimension`."""

    dimension: Dimension
    factor: float


_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_WORDS = {"kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15, "exa": 1e18}
_BINARY_WORDS = {"kibi": 2.0**10, "mebi": 2.0**20, "gibi": 2.0**30, "tebi": 2.0**40}


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for prefix, size in {**_DECIMAL, **_BINARY}.items():
        units[f"{prefix}B"] = Unit(BYTES, size)
        units[f"{prefix}b"] = Unit(BYTES, size / 8)
        units[f"{prefix}bit"] = units[f"{prefix}bits"] = Unit(BYTES, size / 8)
        for rate, factor in (("Bps", 1.0), ("bps", 1 / 8)):
            units[f"{prefix}{rate}"] = Unit((1, -1, 0, 0), size * factor)
    for prefix, size in _DECIMAL.items():
        for word in ("FLOP", "FLOPs", "flop", "flops", "Flop", "Flops"):
            units[f"{prefix}{word}"] = Unit(FLOP, size)
        units[f"{prefix}FLOPS"] = units[f"{prefix}FLOPs/s"] = Unit((0, -1, 1, 0), size)
    for word, size in {**_WORDS, **_BINARY_WORDS, "": 1.0}.items():
        units[f"{word}byte"] = units[f"{word}bytes"] = Unit(BYTES, size)
        units[f"{word}bit"] = units[f"{word}bits"] = Unit(BYTES, size / 8)
    seconds = {
        "s": 1.0,
        "sec": 1.0,
        "secs": 1.0,
        "second": 1.0,
        "seconds": 1.0,
        "ms": 1e-3,
        "millisecond": 1e-3,
        "milliseconds": 1e-3,
        "us": 1e-6,
        "µs": 1e-6,
        "μs": 1e-6,
        "microseconds": 1e-6,
        "ns": 1e-9,
        "min": 60.0,
        "mins": 60.0,
        "minute": 60.0,
        "minutes": 60.0,
        "h": 3600.0,
        "hr": 3600.0,
        "hrs": 3600.0,
        "hour": 3600.0,
        "hours": 3600.0,
        "d": 86400.0,
        "day": 86400.0,
        "days": 86400.0,
        "week": 604800.0,
        "weeks": 604800.0,
        "year": 31557600.0,
        "years": 31557600.0,
    }
    units |= {name: Unit(SECONDS, factor) for name, factor in seconds.items()}
    units |= {name: Unit(SECONDS, 3600.0) for name in ("GPU-hours", "GPU-hour", "gpu-hours", "gpu-hour", "GPU-h")}
    units |= {name: Unit(TOKENS, 1.0) for name in ("token", "tokens", "tok", "toks")}
    units |= {f"{p}tokens": Unit(TOKENS, s) for p, s in _DECIMAL.items() if p}
    units |= {name: Unit(NONE, 0.01) for name in ("%", "percent", "pct")}
    units |= {"gig": Unit(BYTES, 1e9), "gigs": Unit(BYTES, 1e9), "megs": Unit(BYTES, 1e6)}
    plain = (
        "GPUs",
        "GPU",
        "gpus",
        "gpu",
        "devices",
        "ranks",
        "rank",
        "nodes",
        "node",
        "stages",
        "layers",
        "layer",
        "calls",
        "steps",
        "step",
        "micro-batches",
        "micro-batch",
        "microbatches",
        "params",
        "param",
        "parameters",
        "parameter",
        "sequences",
        "sequence",
        "samples",
        "times",
        "×",
        "x",
    )
    units |= {name: Unit(NONE, 1.0) for name in plain}
    return units


UNITS: Mapping[str, Unit] = _table()

# A letter behind a bare number, as in "7B parameters"; bytes win where bytes are asked for.
MAGNITUDES: Mapping[str, float] = {
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "m": 1e6,
    "B": 1e9,
    "bn": 1e9,
    "T": 1e12,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}


def combine(left: Unit, right: Unit, sign: int) -> Unit:
    """left × right (sign +1) or left / right (sign −1)."""
    dimension = tuple(a + sign * b for a, b in zip(left.dimension, right.dimension, strict=True))
    return Unit((dimension[0], dimension[1], dimension[2], dimension[3]), left.factor * right.factor**sign)
