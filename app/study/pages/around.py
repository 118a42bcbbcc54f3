"""What surrounds the card on the study page: what it was asked to show, and what it says of the last thing done.

The first is carried from request to request: a filter, and cards beyond today's share.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.idempotency import MAX_KEY_LENGTH
from app.study import queries
from app.study.checking import LARGEST_SEED, LONGEST_ANSWER
from app.study.fsrs import scheduling
from app.study.log.recording import Recorded
from app.study.queue.agenda import NOTHING, STATES, Filter, checked_filter

MOST_EXTRA = 500
More = Annotated[int, Query(ge=0, le=MOST_EXTRA)]


@dataclass(frozen=True)
class Scope:
    """`more` new cards beyond today's share, of the `wanted` ones."""

    more: int = 0
    wanted: Filter = NOTHING

    @property
    def fields(self) -> dict[str, str]:
        """As hidden fields of a form."""
        return {**({"more": str(self.more)} if self.more else {}), **self.wanted.fields}

    @property
    def address(self) -> str:
        return self.with_more(0)

    def with_more(self, extra: int) -> str:
        """The page's address, with more new cards."""
        fields = {**self.fields, **({"more": str(self.more + extra)} if self.more + extra else {})}
        return "/study" + ("?" + urlencode(fields) if fields else "")

    def with_field(self, name: str, value: str) -> str:
        """The page's address with one more field."""
        return "/study?" + urlencode({**self.fields, name: value})

    def named(self, catalogue: Catalogue) -> list[str]:
        """The filter in words."""
        deck, concept = catalogue.decks.get(self.wanted.deck), catalogue.concepts.get(self.wanted.concept)
        return [
            *([f"the cards of “{catalogue.pages[self.wanted.page].head.title}”"] if self.wanted.page else []),
            *([deck.title if deck else self.wanted.deck] if self.wanted.deck else []),
            *([concept.title if concept else self.wanted.concept] if self.wanted.concept else []),
            *([STATES.get(self.wanted.state, self.wanted.state)] if self.wanted.state else []),
        ]


async def _from_query(
    content: Content, more: More = 0, deck: str = "", concept: str = "", state: str = "", page: str = ""
) -> Scope:
    return Scope(more, checked_filter(content, deck, concept, state, page))


class ScopeForm(BaseModel):
    """The fields every form of the page carries."""

    more: int = Field(0, ge=0, le=MOST_EXTRA)
    deck: str = ""
    concept: str = ""
    state: str = ""
    page: str = ""

    def scope(self, catalogue: Catalogue) -> Scope:
        """Raises DomainError where there are no such cards."""
        return Scope(self.more, checked_filter(catalogue, self.deck, self.concept, self.state, self.page))


class ReviewForm(ScopeForm):
    """A rating, for the version of the card that was shown."""

    card_id: str
    level: int
    version: int = Field(ge=0)
    elapsed_milliseconds: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0, le=LARGEST_SEED)
    answer: str | None = Field(None, max_length=LONGEST_ANSWER)
    key: str | None = Field(None, max_length=MAX_KEY_LENGTH)


class MarkForm(ScopeForm):
    """Something to hang on a card; `revealed` names the card that is open on the page."""

    card_id: str
    action: str
    note: str = ""
    revealed: str = ""


QueryScope = Annotated[Scope, Depends(_from_query)]


def new_key() -> str:
    """A key for one showing's answer: sent again, it is the same answer."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Link:
    """Where a card leads that repeating does not fix."""

    href: str
    text: str
    note: str


@dataclass(frozen=True)
class Notice:
    """What the page says of the last thing that was done: an answer, a mark, a card that was forgotten too often."""

    text: str = ""
    card_id: str = ""
    action: str = ""
    links: tuple[Link, ...] = ()

    @property
    def back(self) -> str:
        """What takes the mark away that was just hung on a card, where something does."""
        return _BACK.get(self.action, "")


_BACK = {"bury": "Bring it back", "suspend": "Bring it back", "flag": "Take the flag away"}
SILENCE = Notice()


def warn_of_leech(session: Session, catalogue: Catalogue, made: Recorded) -> Notice:
    """What to say when a review was one lapse too many."""
    if not scheduling.is_lapse(made.memory_before, made.rating) or not scheduling.is_leech(made.lapses):
        return SILENCE
    card = queries.find_card(session, made.learner_id, catalogue, made.card_id)
    text = f"{card.id}, {card.head.title}, was forgotten {made.lapses} times. Repeating it more will not help."
    return Notice(text, card.id, "hard", suggestions(catalogue, card))


def suggestions(catalogue: Catalogue, card: Card) -> tuple[Link, ...]:
    """The page that explains the card and the experiment that shows it: the card's own, else its concepts'."""
    concepts, related = set(card.head.concepts), card.head.related
    pages = [catalogue.pages[slug] for slug in related.pages if slug in catalogue.pages]
    pages = pages or [page for page in catalogue.pages.values() if concepts & set(page.head.concepts)]
    experiments = [catalogue.experiments[id_] for id_ in related.experiments if id_ in catalogue.experiments]
    experiments = experiments or [each for each in catalogue.experiments.values() if concepts & set(each.concepts)]
    return (
        *(Link(f"/reference/{page.slug}", page.head.title, "read") for page in pages[:1]),
        *(
            Link(f"/lab/experiments/{each.slug}", f"{each.id}, {each.title}", f"run, {each.minutes} min")
            for each in experiments[:1]
        ),
    )
