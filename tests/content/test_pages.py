"""Handbook pages, glossary and errata: mistakes are named with their line, and terms are marked where they help."""

from __future__ import annotations

from pathlib import Path

import pytest
from markupsafe import Markup

from app.content.catalogue import load
from app.content.checks import check_content
from app.content.glossary import Marker
from app.content.page_schemas import Term
from tests.support.cards import edit, write_cards

PAGE, GLOSSARY, ERRATA = "reference/state.md", "reference/glossary.yaml", "reference/errata.yaml"
FILES = {
    PAGE: """\
---
slug: state
title: State
about: What it takes.
group: understand
order: 10
concepts: [memory]
sources: [Counted by hand]
related:
  cards: [C01]
  formulas: [F01]
figures:
  bars:
    title: Bytes
    finding: Many.
    rows: [{label: All, optimizer: training_state(parameters=7e9)}]
---

7B has {{ training_state(parameters=7e9) | GB }}.

## In a table

| Model | State |
|---|---|
| 7B | {{ training_state(parameters=7e9) | GB }} |

::figure bars::

## Said

:::shorthand
“Sixteen bytes.”
---
Of model state, **without** activations.
:::

:::trap
Not $2N$.
:::
""",
    GLOSSARY: """\
terms:
  - {term: Model state, also: [state], says: "All of it.", concept: memory, page: state}
  - {term: Activations, says: "What stays."}
""",
    ERRATA: """\
topics:
  memory: Memory
errata:
  - id: E001
    severity: high
    topic: memory
    claim: 7B has 14 GB
    correct: "{{ training_state(parameters=7e9) | GB }}."
    taught_by: [C01, state]
  - id: E002
    severity: low
    topic: memory
    claim: Anything
    correct: Something.
    not_taught: too small
""",
}


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    folder = write_cards(tmp_path / "cards")
    (folder / "reference").mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def test_a_handbook_in_order_is_served_whole(cards: Path) -> None:
    found, problems = check_content(cards)
    assert problems == []
    page = found.pages["state"]
    assert [section.title for section in page.sections] == ["", "In a table", "Said"]
    assert [section.anchor for section in page.contents] == ["in-a-table", "said"]
    kinds = [[block.kind for block in section.blocks] for section in page.sections]
    assert kinds == [["text"], ["text", "figure"], ["shorthand", "trap"]]
    assert "112 GB" in page.text  # 16 × 7
    figure = page.sections[1].blocks[1].figure
    assert figure is not None
    assert figure.rows[0].total == pytest.approx(112e9)
    assert list(found.handbook.terms) == ["Model state", "Activations"]
    assert found.handbook.errata["E001"].correct.striptags() == "112 GB."


def test_without_a_handbook_there_is_none(tmp_path: Path) -> None:
    found, problems = check_content(write_cards(tmp_path / "cards"))
    assert problems == []
    assert not found.pages


# file, what is changed to what, "line field" and a word of the reason, what is not served
BROKEN = [
    (PAGE, "group: understand", "group: undrestand", "5 group", "'understand'", "page"),
    (PAGE, "order: 10", "order: 10\ncolour: red", "7 colour", "Extra inputs", "page"),
    (PAGE, "sources: [Counted by hand]", "sources: []", "8 sources", "at least 1 item", "page"),
    (PAGE, "slug: state", "slug: states", "2 slug", "states stands in a file called state.md", "page"),
    (PAGE, "---\nslug", "slug", "1 file", "front matter", "page"),
    (PAGE, "::figure bars::", "::figure bar::", "27 body", "there is no figure 'bar', but bars", "page"),
    (PAGE, "::figure bars::", "", "13 figures.bars", "no line ::figure bars:: places it", "page"),
    (PAGE, "optimizer: training_state(", "optimizer: training_stat(", "13 figures.bars", "undefined", "page"),
    (PAGE, "7B has {{ training_state(", "7B has {{ training_stat(", "19 body", "'training_stat' is undefined", "page"),
    (PAGE, "B | {{ training_state(parameters=7e9)", "B | {{ training_state(parameters=0)", "23 body", "range", "page"),
    (PAGE, "Of model state, **without** activations.", "$\\frac$", "34 body", "frac", "page"),
    (PAGE, ":::trap", ":::tarp", "37 body", "there is no :::tarp, but trap, note", "page"),
    (PAGE, "Not $2N$.\n:::", "Not $2N$.", "37 body", ":::trap is not closed", "page"),
    (PAGE, "“Sixteen bytes.”\n---\n", "“Sixteen bytes.”\n", "31 body", "needs a line of ---", "page"),
    (PAGE, "## Said", "## In a table", "18 body", "two sections 'In a table'", "page"),
    (GLOSSARY, 'says: "What stays."', "meaning: What", "3 terms.1.says", "Field required", "terms"),
    (GLOSSARY, "terms:", "words:", "1 terms", "Field required", "terms"),
    (ERRATA, "severity: high", "severity: grave", "5 errata.0.severity", "'high'", "errata"),
    (ERRATA, "    not_taught: too small\n", "", "10 errata.1", "either taught_by or not_taught", "errata"),
    (ERRATA, "topic: memory\n    claim: Any", "topic: speed\n    claim: Any", "1 file", "no topic 'speed'", "errata"),
    (ERRATA, "parameters=7e9", "parameters=0", "8 errata.0.correct", "out of range", "E001"),
    (ERRATA, "id: E002", "id: E001", "10 errata.1.id", "two errata E001", ""),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_mistake_is_named_by_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    name, old, new, where, why, lost = broken
    edit(cards, name, old, new)
    loaded = load(cards)
    said = [str(mistake) for mistake in loaded.mistakes]
    assert any(line.startswith(f"cards/{name}:{where}: ") and why in line for line in said), said
    assert bool(loaded.pages) == (lost != "page")
    assert bool(loaded.handbook.terms) == (lost != "terms")
    assert bool(loaded.handbook.errata) == (lost != "errata")
    assert ("E001" in loaded.handbook.errata) == (lost not in ("errata", "E001"))
    assert "C01" in loaded.cards


def test_all_mistakes_of_a_page_are_found_at_once(cards: Path) -> None:
    edit(cards, PAGE, "::figure bars::", "::figure bar::")
    edit(cards, PAGE, "Not $2N$.", "Not {{ nothing }}.")
    assert {mistake.line for mistake in load(cards).mistakes} >= {13, 27, 38}


# What only the checks see.
CHECKED = [
    (PAGE, "concepts: [memory]", "concepts: [speed]", "7 concepts", "no concept 'speed'"),
    (PAGE, "  cards: [C01]", "  cards: [C09]", "10 related.cards", "no card C09"),
    (PAGE, "  cards: [C01]", "  pages: [nowhere]", "10 related.pages", "no page nowhere"),
    (PAGE, "  formulas: [F01]", "  formulas: [F99]", "11 related.formulas", "no formula F99"),
    (PAGE, "“Sixteen bytes.”", "Some 77 GB.", "18 # body", "'77 GB' is typed"),
    (GLOSSARY, "concept: memory", "concept: speed", "2 terms.0.concept", "no concept 'speed'"),
    (GLOSSARY, "page: state", "page: nowhere", "2 terms.0.page", "no page 'nowhere'"),
    (GLOSSARY, "term: Activations", "term: State", "3 terms.1", "'State' is also a name of 'Model state'"),
    (ERRATA, "taught_by: [C01, state]", "taught_by: [C09]", "9 errata.0.taught_by", "C09 is neither a card nor a page"),
    (ERRATA, "taught_by: [C01, state]", "taught_by: [nowhere]", "9 errata.0.taught_by", "nowhere is neither"),
    (ERRATA, "correct: Something.", "correct: It is 77 GB.", "14 errata.1.correct", "'77 GB' is typed"),
    (ERRATA, "id: E002", "id: E003", "3 errata", "E002 is missing"),
]


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    name, old, new, where, why = broken
    edit(cards, name, old, new)
    _, problems = check_content(cards)
    said = [str(problem) for problem in problems]
    assert any(line.startswith(f"cards/{name}:{where}") and why in line for line in said), said


def test_a_given_figure_may_be_typed(cards: Path) -> None:
    edit(cards, PAGE, "“Sixteen bytes.”", "Some 77 GB.")
    edit(cards, PAGE, "order: 10", "order: 10\ngiven: {77 GB: measured}")
    assert check_content(cards)[1] == []


# ---- terms in texts ----------------------------------------------------------------------------------------------

TERMS = (
    Term(term="All-reduce", says="Sums."),
    Term(term="Ring all-reduce", says="Round."),
    Term(term="MFU", says="Share."),
    Term(term="Micro-batch", also=("micro-batches",), says='A "part".'),
    Term(term="Rank", says="A process.", mark=False),
)


def marked(html: str) -> list[str]:
    """The texts that became buttons."""
    source = Markup(html)  # noqa: S704 - of this test
    found = Marker(TERMS).mark(source)
    assert found.striptags() == source.striptags()
    return [part.partition("</button>")[0].rpartition(">")[2] for part in str(found).split("<button")[1:]]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<p>An all-reduce, then All-reduce</p>", ["all-reduce"]),
        ("<p>Two all-reduces</p>", ["all-reduces"]),
        ("<p>A ring all-reduce and an all-reduce</p>", ["ring all-reduce", "all-reduce"]),
        ("<p>MFU, not mfu or MFUX</p>", ["MFU"]),
        ("<p>mfu</p>", []),
        ("<p>an all-reducer, pre-all-reduce</p>", []),
        ("<p>every rank</p>", []),
        ("<h2>all-reduce</h2><p>all-reduce</p>", ["all-reduce"]),
        ('<p><a href="/x">all-reduce</a></p>', []),
        ("<p><code>all-reduce</code></p><pre><code>all-reduce</code></pre>", []),
        ("<p><math><mi>MFU</mi></math> and MFU</p>", ["MFU"]),
        ("<p><em>all-reduce</em></p>", ["all-reduce"]),
        ('<p title="all-reduce">x &lt; all-reduce</p>', ["all-reduce"]),
        ("<p>two micro-batches</p>", ["micro-batches"]),
    ],
)
def test_a_term_is_marked_where_it_first_stands_in_running_text(html: str, found: list[str]) -> None:
    assert marked(html) == found


def test_a_marked_term_says_what_it_means_without_script() -> None:
    assert Marker(TERMS).mark(Markup("micro-batch")) == (
        '<button type="button" class="gloss" title="A &#34;part&#34;.">micro-batch</button>'
    )


def test_no_line_starts_with_the_full_stop_behind_a_term() -> None:
    assert str(Marker(TERMS).mark(Markup("<p>by MFU.</p>"))).endswith("MFU</button>.</span></p>")
    assert "nobr" not in str(Marker(TERMS).mark(Markup("<p>MFU <em>is</em> a share</p>")))


def test_terms_are_marked_once_a_section_and_never_in_a_question(cards: Path) -> None:
    loaded = load(cards)
    said = loaded.pages["state"].sections[2].blocks[0]
    assert "gloss" not in said.html
    assert ">model state</button>" in said.more
    assert ">activations</button>" in said.more
    card = loaded.cards["C01"]
    assert "state" in card.sections["Question"]
    assert "gloss" not in card.sections["Question"]
    assert ">Activations</button>" in card.sections["Trap"]
