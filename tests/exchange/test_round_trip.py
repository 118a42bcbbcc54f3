"""Whatever is written in an own card comes back from every kind of file as it was: nothing lost, nothing doubled."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from app.content.catalogue import Catalogue
from app.core.days import day_start
from app.core.db import Database
from app.decks import service as decks
from app.decks.cards import Stored, card_id_of
from app.decks.drafts import Draft, DraftOption, problems, tidy
from app.decks.files import card_text, decks_zip, read_card_text
from app.exchange import service
from app.exchange.anki.exporting import own_note
from app.exchange.anki.importing import findings_of
from app.exchange.anki.notes import CardRow, from_row, to_row
from app.exchange.anki.reading import open_package
from app.exchange.anki.writing import write_package
from app.exchange.csv_file import read_csv, write_csv
from app.exchange.findings import Findings
from app.exchange.text_file import read_decks_zip
from app.study import service as study
from app.study.log import transfer
from app.study.log.transfer import Remembered
from tests.conftest import NOW, moment_at
from tests.exchange.conftest import Take, basic

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Apia"]).map(ZoneInfo)
PIECES = st.sampled_from(
    [
        "$x_1$",
        "**b**",
        "`c`",
        "[[blank]]",
        "\n",
        "\n\n",
        "- ",
        "## ",
        "|",
        "{{c1::x}}",
        "}}",
        "::",
        "&amp;",
        "<b>",
        "\\",
        "```",
        "---",
        "'",
        '"',
        ":",
        "#",
        "=1+1",
        "\t",
        "\r\n",
        "\x1f",
        "\0",
        "\ue000",
        "\u2028",
        "é",
        "漢",
        "🧠",
        "e\u0301",
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=12).map("".join)
LINES = st.text(max_size=30)
TAGS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), max_size=8)
GUIDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Own cards as somebody might type them, of those that can be stored."""
    kind = draw(st.sampled_from(["basic", "cloze", "choose"]))
    sections = {name: draw(TEXTS) for name in ("Question", "Answer", "Trap")}
    if kind == "cloze":
        sections["Question"] += "\n\n[[blank]]"
    options = (DraftOption(draw(LINES), True), DraftOption(draw(LINES), False, draw(LINES))) if kind == "choose" else ()
    tags = tuple(draw(st.lists(TAGS, max_size=3)))
    draft = tidy(Draft(kind, draw(LINES), draw(LINES), tags, sections, options, draw(LINES)))
    assume(not list(problems(draft)))
    return draft


SHELVES = st.dictionaries(GUIDS, drafts(), min_size=1, max_size=4).map(
    lambda cards: [Stored(guid, draft) for guid, draft in cards.items()]
)
many = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def _always() -> bool:
    return True


def _brought(found: Findings) -> dict[str, Draft]:
    assert found.left_out == []
    return {guid: incoming.draft for guid, incoming in found.cards.items()}


def _as_is(cards: list[Stored]) -> dict[str, Draft]:
    return {stored.guid: stored.draft for stored in cards}


@pytest.mark.slow
@many
@given(SHELVES)
def test_a_cards_file_is_read_back_as_it_was(cards: list[Stored]) -> None:
    for stored in cards:
        text = card_text(stored)
        guid, revision, draft = read_card_text(text, "card.md")
        assert (guid, revision, tidy(draft)) == (stored.guid, 1, stored.draft)
        assert card_text(Stored(stored.guid, tidy(draft))) == text


@pytest.mark.slow
@many
@given(SHELVES)
def test_a_zip_of_decks_is_read_back_as_it_was(cards: list[Stored]) -> None:
    data = decks_zip(cards)
    assert _brought(read_decks_zip(BytesIO(data), _always)) == _as_is(cards)
    assert decks_zip(reversed(cards)) == data


def _choice(*options: DraftOption) -> list[Stored]:
    draft = Draft("choose", sections={"Question": "Which?", "Answer": ""}, options=options)
    return [Stored("0", tidy(draft))]


@pytest.mark.slow
@many
@given(SHELVES)
@example(_choice(DraftOption("1", True), DraftOption("0 |", False, "0")))
@example(_choice(DraftOption("0 | 1", True), DraftOption("0", False, "a | b")))
@example(_choice(DraftOption("p | | q", True), DraftOption("| q", False), DraftOption("|", False, "| |")))
@example(_choice(DraftOption("a &#124; b", True), DraftOption("a &amp;#124; b", False, "&#124; | &#124;")))
@example(_choice(DraftOption(r"$a \| b$", True), DraftOption("a || b", False), DraftOption("[x] c |", False)))
def test_a_table_is_read_back_as_it_was(cards: list[Stored]) -> None:
    assert _brought(read_csv(write_csv(cards), _always)) == _as_is(cards)


@pytest.mark.slow
@many
@given(SHELVES)
def test_no_cell_of_a_table_is_computed_by_a_spreadsheet(cards: list[Stored]) -> None:
    import csv

    for row in csv.reader(write_csv(cards).splitlines(keepends=True)):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)


@pytest.mark.slow
@many
@given(SHELVES)
def test_a_package_is_read_back_as_it_was(cards: list[Stored]) -> None:
    found = _through_anki_format(cards)
    assert _brought(found) == _as_is(cards)


def _through_anki_format(cards: list[Stored]) -> Findings:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cards.apkg"
        write_package(path, [own_note(stored, NOW, None) for stored in cards], (), NOW, ZoneInfo("UTC"))
        with path.open("rb") as file, open_package(file, ZoneInfo("UTC"), _always) as (collection, media):
            return findings_of(collection, (), NOW, _always, media)


DAYS = st.integers(-400, 4000)


@many
@given(
    st.sampled_from([1, 2, 3]),
    st.floats(0.01, 30_000),
    st.floats(1, 10),
    DAYS,
    st.integers(0, 400 * 86_400),
    st.integers(1, 500),
    st.integers(0, 60),
    st.booleans(),
    ZONES,
)
def test_a_schedule_is_read_back_as_it_was(
    state: int,
    stability: float,
    difficulty: float,
    due_in_days: int,
    ago_seconds: int,
    reviews: int,
    lapses: int,
    suspended: bool,
    zone: ZoneInfo,
) -> None:
    from app.exchange.anki.notes import Calendar

    last = NOW - timedelta(seconds=ago_seconds)
    if state == 2:
        due = day_start(NOW.toordinal() + due_in_days, zone)
        assume(due > last)
    else:
        due = last + timedelta(minutes=10)
    step = {1: 0, 2: None, 3: 0}[state]
    remembered = Remembered(state, step, stability, difficulty, due, last, reviews, lapses, suspended)
    first_day = NOW.toordinal() - 1000
    row = to_row(remembered, 1, first_day, zone)
    assert isinstance(row, CardRow)
    assert from_row(row, Calendar(first_day, zone), None, NOW) == remembered


@pytest.mark.slow
def test_a_whole_install_goes_to_another_and_back(
    sqlite: Database, content: Catalogue, tmp_path: Path, take: Take, sqlite_template: Path
) -> None:
    """Export, import elsewhere, export there: the same cards and memories, and the same file but for the answers."""
    import shutil

    from app.core.db import open_database

    at = NOW - timedelta(days=30)
    with sqlite.write() as session:
        for number in range(5):
            decks.add(session, 1, basic(f"Question {number}?", tags=("a",)), NOW - timedelta(days=1), f"g{number}")
    for card_id, level in ((card_id_of("g0"), 4), (card_id_of("g1"), 1), ("C27", 5), ("C30", 3)):
        for later in (timedelta(), timedelta(days=4)):
            with sqlite.write() as session:
                version = study.show(session, 1, content, card_id, moment_at(at + later)).version
                study.submit_review(
                    session, 1, content, card_id=card_id, level=level, version=version, moment=moment_at(at + later)
                )
    shutil.copy(sqlite_template, tmp_path / "other.sqlite3")
    other = open_database(f"sqlite:///{tmp_path / 'other.sqlite3'}")
    _export(sqlite, content, tmp_path / "one.apkg")
    assert take(other, tmp_path / "one.apkg").report["cards"]["added"] == 5
    for again in (sqlite, other, other):
        report = take(again, tmp_path / "one.apkg").report
        assert (report["cards"]["added"], report["cards"]["updated"], report["memories"]["taken"]) == (0, 0, 0)
    _export(other, content, tmp_path / "two.apkg")
    assert _everything(other) == _everything(sqlite)
    assert _rows(tmp_path / "two.apkg") == _rows(tmp_path / "one.apkg")
    other.engine.dispose()


def _export(database: Database, content: Catalogue, path: Path) -> None:
    with database.read() as session:
        service.export_anki(session, 1, content, path, moment_at(NOW))


def _everything(database: Database) -> object:
    with database.read() as session:
        stored = {each.guid: (each.draft, each.revision) for each in decks.all_stored(session, 1)}
        return stored, transfer.list_remembered(session, 1)


def _rows(path: Path) -> object:
    import sqlite3

    with zipfile.ZipFile(path) as archive:
        data = archive.read("collection.anki2")
    connection = sqlite3.connect(":memory:")
    connection.deserialize(data)
    order = "SELECT {} FROM {} ORDER BY 1, 2"
    return [
        connection.execute(order.format(columns, table)).fetchall()
        for columns, table in (
            ("guid, id, mid, mod, tags, flds", "notes"),
            (
                "nid, ord, did, type, queue, ivl, factor, reps, lapses, left, data, "
                "CASE type WHEN 0 THEN 0 ELSE due END",
                "cards",
            ),
        )
    ]


def test_importing_twice_doubles_nothing_on_both_databases(
    database: Database, content: Catalogue, tmp_path: Path, take: Take
) -> None:
    path = tmp_path / "cards.csv"
    path.write_text("question;answer;tags\nOne?;Eins.;a b\nTwo?;Zwei.;\n")
    assert take(database, path).report["cards"]["added"] == 2
    assert take(database, path).report["cards"] == {"added": 0, "updated": 0, "unchanged": 2, "kept": 0, "catalogue": 0}
    path.write_text("question;answer;tags\nOne?;Uno.;a b\nTwo?;Zwei.;\n")
    assert take(database, path).report["cards"]["updated"] == 1
    with database.read() as session:
        assert decks.count(session, 1) == 2


@pytest.mark.parametrize("newer", [True, False])
def test_the_newer_text_wins(sqlite: Database, tmp_path: Path, take: Take, newer: bool) -> None:
    there = datetime(2026, 11, 20, 12, tzinfo=UTC)
    here = there - timedelta(hours=1) if newer else there + timedelta(hours=1)
    with sqlite.write() as session:
        decks.add(session, 1, basic("Ours?"), here, "shared")
    path = tmp_path / "theirs.apkg"
    write_package(path, [own_note(Stored("shared", tidy(basic("Theirs?"))), there, None)], (), NOW, ZoneInfo("UTC"))
    counts = take(sqlite, path).report["cards"]
    assert counts["updated" if newer else "kept"] == 1
    with sqlite.read() as session:
        question = decks.find(session, 1, card_id_of("shared")).sections["Question"]
    assert question == ("Theirs?" if newer else "Ours?")
