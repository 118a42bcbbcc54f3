"""A candidate's whiteboard beside an answer in words: what may stand on it, where arrows run, what it says. Pure.

It is kept as an answer of its own, `<part>.board`, in the JSON of `Board`. What it says is heard with the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from app.core.errors import DomainError, Violation
from app.core.texts import storable

COLUMNS, ROWS = 12, 12  # cells of a board
WIDE, HIGH = 3, 2  # cells that an item takes
ROOM = 3  # cells that a label takes on a line
OVER = HIGH / 2 + 0.35  # from the middle of a box to what stands over it
MOST_ITEMS, MOST_ARROWS = 24, 40
LONGEST_LABEL = 40
LONGEST_BOARD = 12_000  # characters as it is sent
_SUFFIX = ".board"

Way = Literal["right", "left", "down", "up"]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][0-9]{1,4}$")]
Label = Annotated[str, Field(max_length=LONGEST_LABEL)]


class _Drawn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    label: Label = ""

    @field_validator("label")
    @classmethod
    def _is_one_line(cls, label: str) -> str:
        return " ".join("".join(each if each.isprintable() else " " for each in storable(label)).split())


class BoardItem(_Drawn):
    """A box, or a text without one, by its upper left cell."""

    id: Name
    kind: Literal["box", "text"] = "box"
    x: Annotated[int, Field(ge=0, le=COLUMNS - WIDE)]
    y: Annotated[int, Field(ge=0, le=ROWS - HIGH)]


class BoardArrow(_Drawn):
    """An arrow from one item to another."""

    start: Name
    end: Name


class Board(BaseModel):
    """All that stands on a board."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    items: Annotated[tuple[BoardItem, ...], Field(max_length=MOST_ITEMS)] = ()
    arrows: Annotated[tuple[BoardArrow, ...], Field(max_length=MOST_ARROWS)] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Board:
        names = [each.id for each in self.items]
        if len(set(names)) < len(names):
            raise ValueError("two items have one id")
        for arrow in self.arrows:
            if arrow.start == arrow.end or not {arrow.start, arrow.end} <= set(names):
                raise ValueError(f"an arrow from {arrow.start} to {arrow.end} joins no two items")
        return self

    @property
    def is_blank(self) -> bool:
        return not self.items

    @property
    def says(self) -> tuple[str, ...]:
        """What it says, a sentence for each arrow, and for each item that no arrow joins."""
        labels = {each.id: each.label or "a box" for each in self.items}
        joined = {name for arrow in self.arrows for name in (arrow.start, arrow.end)}
        arrows = [
            f"{labels[each.start]} → {labels[each.end]}{': ' if each.label else ''}{each.label}" for each in self.arrows
        ]
        alone = [each.label for each in self.items if each.id not in joined and each.label]
        return tuple(each if each.endswith((".", "?", "!")) else f"{each}." for each in (*arrows, *alone))

    @property
    def routes(self) -> tuple[Route, ...]:
        """Where its arrows run, in their order."""
        items = {each.id: each for each in self.items}
        return tuple(route(items[each.start], items[each.end], each.label) for each in self.arrows)


@dataclass(frozen=True)
class Route:
    """An arrow in cells: its corners, the side its head points to, and its label."""

    points: tuple[tuple[float, float], ...]
    way: Way
    label: str

    @property
    def path(self) -> str:
        """As an SVG polyline has it."""
        return " ".join(f"{x:g},{y:g}" for x, y in self.points)

    @property
    def is_beside(self) -> bool:
        """Whether its label stands to the right of it: on a straight line downwards it would hide it."""
        return self.way in ("down", "up") and self.points[0][0] == self.points[-1][0]

    @property
    def spot(self) -> tuple[float, float]:
        """Where its label stands: in the middle, or over the boxes where a short straight line has no room for it."""
        (ax, ay), (bx, by) = self.points[0], self.points[-1]
        x, y = (ax + bx) / 2, (ay + by) / 2
        if self.way in ("right", "left") and ay == by and abs(bx - ax) < ROOM:
            return x, y - OVER if y > OVER else y + OVER
        return x, y


def route(start: BoardItem, end: BoardItem, label: str = "") -> Route:
    """From the side of one item to the facing side of the other, in straight lines and at most two corners; board.js
    draws the same."""
    ax: float
    ay: float
    bx: float
    by: float
    if abs(end.x - start.x) >= WIDE:
        right = end.x > start.x
        ax, ay = start.x + (WIDE if right else 0), start.y + HIGH / 2
        bx, by = end.x + (0 if right else WIDE), end.y + HIGH / 2
        half = (ax + bx) / 2
        return Route(((ax, ay), (half, ay), (half, by), (bx, by)), "right" if right else "left", label)
    down = end.y > start.y
    ax, ay = start.x + WIDE / 2, start.y + (HIGH if down else 0)
    bx, by = end.x + WIDE / 2, end.y + (0 if down else HIGH)
    half = (ay + by) / 2
    return Route(((ax, ay), (ax, half), (bx, half), (bx, by)), "down" if down else "up", label)


def board_id(part: str) -> str:
    """Where the board beside a part is kept."""
    return f"{part}{_SUFFIX}"


def read_board(part: str, text: str) -> Board:
    """The board that a page sent for a part; nothing is a blank one. Raises DomainError for what is none."""
    if not text.strip():
        return Board()
    accepted = f"up to {MOST_ITEMS} items and {MOST_ARROWS} arrows on {COLUMNS} × {ROWS} cells, as JSON"
    if len(text) > LONGEST_BOARD:
        message = f"{len(text):,} characters are too many for a board."
        raise DomainError("The board was not saved.", [Violation(board_id(part), "…", message, accepted)])
    try:
        return Board.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"{where}: {first['msg']}" if where else first["msg"]
        violation = Violation(board_id(part), "…", message, accepted)
        raise DomainError("The board was not saved.", [violation]) from None


def saved_board(text: str) -> Board:
    """A board as it is kept; a blank one where today's rules no longer read it."""
    try:
        return read_board("", text)
    except DomainError:
        return Board()


def heard(answers: Mapping[str, str]) -> dict[str, str]:
    """Answers by part, each with what its board says behind its words; that stands by itself under the board's id."""
    found = {part: text for part, text in answers.items() if not part.endswith(_SUFFIX)}
    for name, text in answers.items():
        part = name.removesuffix(_SUFFIX)
        if part != name and (says := saved_board(text).says):
            found[name] = "\n".join(says)
            found[part] = "\n".join(filter(None, (found.get(part, "").strip(), found[name])))
    return found
