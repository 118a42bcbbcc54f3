"""Files from strangers: what they try to run, unfold, overflow or reach is refused with its reason, in bounded time."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.content.outside import render_outside
from app.core.errors import DomainError
from app.exchange import service
from app.exchange.anki import own_data, schema
from app.exchange.findings import Findings
from tests.conftest import NOW, moment_at
from tests.exchange.test_bad_files import GOOD, collection, package

Read = Callable[..., Findings]
FAST_SECONDS = 1.0  # of this process's work: milliseconds, on a machine that does other things as well

MERGES = "base: &a0 {k0: 0}\n" + "".join(
    f"m{n}: &a{n} {{<<: [{', '.join(f'*a{n - 1}' for _ in range(4))}]}}\n" for n in range(1, 28)
)
ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 28))

HOSTILE_HEADS = {
    "50,000 brackets": ("title: " + "[" * 50_000, 2, "nested deeper than 20 levels"),
    "50,000 braces": ("title: " + "{a: " * 50_000, 2, "too many"),
    "20,000 braces": ("title: " + "{a: " * 15_000, 2, "nested deeper than 20 levels"),
    "blocks within blocks": ("title:\n" + "".join(" " * n + "-\n" for n in range(1, 40)), 22, "nested deeper"),
    "27 nested merge keys": (MERGES, 2, "anchors are not taken"),
    "27 nested aliases": (ALIASES, 2, "anchors are not taken"),
    "an alias to what is not there": ("title: *nothing", 2, "aliases are not taken"),
    "an alias to itself": ("title: &a [*a]", 2, "anchors are not taken"),
    "a merge key without aliases": ("title: x\n<<: {a: 1}", 3, "merge keys are not taken"),
    "a list of merges": ("title: x\n? <<\n: [{a: 1}]", 3, "merge keys are not taken"),
    "a Python object": ("title: !!python/object/apply:os.system ['true']", 2, "tags are not taken"),
    "a Python name": ("title: !!python/name:os.system", 2, "tags are not taken"),
    "a binary": ("title: !!binary aGVsbG8=", 2, "tags are not taken"),
    "a set": ("title: !!set {a, b}", 2, "tags are not taken"),
    "a tag of its own": ("title: !mine x", 2, "tags are not taken"),
    "a tag that is a URI": ("title: !<tag:yaml.org,2002:str> x", 2, "tags are not taken"),
    "a directive": ("%TAG ! tag:evil.example,2026:\n--- {title: x}", 2, "directives"),
    "a million characters": ("title: " + "x" * 100_000, 2, "too many"),
    "ten thousand values": ("tags: [" + "a," * 10_000 + "]", 2, "more than 2,000 values"),
    "a sexagesimal number": ("title: " + ":".join(["59"] * 20_000) + ".5", 2, "a number of 60,001 characters"),
    "a number of ten thousand digits": ("title: " + "9" * 10_000, 2, "number of 10,000"),
    "a date that is none": ("title: 2026-99-99", 2, "not valid YAML"),
    "a control character": ("title: \x07", 2, "not valid YAML"),
    "two documents": ("title: x\n--- !!map\ntitle: y", 3, "tags are not taken"),
    "a key that is a list": ("? [a]\n: b", 2, "not valid YAML"),
}


@pytest.mark.parametrize("attack", HOSTILE_HEADS)
def test_a_hostile_head_is_refused_at_once_with_line_and_reason(read: Read, attack: str) -> None:
    head, line, reason = HOSTILE_HEADS[attack]
    found, seconds = _timed(lambda: read(f"---\n{head}\n---\n\n# Question\n\nQ\n\n# Answer\n\nA\n", "card.md"))
    assert not found.cards
    ((what, why),) = found.left_out
    assert what == "card.md"
    assert why.startswith(f"line {line},"), why
    assert any(part in why for part in reason.split("|")), why
    assert seconds < FAST_SECONDS


DECK_FILES = ("50,000 brackets", "27 nested merge keys", "27 nested aliases", "a Python object", "ten thousand values")


@pytest.mark.parametrize("attack", DECK_FILES)
def test_a_hostile_deck_file_is_left_out_and_its_cards_stay(read: Read, attack: str) -> None:
    head, _, reason = HOSTILE_HEADS[attack]
    card = "---\ntitle: Fine\n---\n\n# Question\n\nQ\n\n# Answer\n\nA\n"
    found, seconds = _timed(lambda: read(zip_of({"d/deck.yaml": head, "d/card.md": card}), "decks.zip"))
    assert len(found.cards) == 1
    ((what, why),) = found.left_out
    assert what == "d/deck.yaml"
    assert reason in why
    assert seconds < FAST_SECONDS


@pytest.mark.parametrize("attack", DECK_FILES)
def test_a_hostile_data_field_of_a_note_is_not_read(read: Read, attack: str) -> None:
    """The text an own card carries in a field of its note: where it is hostile, the shown fields are read instead."""
    card = f"---\n{HOSTILE_HEADS[attack][0]}\n---\n\n# Question\n\nhidden\n\n# Answer\n\nA\n"
    shown = [f"shown {name}" for name in schema.FIELDS[: schema.FIELDS.index("Id")]]
    packed = base64.b64encode(zlib.compress(card.encode())).decode()
    data = f"rankzero1:{own_data._digest(shown)}:{packed}"
    fields = [*shown, *("" for _ in schema.FIELDS[len(shown) :])]
    fields[schema.FIELDS.index("Data")] = data
    models = {
        "1": {
            "name": "RankZero",
            "type": 0,
            "flds": [{"name": name, "ord": number} for number, name in enumerate(schema.FIELDS)],
            "tmpls": [{"ord": 0, "qfmt": "{{Question}}", "afmt": "{{Answer}}"}],
        }
    }
    notes = package(collection([("g", "\x1f".join(fields))], models=models))
    found, seconds = _timed(lambda: read(notes, "deck.apkg"))
    (incoming,) = found.cards.values()
    assert "shown" in incoming.draft.sections["Question"]
    assert seconds < FAST_SECONDS


def zip_of(files: dict[str, str | bytes]) -> bytes:
    """A zip file with these members."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return buffer.getvalue()


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    return work(), time.process_time() - started


@pytest.fixture
def read() -> Read:
    """What a file brings, read in this process and without storing it."""

    def read(data: bytes | str, name: str) -> Findings:
        file = BytesIO(data.encode() if isinstance(data, str) else data)
        return service.read_file(name, file, {}, moment_at(NOW))

    return read


GIGABYTE = 1_000_000_000
COMPUTED = {
    "a generated column": (
        "DROP TABLE notes; CREATE TABLE notes (id integer primary key, guid text, mid integer, "
        f"mod integer, tags text, flds text AS (zeroblob({GIGABYTE})))",
        "generated column, 'notes",
    ),
    "a stored generated column": (
        "DROP TABLE notes; CREATE TABLE notes (id integer primary key, guid text, "
        "mid integer, mod integer, tags text, raw text, flds text AS (hex(raw)) STORED)",
        "generated column",
    ),
    "a generated column of another table": ("CREATE TABLE more (a, b AS (zeroblob(1000000000)))", "generated column"),
    "a table named as the function that would find it": (
        f"CREATE TABLE pragma_table_xinfo (name, hidden, arg); CREATE TABLE more (a, b AS (zeroblob({GIGABYTE})))",
        "generated column",
    ),
    "a table whose name is a quotation mark": ('CREATE TABLE """; --" (a, b AS (zeroblob(9)))', "generated column"),
    "a view": ("CREATE VIEW seen AS SELECT zeroblob(1000000000) AS flds", "holds a view"),
    "a view in a table's place": (
        "DROP TABLE revlog; CREATE VIEW revlog AS SELECT 1 AS cid, 1 AS id",
        "a view",
    ),
    "an endless view": (
        "DROP TABLE cards; CREATE VIEW cards AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 "
        "FROM n) SELECT x AS id, x AS nid FROM n",
        "holds a view",
    ),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM cards; END", "holds a trigger"),
    "a virtual table": ("CREATE VIRTUAL TABLE seen USING fts5(x)", "virtual table"),
    "a spatial table": ("CREATE VIRTUAL TABLE seen USING rtree(id, a, b)", "virtual table"),
}


@pytest.mark.parametrize("attack", COMPUTED)
def test_a_collection_that_computes_is_refused_before_it_does(read: Read, attack: str) -> None:
    statements, says = COMPUTED[attack]
    data = _altered(statements)
    found, seconds = _timed(lambda: _refusal(read, package(data)))
    assert says.split("'")[0] in found
    assert seconds < FAST_SECONDS


def _altered(statements: str) -> bytes:
    """The good collection after these statements."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(GOOD)
    connection.executescript(statements)
    connection.commit()
    return connection.serialize()


def _refusal(read: Read, data: bytes, name: str = "deck.apkg") -> str:
    with pytest.raises(DomainError) as raised:
        read(data, name)
    return str(raised.value.violations[0].message)


def test_a_note_that_is_too_large_for_a_row_is_refused(read: Read) -> None:
    data = package(collection([("g", "x" * 5_000_000 + "\x1fback")]))
    assert "damaged" in _refusal(read, data)


def test_text_that_is_too_much_in_all_is_refused(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.exchange.findings.MOST_CHARACTERS", 10_000)
    cards = "question,answer\n" + "".join(f"q{n},{'word ' * 100}\n" for n in range(100))
    assert "too much text" in _refusal(read, cards.encode(), "cards.csv")
    monkeypatch.setattr("app.exchange.anki.collection.MOST_CHARACTERS", 10_000)
    notes = package(collection([(f"g{n}", f"{'<b></b>' * 100}\x1fb") for n in range(100)]))
    assert "too much text" in _refusal(read, notes)


def test_decks_and_types_without_number_are_not_taken(read: Read) -> None:
    many = {str(n): {"name": f"deck {n}"} for n in range(300_000)}
    assert "damaged" in _refusal(read, package(collection([("g", "a\x1fb")], decks=many)))


def test_an_answer_history_of_strange_cards_takes_no_memory(read: Read) -> None:
    data = _altered(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000) "
        "INSERT INTO revlog SELECT x, x + 1000, 0, 3, 1, 1, 1, 1, 1 FROM n"
    )
    found, _ = _timed(lambda: read(package(data), "deck.apkg"))
    assert not any("answers" in notice for notice in found.notices)


@pytest.mark.parametrize("name", ["../../x.md", "/etc/x.md", "..\\x.md", "C:\\x.md", "a/../../b.md"])
def test_a_members_name_is_never_a_path(read: Read, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    card = "---\ntitle: Fine\n---\n\n# Question\n\nQ\n\n# Answer\n\nA\n"
    assert len(read(zip_of({name: card}), "decks.zip").cards) == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["deep", "er"]
    assert not Path("/etc/x.md").exists()


DEEP_TEXTS = {
    "quotes within quotes": ">" * 5000 + " x",
    "lists within lists": "".join("  " * n + "- x\n" for n in range(90)),
    "stars": "*a " * 3000,
    "open links": "[a](" * 900,
    "brackets": "[" * 900 + "]" * 900,
    "backticks": "`" * 4999 + "x",
    "a formula of braces": "$" + "{" * 450 + "x" + "}" * 450 + "$",
    "a formula of fractions": "$" + r"\frac{1}{" * 90 + "x" + "}" * 90 + "$",
    "entities": "&#x41;" * 1600,
    "a table": "|a" * 400 + "|\n" + "|-" * 400 + "|\n" + ("|x" * 400 + "|\n") * 8,
}


@pytest.mark.parametrize("attack", DEEP_TEXTS)
def test_a_text_that_is_nested_or_repeated_costs_little_to_read_and_to_show(read: Read, attack: str) -> None:
    text = DEEP_TEXTS[attack]
    row = '"' + text.replace('"', '""') + '",answer'
    found, seconds = _timed(lambda: read(f"question,answer\n{row}\n", "cards.csv"))
    assert len(found.cards) + found.left_out_total == 1
    _, more = _timed(lambda: [render_outside(each.draft.sections["Question"]) for each in found.cards.values()])
    assert seconds + more < 3 * FAST_SECONDS


@pytest.mark.parametrize("created", ["-1", "253402300799", "4611686018427387903", "-62135596801", "1e308", "9e999"])
def test_a_collection_made_at_no_time_is_refused_or_read(read: Read, created: str) -> None:
    """`col.crt` is day 0 of every due date: one that is no date must not end in a crash."""
    data = package(_altered(f"UPDATE col SET crt = {created}; UPDATE cards SET type = 2, queue = 2, due = 99999"))  # noqa: S608
    with contextlib.suppress(DomainError):  # every other error is a crash
        assert list(read(data, "deck.apkg").cards) == ["guid1"]


@pytest.mark.parametrize("created", ["-1", "253402300799", "4102444800"])
def test_a_time_out_of_bounds_is_named(read: Read, created: str) -> None:
    assert f"col.crt is {created}" in _refusal(read, package(_altered(f"UPDATE col SET crt = {created}")))  # noqa: S608


HTML_BOMBS = {
    "twenty thousand elements within each other": "<div>" * 20_000,
    "bold within bold": "<b>" * 30_000 + "x",
    "lists within lists": "<ul><li>" * 10_000,
    "tables within tables": "<table><tr><td>" * 6_000,
    "attributes": "<a " + "href=x " * 12_000 + ">x</a>",
    "entities": "&lt;" * 24_000,
    "an unclosed comment": "<!--" * 24_000,
    "clozes": "{{c1::" * 16_000,
    "sounds": "[sound:" * 14_000,
    "formulas without an end": "\\(" * 49_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", HTML_BOMBS)
def test_html_that_is_nested_or_unclosed_costs_little(read: Read, attack: str) -> None:
    data = package(collection([("g", f"front {HTML_BOMBS[attack]}\x1fback")]))
    found, seconds = _timed(lambda: read(data, "deck.apkg"))
    assert len(found.cards) + found.left_out_total == 1
    assert seconds < 5 * FAST_SECONDS


def test_a_file_without_an_ending_that_is_known_is_refused(read: Read) -> None:
    with pytest.raises(DomainError):
        read(b"x", "card.yaml")
