"""A number in a sentence agrees with the formula of the same quantity at the inputs of that sentence, or is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.checks import check_content
from app.content.said import said
from app.content.sentence_checks import check_sentences
from app.content.statements import STATEMENTS, Statement, agrees, contradicted, wrong_sums
from app.core.settings import ROOT
from tests.support.cards import edit, write_cards
from tests.support.shipped import shipped

SHIPPED = shipped()
CARD = "decks/first/C01.md"
STATE = next(each for each in SHIPPED.statements.statements if each.id == "model-state")


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    folder = write_cards(tmp_path / "cards")
    shutil.copy(ROOT / "cards" / STATEMENTS, folder / STATEMENTS)
    return folder


@pytest.mark.slow  # the content check asks whether any of them contradicts a formula
def test_what_is_shipped_says_some_quantities() -> None:
    texts = [text for _, _, text in said(SHIPPED)]
    found = [words for each in SHIPPED.statements.statements for text in texts for words, *_ in each.sayings(text)]
    assert len(found) >= 20


@pytest.mark.parametrize("statement", SHIPPED.statements.statements, ids=lambda each: each.id)
def test_each_way_to_say_a_quantity_tells_right_from_wrong(statement: Statement) -> None:
    assert list(contradicted(statement.holds, statement)) == []
    assert len(list(contradicted(statement.fails, statement))) == 1


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("A 7B model needs 84 GB of state.", "it is 112 GB"),
        ("Tensor 8, pipeline 4 and data 8 on 512 GPUs.", "it is 256"),
        ("So 16 × 7B = 84 GB.", "16 × 7B is 112 GB"),
        ("{{ training_state(parameters=14e9) | GB }}: 7B needs {{ (16 * 14) }} GB of state.", "it is 112 GB"),
    ],
)
def test_a_contradiction_planted_in_a_card_is_refused_with_its_line(cards: Path, sentence: str, reason: str) -> None:
    edit(cards, CARD, "Activations come on top.", sentence)
    _, problems = check_content(cards)
    (problem,) = [each for each in problems if reason in each.reason]
    assert (problem.file, problem.line, problem.field) == (f"cards/{CARD}", 19, "# Trap")


def test_a_contradiction_in_a_rubrics_point_is_refused() -> None:
    rubric = SHIPPED.rubrics["R01"]
    point = rubric.points[0].model_copy(update={"text": "70B parameters need 1,400 GB of state."})
    planted = {"R01": rubric.model_copy(update={"points": (point, *rubric.points[1:])})}
    catalogue = replace(Catalogue(), statements=SHIPPED.statements, rubrics=planted)
    ((identity, location, reason),) = check_sentences(catalogue)
    assert (identity, location) == ("rubrics/R01", ("points", 0, "text"))
    assert "it is 1120 GB" in reason


def test_what_others_claim_is_left_alone(cards: Path) -> None:
    claim = "“Tensor 8, pipeline 4 and data 8 on 512 GPUs, as 8 × 4 × 8 = 512”: no."
    edit(cards, CARD, "Activations come on top.", claim)
    assert check_content(cards)[1] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("8 × 16 × 128 = 16,384 GPUs", 0),
        ("8 × 16 × 64 = 16,384 GPUs", 1),
        ("256 = 8 · 4 · 8", 0),
        ("256 = 8 · 4 · 4", 1),
        ("2 + 2 + 12 = 16 bytes", 0),
        ("2 + 2 + 8 = 16 bytes", 1),
        ("3/35 = 8.57 %", 0),
        ("3/35 = 9.4 %", 1),
        ("160/50 ≈ 3", 0),
        ("2 × 7 GB = 14 GB", 0),
        ("2 × (8 − 1)/8 × 14 = 24.5", 0),  # not typed as a chain: nothing is claimed to be read
        ("p = 4 × 8 = m", 0),
    ],
)
def test_a_typed_sum_must_add_up(text: str, wrong: int) -> None:
    assert len(list(wrong_sums(text))) == wrong


def test_a_figure_is_held_to_the_digits_it_is_given_with() -> None:
    assert agrees("50", "h", 49.5 * 3600)
    assert not agrees("48", "h", 49.5 * 3600)
    assert agrees("49.5", "h", 49.5 * 3600)
    assert agrees("1.1", "TB", 1.12e12)
    assert not agrees("1.2", "TB", 1.12e12)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("says", "(7B", "no pattern"),
        ("says", "7B needs 112 GB", "needs a group 'figure'"),
        ("holds", "7B needs 113.5 GB of state", "is to hold, and does not"),
        ("holds", "Nothing of the kind", "is to hold, and does not"),
        ("fails", "7B needs 112 GB of state", "is to be refused, and is not"),
    ],
)
def test_a_pattern_that_proves_nothing_is_refused(field: str, value: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Statement.model_validate(STATE.model_dump() | {field: value})
