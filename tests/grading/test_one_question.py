"""The same question asked as a card, as a part of a problem and in an interview: one verdict and credit."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from app.content.asked import Verdict, ask
from app.content.catalogue import load
from app.content.interview_schemas import Interview
from app.content.problem_schemas import Problem
from app.grading.questions import OrderItem, OrderQuestion
from app.interview import scoring
from app.practice.desk import grade_alone
from tests.support.kinds import write_kinds

SLIPS = [
    {"id": "whole", "value": "16e9 * n", "title": "not divided", "message": "All of it.", "cure": "C01"},
    {"id": "same", "value": "16e9 * n * 1.001", "title": "nearly that", "message": "Too near to tell.", "cure": "C01"},
    {"id": "right", "value": "4e9 * n", "title": "right", "message": "Never told.", "cure": "C01"},
]
NUMBER: dict[str, Any] = {"prompt": "{{ n }}B over 4?", "key": "4e9 * n", "unit": "GB", "slips": SLIPS}
OPTIONS = [
    {"id": "ring", "text": "A ring", "correct": True, "message": "Same on all links."},
    {"id": "star", "text": "A star", "message": "One link has it all."},
    {"id": "tree", "text": "A tree", "message": "Its root works twice."},
]
ASKED = {"ask": "Is it?", "did": "erred"}  # what an interview has besides
STATUS = {"right": "correct", "wrong": "wrong", "not readable": "invalid"}

HEAD = "---\nid: {id}\ntitle: T\nkind: {kind}\nconcepts: [memory]\nsource: S\n"


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same number and the same choice as cards."""
    folder = write_kinds(Path(tmp_path_factory.mktemp("content")) / "cards")
    slips = "\n".join("    - {" + ", ".join(f"{name}: {value}" for name, value in each.items()) + "}" for each in SLIPS)
    ask_ = (
        f"ask:\n  parameters: {{n: [7], m: [1, 2, 3, 4, 5, 6, 7, 8]}}\n  prompt: '{NUMBER['prompt']}'\n"
        f"  key: 4e9 * n\n  unit: GB\n  slips:\n{slips}\n"
    )
    options = "options:\n" + "\n".join(
        f"  - {{id: {each['id']}, text: {each['text']}, correct: {str(each.get('correct', False)).lower()}, "
        f"message: {each['message']}}}"
        for each in OPTIONS
    )
    body = "---\n\n# Question\n\nWhich?\n\n# Answer\n\nThat.\n"
    (folder / "decks/kinds/C11.md").write_text(HEAD.format(id="C11", kind="numeric") + ask_ + body)
    (folder / "decks/kinds/C12.md").write_text(HEAD.format(id="C12", kind="choose") + options + "\n" + body)
    found = load(folder)
    assert not found.mistakes, [str(each) for each in found.mistakes]
    return found.cards


def as_part(source: Mapping[str, Any], text: str, seed: int) -> tuple[str, float, str | None]:
    texts = {"statement": "Say.", "hints": ["x", "y", "z"], "solution": "So."}
    head = {"id": "P99", "slug": "made-up", "title": "Made up", "about": "About", "concepts": ["x"], "minutes": 1}
    part = {"id": "q", **source}
    made = Problem.model_validate({**head, "parameters": {"n": [7]}, "parts": [part], **texts})
    grade = grade_alone(made, seed, {"q": text}).parts[0].grade
    assert grade is not None
    return grade.status, grade.credit, grade.title


def as_interview(source: Mapping[str, Any], text: str) -> tuple[str, float, str]:
    head = {"id": "M1", "slug": "s", "title": "S", "about": "S.", "concepts": ["memory"], "minutes": 9}
    question = {"id": "q", "title": "Q", "minutes": 1, "points": 8, "explanation": "So.", **source}
    if "slips" in question:  # an interviewer asks about them
        question["slips"] = [{**each, **ASKED, "learn": "Divide it"} for each in question["slips"]]
    if "options" in question:
        asks = [{} if each.get("correct") else ASKED for each in question["options"]]
        question["learn"] = "Know it"
        question["options"] = [{**each, **ask} for each, ask in zip(question["options"], asks, strict=True)]
    made = Interview.model_validate({**head, "parameters": {"n": [7]}, "questions": [question]})
    row = scoring.scorecard(made, {"n": 7}, {"q": text}, {}).row("q")
    return STATUS[row.verdict], row.reached / row.points, f"{row.slip}. {row.message}" if row.slip else row.message


def as_card(cards: Mapping[str, Any], identity: str, text: str, seed: int) -> Verdict:
    return ask(cards[identity], seed).check(text)


NUMBERS = st.one_of(
    st.sampled_from(["28 GB", "28 MB", "28 TB", "112 GB", "112.1 GB", "28 GiB", "26.1 GiB", "28", "lots", "-28 GB"]),
    st.floats(1, 200).map(lambda value: f"{value:.4g} GB"),
    st.text(min_size=1, max_size=12).filter(str.strip),
)


@given(text=NUMBERS, seed=st.integers(0, 10**6))
@settings(max_examples=150)
def test_a_number_is_worth_the_same_wherever_it_is_asked(cards: Mapping[str, Any], text: str, seed: int) -> None:
    card = as_card(cards, "C11", text, seed)
    status, credit, title = as_part(NUMBER, text, seed)
    assert (card.status, card.credit, card.title or None) == (status, credit, title)
    sat_status, sat_credit, message = as_interview({"kind": "number", **NUMBER}, text)
    assert (sat_status, sat_credit) == (status, credit)
    assert title is None or message.startswith(title.capitalize())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("28 GB", ("correct", 1.0, None)),
        ("28.5 GB", ("correct", 1.0, None)),
        ("112 GB", ("wrong", 0.0, "not divided")),
        ("112.2 GB", ("wrong", 0.0, "not divided")),  # the second slip cannot be told from the first
        ("28 TB", ("wrong", 0.5, "right number, wrong unit")),
        ("40 GB", ("wrong", 0.0, None)),
        ("lots", ("invalid", 0.0, None)),
    ],
)
def test_what_a_number_is_worth(text: str, expected: tuple[str, float, str | None]) -> None:
    assert as_part(NUMBER, text, 1) == expected


@given(
    chosen=st.lists(st.sampled_from(["ring", "star", "tree", "moon", "A ring"]), max_size=3), seed=st.integers(0, 99)
)
@settings(max_examples=100)
def test_a_choice_is_worth_the_same_wherever_it_is_asked(
    cards: Mapping[str, Any], chosen: list[str], seed: int
) -> None:
    text = ",".join(chosen) or "?"
    card = as_card(cards, "C12", text, seed)
    status, credit, _ = as_part({"kind": "choice", "prompt": "Which?", "options": OPTIONS}, text, seed)
    assert (card.status, card.credit) == (status, credit)
    assert as_interview({"kind": "choice", "prompt": "Which?", "options": OPTIONS}, text)[:2] == (status, credit)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_an_order_is_worth_the_same_as_a_card_and_as_a_part(cards: Mapping[str, Any], order: tuple[int, ...]) -> None:
    steps = ["gather", "compute", "gather", "scatter"]
    asked = ask(cards["C15"], 3)
    left = list(asked.choices)
    keys = []
    for index in order:
        keys.append(next(choice for choice in left if choice.text == steps[index]))
        left.remove(keys[-1])
    items = [{"id": f"i{index}", "text": text, "value": str(index)} for index, text in enumerate(steps)]
    source = {"kind": "order", "prompt": "Order them", "message": "No.", "items": items}
    card = asked.check(",".join(choice.key for choice in keys))
    status, credit, _ = as_part(source, ", ".join(f"i{index}" for index in order), 1)
    assert (card.status, card.credit) == (status, credit)


def test_equal_items_change_places_in_either_direction() -> None:
    items = tuple(OrderItem(f"i{place}", Markup().join(text), float(place)) for place, text in enumerate("aba"))
    for question, right in ((OrderQuestion(items), "i0 i1 i2"), (OrderQuestion(items, "descending"), "i2 i1 i0")):
        assert question.grade(right).credit == 1.0
        assert question.grade(" ".join(reversed(right.split()))).credit == 1.0
        assert question.grade("i1 i0 i2").status == "wrong"
