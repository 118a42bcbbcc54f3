"""From our cards to notes of Anki's: the catalogue's as they are shown, own ones with the text they were written in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html.parser import HTMLParser

import nh3
from markupsafe import Markup, escape

from app.content.cards import Card
from app.content.kinds import WITH_BLANKS
from app.content.kinds.kind import CheckedKind
from app.content.outside import (
    MATH_ATTRIBUTES,
    MATH_TAGS,
    TAGS,
    render_anki_cloze,
    render_outside,
    render_outside_inline,
    without_blank_marks,
)
from app.decks.cards import Stored
from app.exchange.anki.importing import CATALOGUE, anki_deck
from app.exchange.anki.notes import AnkiNote
from app.exchange.anki.own_data import pack
from app.study.api import Remembered

ROOT = "RankZero"
SEED = 1  # options, pairs and steps go out in the order of this showing
_BLANK_OPEN, _BLANK_CLOSE = "\ue000", "\ue001"
_KEPT = set(TAGS | MATH_TAGS) - {"a", "span"}
_SAYS = {"ol": {"start"}, **{tag: set(MATH_ATTRIBUTES) for tag in MATH_TAGS}}


def own_note(stored: Stored, modified_at: datetime, remembered: Remembered | None) -> AnkiNote:
    """A card of the learner's own."""
    draft = stored.draft
    is_cloze = draft.kind == WITH_BLANKS
    html = {
        name: render_anki_cloze(text) if is_cloze and name == "Question" else render_outside(text, "mathjax")
        for name, text in draft.sections.items()
    }
    if draft.options:
        texts = [render_outside_inline(option.text, "mathjax") for option in draft.options]
        html["Question"] += _list(texts)
        right = [
            text + (Markup(" ({})").format(option.message) if option.message else Markup())
            for text, option in zip(texts, draft.options, strict=True)
            if option.correct
        ]
        html["Answer"] = _list(right) + html.get("Answer", Markup())
    shown = [str(html.get(name, "")).strip() for name in ("Question", "Answer", "Shorthand", "Precise", "Trap")]
    shown.append(str(escape(draft.source)))
    fields = (*shown, stored.card_id, pack(stored, shown))
    return AnkiNote(stored.guid, is_cloze, fields, draft.tags, anki_deck(draft.deck), modified_at, remembered)


def catalogue_note(card: Card, modified_at: datetime, remembered: Remembered | None) -> AnkiNote:
    """A card of the catalogue, as it is shown here; numbers stand as they are computed."""
    is_cloze = card.head.kind == WITH_BLANKS
    question = card.sections["Question"]
    front = _Cloze.rewritten(question) if is_cloze else _plain(question)
    asked, told = _asked(card)
    shown = [
        front + asked,
        told + _plain(card.sections["Answer"]) + _figure(card),
        *(_plain(card.sections.get(name, Markup())) for name in ("Shorthand", "Precise", "Trap")),
    ]
    fields = (*(str(each).strip() for each in shown), str(escape(card.head.source)), card.id, "")
    deck = f"{ROOT}::{anki_deck(card.deck.title.replace('::', ': '))}"
    tags = ("rankzero", *card.head.concepts)
    return AnkiNote(CATALOGUE + card.id, is_cloze, fields, tags, deck, modified_at, remembered)


def _plain(html: Markup) -> Markup:
    """Without links into this product and without our style's classes."""
    return Markup(nh3.clean(str(html), tags=_KEPT, attributes=_SAYS))  # noqa: S704


def _asked(card: Card) -> tuple[Markup, Markup]:
    """What a checked card offers to choose from, and what is right, as lists."""
    if not isinstance(card.kind, CheckedKind) or not card.is_checked:
        return Markup(), Markup()
    listed = card.kind.listed(card, SEED)
    offered = Markup().join(_list(map(_plain, texts)) for texts in listed.offered)
    right = list(map(_plain, listed.right))
    return offered, _list(right, "ol" if listed.in_order else "ul") if right else Markup()


def _figure(card: Card) -> Markup:
    """What a drawing shows, in words: its lines and colours are the page's."""
    if card.figure:
        return Markup("<p><b>{}.</b> {}</p>").format(card.figure.title, card.figure.finding)
    if card.diagram:
        return Markup("<p><b>{}.</b> {}</p>").format(card.diagram.title.rstrip("."), card.diagram.finding)
    return Markup()


def _list(items: Iterable[Markup], tag: str = "ul") -> Markup:
    inner = Markup().join(Markup("<li>{}</li>").format(item) for item in items)
    return Markup("<{}>{}</{}>").format(tag, inner, tag)


class _Cloze(HTMLParser):
    """Rewrites our own `<span class="blank">` as Anki's `{{c1::…}}`. Ours shows every blank of a card at once."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.made: list[str] = []
        self.spans: list[str] = []

    @classmethod
    def rewritten(cls, html: Markup) -> Markup:
        writer = cls()
        writer.feed(str(html))
        writer.close()
        cleaned = without_blank_marks(_plain(Markup("".join(writer.made))))  # noqa: S704 - cleaned here
        return cleaned.replace(_BLANK_OPEN, Markup("{{c1::")).replace(_BLANK_CLOSE, Markup("}}"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "span":
            self.spans.append(dict(attrs).get("class") or "")
            if self.spans[-1] == "fill":
                self.made.append(_BLANK_OPEN)
        elif "gap" not in self.spans:
            self.made.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "span":
            if self.spans and self.spans.pop() == "fill":
                self.made.append(_BLANK_CLOSE)
        elif "gap" not in self.spans:
            self.made.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if "gap" not in self.spans:
            self.made.append(data)

    def handle_entityref(self, name: str) -> None:
        self.made.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.made.append(f"&#{name};")
