"""An own card as the study room shows any other: the same kind of object, rendered only when it is looked at. Pure."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from markupsafe import Markup
from pydantic import AfterValidator, Field, StringConstraints

from app.content.card_schemas import CardHead
from app.content.cards import Card
from app.content.files import Source
from app.content.kinds import OWN_KINDS, PLAIN, WITH_BLANKS
from app.content.kinds.choose import CardOption
from app.content.outside import render_outside, render_outside_cloze, render_outside_inline
from app.content.schemas import Deck, Slug
from app.decks.drafts import DEFAULT_DECK, DEFAULT_SOURCE, Draft, DraftOption
from app.grading.questions import Option

OWN = "OWN-"


def _own_kind(name: str) -> str:
    if name not in OWN_KINDS:
        raise ValueError(f"there is no such kind of own card, but {', '.join(OWN_KINDS)}")
    return name


OwnKind = Annotated[str, AfterValidator(_own_kind)]
OwnId = Annotated[str, StringConstraints(pattern=r"^(OWN-[A-Z2-7]{10})?$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


class OwnOption(CardOption):
    """An option whose author may leave out why it is wrong."""

    id: Slug = "option"
    message: str = ""


class OwnHead(CardHead):
    """The front matter of an own card's file: that of ours, with tags and the GUID other programs know it by."""

    id: OwnId = ""  # it follows from the GUID
    guid: Line | None = None
    title: str = ""
    kind: OwnKind = PLAIN
    deck: str = DEFAULT_DECK
    tags: tuple[str, ...] = ()
    concepts: tuple[Slug, ...] = ()
    source: str = DEFAULT_SOURCE
    options: Annotated[tuple[OwnOption, ...], Field(max_length=20)] = ()
    figure: None = None
    diagram: None = None


class OwnDeck(Deck):
    """A learner's deck: a name that cards share."""

    id: str


def card_id_of(guid: str) -> str:
    """The id of the card with this GUID: the same in every install, so that a history can follow its card."""
    return OWN + b32encode(sha256(guid.encode()).digest())[:10].decode()


def deck_of(name: str) -> OwnDeck:
    """The deck called `name`."""
    return OwnDeck(id="own-" + sha256(name.encode()).hexdigest()[:10], title=name, about="Cards of your own.")


@dataclass(frozen=True)
class Stored:
    """An own card as the database holds it."""

    guid: str
    draft: Draft
    revision: int = 1
    version: int = 0

    @property
    def card_id(self) -> str:
        return card_id_of(self.guid)


def make_own_card(stored: Stored) -> Card:
    """The card to study. Its text was checked when it was stored; it is rendered when a section is looked at."""
    draft = stored.draft
    head = OwnHead.model_construct(
        id=stored.card_id,
        revision=stored.revision,
        guid=stored.guid,
        title=draft.title,
        kind=draft.kind,
        deck=draft.deck,
        tags=draft.tags,
        source=draft.source,
        options=tuple(_option(index, option) for index, option in enumerate(draft.options)),
    )
    source = Source(f"own/{stored.card_id}.md", {}, sections=draft.sections)
    return Card(
        head,
        deck_of(draft.deck),
        _Rendered(draft),
        None,
        source,
        asks=tuple(
            Option(
                f"o{index}", render_outside_inline(option.text), option.correct, render_outside_inline(option.message)
            )
            for index, option in enumerate(draft.options, 1)
        ),
    )


def _option(index: int, option: DraftOption) -> OwnOption:
    return OwnOption.model_construct(
        id=f"o{index + 1}", text=option.text, correct=option.correct, message=option.message
    )


class _Rendered(Mapping[str, Markup]):
    """The sections of a card as HTML, each rendered when it is asked for: a learner may own tens of thousands."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def __getitem__(self, name: str) -> Markup:
        text = self._draft.sections[name]
        has_blanks = (self._draft.kind, name) == (WITH_BLANKS, "Question")
        return render_outside_cloze(text) if has_blanks else render_outside(text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._draft.sections)

    def __len__(self) -> int:
        return len(self._draft.sections)
