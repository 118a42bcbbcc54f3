"""From a collection of Anki's to cards of our own: every card of every note, whatever its note type. Pure."""

from __future__ import annotations

from collections.abc import Collection as Ids
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

from app.content.kinds import PLAIN, WITH_BLANKS
from app.content.outside import blanks
from app.decks.drafts import DEFAULT_DECK, LONGEST_DECK, LONGEST_TAG, MOST_TAGS, Draft, clean_line, mend
from app.exchange.anki import schema
from app.exchange.anki.collection import Collection, NoteType, SourceCard, SourceNote
from app.exchange.anki.notes import from_row
from app.exchange.anki.own_data import unpack
from app.exchange.anki.templates import cloze, render_sides
from app.exchange.archive import refused
from app.exchange.findings import LONGEST_GUID, Findings, Incoming, InTime, Progress, not_shown, shown_as
from app.exchange.html import to_markdown
from app.exchange.limits import FIELD_CHARACTERS
from app.study.api import Remembered

CATALOGUE = "rankzero-"  # before the id of one of our own cards: its GUID, for ever
SHOWN_FIELDS = schema.FIELDS.index("Id")


def findings_of(
    collection: Collection,
    known: Ids[str],
    now: datetime,
    in_time: InTime,
    media: int = 0,
    progress: Progress = not_shown,
) -> Findings:
    """What `collection` brings; `known` are the ids of the catalogue's cards. Raises DomainError when out of time."""
    found = Findings()
    cards: dict[int, list[SourceCard]] = {}
    for card in collection.cards:
        cards.setdefault(card.note, []).append(card)
    for number, note in enumerate(collection.notes):
        progress(number, collection.note_count)
        if not in_time():
            raise refused("Converting it takes too long.", "…", "a smaller file, such as one deck at a time")
        _Note(note, collection, found, known, now).take(cards.pop(note.id, []))
    if cards:
        found.leave_out(f"{len(cards)} cards", "the notes they belong to are not in the file")
    if media:
        found.notices["media files are in it; pictures and sounds are not taken over"] += media
    if collection.answers:
        found.notices["answers of its history are summed up in what is remembered of each card"] += collection.answers
    return found


class _Note:
    """One note on its way into the findings."""

    def __init__(
        self, note: SourceNote, collection: Collection, findings: Findings, known: Ids[str], now: datetime
    ) -> None:
        self.note = note
        self.collection = collection
        self.type = collection.types.get(note.type, NoteType())
        self.fields = dict(zip(self.type.fields, note.fields, strict=False))
        self.findings = findings
        self.known = known
        self.now = now

    def take(self, cards: list[SourceCard]) -> None:
        """Every card of the note."""
        shown = self.note.fields[0][:200]
        if self.note.guid.startswith(CATALOGUE) and self.note.guid.removeprefix(CATALOGUE) in self.known:
            self._take_catalogue(cards)
        elif not cards:
            self.findings.leave_out(shown, "the note has no cards")
        elif not self.type.fields:
            self.findings.leave_out(shown, "its note type is not in the file")
        elif sum(map(len, self.note.fields)) > FIELD_CHARACTERS:
            self.findings.leave_out(shown, f"it is longer than {FIELD_CHARACTERS:,} characters")
        else:
            for card in cards:
                self._take_card(card)

    def _take_catalogue(self, cards: list[SourceCard]) -> None:
        """A card of ours: its text is here already, what is remembered of it may be new."""
        remembered = self._remembered(cards[0]) if cards else None
        self.findings.catalogue[self.note.guid.removeprefix(CATALOGUE)] = remembered

    def _take_card(self, card: SourceCard) -> None:
        incoming = self._ours(card) if set(schema.FIELDS) <= set(self.fields) else self._foreign(card)
        if incoming is not None:
            modified = datetime.fromtimestamp(min(max(self.note.modified, 0), self.now.timestamp()), UTC)
            remembered = self._remembered(card)
            if remembered is not None:
                remembered = replace(remembered, revision=incoming.revision)
            incoming = replace(incoming, modified_at=modified, remembered=remembered)
            self.findings.take(incoming, shown_as(incoming.draft), formulas_set=True)

    def _remembered(self, card: SourceCard) -> Remembered | None:
        return from_row(card.row, self.collection.calendar, card.answered_at, self.now)

    def _ours(self, card: SourceCard) -> Incoming:
        """A card that was exported from here: as it was written, unless it was changed in Anki since."""
        shown = [self.fields[name] for name in schema.FIELDS[:SHOWN_FIELDS]]
        kept = unpack(self.fields["Data"], shown)
        if kept is not None:
            revision, draft = kept
            deck = draft.deck if anki_deck(draft.deck) == card.deck else self._deck(card)
            tags = draft.tags if set(draft.tags) == set(self.note.tags) else self._tags()
            return Incoming(self.note.guid, replace(draft, deck=deck, tags=tags), revision)
        question = self.fields["Question"]
        is_cloze = self.type.is_cloze and "{{c1::" in question
        texts = {name: self._text(self.fields[name]) for name in ("Answer", "Shorthand", "Precise", "Trap")}
        texts["Question"] = self._text(cloze(question, 1) if is_cloze else question)
        source = clean_line(self._text(self.fields["Source"])).replace("\\", "")
        draft = Draft(
            WITH_BLANKS if is_cloze else PLAIN, self._deck(card), "", self._tags(), texts, source=source[:200]
        )
        return Incoming(self.note.guid, draft)

    def _foreign(self, card: SourceCard) -> Incoming | None:
        number = card.template + 1 if self.type.is_cloze else None
        front, back = self.type.templates.get(0 if self.type.is_cloze else card.template, ("", ""))
        sides = render_sides(front, back, self.fields, number)
        question, answer = self._text(sides.front), self._text(sides.back)
        if not question:
            self.findings.leave_out(self.note.fields[0][:200], "its front has no text without pictures and sounds")
            return None
        draft = Draft(
            WITH_BLANKS if sides.has_blank else PLAIN,
            self._deck(card),
            "",
            self._tags(),
            {"Question": question, "Answer": answer},
            source=f"Anki, {clean_line(self.type.name)}"[:200],
        )
        if sides.has_blank and not _has_blank(draft):
            draft = _without_blanks(draft)
            self.findings.notices["clozes reach over several paragraphs and became questions with an answer"] += 1
        elif not sides.has_blank and not answer:
            draft = replace(draft, sections={**draft.sections, "Answer": "*(The back of this card has no text.)*"})
        return Incoming(self._guid(card), draft)

    def _guid(self, card: SourceCard) -> str:
        """A note with several cards becomes several cards: the first keeps the note's GUID."""
        guid = self.note.guid.strip()
        if len(guid) > LONGEST_GUID - 10 or clean_line(guid) != guid:
            guid = "anki-" + sha256(guid.encode(errors="replace")).hexdigest()[:32]
        return guid if card.template == 0 else f"{guid}~{card.template}"

    def _text(self, html: str) -> str:
        converted = to_markdown(html)
        for count, words in (
            (len(converted.pictures), "pictures in texts were left out"),
            (converted.sounds, "sounds in texts were left out"),
            (converted.formulas, "formulas cannot be set here and are shown as code"),
        ):
            if count:
                self.findings.notices[words] += count
        return mend(converted.text)

    def _deck(self, card: SourceCard) -> str:
        return clean_line(card.deck)[:LONGEST_DECK].strip() or DEFAULT_DECK

    def _tags(self) -> tuple[str, ...]:
        tags = [tag.replace(",", "_") for tag in self.note.tags if len(tag) <= LONGEST_TAG]
        if len(self.note.tags) > len(tags[:MOST_TAGS]):
            self.findings.notices["tags were left out: there are too many on one note, or they are too long"] += len(
                self.note.tags
            ) - len(tags[:MOST_TAGS])
        return tuple(tags[:MOST_TAGS])


def anki_deck(name: str) -> str:
    """A deck's name as Anki keeps it: no quotation marks, and no empty part between the colons."""
    parts = (" ".join(part.replace('"', "").split()) for part in name.split("::"))
    return "::".join(part or "blank" for part in parts)


def _has_blank(draft: Draft) -> bool:
    return blanks(draft.sections["Question"]) > 0


def _without_blanks(draft: Draft) -> Draft:
    """A cloze that our own cannot show, as a question and its answer."""
    text = draft.sections["Question"]
    question = "".join(
        part if index == 0 else "**[…]**" + part.split("]]", 1)[-1] for index, part in enumerate(text.split("[["))
    )
    answer = text.replace("[[", "").replace("]]", "")
    more = draft.sections.get("Answer", "")
    return replace(draft, kind=PLAIN, sections={"Question": question, "Answer": f"{answer}\n\n{more}".strip()})
