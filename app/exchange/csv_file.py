"""Own cards as a table: one row a card, as spreadsheets read and write it. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from app.content.cards import CARD_SECTIONS
from app.content.kinds import PLAIN
from app.decks.cards import Stored
from app.decks.drafts import DEFAULT_DECK, DEFAULT_SOURCE, Draft, mend, parse_options, parse_tags
from app.exchange.archive import refused
from app.exchange.findings import Findings, Incoming, InTime, Progress, guid_of_text, not_shown, shown_as
from app.exchange.limits import NOTES

SECTIONS = tuple(name.lower() for name in CARD_SECTIONS)
COLUMNS = ("guid", "revision", "kind", "deck", "title", "tags", *SECTIONS, "options", "source")
NEEDED = ("question", "answer")
ALSO_CALLED = {"front": "question", "back": "answer"}  # as elsewhere
ACCEPTED = f"a first line with the columns question and answer (or front and back), and any of {', '.join(COLUMNS)}"

_ACTS = ("=", "+", "-", "@", "\t", "\r", "'")  # a spreadsheet would compute what begins so; a quote keeps it text


def write_csv(cards: Iterable[Stored]) -> str:
    """The cards as CSV, with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for stored in cards:
        draft = stored.draft
        row = {
            "guid": stored.guid,
            "revision": str(stored.revision),
            "kind": draft.kind,
            "deck": draft.deck,
            "title": draft.title,
            "tags": " ".join(draft.tags),
            "source": draft.source,
            "options": "\n".join(option.line for option in draft.options),
            **{name.lower(): text for name, text in draft.sections.items()},
        }
        writer.writerow([_quoted(row.get(column, "")) for column in COLUMNS])
    return out.getvalue()


def read_csv(text: str, in_time: InTime, progress: Progress = not_shown) -> Findings:
    """The cards of a CSV file with a header. Raises DomainError where it has none."""
    lines = text.removeprefix("\ufeff")
    header_line = lines.split("\n", 1)[0]
    delimiter = max(",;\t", key=header_line.count)
    reader = csv.reader(io.StringIO(lines.replace("\0", ""), newline=""), delimiter=delimiter)
    found = Findings()
    try:
        header = [_column(name) for name in next(reader, [])]
        if not set(NEEDED) <= set(header):
            raise refused("Its first line does not name the columns.", header_line[:80].strip(), ACCEPTED)
        total = text.count("\n")
        for number, cells in enumerate(reader, 2):
            progress(min(number - 2, total), total)
            if number > NOTES + 1 or not in_time():
                raise refused("It has too many rows.", number, f"up to {NOTES:,} rows")
            if any(cell.strip() for cell in cells):
                _take(found, number, dict(zip(header, map(_unquoted, cells), strict=False)))
    except csv.Error as error:
        raise refused(f"Line {reader.line_num} cannot be read: {error}.", "…", "CSV") from None
    return found


def _column(heading: str) -> str:
    name = heading.strip().lower()
    return ALSO_CALLED.get(name, name)


def _take(findings: Findings, number: int, row: Mapping[str, str]) -> None:
    draft = Draft(
        row.get("kind", "").strip() or PLAIN,
        row.get("deck", "") or DEFAULT_DECK,
        row.get("title", ""),
        parse_tags(row.get("tags", "")),
        {section: mend(row.get(section.lower(), "")) for section in CARD_SECTIONS},
        parse_options(row.get("options", "")),
        row.get("source", "") or DEFAULT_SOURCE,
    )
    revision = row.get("revision", "").strip()
    counted = int(revision) if revision.isdecimal() and int(revision[:6]) > 0 and len(revision) < 6 else 1
    guid = row.get("guid", "").strip() or guid_of_text(draft)
    findings.take(Incoming(guid, draft, counted), f"Row {number}: {shown_as(draft)}")


def _quoted(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_ACTS) else cell


def _unquoted(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_ACTS) else cell
