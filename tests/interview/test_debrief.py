"""What a debrief rates, by which rule, and what was expected of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.grading.levels import NAMES
from app.grading.rubrics.grader import grade
from app.interview.asked import questions_asked
from app.interview.criteria import Criterion, criteria, in_tenths
from app.interview.drawing import draw, values_of
from app.interview.expectation import compare, over_sittings
from app.interview.fixes import all_fixes, fixes
from app.interview.parts import Reaction, parts_of
from app.interview.questions import right_answer, rubric_of
from app.interview.rows import Challenged, JudgedPoint, Pushed, Row
from app.interview.scorecards import Scorecard
from app.interview.scoring import scorecard, with_levels
from app.interview.verdicts import verdict_in_words
from app.reveal.words import sentences
from tests.support.sat import sit

ORDER = ["correctness", "depth", "trade-offs", "structure", "communication"]


def _card(content: Catalogue, words: str, factor: float = 1.0, **more: str) -> Scorecard:
    interview = content.interviews["M9"]
    values = values_of(interview, draw(interview, 1))
    state = 16 * values["billions"] * factor  # type: ignore[operator]
    answers = {
        "q1": f"{state} GB",
        "q1.follow": f"{state / values['ranks']} GB",
        "q2": "memory-alone",
        "q3": words,
        **more,
    }  # type: ignore[operator]
    return scorecard(interview, values, answers, {}, {"q3": Reaction("q3.probe.bytes")} if more else {})


def _rated(card: Scorecard, late: bool = False) -> dict[str, Criterion]:
    found = criteria([replace(row, overlong=late) for row in card.rows])
    assert [each.id for each in found] == ORDER
    return {each.id: each for each in found}


def test_a_criterion_counts_the_points_that_are_its_own(content: Catalogue) -> None:
    rated = _rated(_card(content, "A layer's weights are freed after forward, and backward needs the weights again."))
    # 24 and 10 of the numbers and the choice, and two points of 8 each; the follow-up, 12 for the bytes, the order's 10
    assert (rated["correctness"].score, rated["correctness"].level) == (1.0, "strong hire")
    assert rated["correctness"].rule.startswith("50 of 50 points")
    assert (rated["depth"].score, rated["depth"].rule[:15]) == (round(16 / 38, 4), "16 of 38 points")
    assert (rated["trade-offs"].score, rated["trade-offs"].level) == (0.0, "no hire")
    assert (rated["structure"].score, rated["structure"].level) == (None, None), "nothing of M9 asks for it"
    hardly = scorecard(content.interviews["M7"], values_of(content.interviews["M7"], {}), {}, {})
    assert criteria(hardly.rows)[ORDER.index("structure")].score is None, "one light point decides no level"


def test_what_is_false_and_was_held_on_to_is_seen_in_rating_title_and_fixes(content: Catalogue) -> None:
    false = "ZeRO-2 halves the traffic because a reduce-scatter is half an all-reduce."
    freed = "A layer's weights are freed after forward, and backward needs the weights again."
    card = _card(content, f"{freed} That moves three times the weights, where DDP moves two. {false}")
    rated = _rated(card)["correctness"]
    assert rated.quotes[0].text == false, "first, though all the rest was right"
    assert (rated.score, rated.is_held, rated.level) == (1.0, True, "hire"), "false words cost the level, and no points"
    assert "but for one false claim" in verdict_in_words(card)
    done = fixes(content, content.interviews["M9"], card)
    assert [each.links[0].href for each in done if each.is_false] == ["/study/cards/C67"]
    spared = replace(card, rows=tuple(replace(row, challenged=()) for row in card.rows))
    assert "false" not in verdict_in_words(spared)
    assert not any(each.is_false for each in fixes(content, content.interviews["M9"], spared))


def test_what_a_follow_up_missed_is_learnt_where_its_own_slips_are(content: Catalogue) -> None:
    card = _card(content, "", **{"q1.follow": "9 GB"})
    done = fixes(content, content.interviews["M9"], card)
    assert any(each.links[0].href == "/study/cards/C62" for each in done), [each.links[0].href for each in done]


def test_what_was_said_when_asked_counts_half_and_is_quoted(content: Catalogue) -> None:
    said = "Three times the weights, where DDP moves two."
    rated = _rated(_card(content, "A layer's weights are freed after forward.", **{"q3.probe.bytes": said}))
    assert rated["depth"].score == round((16 + 6) / 38, 4)
    assert said in [each.text for each in rated["depth"].quotes]


def test_a_wrong_number_is_quoted_with_the_right_one(content: Catalogue) -> None:
    (wrong, *_) = _rated(_card(content, "", factor=0.5))["correctness"].quotes
    assert (wrong.text, wrong.kind) == ("State: 24.0 GB, where 48 GB is right", "no")


def test_a_harder_variant_makes_up_for_depth_and_never_more_than_is_lacking(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    values = values_of(interview, draw(interview, 1))
    answers: dict[str, str] = {}
    reactions = {"q1.follow": Reaction("q1.harder")}
    for part in parts_of(interview, reactions):
        answers[part.id] = "Freed." if part.kind == "text" else right_answer(part, values, answers)
    depth = _rated(scorecard(interview, values, answers, {}, reactions))["depth"]
    assert (depth.reached, depth.made_up, depth.points) == (26, 2, 38), "a bar shows what the points are"
    answers["q3"] = interview.questions[2].exemplar or ""
    assert _rated(scorecard(interview, values, answers, {}, reactions))["depth"].made_up == 0


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_criteria_add_up_to_the_score(content: Catalogue, factor: float) -> None:
    """Also one that is hardly asked for; what a bar shows is full only where nothing was lost."""
    sitting = sit(content, "M7")
    while (part := sitting.next()) is not None:
        words = "In forward each weight is multiplied and added once: 2N FLOPs."
        right = right_answer(part, sitting.values, sitting.own) if part.kind != "text" else words
        sitting.give(part, right if factor == 1 or part.kind != "number" else "1")
    card = sitting.card()
    shared = [each for each in criteria(card.rows) if each.id != "communication" and each.points]
    assert sum(each.points for each in shared) == pytest.approx(card.points)
    assert sum(each.reached for each in shared) == pytest.approx(card.reached, abs=0.01)
    tenths = in_tenths([each.reached for each in shared])
    assert round(sum(map(float, tenths)), 1) == round(card.reached, 1)
    assert all((each.percent == 100) == (each.reached == pytest.approx(each.points)) for each in shared)


def test_who_gives_another_reason_and_keeps_to_it_is_told_so_and_cannot_tick_it_in_full(content: Catalogue) -> None:
    said = (
        "A layer's weights are freed after its forward. They are fetched once more on the way back because the loss has"
        " to be computed on the complete model. That moves 3 times the weights in all, where DDP moves 2."
    )
    reply = "They are there for the loss, which is a function of all of the model."
    sitting = sit(content, "M9")
    while (part := sitting.next()) is not None:
        words = said if part.id == "q3" else reply if part.id == "q3.probe.needed" else "No idea."
        sitting.give(part, words if part.kind == "text" else right_answer(part, sitting.values, sitting.own))
    row = sitting.card().row("q3")
    point = next(each for each in row.rubric if each.id == "needed")
    assert (point.heard, point.otherwise, point.is_open, point.counts) == ("unsure", True, False, 0)
    assert row.is_doubtful
    shown = questions_asked(sitting.interview, sitting.card(), {}, sitting.reactions)[2].parts[0]
    assert shown.exchanges[0].verdict == "Another reason than this one"
    assert shown.marked is not None
    note = next(each.finding for each in shown.marked.notes if each.finding.id == "needed")
    assert (note.verdict, note.reached) == ("Another reason than this one", 0)
    fix = next(each for each in all_fixes(content, sitting.interview, sitting.card()) if "again" in each.title)
    assert fix.title == "Check your view of why backward needs the weights again"
    judged = scorecard(
        sitting.interview, sitting.values, sitting.given, {"q3": {"needed": True}}, sitting.reactions
    ).row("q3")
    assert next(each.counts for each in judged.rubric if each.id == "needed") == 0.5


def test_what_was_wrong_is_not_told_by_a_sentence_that_is_right() -> None:
    right = JudgedPoint("c", "C.", 8, None, "met", 1.0, ("With one micro-step both send 2S.",))
    wrong = JudgedPoint("a", "A.", 1, None, "unsure", evidence=(right.evidence[0], "With more it costs no more."))
    alone = JudgedPoint("b", "B.", 1, None, "contradicted", evidence=right.evidence)
    row = Row("q3", "Explain", "text", "…", 16.0, "0 of 2", 0.0, rubric=(right, wrong, alone))
    assert row.told_by(wrong) == "With more it costs no more."
    assert row.told_by(alone) == ""


def test_a_title_counts_the_sentences_that_are_marked_as_wrong() -> None:
    """Each once: two points may rest on one, and what was taken back stands no longer."""
    denied = JudgedPoint("a", "A.", 1, None, "contradicted", evidence=("Wrong.", "Also wrong."))
    again = JudgedPoint("b", "B.", 1, None, "contradicted", evidence=("Wrong.",))
    met = JudgedPoint("c", "C.", 8, None, "met", 1.0, ("Right.",))
    put_right = replace(again, id="d", evidence=("Was wrong.",), pushed=0.5)
    row = Row(
        "q", "Q", "text", "Wrong. Also wrong. Right.", 11.0, "1 of 4", 8.0, rubric=(denied, again, met, put_right)
    )
    assert row.wrong_words == ("Wrong.", "Also wrong.")
    assert verdict_in_words(Scorecard((row,))) == "good in words but for two things the wrong way round"
    false = Challenged("f", "it", "Wrong.", "stood by", "So.", "Learn", "C67")
    known = replace(row, rubric=(met,), challenged=(false, replace(false, quote="Back.", outcome="taken back")))
    assert verdict_in_words(Scorecard((known,))) == "full in words but for one false claim"


@pytest.mark.parametrize(
    ("words", "late", "passed"),
    [
        (
            "A layer's weights are freed after forward, backward needs the weights again; "
            "leaving the layers gathered between forward and backward avoids it.",
            False,
            4,
        ),
        (
            "A layer's weights are freed after forward, backward needs the weights again; "
            "leaving the layers gathered between forward and backward avoids it.",
            True,
            3,
        ),
        ("The weights of a layer are freed after its forward " + "and so on " * 20, False, 0),
        ("I would tune it. It should work well.", False, 0),
        ("", False, 0),
    ],
)
def test_communication_is_what_anybody_can_see(content: Catalogue, words: str, late: bool, passed: int) -> None:
    found = _rated(_card(content, words), late)["communication"]
    assert found.rule.startswith(f"{passed} of 4 over 1 answer in words" if passed else "Hardly anything"), found.rule
    assert (sum(held for _, held, _ in found.facts), found.reached, found.points) == (passed, passed, 4)


def test_expectations_are_compared(content: Catalogue) -> None:
    same, high, low = compare("hire", "hire"), compare("strong hire", "lean no hire"), compare("no hire", "hire")
    assert same
    assert high
    assert low
    assert (same.says, high.says) == ("You expected hire, and so it is", "You expected strong hire, 2 levels too high")
    assert low.says == "You expected no hire, 2 levels too low"
    assert compare("", "hire") is compare(None, "hire") is compare("hire", None) is None
    assert over_sittings([same]) == ""
    assert over_sittings([same, high, high]).endswith("you expected the right level once and too high a one twice.")


def test_an_answer_in_words_stands_beside_the_same_at_each_level(content: Catalogue) -> None:
    """Each is graded as the level it stands for, and what is left out of the full one is what is lighter."""
    interview = content.interviews["M5"]
    values = values_of(interview, draw(interview, 1))
    answers = {"open": "I need tokens, sequence length and the deadline first."}
    card = with_levels(scorecard(interview, values, answers, {}), interview, values, answers, {})
    row = card.row("open")
    assert [level for level, _ in row.at_levels] == list(NAMES)
    part = parts_of(interview)[0]
    rubric = rubric_of(part, values)
    for level, text in row.at_levels:
        assert grade(rubric, text).level == level
    full, hire, lean, weak = (set(sentences(text)) for _, text in row.at_levels)
    assert full > hire > lean
    assert not weak & full
    assert row.level == "no hire"
    assert card.row("commit").at_levels == (), "what was not answered has none"
    assert Scorecard.from_json(card.to_json()).row("open").at_levels == row.at_levels


def test_each_loss_in_words_has_a_fix_and_what_is_near_is_to_be_said_outright(content: Catalogue) -> None:
    near = JudgedPoint("a", "Near.", 12, None, "unsure", topic="the bytes")
    missed = JudgedPoint("b", "Missed.", 4, None, "missed")
    row = Row("q3", "Explain", "text", "It moves.", 16.0, "0 of 2", 0.0, rubric=(near, missed))
    outright, fix = fixes(content, content.interviews["M9"], Scorecard((row,)))
    assert (outright.title, outright.points) == ("Say the bytes outright", 12.0)
    assert (fix.title, fix.points) == ("Hold “Explain” beside a full answer", 4.0)
    assert fix.says == (
        "None of its two points was heard in full. If you did say them, say each in one plain sentence next time."
    )
    absent = replace(missed, topic="the price", near_in=())
    _, fix = fixes(content, content.interviews["M9"], Scorecard((replace(row, rubric=(near, absent)),)))
    assert (fix.title, fix.points) == ("Cover the price", 4.0)
    assert fix.says == "Nothing near it was heard in “Explain”: Missed."
    said = "FSDP moves what DDP moves."
    denied = replace(near, heard="contradicted", evidence=(said,))
    (fix,) = fixes(content, content.interviews["M9"], Scorecard((replace(row, rubric=(denied,)),)))
    assert (fix.title, fix.points) == ("Check your view of the bytes", 16.0)
    assert fix.says == f"In “Explain” you said “{said[:-1]}”. That was heard as the opposite of this: Near."
    kept = replace(row, rubric=(denied, absent), pushed=(Pushed("q3.probe.a", "", "It does.", "contradicted", "a"),))
    held, cover = fixes(content, content.interviews["M9"], Scorecard((kept,)))
    assert (held.title, held.points) == ("Correct your view of the bytes", 12.0)
    assert "kept to it when you were asked" in held.says
    assert (cover.title, cover.points) == ("Cover the price", 4.0)


def test_a_good_rating_is_proved_by_what_was_right_and_words_come_once(content: Catalogue) -> None:
    """Two criteria do not quote one sentence where there is another; a choice is told of, not quoted."""
    one, other = "Each replica gets 16 micro-batches.", "It costs a third more FLOPs;"
    points = [
        JudgedPoint("a", "A.", 1, None, "met", 1.0, (one,), criterion="depth"),
        JudgedPoint("b", "B.", 2, None, "met", 1.0, (one,), criterion="trade-offs"),
        JudgedPoint("c", "C.", 1, None, "met", 1.0, (other,), criterion="trade-offs"),
    ]
    words = Row("w", "Why", "text", f"{one} {other}", 8.0, "3 of 3", 8.0, rubric=tuple(points))
    late = Row("n.follow", "N, follow-up", "number", "3", 1.0, "corrected", 0.5, key="4")
    gap = Row("g", "The gap", "choice", "x", 4.0, "right", 4.0, said_text="Offer a choice.", criterion="trade-offs")
    rated = {each.id: each for each in criteria((words, late, gap))}
    assert [each.text for each in rated["depth"].quotes] == [one], "and not the wrong number"
    texts = [(each.text, each.is_words) for each in rated["trade-offs"].quotes]
    assert texts[0] == ("It costs a third more FLOPs", True)
    assert (one, True) not in texts
    assert texts[1] == ("The gap: chose “Offer a choice”", False)


def test_notes_are_numbered_through_a_question_and_a_met_point_shows_its_words(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    said, reply = "A layer's weights are freed after forward.", "Three times the weights, where DDP moves two."
    reactions = {"q3": Reaction("q3.probe.bytes")}
    card = _card(content, said, **{"q3.probe.bytes": reply})
    (asked,) = [each for each in questions_asked(interview, card, {}, reactions) if each.number == 3]
    (part,) = asked.parts
    assert part.marked is not None
    replied = part.exchanges[0].marked
    assert replied is not None
    by_point = {each.finding.id: each.number for each in part.marked.notes}
    assert replied.notes[0].number == by_point["bytes"] == part.marked.last_number, "the point that it says has it too"
    row = card.row("q3")
    lost = replace(row.rubric[0], evidence=("It stands nowhere in it.",))
    (again,) = questions_asked(interview, Scorecard((replace(row, rubric=(lost, *row.rubric[1:])),)), {}, reactions)
    note = next(each.finding for each in again.parts[0].marked.notes if each.finding.id == lost.id)  # type: ignore[union-attr]
    assert note.verdict == "Met"
    assert note.why.startswith("It takes more than one sentence of yours.")
