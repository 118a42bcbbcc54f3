"""Values that share a scale: what a block of a narrow format costs in bits, and what is lost in it (F61)."""

from __future__ import annotations

from math import ceil, floor, ldexp, log2

from app.theory.number_formats import FORMATS

ROUNDINGS = ("down", "up")


def block_scaled_bits(number_format: str, block: int, scale_bits: int = 8) -> float:
    """F61: bits a value takes with its part of the block's scale, b + s/B.

    Source: Rouhani et al. 2023 (Microscaling Data Formats), section 2.
    """
    return FORMATS[number_format].bits + scale_bits / block


def lost_below(largest_magnitude: float, number_format: str) -> float:
    """F61: what is at most this becomes 0 when the block's largest magnitude is scaled to the format's largest.

    By hand: half the smallest number of the format goes to 0 (the tie to even), and the scale takes both alike. Blocks
    that share an exact scale; a scale that is rounded up loses up to twice as much.
    """
    record = FORMATS[number_format]
    return largest_magnitude * record.min_subnormal / 2 / record.max


def block_scale(largest_magnitude: float, number_format: str, rounding: str = "up") -> float:
    """F61: the power of two that a block is divided by, its largest magnitude a given.

    `down`: 2^(⌊log₂a⌋ − ⌊log₂x_max⌋), so that what lies beyond x_max is clipped; `up`: 2^⌈log₂(a/x_max)⌉, which clips
    nothing. Sources: OCP Microscaling Formats 1.0, section 6.3; Mishra et al. 2025 (Recipes for Pre-training LLMs with
    MXFP8) for rounding up.
    """
    largest = FORMATS[number_format].max
    if rounding == "down":
        return ldexp(1.0, floor(log2(largest_magnitude)) - floor(log2(largest)))
    return ldexp(1.0, ceil(log2(largest_magnitude / largest)))
