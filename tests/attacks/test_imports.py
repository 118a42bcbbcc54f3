"""Files from strangers: what they try to run, unfold, overflow or reach is refused with its reason, in bounded time."""

from __future__ import annotations

import base64
import time
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest

from app.content.catalogue import Catalogue
from app.core.errors import DomainError
from app.exchange import service
from app.exchange.anki import own_data, schema
from app.exchange.findings import Findings
from tests.conftest import NOW
from tests.exchange.test_bad_files import collection, package

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
        return service.read_file(name, file, Catalogue(), NOW)

    return read


def test_a_file_without_an_ending_that_is_known_is_refused(read: Read) -> None:
    with pytest.raises(DomainError):
        read(b"x", "card.yaml")
