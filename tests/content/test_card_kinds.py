"""What each kind of card needs: what is missing or wrong is named by file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.cards import fenced
from app.content.catalogue import Catalogue, load
from app.content.checks import check_content
from tests.support.cards import edit
from tests.support.kinds import KINDS, write_kinds


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    return write_kinds(tmp_path / "cards")


@pytest.fixture
def kinds(cards: Path) -> Catalogue:
    return load(cards)


def test_a_card_of_every_kind_is_in_order(cards: Path) -> None:
    found, problems = check_content(cards)
    assert [str(problem) for problem in problems] == []
    assert set(KINDS) <= set(found.cards)


def test_the_machine_checks_what_has_a_key(kinds: Catalogue) -> None:
    assert {id_ for id_, card in kinds.cards.items() if card.is_checked} == {"C11", "C12", "C13", "C14", "C15"}


# Which card, what is changed to what, "line field" and a word of the reason: the loader refuses it.
REFUSED = [
    ("C11", "unit: GB", "unit: GBs", "13 ask.unit", "no unit known here"),
    ("C11", "  unit: GB\n", "", "7 ask.unit", "Field required"),
    ("C11", "ranks: [2, 4, 8]", "ranks: [2]", "7 ask", "4 combinations, 8 are needed"),
    ("C11", "[1, 2, 4, 8]", "[1, 1, 1, 1]", "7 ask", "3 combinations"),
    ("C11", "[1, 2, 4, 8]", "[]", "8 ask.parameters.billions", "at least 1 item"),
    ("C11", "unit: GB", "unit: GB\n  tolerance: 2", "14 ask.tolerance", "less than or equal to 0.5"),
    ("C11", "unit: GB", "unit: GB\n  colour: red", "14 ask.colour", "Extra inputs"),
    ("C11", "key: zero_state(", "key: zero_stat(", "12 ask.key", "'zero_stat' is undefined"),
    ("C11", "over {{ ranks }} ranks: bytes", "over {{ rank }} ranks: bytes", "11 ask.prompt", "rank"),
    ("C11", "value: 16 * whole,", "value: 16 * hole,", "15 ask.slips.0.value", "hole"),
    ("C11", "whole: billions * 1e9", "whole: billion * 1e9", "10 ask.let.whole", "'billion' is undefined"),
    ("C11", "ranks > 2", "ranks > 2000", "9 ask.where", "no combination"),
    ("C11", "cure: C01", "cure: card", "15 ask.slips.0.cure", "match pattern"),
    ("C12", "message: One link carries everything.", "correct: false", "9 options.1", "a message that says why"),
    ("C12", ", correct: true, message: All", ", message: All", "7 options", "one of them must be correct"),
    ("C12", "id: star", "id: ring", "7 options", "the same id"),
    ("C12", "text: A tree", "text: '{{ tree }}'", "10 options.2.text", "tree"),
    ("C12", "kind: choose", "kind: basic", "2 file", "options belongs to a choose card"),
    ("C14", "left: ZeRO-2", "left: ZeRO-1", "7 pairs", "the same left side"),
    ("C14", "right: everything", "right: optimizer", "7 pairs", "the same right side"),
    ("C14", "  - {left: ZeRO-3, right: everything}\n", "", "7 pairs", "at least 3 items"),
    ("C15", "steps: [gather, compute, gather, scatter]", "steps: [gather, compute]", "7 steps", "at least 3 items"),
    ("C15", "scatter]", "'$\\frac$']", "7 steps.3", "frac"),
    ("C16", "training_state(", "training_stat(", "9 # Question", "'training_stat' is undefined"),
    ("C16", "kind: cloze", "kind: cloze\nseconds: 1", "5 seconds", "greater than or equal to 5"),
    (
        "C16",
        "kind: cloze",
        "kind: cloze\ndiagram: {kind: ring, title: T, finding: F, ranks: 2, phase: all-gather, step: 0}",
        "5 diagram.ring.ranks",
        "greater than or equal to 3",
    ),
    (
        "C16",
        "kind: cloze",
        "kind: cloze\ndiagram: {kind: tree, title: T, finding: F, ranks: 4}\n"
        "figure: {title: T, finding: F, rows: [{label: L}]}",
        "2 file",
        "not both",
    ),
]


@pytest.mark.parametrize("broken", REFUSED)
def test_a_mistake_is_named_and_its_card_is_not_served(cards: Path, broken: tuple[str, ...]) -> None:
    card, old, new, where, why = broken
    edit(cards, f"decks/kinds/{card}.md", old, new)
    loaded = load(cards)
    said = [str(mistake) for mistake in loaded.mistakes]
    assert any(line.startswith(f"cards/decks/kinds/{card}.md:{where}: ") and why in line for line in said), said
    assert set(KINDS) - set(loaded.cards) == {card}


# What only the checks see.
CHECKED = [
    ("C11", "ranks=ranks, stage=3)", "ranks=ranks, stage=3) - 1e12", "7 ask", "needs a positive one"),
    ("C11", "value: 16 * whole,", "value: 16 * whole / ranks,", "15 ask.slips.0", "never differs from the key"),
    ("C11", "ranks > 2", "ranks > 15", "7 ask", "200 seeds draw 6 combinations"),
    ("C11", 'prompt: "{{ billions }}B', 'prompt: "{{ (1 / (billions - 8)) | number }}B', "11 ask.prompt", "division"),
    ("C15", "steps: [gather, compute, gather, scatter]\n", "", "4 kind", "a card of kind order needs steps"),
    ("C12", "The ring.", "The ring, 3 times.", "17 # Answer", "'3 times' is typed"),
    ("C12", "The ring.", "word " * 141, "17 # Answer", "141 words are too many for a choose card; at most 140"),
    ("C12", "Which topology", "word " * 90, "13 # Question", "at most 90"),
    ("C16", "[[$16$]]", "[[$16$]] [[a]] [[b]]", "9 # Question", "here are 4"),
    ("C17", "```python run", "```python", "9 # Question", "one block ```python run"),
    ("C17", "```text output", "```text", "19 # Answer", "begins with a block ```text output"),
]


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    card, old, new, where, why = broken
    edit(cards, f"decks/kinds/{card}.md", old, new)
    _, problems = check_content(cards)
    said = [str(problem) for problem in problems]
    assert any(line.startswith(f"cards/decks/kinds/{card}.md:{where}: ") and why in line for line in said), said


def test_a_figure_with_a_source_may_be_typed(cards: Path) -> None:
    edit(cards, "decks/kinds/C12.md", "The ring.", "The ring, 3 times.")
    edit(cards, "decks/kinds/C12.md", "kind: choose", "kind: choose\ngiven: {3 times: counted in the picture}")
    assert check_content(cards)[1] == []


def test_a_figure_all_cards_may_state_stands_in_one_file(cards: Path) -> None:
    edit(cards, "decks/kinds/C12.md", "The ring.", "The ring, 3 times.")
    (cards / "given.yaml").write_text("given: {3 times: counted in the picture}\n")
    assert check_content(cards)[1] == []
    (cards / "given.yaml").write_text("given: [3 times]\n")
    assert str(load(cards).mistakes[0]).startswith("cards/given.yaml:1 given: ")


def test_a_blank_holds_its_gap_and_its_text(kinds: Catalogue) -> None:
    html = kinds.cards["C16"].sections["Question"]
    assert html.count('<span class="gap">') == 2
    first, second = html.split('<span class="fill">')[1:]
    assert first.startswith('<a class="live"')
    assert "112 GB</a></span></span>" in first
    assert second.startswith("<math")


def test_a_program_keeps_its_braces_dollars_and_brackets(kinds: Catalogue) -> None:
    card = kinds.cards["C17"]
    (program,) = fenced(card.source.sections["Question"], "python run")
    assert program.splitlines()[1] == 'cost = "$5 and $6"'
    html = card.sections["Question"]
    assert 'class="language-python"' in html
    assert '<pre tabindex="0">' in html, "a wide program scrolls, and the keyboard must reach it"
    assert "{{ 7 }}" in html
    assert "[[1]]" in html
    assert "$5 and $6" in html
    assert "1 {{ 7 }} [[1]]\n</code>" in card.sections["Answer"]


def test_a_card_expects_its_own_seconds_or_its_kinds(cards: Path) -> None:
    edit(cards, "decks/kinds/C16.md", "kind: cloze", "kind: cloze\nseconds: 11")
    loaded = load(cards)
    assert loaded.cards["C16"].expected_seconds == 11
    assert loaded.cards["C16"].slow_milliseconds == 33_000
    assert loaded.cards["C11"].expected_seconds == loaded.cards["C11"].kind.seconds
