"""Our files in real Anki, and Anki's files here: notes, fields, tags, decks, due dates, FSRS figures."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from app.core.days import day_number
from app.core.db import Database
from app.decks import service as decks
from app.decks.drafts import Draft, DraftOption
from app.exchange import service
from app.study import service as study
from app.study.log import transfer
from tests.conftest import moment_at
from tests.exchange.conftest import Take, basic
from tests.support.anki import real_anki

pytestmark = pytest.mark.slow

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture(autouse=True)
def _at_the_machines_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anki counts days by it: a test must not begin with a time of the day before."""
    monkeypatch.setattr(sys.modules[__name__], "NOW", datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def full(sqlite: Database, content: Catalogue) -> Database:
    """An install with own cards of each kind, and answers to some cards."""
    blanks = r"ZeRO-1 shards [[optimizer {{state}}]] and [[$\frac{{a}}{b}$ std::x]]"
    drafts = {
        "g-basic": basic("State of $16N$ [x](http://a.b)?", "**14 GB**", tags=("memory", "x::y")),
        "g-cloze": Draft("cloze", "ZeRO::One", sections={"Question": blanks, "Answer": ""}),
        "g-choose": Draft(
            "choose",
            "ZeRO::One",
            sections={"Question": "Which?", "Answer": "So."},
            options=(DraftOption("$2+2=4$", True), DraftOption("five", False, "no")),
        ),
    }
    with sqlite.write() as session:
        for guid, draft in drafts.items():
            decks.add(session, 1, draft, NOW, guid)
    own = decks.card_id_of("g-basic")
    for card_id, levels in {own: (4, 4, 4), "C27": (5,), "C28": (2,), "C29": (4, 4, 1)}.items():
        at = NOW - timedelta(days=40)
        for level in levels:
            with sqlite.write() as session:
                version = study.show(session, 1, content, card_id, moment_at(at)).version
                study.submit_review(
                    session,
                    1,
                    content,
                    card_id=card_id,
                    level=level,
                    version=version,
                    moment=moment_at(at),
                    elapsed_milliseconds=4000,
                )
            at += timedelta(days=13)
    return sqlite


def _export(database: Database, content: Catalogue, path: Path, **how: object) -> service.Exported:
    with database.read() as session:
        return service.export_anki(session, 1, content, path, moment_at(NOW), **how)  # type: ignore[arg-type]


def test_anki_opens_what_we_write_with_its_schedule(full: Database, content: Catalogue, tmp_path: Path) -> None:
    done = _export(full, content, tmp_path / "out.apkg")
    assert (done.notes, done.scheduled, done.answers) == (len(content.cards) + 3, 4, 8)
    with real_anki(tmp_path / "anki") as anki:
        log = anki.take(tmp_path / "out.apkg")
        assert len(log.new) == done.notes
        cards = anki.cards()
        assert anki.collection.fix_integrity()[1], "Anki finds nothing to mend"
        assert anki.collection.db.scalar("SELECT count(*) FROM revlog") == 8
    assert len(cards) == done.notes
    own, remembered = cards["g-basic"], _remembered(full, decks.card_id_of("g-basic"))
    assert own.tags == ("memory", "x::y")
    assert own.deck == "My cards"
    assert own.fields[0].startswith(r"<p>State of \(16N\) <a href=")
    assert (own.type, own.queue, own.reps) == (2, 2, 3)
    assert remembered.due_at is not None
    zone = moment_at(NOW).zone
    assert own.due_in_days == day_number(remembered.due_at, zone) - day_number(NOW, zone)
    assert own.data["s"] == pytest.approx(remembered.stability, rel=1e-3)
    assert own.data["d"] == pytest.approx(remembered.difficulty, rel=1e-3)
    assert cards["g-cloze"].deck == "ZeRO::One"
    assert cards["g-cloze"].fields[0].count("{{c1::") == 2
    assert cards["rankzero-C28"].type == 1
    assert cards["rankzero-C28"].due == int((_remembered(full, "C28").due_at or NOW).timestamp())
    assert cards["rankzero-C29"].type == 3
    assert cards["rankzero-C29"].lapses == 1
    assert cards["rankzero-C30"].type == 0


def test_without_scheduling_every_card_is_new(full: Database, content: Catalogue, tmp_path: Path) -> None:
    done = _export(full, content, tmp_path / "out.apkg", scheduling=False, which="own")
    assert (done.notes, done.scheduled, done.answers) == (3, 0, 0)
    with real_anki(tmp_path / "anki") as anki:
        anki.take(tmp_path / "out.apkg")
        assert {card.type for card in anki.cards().values()} == {0}


def test_a_second_export_updates_in_place(full: Database, content: Catalogue, tmp_path: Path) -> None:
    _export(full, content, tmp_path / "first.apkg")
    with full.write() as session:
        row = decks.find(session, 1, decks.card_id_of("g-basic"))
        decks.edit(session, 1, row.card_id, basic("Changed?"), row.version, NOW + timedelta(hours=1))
    with full.read() as session:
        service.export_anki(session, 1, content, tmp_path / "second.apkg", moment_at(NOW + timedelta(hours=2)))
    with real_anki(tmp_path / "anki") as anki:
        anki.take(tmp_path / "first.apkg")
        before = anki.cards()
        log = anki.take(tmp_path / "second.apkg")
        after = anki.cards()
    assert not log.new
    assert after.keys() == before.keys()
    assert after["g-basic"].fields[0] == "<p>Changed?</p>"


def test_through_anki_and_back_nothing_is_lost_doubled_or_changed(
    full: Database, content: Catalogue, tmp_path: Path, take: Take
) -> None:
    _export(full, content, tmp_path / "out.apkg")
    before = _everything(full)
    with real_anki(tmp_path / "anki") as anki:
        anki.take(tmp_path / "out.apkg")
        for legacy in (True, False):
            anki.give(tmp_path / f"back-{legacy}.apkg", legacy=legacy)
    for legacy in (True, False):
        report = take(full, tmp_path / f"back-{legacy}.apkg", NOW).report
        assert report["cards"] == {"added": 0, "updated": 0, "unchanged": 3, "kept": 0, "catalogue": len(content.cards)}
        assert report["memories"] == {"taken": 0, "kept": 4, "suspended": 0, "asked": True}
        assert report["left_out_total"] == 0
        assert _everything(full) == before


def test_what_was_changed_in_anki_comes_back_changed(
    full: Database, content: Catalogue, tmp_path: Path, take: Take
) -> None:
    _export(full, content, tmp_path / "out.apkg", which="own")
    with real_anki(tmp_path / "anki") as anki:
        anki.take(tmp_path / "out.apkg")
        note = anki.collection.get_note(anki.collection.find_notes("tag:memory")[0])
        note["Answer"] = "<p>It is <i>16</i> \\(N\\), not &lt;14&gt;.</p><script>alert(1)</script>"
        note.tags = ["memory", "mended"]
        anki.collection.update_note(note)
        anki.collection.db.execute("UPDATE notes SET mod = ? WHERE id = ?", int(NOW.timestamp()) + 60, note.id)
        anki.give(tmp_path / "back.apkg", legacy=False)
    report = take(full, tmp_path / "back.apkg", NOW + timedelta(hours=1)).report
    assert (report["cards"]["updated"], report["cards"]["unchanged"]) == (1, 2)
    with full.read() as session:
        row = decks.find(session, 1, decks.card_id_of("g-basic"))
    assert row.sections["Answer"] == r"It is *16* $N$, not \<14\>."
    assert set(row.tags) == {"memory", "mended"}


@pytest.mark.parametrize("legacy", [True, False], ids=["anki21", "anki21b"])
def test_foreign_notes_of_every_stock_type_come_along(
    sqlite: Database, content: Catalogue, tmp_path: Path, take: Take, legacy: bool
) -> None:
    with real_anki(tmp_path / "anki") as anki:
        anki.add("Basic", {"Front": "a <b>b</b><br>$5", "Back": "<ul><li>x<li>y</ul>"}, "Deck::Sub", ("t1", "t2"))
        both = anki.add("Basic (and reversed card)", {"Front": "one", "Back": "two"})
        anki.add("Basic (optional reversed card)", {"Front": "f", "Back": "b", "Add Reverse": ""})
        cloze = anki.add("Cloze", {"Text": "{{c1::A::hint}} and {{c2::B \\(x\\)}}", "Back Extra": "more"})
        anki.add("Basic (type in the answer)", {"Front": "typed", "Back": "back"})
        anki.add("Basic", {"Front": '<img src="p.png">', "Back": "only a picture in front"})
        anki.give(tmp_path / "in.apkg", legacy=legacy)
    report = take(sqlite, tmp_path / "in.apkg").report
    assert report["cards"]["added"] == 7
    assert [each["why"] for each in report["left_out"]] == ["its front has no text without pictures and sounds"]
    with sqlite.read() as session:
        rows = {row.guid: row for row in decks.all_rows(session, 1)}
    first = next(row for row in rows.values() if row.deck == "Deck::Sub")
    assert first.sections == {"Question": "a **b**\\\n\\$5", "Answer": "- x\n- y"}
    assert first.tags == ["t1", "t2"]
    assert first.source == "Anki, Basic"
    assert rows[f"{both.guid}~1"].sections == {"Question": "two", "Answer": "one"}
    assert rows[cloze.guid].sections == {"Question": "[[A]] (hint) and B $x$", "Answer": "more"}
    assert rows[f"{cloze.guid}~1"].sections["Question"] == "A and [[B $x$]]"
    assert {row.kind for row in rows.values()} == {"basic", "cloze"}
    assert take(sqlite, tmp_path / "in.apkg").report["cards"]["unchanged"] == 7


def test_a_schedule_of_ankis_is_taken_over_and_goes_on_here(
    sqlite: Database, content: Catalogue, tmp_path: Path, take: Take
) -> None:
    with real_anki(tmp_path / "anki") as anki:
        guids = [anki.add("Basic", {"Front": f"q{n}", "Back": "a"}).guid for n in range(4)]
        set_row = "UPDATE cards SET type=2, queue=?, due=?, ivl=?, factor=?, reps=9, lapses=2, data=? WHERE nid=(SELECT id FROM notes WHERE guid=?)"  # noqa: E501
        today = anki.collection.sched.today
        last = int((NOW - timedelta(days=10)).timestamp())
        fsrs = f'{{"s":31.5,"d":6.25,"dr":0.9,"lrt":{last}}}'
        anki.collection.db.execute(set_row, 2, today + 21, 31, 2500, fsrs, guids[0])
        anki.collection.db.execute(set_row, 2, today - 3, 30, 2500, "{}", guids[1])
        anki.collection.db.execute(set_row, -1, today + 5, 15, 1300, "{}", guids[2])
        anki.give(tmp_path / "in.apkg", legacy=False)
    report = take(sqlite, tmp_path / "in.apkg", NOW).report
    assert report["memories"] == {"taken": 3, "kept": 0, "suspended": 1, "asked": True}
    known, older, suspended = (_remembered(sqlite, decks.card_id_of(guid)) for guid in guids[:3])
    zone = moment_at(NOW).zone
    assert (known.stability, known.difficulty, known.reviews, known.lapses) == (31.5, 6.25, 9, 2)
    assert known.due_at is not None
    assert day_number(known.due_at, zone) - day_number(NOW, zone) == 21
    assert known.last_review_at == datetime.fromtimestamp(last, UTC)
    assert older.stability == 30, "at a retention of 0.9 the interval is the stability"
    assert 1 <= older.difficulty < suspended.difficulty <= 10, "a lower ease is a greater difficulty"
    assert suspended.is_suspended
    with sqlite.write() as session:
        card_id = decks.card_id_of(guids[1])
        shown = study.show(session, 1, content, card_id, moment_at(NOW))
        assert not shown.is_new
        study.submit_review(session, 1, content, card_id=card_id, level=4, version=shown.version, moment=moment_at(NOW))
    later = _remembered(sqlite, card_id)
    assert later.stability > 30
    assert later.reviews == 10
    with sqlite.write() as session:
        study.undo(session, 1, NOW)
        with pytest.raises(Exception, match="no answer to take back"):
            study.undo(session, 1, NOW)
    assert _remembered(sqlite, card_id).stability == 30


def _remembered(database: Database, card_id: str) -> transfer.Remembered:
    with database.read() as session:
        return transfer.list_remembered(session, 1)[card_id]


def _everything(database: Database) -> object:
    with database.read() as session:
        return decks.all_stored(session, 1), transfer.list_remembered(session, 1)
