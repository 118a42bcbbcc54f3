"""The ranked index: what is found, what comes first, and what is marked."""

from __future__ import annotations

import pytest

from app.content.catalogue import Catalogue
from app.search.documents import documents, without_marks
from app.search.index import Document, Index, is_near, words
from app.search.snippets import highlight, snippet


def document(key: str, title: str, body: str = "", names: str = "") -> Document:
    return Document("cards", key, title, f"/{key}", names=names, body=body)


DOCUMENTS = (
    document(
        "ring", "Ring all-reduce", "Each rank sends to its neighbour; bytes per rank stay below twice the tensor."
    ),
    document("gather", "All-gather", "Everybody leaves with everything. Not an all-reduce."),
    document("flash", "FlashAttention", "Attention without the matrix."),
    document("bubble", "The pipeline bubble", "Idle time of stages.", "F22 bubble"),
    document("other", "Buckets", "A bucket holds gradients. The bubble is elsewhere."),
)
INDEX = Index(DOCUMENTS)


def found(query: str) -> list[str]:
    return [each.document.key for each in INDEX.search(query)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("ring", "ring"),
        ("RING", "ring"),
        ("all-reduce", "ring"),
        ("allreduce", "ring"),
        ("all reduce ring", "ring"),
        ("flash attention", "flash"),
        ("flashattention", "flash"),
        ("bubb", "bubble"),
        ("bubble", "bubble"),
        ("F22", "bubble"),
        ("f22", "bubble"),
        ("gradient", "other"),
        ("bucket", "other"),
        ("what is the bubble", "bubble"),
        ("Búbble", "bubble"),
    ],
)
def test_the_best_match_comes_first(query: str, first: str) -> None:
    assert found(query)[0] == first


@pytest.mark.parametrize(
    ("query", "first", "read_as"),
    [
        ("bubl", "bubble", {"bubl": "bubble"}),  # begun, with a letter too few
        ("gahter", "gather", {"gahter": "gather"}),
        ("bubbel ", "bubble", {"bubbel": "bubble"}),
        ("pipline bubble", "bubble", {"pipline": "pipeline"}),
        ("gather", "gather", {}),
        ("gath", "gather", {}),  # begun
    ],
)
def test_a_word_that_nothing_has_is_read_as_one_a_slip_away(query: str, first: str, read_as: dict[str, str]) -> None:
    assert (found(query)[0], INDEX.read_as(query)) == (first, read_as)


@pytest.mark.parametrize(
    ("word", "other", "near"),
    [
        ("ring", "rings", True),
        ("rings", "ring", True),
        ("rank", "rang", True),
        ("gahter", "gather", True),
        ("rank", "rank", False),
        ("bubl", "bubble", False),
        ("abcd", "badc", False),
    ],
)
def test_one_slip_is_near(word: str, other: str, near: bool) -> None:
    assert is_near(word, other) == near


def test_only_the_last_word_may_be_begun() -> None:
    assert found("bub") == ["bubble", "other"]
    assert found("bub pipeline") == ["bubble"]  # bub alone is no word: only the other matches
    assert found("bub ") == []


def test_all_words_must_be_there_unless_they_are_many() -> None:
    assert found("ring matrix") == ["flash", "ring"] or set(found("ring matrix")) == {"flash", "ring"}
    assert found("rank neighbour bubble") == ["ring"]
    assert found("rank neighbour sends bubble") == ["ring"]


@pytest.mark.parametrize("query", ["", "   ", "…", "zzzz", "{{", "'\"<script>"])
def test_nothing_is_found_for_nothing(query: str) -> None:
    assert found(query) == []


def test_an_empty_index_finds_nothing() -> None:
    assert Index(()).search("ring") == []


def test_plural_and_compounds_are_read_as_their_words() -> None:
    assert words("All-reduces of 1,120 GB, buckets") == ["all", "reduce", "of", "1120", "gb", "bucket"]
    assert words("loss 1F1B bus") == ["loss", "1f1b", "bus"]


def hits(text: str, *matched: str) -> list[str]:
    return [piece.text for piece in highlight(text, frozenset(matched)) if piece.is_hit]


def test_the_words_found_are_marked_without_their_punctuation() -> None:
    assert hits("All-reduce, then buckets.", "reduce", "bucket") == ["All-reduce", "buckets"]
    pieces = highlight("All-reduce, then <b>.", frozenset({"reduce"}))
    assert "".join(piece.text for piece in pieces) == "All-reduce, then <b>."


def test_a_snippet_is_short_and_around_what_was_found() -> None:
    text = " ".join(f"word{number}" for number in range(200)) + " needle hay"
    shown = "".join(piece.text for piece in snippet(text, frozenset({"needle"})))
    assert "needle" in shown
    assert shown.startswith("… ")
    assert len(shown.split()) < 32
    start = "".join(piece.text for piece in snippet(text, frozenset({"nothing"})))
    assert start.startswith("word0 ")
    assert start.endswith(" …")


def test_texts_are_found_as_they_are_read(content: Catalogue) -> None:
    """Blanks are filled, a value that a seed draws leaves its place, and nothing of Jinja's stays."""
    every = list(documents(content))
    assert not [each.key for each in every if "{%" in each.body or "{{" in each.body]
    (cloze,) = (each for each in every if each.key == "C30")
    assert "blank" not in f"{cloze.summary} {cloze.body}"
    assert without_marks("a pipeline of {{ stages }} stages{% if x %} and **more**{% endif %}").split() == (
        ["a", "pipeline", "of", "…", "stages", "and", "more"]
    )
