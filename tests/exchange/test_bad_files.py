"""Corrupt, hostile and foreign files: taken as far as sensible with a report, or refused whole, in bounded memory."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import struct
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.content.outside import render_outside
from app.core.errors import DomainError
from app.exchange import archive, limits, service
from app.exchange.anki import reading, schema
from app.exchange.findings import Findings
from tests.conftest import NOW, moment_at

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Read = Callable[..., Findings]
BASIC = {
    "1": {
        "name": "Basic",
        "type": 0,
        "flds": [{"name": "Front", "ord": 0}, {"name": "Back", "ord": 1}],
        "tmpls": [{"ord": 0, "qfmt": "{{Front}}", "afmt": "{{FrontSide}}<hr id=answer>{{Back}}"}],
    }
}
DECKS = {"1": {"name": "Default"}}


def collection(
    notes: list[tuple[Any, ...]], *, models: Any = BASIC, decks: Any = DECKS, extra: str = "", cards: Any = None
) -> bytes:
    """A collection of schema 11 with these notes (guid, fields, tags), each with one card."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema.SCHEMA + extra)
    row = (json.dumps(models), json.dumps(decks))
    connection.execute("INSERT INTO col VALUES (1, 1600000000, 0, 0, 11, 0, 0, 0, '{}', ?, ?, '{}', '{}')", row)
    for number, (guid, fields, *tags) in enumerate(notes, 1):
        connection.execute(
            "INSERT INTO notes VALUES (?, ?, 1, 0, 0, ?, ?, 0, 0, 0, '')", (number, guid, "".join(tags), fields)
        )
        card = (number, 1, 0, 0, 0, number, 0, 0, 0, 0, 0, "") if cards is None else cards
        connection.execute(
            "INSERT INTO cards VALUES (?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?)", (number, *card)
        )
    connection.commit()
    return connection.serialize()


def package(data: bytes, name: str = "collection.anki2", **others: bytes) -> bytes:
    """An .apkg around a collection."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, data)
        made.writestr("media", "{}")
        for other, content in others.items():
            made.writestr(other, content)
    return buffer.getvalue()


GOOD = collection([("guid1", "Front\x1fBack")])


def test_the_smallest_good_file_is_taken(read: Read) -> None:
    found = read(package(GOOD), "deck.apkg")
    assert {guid: card.draft.sections for guid, card in found.cards.items()} == {
        "guid1": {"Question": "Front", "Answer": "Back"}
    }


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a zip file"),
        (b"PK\x03\x04 this is no zip", "not a zip file"),
        (package(GOOD)[:-40], "not a zip file"),
        (package(b"", "readme.txt"), "no collection"),
        (package(b"no database at all" * 100), "damaged"),
        (package(GOOD[:5000]), "damaged"),
        (package(GOOD[: len(GOOD) // 2]), "damaged"),
        (package(b"SQLite format 3\0" + b"\xff" * 5000), "damaged"),
        (package(GOOD, "collection.anki21b"), "damaged"),
        (package(zstd.compress(GOOD)[:-10], "collection.anki21b"), "damaged"),
        (package(collection([], models=[1, 2])), "not as Anki writes it"),
        (package(collection([], models={"1": {"name": "x"}})), "not as Anki writes it"),
    ],
)
def test_what_cannot_be_read_is_refused_whole(read: Read, data: bytes, says: str) -> None:
    with pytest.raises(DomainError, match="The file was not imported") as raised:
        read(data, "deck.apkg")
    (violation,) = raised.value.violations
    assert violation.field == "file"
    assert re.search(says, violation.message)
    assert violation.accepted


def test_a_flipped_byte_in_the_zip_is_noticed(read: Read) -> None:
    data = bytearray(package(GOOD))
    data[200] ^= 0xFF
    with pytest.raises(DomainError, match="not imported"):
        read(bytes(data), "deck.apkg")


def _bomb(name: str, size: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made, made.open(name, "w", force_zip64=True) as member:
        block = bytes(1 << 20)
        if name.endswith("b"):
            compressor = zstd.ZstdCompressor(level=19)
            for _ in range(size >> 20):
                member.write(compressor.compress(block))
            member.write(compressor.flush())
        else:
            for _ in range(size >> 20):
                member.write(block)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["collection.anki2", "collection.anki21b"])
def test_a_zip_bomb_is_stopped_in_bounded_memory(read: Read, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(reading, "COLLECTION_BYTES", 10 * limits.MB)
    data = _bomb(name, 60 << 20)
    assert len(data) < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(DomainError) as raised:
            read(data, "deck.apkg")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "too large" in raised.value.violations[0].message
    assert peak < 12 * limits.MB


def test_a_zstd_stream_that_wants_a_huge_window_is_refused(read: Read) -> None:
    options = {zstd.CompressionParameter.window_log: 30, zstd.CompressionParameter.enable_long_distance_matching: 1}
    compressor = zstd.ZstdCompressor(options=options)
    packed = compressor.compress(GOOD) + compressor.flush()
    assert packed[4] & 0x20 == 0, "the frame names a window, not a size"
    with pytest.raises(DomainError, match="not imported"):
        read(package(packed, "collection.anki21b"), "deck.apkg")


def test_a_list_of_files_that_is_too_long_is_refused_before_it_is_read(read: Read) -> None:
    data = bytearray(package(GOOD))
    at = data.rfind(b"PK\x05\x06")
    struct.pack_into("<L", data, at + 12, 3_000_000_000)
    with pytest.raises(DomainError) as raised:
        read(bytes(data), "deck.apkg")
    assert "too many files" in raised.value.violations[0].message


def test_names_that_lead_out_of_the_archive_are_never_followed(read: Read, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    data = package(GOOD, **{f"../../../../../..{outside}": b"owned", "/etc/passwd": b"owned", "0": b"image"})
    found = read(data, "deck.apkg")
    assert list(found.cards) == ["guid1"]
    assert not outside.exists()
    assert any("media" in notice for notice in found.notices)


def test_too_many_notes_are_refused_whole(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.exchange.anki import collection as module

    monkeypatch.setattr(module, "NOTES", 10)
    with pytest.raises(DomainError) as raised:
        read(package(collection([(f"g{n}", "a\x1fb") for n in range(11)])), "deck.apkg")
    assert "too many notes" in raised.value.violations[0].message


def test_a_view_in_the_place_of_a_table_is_not_read(read: Read) -> None:
    endless = """
    DROP TABLE notes;
    CREATE VIEW notes AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
      SELECT x id, x guid, 1 mid, 0 mod, '' tags, 'a' flds FROM n;
    """
    started = time.process_time()
    with pytest.raises(DomainError, match="not imported"):
        read(package(collection([], extra=endless)), "deck.apkg")
    assert time.process_time() - started < 5


def test_reading_stops_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SECONDS", -1.0)
    with pytest.raises(DomainError) as raised:
        service.read_file("deck.apkg", io.BytesIO(package(GOOD)), {}, moment_at(NOW))
    assert "too long" in raised.value.violations[0].message


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>x</a><iframe src=//e></iframe>"
    "<svg onload=alert(1)><math><mi xlink:href='javascript:alert(1)'>m</mi></math><style>*{}</style>"
    "<b onclick=alert(1)>bold</b> [x](javascript:alert(1)) ![p](http://evil/p.png) {{ 7*7 }} {% set x = 1 %} "
    "\\(\\text{<img src=x onerror=alert(1)>}\\) \\(\\href{javascript:alert(1)}{y}\\)"
)


def test_hostile_html_becomes_text_that_does_nothing(read: Read) -> None:
    found = read(package(collection([("g", f"{HOSTILE}\x1f{HOSTILE}")])), "deck.apkg")
    (incoming,) = found.cards.values()
    for text in incoming.draft.sections.values():
        shown = str(render_outside(text))
        tags = re.findall(r"<[^>]*>", shown)
        for word in ("script", "onerror", "onclick", "onload", "<img", "<iframe", "<svg", "<style"):
            assert not any(word in tag for tag in tags), (word, shown)
        assert "javascript:" not in " ".join(tags)
        assert "49" not in shown
    assert found.notices["pictures in texts were left out"] == 2


@pytest.mark.parametrize(
    ("notes", "why"),
    [
        ([("g", "\x1fback")], "no text"),
        ([("g", "x" * 100_001 + "\x1fback")], "longer than"),
        ([("g", "word " * 3000 + "\x1fback")], "too many"),
        ([("", "a\x1fb")], "GUID"),
        ([("same", "a\x1fb"), ("same", "c\x1fd")], "two cards"),
    ],
)
def test_a_note_that_cannot_be_kept_is_left_out_and_named(read: Read, notes: list[tuple[str, str]], why: str) -> None:
    found = read(package(collection([("fine", "ok\x1fok"), *notes])), "deck.apkg")
    assert found.left_out_total == 1
    assert why in found.left_out[0][1]
    assert "fine" in found.cards


def test_a_note_of_an_unknown_type_is_left_out(read: Read) -> None:
    found = read(package(collection([("g", "a\x1fb")], models={})), "deck.apkg")
    assert found.left_out == [("a", "its note type is not in the file")]


@pytest.mark.parametrize(
    "card",
    [
        (1, 0, 0, 2, 2, 2**62, 2**62, 2**62, 2**62, 2**62, 2**62, '{"s":1e999,"d":-5,"lrt":"x"}'),
        (1, 0, 0, 2, 2, -(2**62), -5, -5, -5, -5, -5, "[[[["),
        (1, 0, 0, 1, 1, 2**62, 0, 0, 0, 0, 2**62, '{"s":2.5,"d":5,"lrt":99999999999999999999}'),
        (1, 0, 0, "x", b"y", 0, 1.5, "z", 0, 0, 0, "{}"),
        (99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ""),
    ],
)
def test_absurd_schedules_are_brought_within_bounds(read: Read, card: tuple[Any, ...]) -> None:
    found = read(package(collection([("g", "a\x1fb")], cards=card)), "deck.apkg")
    if card[0] == 99:
        assert found.left_out_total == 2
        return
    remembered = found.cards["g"].remembered
    if remembered is not None and remembered.memory is not None:
        assert 0 < remembered.stability <= 36_500
        assert 1 <= remembered.difficulty <= 10
        assert remembered.last_review_at is not None
        assert remembered.last_review_at <= NOW


def test_other_files_are_told_by_their_names_and_contents(read: Read) -> None:
    for data, name, says in (
        (b"x", "deck.exe", "name"),
        (b"x", "deck", "name"),
        (b"\xff\xfe\0x", "cards.csv", "UTF-8"),
        (b"a,b\n1,2\n", "cards.csv", "columns"),
        (b"", "cards.csv", "columns"),
        (package(GOOD), "decks.zip", "no cards"),
    ):
        with pytest.raises(DomainError) as raised:
            read(data, name)
        assert says in raised.value.violations[0].message, name


def test_rows_and_files_that_are_wrong_are_left_out_with_the_place(read: Read) -> None:
    found = read("question,answer,kind\nfine,ok,\n,no question,\nq,a,quiz\nno blank,a,cloze\n", "cards.csv")
    assert len(found.cards) == 1
    assert [what.split(":")[0] for what, _ in found.left_out] == ["Row 3", "Row 4", "Row 5"]
    found = read("---\nkind: basic\nanswer: 3\n---\n\n# Question\n\nq\n\n# Answer\n\na\n", "card.md")
    assert found.left_out == [("card.md", "line 3, answer: Extra inputs are not permitted")]
    found = read("---\nid: C27\n---\n# Question\nq\n# Answer\na\n", "card.md")
    assert "line 2, id" in found.left_out[0][1]


def test_a_table_may_name_its_columns_as_elsewhere(read: Read) -> None:
    found = read("Front,Back\nOne?,Eins.\n", "cards.csv")
    assert [card.draft.sections["Question"] for card in found.cards.values()] == ["One?"]
    assert [card.draft.sections["Answer"] for card in found.cards.values()] == ["Eins."]


def test_a_yaml_bomb_in_a_cards_head_costs_nothing(read: Read) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    text = "---\n" + "\n".join(lines) + "\n---\n# Question\nq\n# Answer\na\n"
    started = time.process_time()
    found = read(text, "card.md")
    assert found.left_out_total == 1
    assert time.process_time() - started < 5


def test_the_window_of_a_stream_is_bounded_by_what_the_limits_say() -> None:
    assert 1 << archive.LARGEST_WINDOW_LOG <= 128 << 20
