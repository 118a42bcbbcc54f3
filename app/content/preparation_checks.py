"""What must hold of preparation.yaml beyond its schema: it names what there is, and every deck once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.content.catalogue import Catalogue
    from app.content.preparation_schemas import Preparation

PREPARATION = "preparation.yaml"

Location = tuple[str | int, ...]


def check_preparation(catalogue: Catalogue) -> Iterator[tuple[str, Location, str]]:
    """The order of decks, and what checkpoints ask for. Content without the file has no preparation to check."""
    if PREPARATION not in catalogue.sources:
        return
    preparation = catalogue.preparation
    for check in (_order_findings(preparation, catalogue), _checkpoint_findings(preparation, catalogue)):
        yield from ((PREPARATION, *finding) for finding in check)


def _order_findings(preparation: Preparation, catalogue: Catalogue) -> Iterator[tuple[Location, str]]:
    """Every deck has one place, and none comes before what an earlier checkpoint asks for."""
    first_asked = {
        deck: checkpoint.day for checkpoint in reversed(preparation.checkpoints) for deck in checkpoint.decks
    }
    latest = 0
    for index, deck in enumerate(preparation.decks):
        location: Location = ("decks", index)
        if deck not in catalogue.decks:
            yield location, f"there is no deck {deck}"
        if deck in preparation.decks[:index]:
            yield location, f"{deck} stands there twice"
        day = first_asked.get(deck, latest)
        if day < latest:
            yield location, f"{deck} is asked for on day {day}, and comes after a deck of day {latest}"
        latest = max(latest, day)
    for deck in catalogue.decks:
        if deck not in preparation.decks:
            yield ("decks",), f"deck {deck} has no place among them"


def _checkpoint_findings(preparation: Preparation, catalogue: Catalogue) -> Iterator[tuple[Location, str]]:
    known: dict[str, tuple[str, Mapping[str, Any]]] = {
        "met": ("deck", catalogue.decks),
        "firm": ("deck", catalogue.decks),
        "solved": ("problem", catalogue.problems),
        "unaided": ("problem", catalogue.problems),
        "timed": ("problem", catalogue.problems),
        "interviews": ("interview", catalogue.interviews),
    }
    for index, checkpoint in enumerate(preparation.checkpoints):
        for field, (kind, items) in known.items():
            for identity in getattr(checkpoint, field):
                if identity not in items:
                    yield ("checkpoints", index, field), f"there is no {kind} {identity}"
