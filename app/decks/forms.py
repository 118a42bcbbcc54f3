"""The editor's form: every field as it was typed, so that nothing is lost where something is wrong."""

from __future__ import annotations

import secrets

from pydantic import BaseModel

from app.content.cards import CARD_SECTIONS
from app.content.kinds import OWN_KINDS, PLAIN, WITH_OPTIONS
from app.decks.cards import Stored
from app.decks.drafts import DEFAULT_DECK, DEFAULT_SOURCE, Draft, parse_options, parse_tags, title_of

KIND_LABELS = tuple((name, kind.own.label) for name, kind in OWN_KINDS.items() if kind.own)


class CardForm(BaseModel):
    """An own card as the page sends it. `guid` is the new card's, so that a double click adds one card."""

    guid: str = ""
    version: int = 0
    kind: str = PLAIN
    deck: str = DEFAULT_DECK
    title: str = ""
    tags: str = ""
    question: str = ""
    answer: str = ""
    shorthand: str = ""
    precise: str = ""
    trap: str = ""
    options: str = ""
    source: str = ""
    anew: bool = False

    @classmethod
    def fresh(cls, deck: str = "") -> CardForm:
        """An empty form for a card in `deck`."""
        return cls(guid=secrets.token_urlsafe(12), deck=deck or DEFAULT_DECK)

    @classmethod
    def of(cls, stored: Stored) -> CardForm:
        """The form of a card that is there."""
        draft = stored.draft
        return cls(
            guid=stored.guid,
            version=stored.version,
            kind=draft.kind,
            deck=draft.deck,
            title="" if draft.title == title_of(draft.sections["Question"]) else draft.title,
            tags=" ".join(draft.tags),
            options="\n".join(option.line for option in draft.options),
            source=draft.source if draft.source != DEFAULT_SOURCE else "",
            **{name.lower(): draft.sections.get(name, "") for name in CARD_SECTIONS},
        )

    @property
    def draft(self) -> Draft:
        """What is to be stored. Options are kept in the form, and count for the kind that has them."""
        sections = {name: getattr(self, name.lower()) for name in CARD_SECTIONS}
        options = parse_options(self.options) if self.kind == WITH_OPTIONS else ()
        return Draft(self.kind, self.deck, self.title, parse_tags(self.tags), sections, options, self.source)
