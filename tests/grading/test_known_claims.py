"""Statements compared with claims that are known to be right, half right or wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.grading.rubrics.comparing import TO_A_RUBRIC, Standing, compare
from app.grading.rubrics.likeness import Claim, Likeness, make_claims
from app.grading.rubrics.reading import read
from app.rubrics.checks import check_claims

CLAIMS = make_claims(
    [
        Claim("pace", "right", "The ring goes as fast as its slowest link."),
        Claim("pace", "right", "One slow rank holds all others up."),
        Claim("pace", "wrong", "The fastest link sets the pace."),
        Claim("pace", "wrong", "Slow ranks are averaged out by the others."),
        Claim("bytes", "right", "Each rank sends about 2S whatever the number of ranks."),
        Claim("bytes", "half", "It is about 2S."),
        Claim("bytes", "wrong", "Each rank sends nS, more with every rank."),
    ]
)


def said(text: str, verdict: str = "open", **others: str) -> str | None:
    """What comparing says of `pace`, whose evidence is the whole text where its verdict is `met`."""
    reading = read(text)
    standings = {name: Standing(each) for name, each in others.items()}  # type: ignore[arg-type]
    standings["pace"] = Standing(verdict, frozenset(range(len(reading.sentences))))  # type: ignore[arg-type]
    found = compare(standings, CLAIMS.like(reading), reading.sentences).get("pace")
    return found.verdict if found else None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("The slowest link decides how fast the ring goes.", "met"),
        ("The fastest link sets the pace of the ring.", "contradicted"),
        ("It is a mistake to think that the fastest link sets the pace.", None),
        ("I like trees.", None),
    ],
)
def test_a_point_without_evidence_is_what_a_known_claim_says(text: str, verdict: str | None) -> None:
    assert said(text) == verdict


def test_evidence_falls_where_it_is_like_a_wrong_claim_and_nothing_else_speaks_for_the_answer() -> None:
    wrong = "The fastest link sets the pace."
    assert said(wrong, "met") == "contradicted"
    assert said(wrong, "met", bytes="met", steps="met") is None  # an answer that is right elsewhere is believed
    assert said(wrong, "met", bytes="contradicted") == "contradicted"


def test_words_that_no_right_claim_has_earn_half_alone_and_nothing_where_most_is_wrong() -> None:
    reading = read("Pace is what a ring has, and trees have it as well.")

    def opinion(**others: str) -> tuple[str, float] | None:
        standings = {name: Standing(each) for name, each in others.items()}  # type: ignore[arg-type]
        standings["pace"] = Standing("met", frozenset({0}))
        found = compare(standings, CLAIMS.like(reading), reading.sentences, TO_A_RUBRIC).get("pace")
        return (found.verdict, found.credit) if found else None

    assert opinion() == ("met", 0.5)
    assert opinion(bytes="met", steps="met") is None
    assert opinion(bytes="contradicted") == ("unsure", 0.0)


def test_a_wrong_statement_is_held_against_the_one_point_that_it_is_about() -> None:
    claims = make_claims(
        [
            Claim("pace", "right", "The slowest link sets the pace."),
            Claim("pace", "wrong", "The fastest link sets the pace of the ring."),
            Claim("load", "right", "Each link carries as much."),
            Claim("load", "wrong", "The fastest link carries most, and sets what the ring carries."),
        ]
    )
    reading = read("The fastest link sets the pace of the ring.")
    standings = {"pace": Standing("open"), "load": Standing("open"), "bytes": Standing("contradicted")}
    found = compare(standings, claims.like(reading), reading.sentences)
    assert {point: each.verdict for point, each in found.items()} == {"pace": "contradicted"}


def test_how_like_a_statement_is_does_not_depend_on_claims_that_share_no_word_with_it() -> None:
    few = [Claim("a", "right", "The slowest link sets the pace."), Claim("a", "wrong", "Links are equal.")]
    more = [*few, *(Claim("a", "right", f"Word{letter} thing{letter}.") for letter in "abcdef")]
    said = read("The slowest link sets the pace.")
    first, second = (max(each.right for each in make_claims(claims).like(said)["a"]) for claims in (few, more))
    assert second >= first - 0.01


def test_a_sentence_speaks_of_a_point_with_a_word_of_its_own() -> None:
    def speaks(point: str, text: str) -> bool:
        return CLAIMS.speaks_of(point, read(text).sentences[0])

    assert speaks("pace", "No link is slow.")
    assert not speaks("pace", "Each rank sends as much as all others.")
    assert not speaks("bytes", "No link is slow.")
    assert make_claims([Claim("a", "right", "Links are equal.")]).speaks_of("a", read("Not so.").sentences[0])


def test_what_is_denied_is_not_like_what_is_claimed() -> None:
    claims = make_claims([Claim("a", "wrong", "ZeRO shards activations."), Claim("a", "right", "It shards the state.")])

    def most(text: str) -> float:
        return max(each.wrong for each in claims.like(read(text))["a"])

    assert most("ZeRO shards activations.") > 0.8
    assert most("ZeRO does not shard activations.") < 0.35


def test_a_statement_is_more_like_a_wrong_claim_only_beyond_the_right_and_the_half_right() -> None:
    assert Likeness(0, 0, 4, right=0.1, half=0.6, wrong=0.3).excess == pytest.approx(-0.3)


def test_no_claims_say_nothing() -> None:
    assert make_claims([]).like(read("The fastest link sets the pace.")) == {}


def test_every_point_has_claims_and_every_claim_a_point(content: Catalogue) -> None:
    assert list(check_claims(content)) == []


def test_a_point_that_can_be_half_right_says_what_half_of_it_is(content: Catalogue) -> None:
    rubric = content.rubrics["IQ3"]
    silent = rubric.points[0].model_copy(update={"half": None})
    changed = rubric.model_copy(update={"points": (silent, *rubric.points[1:])})
    (found,) = check_claims(replace(content, rubrics={**content.rubrics, "IQ3": changed}))
    assert found[2] == f"{silent.id} says in no `half` what half of it is"
