"""The figures there are to step through, by name, and the one that shows what a diagram asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from app.content.players import collective, pipeline, tensor, zero
from app.content.players.player import Control, Player, Settings, read_settings
from app.core.errors import NotFound


@dataclass(frozen=True)
class Figure:
    """A kind of figure: its finding, what may be turned, and how it is made."""

    name: str
    finding: str
    controls: tuple[Control, ...]
    make: Callable[[Settings, int | None], Player]


FIGURES: Mapping[str, Figure] = {
    each.name: each
    for each in (
        Figure(
            "collective",
            "A ring sends 2(n − 1)/n of the gradient, however many ranks there are",
            collective.CONTROLS,
            collective.make,
        ),
        Figure("zero", "ZeRO-3 holds a whole layer only while it computes it", zero.CONTROLS, zero.make),
        Figure(
            "pipeline", "1F1B waits as long as GPipe, and keeps fewer micro-batches", pipeline.CONTROLS, pipeline.make
        ),
        Figure("tensor", "Columns, then rows: one all-reduce ends the block", tensor.CONTROLS, tensor.make),
    )
}


def player(name: str, given: Mapping[str, str]) -> Player:
    """The figure `name` with the settings given as text, and `at` the frame to begin with.

    Raises NotFound for a figure there is not, DomainError for settings it cannot be drawn with.
    """
    found = FIGURES.get(name)
    if found is None:
        raise NotFound(f"There is no figure {name[:40]!r}. There are: {', '.join(FIGURES)}.")
    return _made(name, tuple(read_settings(found.controls, dict(given)).items()), frame_number(given))


def frame_number(given: Mapping[str, str]) -> int | None:
    """The frame to begin with, `at`; None where none was asked for, or none that could be."""
    text = given.get("at", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None


@lru_cache(maxsize=64)
def _made(name: str, settings: tuple[tuple[str, str | int], ...], at: int | None) -> Player:
    return FIGURES[name].make(dict(settings), at)
