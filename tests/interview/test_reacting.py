"""What the interviewer asks on account of an answer: the figures are the candidate's own, and a reply counts half."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.interview_schemas import ProbedPoint
from app.content.live import Expressions
from app.grading.questions import read_number
from app.grading.rubrics.grader import grade
from app.interview import scorecards
from app.interview.parts import Part, Reaction, known_to, parts_of
from app.interview.probe_checks import probe_findings
from app.interview.prompts import IS_IT_ALL, SAY_IT_OUTRIGHT, prompt
from app.interview.questions import configuration_of, options_of, right_answer, rubric_of
from app.interview.reacting import MOST_PROBES, next_point
from app.interview.replies import hear_reply, heard_in_replies
from app.theory.mesh import AXES
from app.theory.planner import estimate, parse_estimate_request
from app.units import SCALES, bytes_text, scaled
from labs.spec import SpecError
from tests.support.sat import Sat, sit
from tests.support.shipped import shipped


def _times(text: str, unit: str, factor: float) -> str:
    return f"{read_number(text, unit) * factor / SCALES[unit][1]!r} {unit}"


def _own_figures(sat: Sat, part: Part) -> list[tuple[str, list[str]]]:
    """The candidate's own numbers that a prompt names, each with the ways in which it may be written."""
    names = [each.id for each in part.builds_on if each.kind == "number" and f"said.{each.id} |" in part.source.prompt]
    if part.builds_on_own and "answer |" in part.source.prompt:
        names.append(part.question.id)
    found = []
    for name in names:
        unit = next(each.unit for each in sat.interview.questions if each.id == name) or ""
        value = read_number(sat.own[name], unit)
        found.append((name, [scaled(value, unit, digits) for digits in (2, 3, 4)] + [scaled(value, unit)]))
    return found


@settings(max_examples=15)
@given(data=st.data())
def test_every_figure_said_is_the_candidates_own_or_follows_from_it(data: st.DataObject) -> None:
    sat = sit(shipped(), data.draw(st.sampled_from([*(f"M{n}" for n in range(1, 11)), "T1", "T2"])))
    while part := sat.next():
        if part.kind == "text":
            sat.give(part, "I would look at it.")
            continue
        right = right_answer(part, sat.values, sat.own)
        unit = part.source.unit or ""
        if part.kind == "givens":
            answer = ", ".join(
                data.draw(st.sets(st.sampled_from([each.id for each in part.question.givens]), min_size=1))
            )
        elif part.kind == "layout":
            degrees = st.tuples(*(st.sampled_from([1, 2, 3, 4, 8, 16, 64]) for _ in AXES))
            placed = zip(data.draw(st.permutations(AXES)), data.draw(degrees), strict=True)
            known = [each.said for each in part.question.layouts]
            answer = data.draw(st.sampled_from([*known, ", ".join(f"{axis} {degree}" for axis, degree in placed)]))
        elif part.kind == "order":
            answer = ", ".join(data.draw(st.permutations([each.id for each in part.question.items])))
        elif part.kind in ("choice", "set"):
            ids = [each.id for each in options_of(part.question)]
            most = 1 if part.kind == "choice" else len(ids)
            answer = ", ".join(sorted(data.draw(st.sets(st.sampled_from(ids), min_size=1, max_size=most))))
        elif part.kind == "configuration":
            fields = configuration_of(part, known_to(part, sat.values, sat.own) or {}).fields
            answer = ", ".join(f"{name} {data.draw(st.sampled_from(tried))}" for name, tried in fields.items())
        elif part.role == "again":
            stays = data.draw(st.booleans())
            answer = sat.given[part.id.removesuffix(".again")] if stays else right
        else:
            answer = _times(right, unit, data.draw(st.sampled_from([1.0, 1.0, 0.5, 2.0, 7.3, 0.021, 16.0])))
        figures = _own_figures(sat, part) if part.role in ("asked", "harder") else []
        sat.give(part, answer)
        for name, written in figures:
            assert any(each in sat.asked[part.id] for each in written), (part.id, name, written, sat.asked[part.id])
        if part.role == "again" and part.kind == "number":
            first = read_number(sat.given[part.id.removesuffix(".again")], unit)
            assert f"“You said {scaled(first, unit)}." in sat.asked[part.id]
        if part.role == "again" and part.kind == "configuration":
            _comes_to_what_theory_says(sat, part)
        assert part.role != "again" or part.id not in sat.reactions, "an answer is questioned once"
    _adds_up(sat)


def _comes_to_what_theory_says(sat: Sat, part: Part) -> None:
    """Every figure that is said of a plan is the planner's of that plan."""
    question = configuration_of(part, known_to(part, sat.values, sat.own) or {})
    chosen = question.read(sat.given[part.id.removesuffix(".again")])
    assert not isinstance(chosen, str)
    degrees = [int(chosen[name]) for name in ("data", "tensor", "pipeline")]
    said, cluster = sat.asked[part.id], question.plan["cluster"]
    plan = {**question.plan, "parallel": {**question.plan["parallel"], **chosen}}
    plan["training"] = {**plan["training"], "micro_batch": plan["parallel"].pop("micro_batch")}
    if prod(degrees) != 8 * cluster["nodes"]:
        assert f"takes {prod(degrees):,} GPUs. " in said
        return
    try:
        made = estimate(parse_estimate_request(plan))
    except SpecError:
        assert " Look at " in said
        return
    figures = [bytes_text(made.memory.per_rank_bytes.total)]
    if made.memory.fits:
        assert made.time.step_seconds is not None
        terms = ("compute", "recompute", "bubble", "exposed_communication", "optimizer")
        spent = {scaled(getattr(made.time, f"{term}_seconds"), "s", 3) for term in terms}
        figures = [scaled(made.time.step_seconds, "s", 3)]
        assert any(f"takes {each}." in said for each in spent)
    assert figures[0] in said


def _adds_up(sat: Sat) -> None:
    card = sat.card()
    assert card.points == pytest.approx(sum(each.points for each in sat.interview.questions))
    for row in card.rows:
        again = sat.given.get(f"{row.id}.again")
        assert 0 <= row.reached <= row.points
        if row.kind == "givens":
            assert row.lost == pytest.approx(min(row.points, sum(each.price for each in row.givens)), abs=1e-3)
        assert row.kind in ("text", "givens") or (again is not None) == bool(row.pushed)
        if row.verdict == "corrected":
            assert again is not None
            assert row.reached >= row.points / 2
        assert len(row.pushed) <= MOST_PROBES


def test_a_wrong_number_is_questioned_before_anything_builds_on_it(content: Catalogue) -> None:
    sat = sit(content, "M9")
    right = right_answer(parts_of(sat.interview)[0], sat.values, {})
    sat.give(parts_of(sat.interview)[0], _times(right, "GB", 1 / 8))
    again = sat.next()
    assert again is not None
    assert (again.role, again.points) == ("again", 12.0)
    follow = next(each for each in parts_of(sat.interview, sat.reactions) if each.is_follow_up and each.role == "asked")
    assert prompt(follow, sat.values, sat.own) is None, "not before it is settled"
    sat.give(again, right)
    assert "What else does training keep for a parameter?" in sat.asked[again.id]
    assert right not in sat.asked[again.id]
    assert f"You said {right}" in (prompt(follow, sat.values, sat.own) or Markup()).striptags()
    row = sat.card().row("q1")
    assert (row.verdict, row.reached, row.pushed[0].verdict) == ("corrected", 12.0, "right")
    assert (row.slip, row.cure) == ("Weights only", "C27"), "the slip is named all the same"


def test_one_who_stays_wrong_goes_on_with_the_own_number(content: Catalogue) -> None:
    sat = sit(content, "M9")
    for _ in range(2):
        part = sat.next()
        assert part is not None
        sat.give(part, "100 GB")
    assert "bytes for each of" in sat.asked["q1.again"]
    follow = sat.next()
    assert follow is not None
    assert "You said 100 GB" in (prompt(follow, sat.values, sat.own) or Markup()).striptags()
    assert sat.card().row("q1").reached == 0


def test_a_heavy_point_that_was_not_said_is_asked_for_and_counts_half(content: Catalogue) -> None:
    sat = sit(content, "M9")
    text = next(each for each in parts_of(sat.interview) if each.kind == "text")
    sat.give(text, "A layer's weights are freed after forward, and backward needs the weights again.")
    first = _probe(sat)
    assert first.id == "q3.probe.bytes", "the heaviest"
    sat.give(first, "Three times the weights, where DDP moves two.")
    second = _probe(sat)
    assert second.id == "q3.probe.avoid"
    sat.give(second, "You could use a faster network.")
    assert "q3.probe.avoid" not in sat.reactions, "two are enough"
    row = sat.card().row("q3")
    credit = {each.id: each.counts for each in row.rubric}
    assert credit == {"freed": 1.0, "needed": 1.0, "bytes": 0.5, "avoid": 0.0, "price": 0.0}
    assert row.reached == pytest.approx(40 * (2 + 2 + 1.5) / 10)
    assert next(each for each in row.rubric if each.id == "bytes").reply == (
        "Three times the weights, where DDP moves two.",
    )
    assert scorecards.Scorecard.from_json(sat.card().to_json()) == sat.card()


def test_what_the_answer_says_half_of_and_a_reply_the_other_half_is_heard_together(content: Catalogue) -> None:
    sat = sit(content, "M5")
    commit = next(each for each in parts_of(sat.interview) if each.id == "commit")
    rubric = rubric_of(commit, {**sat.values, "said": {"state": 1e9, "bubble": 0.1}})
    point = next(each for each in commit.question.rubric if each.id == "layout")
    probe = replace(commit, id="commit.probe.layout", role="probe", point=point)
    halves = {"commit": "Tensor 8 and data 8 it is.", probe.id: "About 6 GB of state on one GPU."}
    assert all(not grade(rubric, each).points[0].credit for each in halves.values())
    assert heard_in_replies(rubric, [probe], sat.values, halves)["layout"].credit


def _probe(sat: Sat) -> Part:
    return next(
        each for each in parts_of(sat.interview, sat.reactions) if each.role == "probe" and each.id not in sat.given
    )


@pytest.mark.parametrize(
    ("said", "opening"),
    [
        (
            "I like this question. Let us talk about something else.",
            "Let me bring you back to my question.",
        ),
        (
            "I would buy faster cards. That is all there is to say.",
            "I heard: <q>I would buy faster cards</q>. Let me bring you back to my question.",
        ),
        (
            "Each device drops the reassembled tensors of a block again. It is a nice idea, I think.",
            "You said: <q>Each device drops the reassembled tensors of a block again</q>. How many bytes",
        ),
        (
            "So basically the weights of a layer are freed after forward, which is nice.",
            "You said: <q>the weights of a layer are freed after forward, which is nice</q>. How many bytes",
        ),
    ],
)
def test_who_strays_is_brought_back_and_what_is_about_the_question_is_taken_up_in_any_words(
    content: Catalogue, said: str, opening: str
) -> None:
    sat = sit(content, "M9")
    sat.give(next(each for each in parts_of(sat.interview) if each.kind == "text"), said)
    assert f"“{opening}" in str(prompt(_probe(sat), sat.values, sat.own))


@pytest.mark.parametrize(
    ("reply", "noted"),
    [
        ("Three times the weights, where DDP moves two.", "“You said: <q>Three times the weights</q>. Good. How"),
        ("Four times the weights, I think.", "“You said: "),
        ("More, I think.", "“You said: "),
    ],
)
def test_the_second_question_goes_on_from_the_first_reply_and_other_words(
    content: Catalogue, reply: str, noted: str
) -> None:
    sat = sit(content, "M9")
    text = next(each for each in parts_of(sat.interview) if each.kind == "text")
    sat.give(text, "The gathered weights of a layer are freed after its forward. Backward gathers weights again.")
    first = _probe(sat)
    sat.give(first, reply)
    asked = [str(prompt(each, sat.values, sat.own)) for each in (first, _probe(sat))]
    assert noted in asked[1]
    told = [each.reaction.picked or each.reaction.noted for each in (first, _probe(sat)) if each.reaction]
    assert all(words and f"You said: <q>{words}</q>" in said for words, said in zip(told, asked, strict=True))
    assert told[0] != told[1]


def test_what_may_have_been_said_in_other_words_is_asked_for_last_and_as_that(content: Catalogue) -> None:
    sat = sit(content, "M9")
    text = next(each for each in parts_of(sat.interview) if each.kind == "text")
    near = "For the way back it walks from the last page to the first, and has to collect this page of the layer again."
    sat.give(text, f"Its weights are freed after forward. {near} Three times the weights go out, where DDP moves two.")
    probe = _probe(sat)
    assert probe.id == "q3.probe.avoid", "that was not said at all"
    sat.give(probe, "I do not know.")
    row = sat.card().row("q3")
    assert (row.pushed[0].verdict, row.pushed[0].evidence) == ("missed", ())
    if probe.id in sat.reactions:
        second = _probe(sat)
        assert second.reaction is not None
        assert second.reaction.is_near
        assert f"You said: <q>{near.rstrip('.')}</q>. {SAY_IT_OUTRIGHT}" in str(prompt(second, sat.values, sat.own))


def test_a_reply_in_the_words_of_the_answer_is_not_quoted_twice(content: Catalogue) -> None:
    sat = sit(content, "M9")
    text = next(each for each in parts_of(sat.interview) if each.kind == "text")
    said = ("The gathered weights of a layer are freed after its forward", "Backward gathers weights again")
    sat.give(text, ". ".join(said))
    first = _probe(sat)
    assert first.reaction
    left = next(each for each in said if each != first.reaction.picked)
    sat.give(first, f"{left}.")
    asked = str(prompt(_probe(sat), sat.values, sat.own))
    assert asked.count(left) == 1
    assert first.reaction.picked not in asked


def test_a_number_that_was_given_before_is_recognised(content: Catalogue) -> None:
    sat = sit(content, "T2")
    asked = {each.id: each for each in parts_of(sat.interview)}
    state = right_answer(asked["sp1-a"], sat.values, {})
    for part in ("sp1-a", "sp1-c"):
        sat.give(asked[part], state)
    again = next(each for each in parts_of(sat.interview, sat.reactions) if each.id == "sp1-c.again")
    asked_again = str(prompt(again, sat.values, sat.own))
    assert "That was your number for State. That is 16 bytes a parameter on each GPU." in asked_again


def test_who_said_the_opposite_is_quoted(content: Catalogue) -> None:
    sat = sit(content, "M2")
    hang = next(each for each in parts_of(sat.interview) if each.id == "hang")
    sat.give(hang, "Rank 3 is missing. I would raise the timeout, a longer timeout fixes the hang.")
    reaction = Reaction("hang.probe.not-timeout", quote="A longer timeout fixes the hang.")
    sat.reactions["hang"] = reaction
    assert "<q>A longer timeout fixes the hang</q>. Let me stay there." in str(prompt(_probe(sat), sat.values, sat.own))


def test_nobody_is_asked_for_what_the_quote_says_as_if_it_had_not_been_said(content: Catalogue) -> None:
    sat = sit(content, "M8")
    while (part := sat.next()) is not None and part.kind != "text":
        sat.give(part, right_answer(part, sat.values, sat.own))
    assert part
    sat.give(part, part.question.weak or "")
    asked = str(prompt(_probe(sat), sat.values, sat.own))
    assert f"<q>The dashboard should show GPU utilisation</q>. {IS_IT_ALL} What is on the dashboard?" in asked


def test_a_full_answer_is_not_probed_and_a_right_number_gets_the_harder_variant_last(content: Catalogue) -> None:
    sat = sit(content, "M9")
    for role in ("asked", "asked", "harder"):
        part = sat.next()
        assert part is not None
        assert part.role == role
        sat.give(part, right_answer(part, sat.values, sat.own))
    text = next(each for each in parts_of(sat.interview) if each.kind == "text")
    sat.give(text, text.question.exemplar or "")
    assert "q3" not in sat.reactions
    card = sat.card()
    assert (card.row("q1.harder").verdict, card.row("q1.harder").points, card.points) == ("right", 0.0, 100)


def test_what_the_content_lost_is_not_asked(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    lost = {"q3": Reaction("q3.probe.lost"), "q2": Reaction("q2.harder")}
    assert [each.id for each in parts_of(interview, lost)] == [each.id for each in parts_of(interview)]


def test_a_reply_is_heard_as_the_end_of_its_question(content: Catalogue) -> None:
    sat = sit(content, "M4")
    part = next(each for each in parts_of(sat.interview) if each.id == "mlp")
    rubric = rubric_of(part, known_to(part, sat.values, {}) or {})
    assert hear_reply(rubric, "column", "Which way is A cut?", "By columns.").evidence == ("By columns.",)
    assert not hear_reply(rubric, "column", "Which way is A cut?", "By rows.").credit


def test_the_check_finds_probes_that_lead_nowhere(content: Catalogue) -> None:
    sat = sit(content, "M9")
    part = next(each for each in parts_of(sat.interview) if each.kind == "text")
    known, exemplar = known_to(part, sat.values, {}) or {}, part.question.exemplar or ""
    full = " ".join(Expressions(known).fill(exemplar).split())
    assert not list(probe_findings(part, known, full))
    given_away = {**part.question.rubric[0].model_dump(), "ask": "Are the weights of a layer freed after forward?"}
    heavy = {**part.question.rubric[4].model_dump(), "ask": "What is the price?"}  # of weight 1: others come first
    rubric = (ProbedPoint.model_validate(given_away), *part.question.rubric[1:4], ProbedPoint.model_validate(heavy))
    spoilt = replace(part, question=part.question.model_copy(update={"rubric": rubric}))
    findings = " ".join(probe_findings(spoilt, known, full))
    assert "freed gives itself away" in findings
    assert "nobody is asked for price" in findings


def test_heavy_points_need_a_question_and_light_ones_are_not_asked_for() -> None:
    with pytest.raises(ValidationError, match="weight 2 or more needs ask"):
        ProbedPoint.model_validate({"id": "a", "topic": "a thing", "text": "A.", "weight": 2, "met": ["x"]})
    light = ProbedPoint.model_validate({"id": "a", "topic": "a thing", "text": "A.", "ask": "A?", "met": ["x"]})
    heavy = light.model_copy(update={"id": "b", "weight": 2})
    assert next_point([light, heavy], (), ()) is heavy
    assert next_point([light, heavy], (), {"b"}) is None
