"""What a file brings, whatever its format: cards, memories, and what was left out and why. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from app.decks.drafts import Draft, clean_line, problems, tidy, title_of
from app.exchange.archive import refused
from app.exchange.limits import MOST_CHARACTERS, REASONS_KEPT
from app.study.api import Remembered

InTime = Callable[[], bool]
Progress = Callable[[int, int], None]  # how many of how many cards were read


def not_shown(done: int, total: int) -> None:
    """For who does not ask how far it is."""


LONGEST_GUID = 150  # the column takes 200; a number may follow


@dataclass(frozen=True)
class Incoming:
    """A card of a file. Without `modified_at` it is as new as the import."""

    guid: str
    draft: Draft
    revision: int = 1
    modified_at: datetime | None = None
    remembered: Remembered | None = None


@dataclass
class Findings:
    """Everything a file brings. `notices` count what a report says once, by its words."""

    cards: dict[str, Incoming] = field(default_factory=dict)
    catalogue: dict[str, Remembered | None] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    left_out_total: int = 0
    notices: Counter[str] = field(default_factory=Counter)
    characters: int = 0

    def leave_out(self, what: str, why: str) -> None:
        self.left_out_total += 1
        if len(self.left_out) < REASONS_KEPT:
            self.left_out.append((clean_line(what)[:120] or "(without text)", why))

    def take(self, incoming: Incoming, shown: str, *, formulas_set: bool = False) -> None:
        """Take a card along if it can be stored; say why not if it cannot."""
        if not incoming.guid or len(incoming.guid) > LONGEST_GUID or clean_line(incoming.guid) != incoming.guid:
            self.leave_out(shown, "its GUID is missing, too long or holds control characters")
            return
        if incoming.guid in self.cards:
            self.leave_out(shown, "there are two cards with its GUID; the first was taken")
            return
        draft = tidy(incoming.draft)
        self.characters += sum(map(len, draft.sections.values()))
        if self.characters > MOST_CHARACTERS:
            raise refused("It holds too much text.", "…", f"up to {MOST_CHARACTERS:,} characters in one file")
        wrong = list(problems(draft, formulas_set=formulas_set))
        if wrong:
            self.leave_out(shown, " ".join(f"{each.field}: {each.message}" for each in wrong[:3]))
            return
        self.cards[incoming.guid] = Incoming(
            incoming.guid, draft, incoming.revision, incoming.modified_at, incoming.remembered
        )


def guid_of_text(draft: Draft) -> str:
    """An identity for a card whose file names none: that of its question, so that a second import finds it again."""
    tidied = tidy(draft)
    return "text-" + sha256(f"{tidied.kind}\n{tidied.sections['Question']}".encode()).hexdigest()[:20]


def shown_as(draft: Draft) -> str:
    """How a report names a card."""
    return clean_line(draft.title) or title_of(draft.sections.get("Question", ""))


Report = dict[str, Any]
