"""A broken content file is named with its line and field, and the rest is served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.content.catalogue import Catalogue, catalogue, load
from app.content.checks import check_content
from app.content.files import ContentError
from app.core.settings import ROOT, settings
from app.interview.checks import check_interviews
from app.lab.checks import check_experiments
from app.practice.checks import check_problems
from tests.support.cards import edit, write_cards

CARD, DECK, CONCEPTS = "decks/first/C01.md", "decks/first/deck.yaml", "concepts.yaml"
PREPARATION = "preparation.yaml"
PROBLEM, INTERVIEW, EXPERIMENT = "problems/P01-state.yaml", "interviews/short.yaml", "experiments/small.yaml"
ROOMS = {PROBLEM: check_problems, INTERVIEW: check_interviews, EXPERIMENT: check_experiments}


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    return write_cards(tmp_path / "cards")


def served(loaded: Catalogue) -> set[str]:
    groups = (loaded.concepts, loaded.decks, loaded.cards, loaded.problems, loaded.interviews, loaded.experiments)
    return {identity for group in groups for identity in group}


EVERYTHING = {"memory", "traffic", "DK1", "C01", "C02", "P01", "M1", "L01"}


def test_a_folder_in_order_is_served_whole(cards: Path) -> None:
    found, problems = check_content(cards, ROOMS.values())
    assert problems == []
    assert served(found) == EVERYTHING


# What stands where: file, what is changed to what, "line field" and a word of the reason, what is not served.
BROKEN = [
    # cards
    (CARD, "kind: basic", "kind: basick", "4 kind", "'basic'", "C01"),
    (CARD, "kind: basic", "kind: basic\ncolour: red", "5 colour", "Extra inputs", "C01"),
    (CARD, "kind: basic", "kind: basic\nkind: basic", "5 kind", "given twice", "C01"),
    (CARD, "source: Counted by hand", "source: ''", "6 source", "at least 1 character", "C01"),
    (CARD, "concepts: [memory]", "concepts: []", "5 concepts", "at least 1 item", "C01"),
    (CARD, "id: C01", "id: C1", "2 id", "match pattern", "C01"),
    (CARD, "id: C01", "id: C07", "2 id", "C07 stands in a file called C01.md", "C01"),
    (CARD, "title: State of 7B", "title: [State", "4 file", "not valid YAML", "C01"),
    (CARD, "title: State of 7B", "title: 2026-02-31", "2 file", "not valid YAML", "C01"),
    (CARD, "---\nid", "id", "1 file", "front matter", "C01"),
    (CARD, "# Answer", "# Answers", "15 # Answers", "no such section", "C01"),
    (CARD, "# Answer", "# Answers", "2 file", "'Answer' is missing", "C01"),
    (CARD, "How much state has 7B?", "", "2 file", "'Question' is missing", "C01"),
    (CARD, "# Trap", "# Answer", "19 # Answer", "two sections", "C01"),
    (CARD, "# Question", "Well,\n\n# Question", "11 file", "before the first", "C01"),
    (CARD, "parameters=7e9", "parameters=0", "15 # Answer", "out of range", "C01"),
    (CARD, "parameters=7e9", "parameter=7e9", "15 # Answer", "no input of that name", "C01"),
    (CARD, "training_state(", "training_stat(", "15 # Answer", "'training_stat' is undefined", "C01"),
    (CARD, "| GB }}", "| GBx }}", "15 # Answer", "GBx", "C01"),
    (CARD, "| GB }}", "| GB }", "15 # Answer", "}", "C01"),
    (CARD, "$16$", r"$\left( 16$", "15 # Answer", r"\left( 16", "C01"),
    (CARD, "Activations", "{{ 1 / 0 }} activations", "19 # Trap", "division by zero", "C01"),
    (
        CARD,
        "related:",
        "figure:\n  title: T\n  finding: F\n  rows: [{label: L, optimizer: nothing}]\nrelated:",
        "7 figure",
        "nothing",
        "C01",
    ),
    # decks: their cards go with them
    (DECK, "title: First", "titel: First", "1 title", "Field required", "DK1 C01 C02"),
    (DECK, "title: First", "title: First\ntitel: First", "3 titel", "Extra inputs", "DK1 C01 C02"),
    (DECK, "about: The first deck.", "about: : :", "3 file", "not valid YAML", "DK1 C01 C02"),
    # concepts
    (CONCEPTS, 'says: "What moves.", ', "", "3 says", "Field required", "traffic"),
    (CONCEPTS, "needs: [memory]", "needs: [memories]", "3 needs", "no concept 'memories'", ""),
    (CONCEPTS, "id: traffic", "id: memory", "3 id", "two concepts 'memory'", "traffic"),
    (CONCEPTS, "concepts:\n", "ideas:\n", "1 concepts", "list of concepts", "memory traffic"),
    # problems
    (PROBLEM, "minutes: 3", "minutes: 300", "6 minutes", "less than or equal to 60", "P01"),
    (PROBLEM, "    unit: GB\n", "    unit: GBs\n", "18 parts.0.unit", "no unit known here", "P01"),
    (PROBLEM, "    unit: GB\n", "    unitt: GB\n", "18 parts.0.unitt", "Extra inputs", "P01"),
    (PROBLEM, "    unit: GB\n", "    unitt: GB\n", "16 parts.0.unit", "Field required", "P01"),
    (PROBLEM, "hints: [One., Two., Three.]", "hints: [One., Two.]", "26 hints", "at least 3 items", "P01"),
    (PROBLEM, "        cure: C01", "        cure: card", "25 parts.0.slips.0.cure", "match pattern", "P01"),
    # interviews and experiments
    (INTERVIEW, "    kind: number", "    kind: song", "11 questions.0.kind", "'number'", "M1"),
    (INTERVIEW, "    unit: GB\n", "", "10 questions.0", "needs key and unit", "M1"),
    (INTERVIEW, "    unit: GB\n", "    unit: GB\n    builds_on: [q2]\n", "1 file", "builds on q2: no earlier", "M1"),
    (EXPERIMENT, "id: model_state_bytes", "id: Mood", "16 quantities.0.id", "match pattern", "L01"),
    (EXPERIMENT, "values: [1, 2]}", "values: [1, 2], labels: [one]}", "14 knobs.0", "one entry for each", "L01"),
    (EXPERIMENT, "values: [1, 2]}", "values: [1, 1.0]}", "14 knobs.0", "offered twice", "L01"),
    # the preparation: without it all else stands
    (PREPARATION, "days: 10", "day: 10", "1 day", "Extra inputs", ""),
    (PREPARATION, "days: 10", "days: 8", "1 file", "day 9 comes after the preparation's 8 days", ""),
    (PREPARATION, "day: 0", "day: 9", "1 file", "in the order of their days", ""),
    (PREPARATION, "  - DK1\n", "  - deck\n", "3 decks.0", "match pattern", ""),
    (PREPARATION, "solved: [P01]", "solved: [first]", "9 checkpoints.0.solved.0", "match pattern", ""),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_mistake_is_named_by_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    name, old, new, where, why, lost = broken
    edit(cards, name, old, new)
    loaded = load(cards)
    said = [str(mistake) for mistake in loaded.mistakes]
    assert any(line.startswith(f"cards/{name}:{where}: ") and why in line for line in said), said
    assert served(loaded) == EVERYTHING - set(lost.split())


def test_all_mistakes_are_found_at_once(cards: Path) -> None:
    edit(cards, CARD, "kind: basic", "kind: basick")
    edit(cards, PROBLEM, "minutes: 3", "minutes: 300")
    edit(cards, EXPERIMENT, "why: Because.", "")
    assert len({mistake.file for mistake in load(cards).mistakes}) == 3


def test_an_id_is_given_once_and_the_first_keeps_it(cards: Path) -> None:
    copy = (cards / PROBLEM).read_text().replace("title: State", "title: Copy").replace("slug: state", "slug: copy")
    (cards / "problems" / "P01-zz-copy.yaml").write_text(copy)
    loaded = load(cards)
    assert [str(mistake) for mistake in loaded.mistakes] == [
        "cards/problems/P01-zz-copy.yaml:1 id: P01 is also in cards/problems/P01-state.yaml"
    ]
    assert loaded.problems["P01"].title == "State"


def test_a_card_in_two_decks_is_named(cards: Path) -> None:
    (cards / "decks/second").mkdir()
    (cards / "decks/second/deck.yaml").write_text("id: DK2\ntitle: Second\nabout: Another.\n")
    (cards / "decks/second/C01.md").write_text((cards / CARD).read_text())
    loaded = load(cards)
    assert str(loaded.mistakes[0]) == f"cards/decks/second/C01.md:2 id: C01 is also in cards/{CARD}"
    assert loaded.cards["C01"].deck.id == "DK1"


def test_cards_in_a_folder_without_a_deck_do_not_vanish_silently(cards: Path) -> None:
    (cards / DECK).unlink()
    assert [str(mistake) for mistake in load(cards).mistakes] == [f"cards/{DECK}:1 file: No such file or directory"]


def test_a_file_that_is_not_utf_8_is_named_with_its_line(cards: Path) -> None:
    text = (cards / CARD).read_text().replace("How much", "Größe")
    (cards / CARD).write_bytes(text.encode("latin-1"))
    assert str(load(cards).mistakes[0]).startswith(f"cards/{CARD}:13 file: not UTF-8")


def test_windows_line_ends_and_a_byte_order_mark_are_read(cards: Path) -> None:
    text = (cards / CARD).read_text()
    (cards / CARD).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    loaded = load(cards)
    assert loaded.mistakes == ()
    assert loaded.cards["C01"].sections["Trap"] == "<p>Activations come on top.</p>\n"


def test_a_comment_in_a_program_is_no_section(cards: Path) -> None:
    edit(cards, CARD, "Activations", "```python\n# a comment\nx = 1\n```\n\nActivations")
    loaded = load(cards)
    assert loaded.mistakes == ()
    assert "# a comment" in loaded.cards["C01"].sections["Trap"]


@pytest.mark.parametrize("name", [CARD, DECK, PROBLEM, INTERVIEW, EXPERIMENT, CONCEPTS, PREPARATION])
@pytest.mark.parametrize(
    "text", ["", "[]", "7", "- a\n- b", "a: {", "\x00", "? [a]\n: b", "a: !!python/object:os.x {}"]
)
def test_no_text_in_a_file_takes_the_rest_down(cards: Path, name: str, text: str) -> None:
    (cards / name).write_text(text)
    loaded = load(cards)
    assert f"cards/{name}" in {mistake.file for mistake in loaded.mistakes}
    assert len(served(loaded)) >= 5


# What only the checks see: they compute with the content and follow its references.
CHECKED = [
    (CARD, "concepts: [memory]", "concepts: [memory, speed]", "5 concepts", "no concept 'speed'"),
    (CARD, "  problems: [P01]", "  problems: [P02]", "8 related.problems", "no problem P02"),
    (CARD, "  problems: [P01]", "  cards: [C09]", "8 related.cards", "no card C09"),
    (CARD, "  problems: [P01]", "  experiments: [L09]", "8 related.experiments", "no experiment L09"),
    (DECK, "about: The", "needs: [DK9]\nabout: The", "3 needs", "no deck DK9"),
    (PROBLEM, "concepts: [memory]", "concepts: [speed]", "5 concepts", "no concept 'speed'"),
    (PROBLEM, "        cure: C01", "        cure: C09", "20 parts.0.slips", "cured by C09, which is no card"),
    (PROBLEM, "size: billions * 1e9", "size: billion * 1e9", "10 let.size", "'billion' is undefined"),
    (PROBLEM, "where: billions > 1", "where: billions > 100", "11 where", "no combination"),
    (PROBLEM, "statement: How much", "statement: How {{ much", "12 statement", "expected token"),
    (PROBLEM, 'text: "{{ billions }}B"', 'text: "{{ billion }}B"', "13 given", "billion"),
    (PROBLEM, "key: training_state(parameters=size)", "key: training_state(parameters=0)", "19 parts.0.key", "range"),
    (PROBLEM, "prompt: State", "prompt: $\\frac$", "17 parts.0.prompt", "frac"),
    (PROBLEM, "value: 2 * size", "value: 2 * sizes", "22 parts.0.slips.0.value", "'sizes' is undefined"),
    (PROBLEM, "{{ (2 * size) | GB }} of", "{{ (2 * sizes) | GB }} of", "24 parts.0.slips.0.message", "sizes"),
    (PROBLEM, "value: 2 * size", "value: 16 * size", "20 parts.0.slips", "slip weights can be told from the key"),
    (PROBLEM, "training_state(parameters=size)\n", "0 - size\n", "16 parts.0", "needs a positive one"),
    (PROBLEM, "One., Two., Three.", "One., Two., '{{ three }}'", "26 hints", "three"),
    (PROBLEM, "One., Two., Three.", "One., Two., '{{ (16 * size) | GB }}.'", "26 hints.2", "right in part a"),
    (PROBLEM, 'solution: "{{ training_state(parameters=size)', 'solution: "{{ nothing', "27 solution", "nothing"),
    (INTERVIEW, "minutes: 3", "minutes: 1", "6 minutes", "longer than the sitting"),
    (
        INTERVIEW,
        "    unit: GB\n",
        "    unit: GB\n    hints: ['{{ (16 * billions) }} GB']\n",
        "9 questions",
        "hint says what is right",
    ),
    (EXPERIMENT, "values: [1, 2]}", "values: [1, 9]}", "14 knobs.0.values", "no run accepts 9"),
    (EXPERIMENT, "steps: 2}", "steps: 0}", "10 spec", "a run refuses it"),
    (EXPERIMENT, "id: model_state_bytes", "id: mood", "16 quantities.0.id", "but model_state_bytes, optimizer_bytes"),
    (EXPERIMENT, "    unit: MB\n", "    unit: s\n", "19 quantities.0.unit", "'s' is seconds"),
    (EXPERIMENT, "cure: C01", "cure: C09", "22 quantities.0.cure", "no card C09"),
    (EXPERIMENT, "most: 30 * theory", "most: 30 * theories", "20 quantities.0.most", "'theories' is undefined"),
    (EXPERIMENT, "most: 30 * theory.parameters", "most: 10 * theory.parameters", "16 quantities.0", "slider ends at"),
    (EXPERIMENT, "value: 4 *", "value: 16 *", "16 quantities.0", "anchor of the slider is the answer"),
    (EXPERIMENT, "value: 4 *", "value: 400 *", "16 quantities.0", "is not between 0 and the end"),
    (EXPERIMENT, "asks: How much?", "asks: How {{ much }}?", "7 asks", "'much' is undefined"),
    (PREPARATION, "  - DK1\n", "  - DK1\n  - DK9\n", "4 decks.1", "no deck DK9"),
    (PREPARATION, "  - DK1\n", "  - DK1\n  - DK1\n", "4 decks.1", "DK1 stands there twice"),
    (PREPARATION, "decks:\n  - DK1\n", "decks: []\n", "2 decks", "deck DK1 has no place"),
    (PREPARATION, "met: [DK1]", "met: [DK2]", "8 checkpoints.0.met", "no deck DK2"),
    (PREPARATION, "firm: [DK1]", "firm: [DK2]", "13 checkpoints.1.firm", "no deck DK2"),
    (PREPARATION, "solved: [P01]", "solved: [P02]", "9 checkpoints.0.solved", "no problem P02"),
    (PREPARATION, "solved: [P01]", "unaided: [P02]", "9 checkpoints.0.unaided", "no problem P02"),
    (PREPARATION, "solved: [P01]", "timed: [P02]", "9 checkpoints.0.timed", "no problem P02"),
    (PREPARATION, "interviews: [M1]", "interviews: [M2]", "14 checkpoints.1.interviews", "no interview M2"),
    (EXPERIMENT, "explanation: Sixteen", "explanation: '{{ mood }}'\n    #", "23 quantities.0.explanation", "mood"),
]


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    name, old, new, where, why = broken
    edit(cards, name, old, new)
    _, problems = check_content(cards, [ROOMS[name]] if name in ROOMS else [])
    said = [str(problem) for problem in problems]
    assert any(line.startswith(f"cards/{name}:{where}: ") and why in line for line in said), said


def test_a_deck_comes_no_later_than_its_checkpoint(cards: Path) -> None:
    (cards / "decks/second").mkdir()
    (cards / "decks/second/deck.yaml").write_text("id: DK2\ntitle: Second\nabout: Another.\n")
    edit(cards, PREPARATION, "firm: [DK1]", "firm: [DK2]")
    edit(cards, PREPARATION, "  - DK1\n", "  - DK1\n  - DK2\n")
    assert check_content(cards)[1] == []
    edit(cards, PREPARATION, "  - DK1\n  - DK2\n", "  - DK2\n  - DK1\n")
    assert [str(problem) for problem in check_content(cards)[1]] == [
        "cards/preparation.yaml:4 decks.1: DK1 is asked for on day 0, and comes after a deck of day 9"
    ]


def test_content_without_a_preparation_has_no_checkpoints(cards: Path) -> None:
    (cards / PREPARATION).unlink()
    found, problems = check_content(cards)
    assert problems == []
    assert found.preparation.checkpoints == ()


def test_two_problems_do_not_share_an_address(cards: Path) -> None:
    (cards / "problems" / "P02-more.yaml").write_text((cards / PROBLEM).read_text().replace("id: P01", "id: P02"))
    _, problems = check_content(cards)
    assert [str(problem) for problem in problems] == ["cards/problems/P02-more.yaml:2 slug: P01 has the same slug"]


def test_a_concept_that_nothing_teaches_is_named(cards: Path) -> None:
    edit(cards, CONCEPTS, "concepts:\n", "concepts:\n  - {id: speed, title: Speed, says: Fast.}\n")
    _, problems = check_content(cards)
    assert [problem.reason for problem in problems] == ["concepts that nothing teaches: speed"]


@pytest.fixture
def process_of(monkeypatch: pytest.MonkeyPatch, cards: Path) -> Iterator[pytest.MonkeyPatch]:
    """This process as one that starts with these cards."""
    monkeypatch.setenv("RANKZERO_CARDS", str(cards))
    settings.cache_clear()
    yield monkeypatch
    settings.cache_clear()


def test_production_refuses_to_start_with_a_mistake(cards: Path, process_of: pytest.MonkeyPatch) -> None:
    edit(cards, CARD, "kind: basic", "kind: basick")
    process_of.setenv("RANKZERO_ENVIRONMENT", "production")
    with pytest.raises(ContentError, match=r"cards/decks/first/C01\.md:4 kind: "):
        catalogue()


def test_development_serves_the_rest(cards: Path, process_of: pytest.MonkeyPatch) -> None:
    edit(cards, CARD, "kind: basic", "kind: basick")
    process_of.setenv("RANKZERO_ENVIRONMENT", "development")
    assert served(catalogue()) == EVERYTHING - {"C01"}
    assert [mistake.field for mistake in catalogue().mistakes] == ["kind"]


def test_production_starts_with_content_in_order(process_of: pytest.MonkeyPatch) -> None:
    process_of.setenv("RANKZERO_ENVIRONMENT", "production")
    assert served(catalogue()) == EVERYTHING
    assert catalogue() is catalogue()


def test_ids_are_unique_within_their_kind_and_not_beyond(cards: Path) -> None:
    (cards / "rubrics").mkdir(exist_ok=True)
    text = (ROOT / "cards/rubrics/R01-memory-walk.yaml").read_text()
    (cards / "rubrics/SP1.yaml").write_text(text.replace("id: R01", "id: SP1", 1))
    (cards / "rubrics/SP1-copy.yaml").write_text(text.replace("id: R01", "id: SP1", 1))
    (cards / "problems/SP1.yaml").write_text((cards / PROBLEM).read_text().replace("id: P01", "id: SP1", 1))
    loaded = load(cards)
    assert [str(mistake) for mistake in loaded.mistakes] == [
        "cards/rubrics/SP1.yaml:1 id: SP1 is also in cards/rubrics/SP1-copy.yaml"
    ]
    assert (loaded.problems["SP1"].title, loaded.rubrics["SP1"].title) == ("State", "Walk through the memory")


def test_a_role_that_asks_for_no_concept_is_named_with_its_line(cards: Path) -> None:
    (cards / "roles.yaml").write_text("roles:\n  - {id: any, title: Any, about: All., concepts: [memory, luck]}\n")
    said = [str(problem) for problem in check_content(cards)[1]]
    assert "cards/roles.yaml:2 roles.0.concepts: there is no concept 'luck'" in said
    edit(cards, INTERVIEW, "    points: 10\n", "    points: 10\n    concepts: [luck]\n")
    mistakes = " ".join(map(str, load(cards).mistakes))
    assert "questions are about luck, which the interview does not name" in mistakes
