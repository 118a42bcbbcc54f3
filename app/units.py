"""Units: what each measures, how many base units it is, how quantities are typed and how they are written.

Base units are byte, second, FLOP, token and 1. A dimension is the exponents of the first four. GB is 10⁹ bytes and GiB
is 2³⁰; bits are not bytes: `Gb` is an eighth of `GB`. Numbers are written with three or four significant digits, a
space before the unit, thousands with a comma; bandwidth is per direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf, isfinite, isnan, log10

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
    "bytes": "3.5 GB",
    "seconds": "5.9 ms",
    "flop": "6.9e14 FLOPs",
    "tokens": "4.2M tokens",
    "count": "24",
    "fraction": "17.9 %",
    "bytes_per_second": "25 GB/s",
    "flop_per_second": "312 TFLOP/s",
    "tokens_per_second": "3500 tokens/s",
}

# How one base unit of a dimension is typed, where it must be read back.
BASE_UNITS: Mapping[str, str] = {
    "bytes": "B",
    "seconds": "s",
    "flop": "FLOPs",
    "tokens": "tokens",
    "fraction": "x",
    "count": "",
    "bytes_per_second": "B/s",
    "flop_per_second": "FLOP/s",
    "tokens_per_second": "tokens/s",
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
        "months": 31557600.0 / 12,
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

# What counts the same things, by every word for it. What counts no such thing, as times, goes with all.
COUNTED: Mapping[str, str] = {
    word: words[0]
    for words in (
        ("GPUs", "GPU", "gpus", "gpu", "devices", "ranks", "rank"),
        ("nodes", "node"),
        ("stages", "stage"),
        ("layers", "layer"),
        ("calls", "call"),
        ("steps", "step"),
        ("micro-batches", "micro-batch", "microbatches"),
        ("sequences", "sequence", "samples"),
    )
    for word in words
}

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


def factor_of(label: str) -> float:
    """How many base units `label` is: a unit, a magnitude, a magnitude of a unit, or a rate of two units."""
    first, _, below = label.partition("/")
    magnitude, _, unit = first.rpartition(" ")
    if magnitude in MAGNITUDES:
        return MAGNITUDES[magnitude] * factor_of(unit)
    if below:
        return factor_of(first) / factor_of(below)
    if not label:
        return 1.0
    return UNITS[label].factor if label in UNITS else MAGNITUDES[label]


# The labels that values are written with, by dimension. GPU-hours are time summed over GPUs: a count has no dimension.
_WRITTEN: Mapping[str, tuple[str, ...]] = {
    "bytes": (
        "B",
        "kB",
        "MB",
        "GB",
        "TB",
        "KiB",
        "MiB",
        "GiB",
        "TiB",
    ),
    "seconds": (
        "s",
        "ms",
        "µs",
        "min",
        "h",
        "days",
        "years",
        "GPU-hours",
    ),
    "fraction": (
        "%",
        "×",
    ),
    "flop": ("FLOPs",),
    "tokens": (
        "tokens",
        "billion tokens",
        "trillion tokens",
    ),
    "count": (
        "calls",
        "GPUs",
        "ranks",
        "nodes",
        "steps",
        "sequences",
        "micro-batches",
        "billion",
        "trillion",
        "",
    ),
    "tokens_per_second": ("tokens/s",),
    "bytes_per_second": ("GB/s",),
    "flop_per_second": ("TFLOP/s",),
}
# unit label -> (dimension, how many base units it is)
SCALES: Mapping[str, tuple[str, float]] = {
    label: (dimension, factor_of(label)) for dimension, labels in _WRITTEN.items() for label in labels
}


@dataclass(frozen=True)
class Step:
    """A unit to write values in: `size` base units, for values of at least `least`."""

    unit: str
    size: float
    least: float


def _ladder(*labels: str) -> tuple[Step, ...]:
    return tuple(Step(label, factor_of(label), factor_of(label) * _LEAST.get(label, 1)) for label in labels)


CLOCK = ("min", "h", "days")  # units of time that are no power of ten
_LEAST = {"days": 2, "h": 2, "min": 2}  # 90 s and 36 h are read at once, 1.5 min and 1.5 days are not
# By dimension the units values are written in, the largest first.
LADDERS: Mapping[str, tuple[Step, ...]] = {
    "bytes": _ladder("TB", "GB", "MB", "kB", "B"),
    "seconds": _ladder("days", "h", "min", "s", "ms", "µs"),
    "fraction": _ladder("%"),
    "count": _ladder(""),
    "flop": _ladder("FLOPs"),
    "tokens": _ladder("tokens"),
    "bytes_per_second": _ladder("TB/s", "GB/s", "MB/s", "kB/s"),
    "flop_per_second": _ladder("TFLOP/s", "GFLOP/s", "MFLOP/s"),
    "tokens_per_second": _ladder("tokens/s"),
}


def step_for(value: float, dimension: str) -> Step:
    """The largest unit that suits `value`, or the smallest there is."""
    return next((step for step in LADDERS[dimension] if abs(value) >= step.least), LADDERS[dimension][-1])


LARGEST_WRITTEN_OUT = 1e15
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def digits(value: float, significant: int = 4) -> str:
    """`value` to `significant` digits without trailing zeros: 38.5, 1,120, 0.00058, −3."""
    if not isfinite(value):
        return "not a number" if isnan(value) else "infinity"
    if value == 0:
        return "0"
    decimals = max(0, significant - 1 - floor(log10(abs(value))))
    text = f"{value:,.{min(decimals, 12)}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def scaled(value: float, unit: str, significant: int = 4) -> str:
    """`value` in SI base units written in `unit`: scaled(1.12e11, "GB") is "112 GB"."""
    _, factor = SCALES[unit]
    number = value / factor
    text = _with_power(number, significant) if LARGEST_WRITTEN_OUT <= abs(number) < inf else digits(number, significant)
    return f"{text} {unit}".rstrip()


def _with_power(value: float, significant: int = 4) -> str:
    """`value` with a power of ten, for what nobody counts the digits of: 1.575 × 10²⁴."""
    mantissa, _, exponent = f"{value:.{significant - 1}e}".partition("e")
    return f"{digits(float(mantissa), significant)} × 10{str(int(exponent)).translate(_RAISED)}"


def bytes_text(value: float, significant: int = 3) -> str:
    """Bytes in the largest decimal unit that leaves at least 1: "29.7 MB"."""
    return scaled(value, step_for(value, "bytes").unit, significant)


def seconds_text(value: float, significant: int = 3) -> str:
    """Seconds in the unit that suits them: "4.93 s", "12.2 ms", "90 s", "197 days"."""
    return scaled(value, step_for(value, "seconds").unit, significant)


def count_text(value: float, significant: int = 3) -> str:
    """A count with its magnitude as a letter: 7B, 124M, 3.2M, 512."""
    for letter, size in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if abs(value) >= size:
            return digits(value / size, significant) + letter
    return digits(value, max(significant, 6))


def value_text(value: float, dimension: str) -> str:
    """A value in base units, in the unit that suits its size: 29.7 MB, 3.2 ms, 27.3 %."""
    if dimension == "bytes":
        return bytes_text(value, 4)
    if dimension == "fraction":
        return scaled(value, "%")
    if dimension in ("count", "flop"):
        return count_text(value, 4) if abs(value) >= 1 else digits(value)
    step = step_for(value, dimension)
    return f"{digits(value / step.size)} {step.unit}".rstrip()


def latex_number(value: float) -> str:
    """A number for a formula: 7 \\times 10^{9}, 0.98, 128."""
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        exponent = floor(log10(abs(value)))
        mantissa = digits(value / 10**exponent)
        if mantissa == "10":  # 9.99999 rounds up
            mantissa, exponent = "1", exponent + 1
        power = f"10^{{{exponent}}}"
        return power if mantissa == "1" else rf"{mantissa} \times {power}"
    return digits(value).replace(",", "{,}")
