"""What is remembered, taken over from elsewhere: the log stays the truth, and the newer memory wins."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.study import service as study
from app.study.log import replay, transfer
from app.study.log.transfer import Remembered
from tests.conftest import NOW, moment_at
from tests.operate.test_commands import Command, command

__all__ = ["command"]

LAST = NOW - timedelta(days=6)
KNOWN = Remembered(2, None, 20.25, 5.5, (NOW + timedelta(days=9)).replace(hour=4), LAST, 12, 3)


def _take(database: Database, offered: dict[str, Remembered]) -> transfer.Taken:
    with database.write() as session:
        return transfer.take_over(session, 1, offered, moment_at(NOW))


def _answer(database: Database, content: Catalogue, card_id: str, level: int, at) -> None:  # type: ignore[no-untyped-def]
    with database.write() as session:
        version = study.show(session, 1, content, card_id, moment_at(at)).version
        study.submit_review(session, 1, content, card_id=card_id, level=level, version=version, moment=moment_at(at))


def _verified(database: Database) -> int:
    with database.read() as session:
        report = replay.verify(session, 1)
    assert report.mismatches == 0, report.named
    return report.reviews


def test_an_import_is_an_entry_of_the_log_that_verifies(database: Database, content: Catalogue) -> None:
    _answer(database, content, "C28", 4, NOW - timedelta(days=20))
    assert _take(database, {"C27": KNOWN, "C28": KNOWN}) == transfer.Taken(2, 0, 0)
    assert _verified(database) == 3
    with database.read() as session:
        assert transfer.list_remembered(session, 1) == {"C27": KNOWN, "C28": KNOWN}
    _answer(database, content, "C27", 1, NOW + timedelta(days=9))
    _answer(database, content, "C28", 4, NOW + timedelta(days=9))
    assert _verified(database) == 5
    with database.read() as session:
        after = transfer.list_remembered(session, 1)
    assert (after["C27"].reviews, after["C27"].lapses) == (13, 4)
    assert after["C28"].stability > KNOWN.stability
    with database.write() as session:
        study.undo(session, 1, NOW)
        study.undo(session, 1, NOW)
    with database.read() as session:
        assert transfer.list_remembered(session, 1) == {"C27": KNOWN, "C28": KNOWN}
    assert _verified(database) == 5, "what was undone stays in the log"
    with database.write() as session:
        replay.rebuild(session, 1)
    with database.read() as session:
        assert transfer.list_remembered(session, 1) == {"C27": KNOWN, "C28": KNOWN}


@pytest.mark.parametrize("seconds", [-3600, 0, 3600])
def test_the_newer_memory_wins(sqlite: Database, content: Catalogue, seconds: int) -> None:
    _answer(sqlite, content, "C27", 4, LAST + timedelta(seconds=seconds))
    taken = _take(sqlite, {"C27": KNOWN})
    assert (taken.memories, taken.kept) == ((1, 0) if seconds < 0 else (0, 1))


def test_imports_are_no_work_of_today(sqlite: Database, content: Catalogue) -> None:
    with sqlite.read() as session:
        before = study.study(session, 1, content, moment_at(NOW)).progress
    _take(sqlite, {"C40": Remembered(2, None, 5.0, 5.0, NOW + timedelta(days=3), NOW, 4, 0)})
    with sqlite.read() as session:
        after = study.study(session, 1, content, moment_at(NOW))
    assert after.progress.done == before.done == 0
    assert after.progress.left == before.left


def test_a_suspended_card_is_not_shown(sqlite: Database, content: Catalogue) -> None:
    due = Remembered(2, None, 5.0, 5.0, NOW - timedelta(days=1), NOW - timedelta(days=6), 4, 0, is_suspended=True)
    first = next(iter(content.cards))
    assert _take(sqlite, {"C27": due, first: Remembered(is_suspended=True)}).suspended == 2
    with sqlite.read() as session:
        desk = study.study(session, 1, content, moment_at(NOW))
    assert desk.card is not None
    assert desk.card.card.id not in ("C27", first)


@pytest.mark.slow
def test_the_commands_write_and_read_files(command: Command, tmp_path: Path) -> None:
    out, table = tmp_path / "out.apkg", tmp_path / "cards.csv"
    table.write_text("question,answer\nOne?,Eins.\n")
    code, said, _ = _run(command, tmp_path, "import", "cards", str(table))
    assert "1 card added" in said
    code, said, _ = _run(command, tmp_path, "export", "anki", str(out), "--no-scheduling")
    assert (code, "cards, 0 with their schedule" in said) == (0, True)
    code, said, _ = _run(command, tmp_path, "import", "anki", str(out))
    assert "0 cards added, 0 updated, 1 unchanged" in said
    code, said, _ = _run(command, tmp_path, "export", "cards", str(tmp_path / "cards.zip"))
    assert "1 card" in said
    out.write_bytes(out.read_bytes()[:1000])
    for arguments in (("import", "anki", str(out)), ("import", "anki", "/nowhere.apkg"), ("export", "cards", "x.pdf")):
        code, _, errors = _run(command, tmp_path, *arguments)
        assert code == 2
        assert "Traceback" not in errors
        assert errors.strip()


def _run(command: Command, folder: Path, *arguments: str) -> tuple[int, str, str]:
    from app.core.settings import settings

    settings.cache_clear()
    return command(*arguments, data=str(folder / "data"))
