"""Cards and what is remembered of them, in and out. Reading a file needs no session; storing is one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import DomainError, NotFound, Violation
from app.core.moment import Moment
from app.core.texts import storable
from app.decks import service as decks
from app.decks.cards import card_id_of
from app.decks.files import decks_zip
from app.exchange.anki.exporting import catalogue_note, own_note
from app.exchange.anki.importing import findings_of
from app.exchange.anki.notes import AnkiNote
from app.exchange.anki.reading import open_package
from app.exchange.anki.writing import write_package
from app.exchange.archive import refused
from app.exchange.csv_file import read_csv, write_csv
from app.exchange.findings import Findings, Progress, not_shown
from app.exchange.limits import SECONDS, TEXT_BYTES, UPLOAD_BYTES
from app.exchange.models import ImportReport
from app.exchange.text_file import ACCEPTED, read_card_file, read_decks_zip
from app.study import api as study
from app.study.api import Remembered
from app.words import counted

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

REPORTS_LISTED = 20

Which = Literal["all", "own", "catalogue"]


@dataclass(frozen=True)
class Exported:
    """What went into a file."""

    notes: int
    scheduled: int
    answers: int


def export_anki(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    path: Path,
    moment: Moment,
    *,
    scheduling: bool = True,
    which: Which = "all",
) -> Exported:
    """Write an .apkg with the catalogue's cards, the learner's own, or both, and what is remembered of them."""
    remembered = study.list_remembered(session, learner_id) if scheduling else {}
    notes = list(_notes(session, learner_id, catalogue, remembered, moment.now, which))
    guids = {_card_id(note): note.guid for note in notes}
    answers = [
        (guids[answer.card_id], answer)
        for answer in (study.list_answers(session, learner_id) if scheduling else ())
        if answer.card_id in guids
    ]
    write_package(path, notes, answers, moment.now, moment.zone)
    scheduled = sum(note.remembered is not None and note.remembered.memory is not None for note in notes)
    return Exported(len(notes), scheduled, len(answers))


def _notes(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    remembered: dict[str, Remembered],
    now: datetime,
    which: Which,
) -> Iterator[AnkiNote]:
    if which != "own":
        for card in catalogue.cards.values():
            yield catalogue_note(card, now, _current(remembered.get(card.id), card.head.revision))
    if which != "catalogue":
        for row in decks.all_rows(session, learner_id):
            stored = decks.stored_of(row)
            yield own_note(stored, row.updated_at, _current(remembered.get(row.card_id), row.revision))


def _card_id(note: AnkiNote) -> str:
    return note.fields[-2]


def _current(remembered: Remembered | None, revision: int) -> Remembered | None:
    """A memory of an earlier revision is of another meaning."""
    return remembered if remembered is not None and remembered.revision == revision else None


def revisions_of(catalogue: Catalogue) -> dict[str, int]:
    """The catalogue's cards as an import must know them: each one's revision by its id."""
    return {card_id: card.head.revision for card_id, card in catalogue.cards.items()}


def read_file(
    name: str, file: BinaryIO, known: Mapping[str, int], moment: Moment, progress: Progress = not_shown
) -> Findings:
    """What the file called `name` brings, by its ending; `known` are the catalogue's cards and their revisions.

    Raises DomainError for one that cannot be read. A stranger's file is read in a process of its own: `imports.start`.
    """
    deadline = time.thread_time() + SECONDS  # of work: on a busy machine a good file must not fail

    def in_time() -> bool:
        return time.thread_time() < deadline

    size = file.seek(0, 2)
    file.seek(0)
    if size > UPLOAD_BYTES:
        raise refused("It is too large.", f"{size:,} bytes", f"up to {UPLOAD_BYTES:,} bytes")
    ending = Path(name).suffix.lower()
    if ending in (".apkg", ".colpkg"):
        with open_package(file, moment.zone, in_time) as (collection, media):
            return findings_of(collection, known.keys(), moment.now, in_time, media, progress)
    if ending == ".zip":
        return read_decks_zip(file, in_time, progress)
    if ending in (".csv", ".tsv", ".txt"):
        return read_csv(_text(file, size), in_time, progress)
    if ending == ".md":
        return read_card_file(_text(file, size), Path(name).name)
    raise refused("Its name does not say what it is.", name[-60:], ACCEPTED)


def _text(file: BinaryIO, size: int) -> str:
    if size > TEXT_BYTES:
        raise refused("It is too large for text.", f"{size:,} bytes", f"up to {TEXT_BYTES:,} bytes")
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(f"It is not text in UTF-8 (byte {error.start}).", "…", "text in UTF-8") from None


def store(
    session: Session,
    learner_id: int,
    known: Mapping[str, int],
    name: str,
    findings: Findings,
    moment: Moment,
    *,
    scheduling: bool = True,
) -> ImportReport:
    """Store what a file brings and note what became of it. Raises DomainError when there would be too many cards."""
    kept = decks.store_all(session, learner_id, findings.cards.values(), moment.now)
    offered = _offered(session, learner_id, known, findings) if scheduling else {}
    taken = study.take_over(session, learner_id, offered, moment)
    report = ImportReport(
        learner_id=learner_id,
        file_name=storable(Path(name).name)[-200:],
        created_at=moment.now,
        report={
            "cards": {
                "added": kept.added,
                "updated": kept.updated,
                "unchanged": kept.unchanged,
                "kept": kept.kept,
                "catalogue": len(findings.catalogue),
            },
            "memories": {
                "taken": taken.memories,
                "kept": taken.kept,
                "suspended": taken.suspended,
                "asked": scheduling,
            },
            "left_out": [{"what": storable(what), "why": storable(why)} for what, why in findings.left_out],
            "left_out_total": findings.left_out_total,
            "notices": [f"{count:,} {words}" for words, count in sorted(findings.notices.items())],
        },
    )
    session.add(report)
    session.flush()
    return report


def _offered(session: Session, learner_id: int, known: Mapping[str, int], findings: Findings) -> dict[str, Remembered]:
    """Memories by card id, each at the revision its card has here."""
    revisions = {row.card_id: row.revision for row in decks.all_rows(session, learner_id)} if findings.cards else {}
    offered = {
        card_id: _at_revision(remembered, known[card_id])
        for card_id, remembered in findings.catalogue.items()
        if remembered is not None
    }
    for incoming in findings.cards.values():
        card_id = card_id_of(incoming.guid)
        if incoming.remembered is not None and card_id in revisions:
            offered[card_id] = _at_revision(incoming.remembered, revisions[card_id])
    return offered


def _at_revision(remembered: Remembered, revision: int) -> Remembered:
    return Remembered(**{**vars(remembered), "revision": revision})


def list_reports(session: Session, learner_id: int) -> list[ImportReport]:
    """The newest import reports."""
    query = select(ImportReport).where(ImportReport.learner_id == learner_id).order_by(ImportReport.id.desc())
    return list(session.scalars(query.limit(REPORTS_LISTED)))


def find_report(session: Session, learner_id: int, report_id: int) -> ImportReport:
    """Raises NotFound."""
    found = session.get(ImportReport, report_id)
    if found is None or found.learner_id != learner_id:
        raise NotFound(f"There is no import report {report_id}.")
    return found


def report_lines(report: ImportReport) -> Iterable[str]:
    """A report in words, for a terminal."""
    cards, memories = report.report["cards"], report.report["memories"]
    yield f"{report.file_name}:"
    yield (
        f"  {counted(cards['added'], 'card')} added, {cards['updated']:,} updated, {cards['unchanged']:,} unchanged, "
        f"{cards['kept']:,} newer here and kept"
    )
    if cards["catalogue"]:
        yield f"  {counted(cards['catalogue'], 'card')} of RankZero's own: their text is here already"
    if memories["asked"]:
        yield (
            f"  {counted(memories['taken'], 'memory', 'memories')} taken over, {memories['kept']:,} as new or newer "
            f"here, {memories['suspended']:,} suspended"
        )
    for notice in report.report["notices"]:
        yield f"  {notice}"
    for each in report.report["left_out"]:
        yield f"  left out: {each['what']}: {each['why']}"
    more = report.report["left_out_total"] - len(report.report["left_out"])
    if more > 0:
        yield f"  and {more:,} more left out"


def own_cards_file(session: Session, learner_id: int, ending: str, deck: str = "") -> tuple[int, bytes]:
    """The learner's own cards, or those of one deck, as the file with this ending. Raises DomainError."""
    cards = decks.all_stored(session, learner_id, deck)
    if ending == ".csv":
        return len(cards), write_csv(cards).encode("utf-8-sig")  # with a mark, or spreadsheets read it as Latin-1
    if ending == ".zip":
        return len(cards), decks_zip(cards)
    raise DomainError(
        "The cards were not exported.", [Violation("file", ending, "There is no such format.", ".csv or .zip")]
    )


def count_own(session: Session, learner_id: int) -> int:
    """How many own cards there are to export."""
    return decks.count(session, learner_id)
