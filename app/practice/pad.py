"""The scratch pad's calculator over HTTP. It keeps nothing: the page sends along what `ans` stands for."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from app.grading.quantities import Quantity, Unreadable
from app.practice.calculator import calculate, names

pad = APIRouter(prefix="/api/v1/calculate", tags=["problems"])

Exponent = Annotated[int, Field(ge=-9, le=9)]


class Answer(BaseModel):
    """A value in base units with the exponents of byte, second, FLOP and token."""

    value: Annotated[float, Field(allow_inf_nan=False)]
    dimension: tuple[Exponent, Exponent, Exponent, Exponent]


class Line(BaseModel):
    """A line of the scratch pad; `ans` is what the line before it came to."""

    text: Annotated[str, Field(max_length=1000)]
    ans: Answer | None = None


@pad.post("")
def work_out(line: Line) -> dict[str, Any]:
    """The value of one line: quantities with units, registered formulas by name, `ans`, and `in` another unit.

    A line that cannot be read is no error of the caller's: it is answered with the reason as `refused`.
    """
    ans = Quantity(line.ans.value, line.ans.dimension, True) if line.ans else None
    try:
        found = calculate(line.text, ans)
    except Unreadable as error:
        return {"value": None, "dimension": None, "text": None, "formulas": [], "refused": str(error)}
    return {
        "value": found.value,
        "dimension": found.dimension,
        "text": found.text,
        "formulas": found.formulas,
        "refused": None,
    }


@pad.get("/names")
def calculator_names() -> list[dict[str, str]]:
    """What the scratch pad can call, and what it is."""
    return [{"call": call, "title": title} for call, title in names()]
