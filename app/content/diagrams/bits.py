"""Number formats bit by bit."""

from __future__ import annotations

from app.content.diagrams.schema import Bits
from app.content.diagrams.svg import NARROW, Canvas, Picture, number_text, power_text
from app.theory.number_formats import FORMATS, NumberFormat

_LEFT, _ROW, _PITCH = 48.0, 20.0, 58.0
_FP8 = {"e5m2": "fp8-e5m2", "e4m3": "fp8-e4m3"}
_PARTS = (("d-sign", "sign"), ("d-exponent", "exponent: range"), ("d-mantissa", "mantissa: precision"))


def number_format(name: str) -> NumberFormat:
    """The library's record of a format by the name content uses."""
    return FORMATS[_FP8.get(name, name)]


def draw_bits(record: Bits) -> Picture:
    """A row a format, a box a bit, with its largest number and its spacing at 1."""
    formats = [number_format(name) for name in record.formats]
    canvas = Canvas()
    width = min(18.0, (NARROW - _LEFT) / max(each.bits for each in formats))
    for index, (name, each) in enumerate(zip(record.formats, formats, strict=True)):
        y = index * _PITCH + 2
        canvas.label(0, y + 14, name.upper() if name in _FP8 else name, "d-strong")
        kinds = ["d-sign"] + ["d-exponent"] * each.exponent_bits + ["d-mantissa"] * each.mantissa_bits
        for bit, kind in enumerate(kinds):
            canvas.box(_LEFT + bit * width + 0.5, y, width - 1.5, _ROW, kind)
        counts = f"1 + {each.exponent_bits} + {each.mantissa_bits}"
        says = f"{counts} bits · to {number_text(each.max)} · steps of {power_text(2, -each.mantissa_bits)} at 1"
        canvas.label(_LEFT, y + _ROW + 16, says, "t3")
    return canvas.picture(
        len(formats) * _PITCH - 12,
        _sentence(record, formats),
        ("Format", "Exponent bits", "Mantissa bits", "Largest", "Smallest normal", "Smallest", "Spacing at 1"),
        (
            (
                name,
                str(each.exponent_bits),
                str(each.mantissa_bits),
                number_text(each.max, 5),
                number_text(each.min_normal),
                number_text(each.min_subnormal),
                number_text(each.epsilon),
            )
            for name, each in zip(record.formats, formats, strict=True)
        ),
        _PARTS,
    )


def _sentence(record: Bits, formats: list[NumberFormat]) -> str:
    widest = max(zip(formats, record.formats, strict=True), key=lambda pair: pair[0].max)
    finest = max(zip(formats, record.formats, strict=True), key=lambda pair: pair[0].mantissa_bits)
    each = "; ".join(
        f"{name}: {one.exponent_bits} exponent and {one.mantissa_bits} mantissa bits"
        for name, one in zip(record.formats, formats, strict=True)
    )
    if len(formats) == 1:
        return f"{each}."
    comma = " and" if finest[1] == widest[1] else f", {finest[1]}"
    return f"{each}. {widest[1]} reaches farthest{comma} is finest at 1."
