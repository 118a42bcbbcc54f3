"""Narrow formats with a scale for each block: bits of a value, what a block loses, and its scale."""

from __future__ import annotations

from dataclasses import replace

from app.theory import block_scaling
from app.theory.formulas.precision import FORMAT
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import Inputs, by_case
from app.theory.number_formats import FORMATS
from app.units import latex_number

_FORMAT = replace(FORMAT, default="fp8-e4m3")
_LARGEST = Input("largest_magnitude", "Largest magnitude of the block", "a", minimum=1e-30, maximum=1e30)
_BLOCK = Input("block", "Values that share a scale", "B", minimum=1, maximum=1e9, integer=True)
_SCALE_BITS = Input("scale_bits", "Bits of the scale", "s", minimum=0, maximum=64, integer=True, default=8)
_ROUNDING = Input("rounding", "Exponent rounded", "", choices=block_scaling.ROUNDINGS, default="up")
_OCP = "OCP Microscaling Formats 1.0, section 6.3"


def _constants(inputs: Inputs) -> dict[str, float]:
    record = FORMATS[inputs["number_format"]]
    return {"b": record.bits, r"x_\text{max}": record.max, r"x_\text{sub}": record.min_subnormal}


def _typed(value: float) -> str:
    """A number in LaTeX that str.format leaves as it is."""
    return latex_number(value).replace("{", "{{").replace("}", "}}")


def _bits_latex(inputs: Inputs) -> tuple[str, str]:
    bits = FORMATS[inputs["number_format"]].bits
    return r"b + \frac{s}{B}", rf"{bits} + \frac{{{{{{scale_bits}}}}}}{{{{{{block}}}}}}"


def _lost_latex(inputs: Inputs) -> tuple[str, str]:
    record = FORMATS[inputs["number_format"]]
    values = rf"\frac{{{{{_typed(record.min_subnormal)}}}}}{{{{2 \times {_typed(record.max)}}}}}"
    return r"\frac{x_\text{sub}}{2\,x_\text{max}}\,a", rf"{values} \times {{largest_magnitude}}"


def _scale_latex(inputs: Inputs) -> tuple[str, str]:
    largest = _typed(FORMATS[inputs["number_format"]].max)
    if inputs["rounding"] == "down":
        return (
            r"2^{\lfloor\log_2 a\rfloor - \lfloor\log_2 x_\text{max}\rfloor}",
            rf"2^{{{{\lfloor\log_2 {{largest_magnitude}}\rfloor - \lfloor\log_2 {largest}\rfloor}}}}",
        )
    return (
        r"2^{\left\lceil\log_2 \left(\frac{a}{x_\text{max}}\right)\right\rceil}",
        rf"2^{{{{\left\lceil\log_2 \frac{{{{{{largest_magnitude}}}}}}{{{{{largest}}}}}\right\rceil}}}}",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F61",
        "block_scaled_bits",
        "Bits of a value with its block's scale",
        block_scaling.block_scaled_bits,
        (_FORMAT, _BLOCK, _SCALE_BITS),
        "count",
        "",
        by_case(_bits_latex),
        "Rouhani et al. 2023 (Microscaling Data Formats for Deep Learning), section 2",
        "MXFP8: 32 values, 8 bits. NVFP4: 16 values, 8 bits, and 32 once a tensor. DeepSeek-V3: 128 values, 32 bits.",
        where=_constants,
        example={"number_format": "fp8-e4m3", "block": 32},
    ),
    Formula(
        "F61",
        "lost_below",
        "What becomes 0 beside a block's largest magnitude",
        block_scaling.lost_below,
        (_LARGEST, _FORMAT),
        "count",
        "",
        by_case(_lost_latex),
        "half the smallest number of the format goes to 0",
        "The block's largest magnitude is taken to the format's largest. A scale rounded up loses up to twice as much.",
        where=_constants,
        example={"largest_magnitude": 458752, "number_format": "fp8-e4m3"},
    ),
    Formula(
        "F61",
        "block_scale",
        "Power of two that scales a block",
        block_scaling.block_scale,
        (_LARGEST, _FORMAT, _ROUNDING),
        "count",
        "",
        by_case(_scale_latex),
        f"{_OCP}; Mishra et al. 2025 (Recipes for Pre-training LLMs with MXFP8) for rounding up",
        "The block is divided by it. Rounded down, magnitudes beyond the format's largest are clipped to it.",
        where=_constants,
        example={"largest_magnitude": 1.9},
    ),
)
