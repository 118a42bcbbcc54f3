"""A card kind lives in one place: nothing else names it, and a new one needs nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup
from pydantic import BaseModel

import app as package
from app.content import kinds
from app.content.asked import Asked, Verdict, ask
from app.content.catalogue import Catalogue, load
from app.content.checks import check_content
from app.content.kinds.kind import CardKind, CheckedKind, Field
from app.core.templating import environment
from app.grading.grade import Grade
from app.grading.questions import NumberQuestion
from tests.support.kinds import write_kinds

APP = Path(package.__file__).parent
FOLDERS = {path.parent.name for path in (APP / "content" / "kinds").glob("*/__init__.py")}
# "basic", "code", "match" and "order" are words of other things as well; the others are kinds and nothing else.
TELLING = FOLDERS - {"basic", "code", "match", "order"}


def test_every_kind_is_found() -> None:
    assert set(kinds.KINDS) == FOLDERS
    assert {"basic", "diagnose", "cloze", "code", "numeric", "choose", "match", "order"} <= FOLDERS
    checked = {name for name, kind in kinds.KINDS.items() if isinstance(kind, CheckedKind)}
    assert {"numeric", "choose", "match", "order"} <= checked
    assert not checked & {"basic", "diagnose", "cloze", "code"}
    assert list(kinds.OWN_KINDS) == ["basic", "cloze", "choose"]


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_module_outside_the_kinds_names_one() -> None:
    modules = [path for path in APP.rglob("*.py") if APP / "content" / "kinds" not in path.parents]
    assert len(modules) > 100
    named = {(str(path.relative_to(APP)), text) for path in modules for text in _strings(path) if text in TELLING}
    assert named == {("exchange/anki/templates.py", "cloze")}, "what Anki calls its own filter"


def test_no_page_or_script_outside_the_kinds_names_one() -> None:
    pages = list((APP / "templates").rglob("*.html"))
    scripts = (APP / "static").glob("*.js")
    asked = re.compile("(?<!mode=)[\"'](" + "|".join(TELLING) + ")[\"']")
    assert [path.name for path in (*pages, *scripts) if asked.search(path.read_text())] == []
    by_name = re.compile(r"kind(\.name)? (==|in) ")
    study = [path for path in pages if path.parent.name in ("study", "decks")]
    assert [path.name for path in study if by_name.search(re.sub(r"(entry|form)\.kind", "", path.read_text()))] == []


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_a_kind_is_a_folder_with_its_rules_its_macro_and_a_test(name: str) -> None:
    """Schema, checks and asking are what `KIND` answers for; the macro draws what the machine checks."""
    folder = APP / "content" / "kinds" / name
    assert (folder / "__init__.py").exists()
    assert (Path(__file__).parent / "kinds" / f"test_{name}.py").exists()
    if not isinstance(kinds.KINDS[name], CheckedKind):
        assert not (folder / "macro.html").exists()
        return
    assert (folder / "macro.html").exists()


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return load(write_kinds(tmp_path_factory.mktemp("kinds") / "cards"))


@pytest.mark.parametrize("name", sorted(name for name in FOLDERS if isinstance(kinds.KINDS[name], CheckedKind)))
def test_its_macro_draws_a_card_while_it_is_asked_and_once_it_is_open(name: str, deck: Catalogue) -> None:
    """The deck of `tests.support.kinds` has a card of every kind. On a card's own page nobody was asked."""
    card = next(card for card in deck.cards.values() if card.kind.name == name)
    macro: Any = environment().get_template(f"kinds/{name}/macro.html").module
    assert 'name="answer' in macro.fields(ask(card, 1), "")
    assert "undefined" not in macro.solved(card, None, None).lower()


class Guess(BaseModel):
    """What the made-up kind asks."""

    bytes: float


class Guessed(CheckedKind):
    """A kind as somebody new would write it: a number of bytes, guessed within half."""

    name, seconds, place = "guess", 15, 99
    field = Field("guess", Guess | None, None)

    def make(self, head: Any, show: Any) -> Any:
        return self.asked_of(head)

    def ask(self, card: Any, seed: int) -> Asked:
        question = NumberQuestion(card.asks.bytes, "GB", 0.5)
        return Asked(card, seed, self, question, card.sections["Question"])

    def verdict(self, asked: Asked, answer: str, grade: Grade) -> Verdict:
        return Verdict(grade.status, Markup("Half of it is near enough."), credit=grade.credit)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[CardKind]:
    kind = Guessed()
    monkeypatch.setitem(kinds.KINDS, kind.name, kind)
    kinds.head_model.cache_clear()
    yield kind
    kinds.head_model.cache_clear()


CARD = """\
---
id: C18
title: A card
kind: guess
concepts: [memory]
source: Counted by hand
guess: {bytes: 112.0e+9}
---

# Question

How much?

# Answer

{{ training_state(parameters=7e9) | GB }}.
"""


def test_a_new_kind_needs_its_own_module_and_nothing_else(tmp_path: Path, toy: CardKind) -> None:
    folder = write_kinds(tmp_path / "cards")
    card = folder / "decks/kinds/C18.md"
    card.write_text(CARD)
    found, problems = check_content(folder)
    assert [str(problem) for problem in problems] == []
    made = found.cards["C18"]
    assert (made.kind, made.is_checked, made.expected_seconds) == (toy, True, 15)
    assert ask(made, 1).check("100 GB").status == "correct"
    assert ask(made, 1).check("300 GB").status == "wrong"
    assert ask(made, 1).check("lots").status == "invalid"
    card.write_text(CARD.replace("kind: guess", "kind: basic"))
    assert "guess belongs to a guess card; this one is basic" in str(load(folder).mistakes[0])
    card.write_text(CARD.replace("guess: {bytes: 112.0e+9}\n", ""))
    assert "a card of kind guess needs guess" in str(check_content(folder)[1][0])


def test_without_it_the_kind_is_not_known(tmp_path: Path) -> None:
    folder = write_kinds(tmp_path / "cards")
    (folder / "decks/kinds/C18.md").write_text(CARD)
    assert "C18.md:4 kind: " in str(load(folder).mistakes[0])
