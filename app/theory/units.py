"""How numbers are written: three or four significant digits, a space before the unit, thousands with a comma.

GB is 10⁹ bytes and GiB is 2³⁰; bandwidth is per direction.
"""

from __future__ import annotations

from math import floor, inf, isfinite, isnan, log10

# unit label -> (dimension, how many SI base units it is)
SCALES: dict[str, tuple[str, float]] = {
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "TiB": ("bytes", 2.0**40),
    "s": ("seconds", 1.0),
    "ms": ("seconds", 1e-3),
    "µs": ("seconds", 1e-6),
    "min": ("seconds", 60.0),
    "h": ("seconds", 3600.0),
    "days": ("seconds", 86400.0),
    "years": ("seconds", 365.25 * 86400),
    "%": ("fraction", 0.01),
    "×": ("fraction", 1.0),
    "FLOPs": ("flop", 1.0),
    "tokens": ("tokens", 1.0),
    "calls": ("count", 1.0),
    "GPUs": ("count", 1.0),
    "ranks": ("count", 1.0),
    "steps": ("count", 1.0),
    "sequences": ("count", 1.0),
    "micro-batches": ("count", 1.0),
    "billion": ("count", 1e9),
    "trillion": ("count", 1e12),
    "": ("count", 1.0),
    "billion tokens": ("tokens", 1e9),
    "trillion tokens": ("tokens", 1e12),
    "GPU-hours": ("seconds", 3600.0),  # time summed over GPUs: a count has no dimension
    "tokens/s": ("tokens_per_second", 1.0),
    "GB/s": ("bytes_per_second", 1e9),
    "TFLOP/s": ("flop_per_second", 1e12),
}

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
    for unit in ("TB", "GB", "MB", "kB"):
        if abs(value) >= SCALES[unit][1]:
            return scaled(value, unit, significant)
    return scaled(value, "B", significant)


def seconds_text(value: float, significant: int = 3) -> str:
    """Seconds in the unit that leaves at least 1: "4.93 s", "12.2 ms", "197 days"."""
    for unit in ("days", "h", "min", "s", "ms"):
        if abs(value) >= SCALES[unit][1] * (2 if unit in ("days", "h", "min") else 1):
            return scaled(value, unit, significant)
    return scaled(value, "µs", significant)


def count_text(value: float, significant: int = 3) -> str:
    """A count with its magnitude as a letter: 7B, 124M, 3.2M, 512."""
    for letter, size in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if abs(value) >= size:
            return digits(value / size, significant) + letter
    return digits(value, max(significant, 6))


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
