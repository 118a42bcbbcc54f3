"""What the study page was asked to show, carried from request to request: a filter, and cards beyond today's share."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.idempotency import MAX_KEY_LENGTH
from app.study.checking import LARGEST_SEED, LONGEST_ANSWER
from app.study.queue.filters import NOTHING, STATES, Filter, checked_filter

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
            *([deck.title if deck else self.wanted.deck] if self.wanted.deck else []),
            *([concept.title if concept else self.wanted.concept] if self.wanted.concept else []),
            *([STATES.get(self.wanted.state, self.wanted.state)] if self.wanted.state else []),
        ]


async def _from_query(content: Content, more: More = 0, deck: str = "", concept: str = "", state: str = "") -> Scope:
    return Scope(more, checked_filter(content, deck, concept, state))


class ScopeForm(BaseModel):
    """The fields every form of the page carries."""

    more: int = Field(0, ge=0, le=MOST_EXTRA)
    deck: str = ""
    concept: str = ""
    state: str = ""

    def scope(self, catalogue: Catalogue) -> Scope:
        """Raises DomainError where there are no such cards."""
        return Scope(self.more, checked_filter(catalogue, self.deck, self.concept, self.state))


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
