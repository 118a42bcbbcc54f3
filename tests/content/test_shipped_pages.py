"""The handbook we ship: complete, readable in one go, every number computed and as calculated by hand."""

from __future__ import annotations

import re
from html import unescape

import pytest

from app.content.catalogue import Catalogue
from app.content.pages import Page
from tests.content.test_shipped_cards import check_live_numbers
from tests.support.shipped import shipped

PAGES = list(shipped().pages.values())
LONGEST = 950  # words a page: some five minutes


def html_of(page: Page) -> str:
    return "".join(f"{block.html}{block.more}" for section in page.sections for block in section.blocks)


def test_every_subject_has_its_page() -> None:
    assert {page.slug for page in PAGES} == {
        "memory-anatomy",
        "llama-accounting",
        "pipelines-in-practice",
        "number-formats",
        "low-precision-training",
        "checkpointing-and-accumulation",
        "collectives",
        "topology",
        "ddp",
        "zero-and-fsdp",
        "tensor-and-sequence-parallelism",
        "pipeline-parallelism",
        "context-parallelism",
        "mixture-of-experts",
        "deepseek-v3",
        "design-3d",
        "efficiency-and-limits",
        "kernels-and-compilers",
        "hiding-communication",
        "faults-at-scale",
        "reliability",
        "scaling-laws",
        "deepspeed-and-fsdp",
        "fsdp2-dtensor-dcp",
        "gradient-compression",
        "backprop-and-the-training-loop",
        "large-batch",
        "data-that-resumes",
        "cheat-sheet",
        "scaling-levels",
        "production-checklist",
        "do-not-say",
        "key-takeaways",
        "sixty-second-answers",
        "decision-frameworks",
        "rl-post-training",
        "optimizers-and-stability",
        "training-across-sites",
        "inference-in-training-loops",
        "tpus-and-jax",
        "reading-a-trace",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_a_page_is_short_and_its_numbers_open_on_what_they_show(page: Page) -> None:
    assert len(page.text.split()) <= LONGEST
    assert check_live_numbers(html_of(page)) > 0
    assert not re.search(r"\{\{|\}\}|\{%|\$|:::|[\ue000\ue001]", html_of(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_every_section_has_an_address_of_its_own(page: Page) -> None:
    anchors = [section.anchor for section in page.contents]
    assert all(anchors)
    assert len(set(anchors)) == len(anchors)


# By hand: 7B × 18; 4 × 7 + 12 × 7 / 8; 2 × 7 + 14 × 7 / 8; 3 × 7/8 × 14; 3 / 35; 3 / 3 / 32 × 100;
# 1 / (0.02 + 0.98 / 256); √(2 × 60 × 1,024-GPU MTBF of 49.5 h); √(10²⁴ / 120) / 10⁹; 16 × 70 / 8;
# 3 × 7,168 × 2,048 × 256 × 58; 64³ / 4; 2 / 16 × 445.05 TFLOP/s / 50 GB/s; 512 × (4 + 1);
# 1 / (0.3 + 0.7 / 2); 576 × 2 × 61;
# 140 / 26.8 + 160 × 0.01; 15 / 16 × 14 GB / 200 GB/s; 128 × 4 × 256 × 4;
# 16 + 8 × 20 / 132; 14 × 405 / 16,384; 7 × 12 / 80; 128,256 / 1,024; 989 / 3.35; 1 − 1 / 8.
SHOWN = [
    ("memory-anatomy", "126 GB"),
    ("zero-and-fsdp", "38.5 GB"),
    ("zero-and-fsdp", "26.25 GB"),
    ("zero-and-fsdp", "36.75 GB"),
    ("zero-and-fsdp", "140 GB"),
    ("pipeline-parallelism", "8.57 %"),
    ("pipeline-parallelism", "9.38 %"),
    ("efficiency-and-limits", "41.97 ×"),
    ("production-checklist", "77 min"),
    ("scaling-laws", "91.3 billion"),
    ("collectives", "2.205 s"),
    ("number-formats", "65,504"),
    ("tensor-and-sequence-parallelism", "62.6 ms"),
    ("design-3d", "24.06 GB"),
    ("reliability", "49.5 h"),
    ("gradient-compression", "26.5 GB"),
    ("deepspeed-and-fsdp", "1.12 s"),
    ("large-batch", "3.2"),
    ("mixture-of-experts", "653.9 billion"),
    ("topology", "65,536 GPUs"),
    ("context-parallelism", "1,113"),
    ("rl-post-training", "2,560"),
    ("low-precision-training", "1.54 ×"),
    ("deepseek-v3", "70.27 kB"),
    ("hiding-communication", "17.2 ms"),
    ("faults-at-scale", "346 MB"),
    ("llama-accounting", "70.55 billion"),
    ("data-that-resumes", "87.5 %"),
    ("kernels-and-compilers", "295"),
    ("fsdp2-dtensor-dcp", "126"),
    ("pipelines-in-practice", "1.05 ×"),
    ("optimizers-and-stability", "0.78 %"),
    ("training-across-sites", "94.1 %"),
    ("inference-in-training-loops", "6.82 ms"),
    ("tpus-and-jax", "65.6 ms"),
    ("reading-a-trace", "524.3 kB"),
]


@pytest.mark.parametrize(("slug", "text"), SHOWN)
def test_pages_show_what_the_hand_calculates(content: Catalogue, slug: str, text: str) -> None:
    numbers = re.findall(r'class="(?:live|num)"[^>]*>([^<]+)<', html_of(content.pages[slug]))
    assert text in map(unescape, numbers)


def test_the_twelve_answers_can_all_be_said(content: Catalogue) -> None:
    answers = [
        block
        for section in content.pages["sixty-second-answers"].sections
        for block in section.blocks
        if block.kind == "answer"
    ]
    assert len(answers) == 12
    for answer in answers:
        assert answer.html.striptags().endswith("?")
        assert str(answer.more).count("<li>") >= 5  # claim, formula, number, caveat, decision


def test_all_errata_are_there_and_computed(content: Catalogue) -> None:
    errata = content.handbook.errata
    assert sorted(errata) == [f"E{number:03d}" for number in range(1, 121)]
    for erratum in errata.values():
        check_live_numbers(erratum.correct)
    assert sum("data-live" in erratum.correct for erratum in errata.values()) > 50


# By hand: 16 × 70 / 8; 2 × 7/8 × 14; 175 × (4 + 12 / 64); 256 / (1 + 0.02 × 255); 1e21 / 6e9 / 1e9; 50,677 / 1,000.
@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("E001", "140 GB"),
        ("E026", "24.5 GB"),
        ("E003", "732.8 GB"),
        ("E066", "41.97 ×"),
        ("E085", "50.7 h"),
        ("E072", "167 billion tokens"),
        ("E039", "94 ms"),
        ("E055", "8.57 %"),
    ],
)
def test_errata_state_the_corrected_number(content: Catalogue, key: str, text: str) -> None:
    assert text in content.handbook.errata[key].correct.striptags()


def test_the_glossary_is_large_and_brief(content: Catalogue) -> None:
    terms = content.handbook.terms.values()
    assert len(terms) >= 90
    for term in terms:
        assert len(term.says.split()) <= 40, term.term
        assert term.says.endswith(".")


def test_terms_are_marked_in_cards_and_pages(content: Catalogue) -> None:
    assert sum('class="gloss"' in card.sections["Answer"] for card in content.cards.values()) > 40
    assert all('class="gloss"' not in card.sections["Question"] for card in content.cards.values())
    assert sum('class="gloss"' in html_of(page) for page in PAGES) > 20
