"""The row of an answer in words: what was heard in it, unasked and when it was asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.content.live import Expressions
from app.content.markdown import render_inline
from app.grading.rubrics.grader import MUCH_IS_WRONG, TERMS_IN_A_ROW, Rubric
from app.grading.rubrics.points import PointGrade, Verdict
from app.interview.board_doubts import board_doubt
from app.interview.challenging import STOOD_BY, TAKEN_BACK, WITHDRAWN, Held, asked_of, heard_reply, held_in, what_is_so
from app.interview.discounting import hear_what_is_left
from app.interview.going_back import replaced_before, said_again
from app.interview.hearing import says_as_before, wants_a_figure
from app.interview.keeping import TURNED, nearest_in
from app.interview.nearness import Subjects, subjects_of
from app.interview.parts import PUSHED_SHARE, Part, Values, contradicted_by, known_to
from app.interview.questions import question_of, rubric_of
from app.interview.replies import Reply, denied_in, heard_in_replies
from app.interview.replying import is_an_answer, stands_by, takes_back
from app.interview.rows import NO_ANSWER, NOT_ASKED, Challenged, JudgedPoint, Pushed, Row
from app.interview.to_grade import ToGrade
from app.reveal.words import stands_in


def heard_row(row: Row, part: Part, known: Values, sitting: ToGrade) -> Row:
    """The row of an answer in words: a share of the points for each point of the rubric that was heard in it, half of
    it for one that was said only when it was asked for."""
    judged = sitting.judged.get(part.id)
    exemplar = str(render_inline(part.question.exemplar or "", Expressions(known)))
    rubric = rubric_of(part, known)
    false = held_in(part, row.said, known)
    heard = hear_what_is_left(rubric, part.question.rubric, row.said, false)
    found = heard if judged is None else hear_what_is_left(rubric, part.question.rubric, row.said, false, judged)
    probes = sitting.pushed(part)
    challenged = _challenged(part, false, probes, known, sitting)
    against = {point: each.quote for each in challenged for point in each.contradicts}
    taken_back = {
        point: Reply("met", 1.0, (sitting.said(probe),), (probe.id,))
        for probe in probes
        for each in challenged
        if probe.challenge and each.id == probe.challenge.id and each.outcome == TAKEN_BACK
        for point in each.contradicts
    }
    replies = {
        **heard_in_replies(rubric, probes, known, sitting.answers, denied_in(heard.points)),
        **_said_of_own_layout(part, sitting),
        **taken_back,
    }
    kept = {
        each.point.id
        for each in probes
        if each.point and each.reaction and each.reaction.quote and _is_denied(replies.get(each.point.id))
    }
    questioned = {each.point.id: each.reaction.quote for each in probes if each.point and each.reaction}
    repeated = {each.point.id for each in probes if each.point and says_as_before(sitting.said(each))}
    unsure = {each.id for each in heard.points if each.verdict == "unsure"} - kept - against.keys()
    otherwise = {
        each.point.id
        for each in probes
        if each.point and each.point.id in unsure and _explains_otherwise(each, replies, rubric, sitting)
    }
    subjects = None if part.question.own_story else subjects_of(part, known)
    points = tuple(
        _judged_point(
            JudgedPoint(
                each.id,
                _plain(each.text, known),
                each.weight,
                None if judged is None else bool(judged.get(each.id)),
                before.verdict,
                min(after.credit, PUSHED_SHARE) if each.id in otherwise else after.credit,
                after.evidence,
                each.half or "",
                criterion=each.criterion,
                topic=each.topic,
                near_in=_near_in(each.id, part, probes, subjects, sitting),
                wants_figure=0 < after.credit < 1 and wants_a_figure(each.shown_by, after.evidence),
                otherwise=each.id in otherwise,
            ),
            part,
            replies.get(each.id),
            _pushed_credit(each.id, replies, before, repeated),
        )
        for each, before, after in zip(
            part.question.rubric,
            _held_against(heard.points, against, kept, questioned),
            _held_against(found.points, against, kept, questioned),
            strict=True,
        )
    )
    outcomes = {each.id: each.outcome for each in challenged}
    near = {each.id for each in points if each.heard == "unsure"}
    pushed = tuple(_probed(probe, replies, outcomes, near, sitting) for probe in probes)
    row = replace(row, rubric=points, exemplar=exemplar, pushed=pushed, challenged=challenged)
    if not row.said:
        return replace(row, verdict=NO_ANSWER)
    met = sum(each.credit > 0 for each in points)
    late = sum(each.counts > each.credit for each in points)
    verdict = f"{met} of {len(points)} points heard" + (f", {late} more when asked" if late else "")
    weights = sum(each.weight for each in points)
    reached = part.points * sum(each.weight * each.counts for each in points) / weights
    gained = part.points * sum(each.weight * (each.counts - each.credit) for each in points) / weights
    changed = list(replaced_before(part, sitting.parts, sitting.answers, sitting.reactions))
    back = said_again(row.said, changed)
    said_first = (back.says if back else "", board_doubt(part.id, sitting.answers, rubric))
    notes = (*_without_caps(found.notes), *filter(None, said_first))
    return replace(row, verdict=verdict, reached=reached, gained=gained, notes=notes)


def _without_caps(notes: Sequence[str]) -> Iterator[str]:
    """What a grade notes, without how it caps the level of a rubric: an interview's points give its own."""
    for note in notes:
        if note.startswith(TERMS_IN_A_ROW):
            yield f"{TERMS_IN_A_ROW}."
        elif not note.startswith(MUCH_IS_WRONG):
            yield note


def _judged_point(point: JudgedPoint, part: Part, reply: Reply | None, pushed: float) -> JudgedPoint:
    """`point` as it was heard in the answer to `part`, with what a reply makes of it, and whose words carry it."""
    if point.credit:
        return replace(point, said_in=(part.id,))
    if reply is None:
        return point
    said_in = reply.parts if reply.credit and pushed else ()
    return replace(point, pushed=pushed, reply=reply.evidence, said_in=said_in)


def _near_in(
    point: str, part: Part, probes: Sequence[Part], subjects: Subjects | None, sitting: ToGrade
) -> tuple[str, ...] | None:
    """The parts whose words may be about a point; None where that cannot be known. A reply of some length to what asks
    for it may be, in any words."""
    if subjects is None:
        return None
    asked = [each.id for each in probes if each.point and each.point.id == point]
    return tuple(
        each.id
        for each in (part, *probes)
        if (said := sitting.said(each)) and (subjects.is_near(point, said) or (each.id in asked and is_an_answer(said)))
    )


def _held_against(
    points: Sequence[PointGrade],
    against: Mapping[str, str],
    kept: Collection[str],
    questioned: Mapping[str, str],
) -> Iterator[PointGrade]:
    """Points as they were heard; those that what was said is `against` are not. What was unsure and its reply has
    `kept` was the opposite; that is quoted as it was `questioned`."""
    for each in points:
        if each.id in against:
            yield PointGrade(each.id, "contradicted", 0.0, (against[each.id],))
        elif each.verdict == "contradicted" or (each.verdict == "unsure" and each.id in kept):
            quote = questioned.get(each.id)
            yield PointGrade(each.id, "contradicted", 0.0, (quote,) if quote else each.evidence)
        else:
            yield each


def _explains_otherwise(probe: Part, replies: Mapping[str, Reply], rubric: Rubric, sitting: ToGrade) -> bool:
    """Whether who was asked about words that lean away from a point goes on in words that do not lean to it."""
    assert probe.point is not None, "asked of probes alone"
    said, reply = sitting.said(probe), replies.get(probe.point.id)
    was_doubted = bool(probe.reaction and probe.reaction.quote)
    if not was_doubted or not is_an_answer(said) or _is_denied(reply) or (reply and reply.credit):
        return False
    return nearest_in(rubric, probe.point.id, said).lean <= TURNED


def _is_denied(reply: Reply | None) -> bool:
    return reply is not None and reply.verdict == "contradicted"


def _challenged(
    part: Part, false: Iterable[Held], probes: Sequence[Part], known: Values, sitting: ToGrade
) -> tuple[Challenged, ...]:
    """What an answer says that is false, with what became of what was asked about."""
    asked = {each.challenge.id: each for each in probes if each.challenge}
    by_quote = {each.reaction.quote: each for each in asked.values() if each.reaction}
    found = []
    for held in false:
        challenge, outcome, reply = held.challenge, NOT_ASKED, ""
        if challenge.id in asked:
            reply = sitting.said(asked[challenge.id])
            outcome = heard_reply(challenge, held.said, reply, part, known) if reply else NO_ANSWER
        elif held.said in by_quote:  # its sentence was asked about, for something else in it
            reply = sitting.said(by_quote[held.said])
            outcome = WITHDRAWN if takes_back(reply) else STOOD_BY if stands_by(reply) else NOT_ASKED
        points = tuple(sorted(contradicted_by(challenge, part)))
        so, ask = what_is_so(challenge, known), asked_of(challenge, known)
        about, learn, cure = challenge.topic, challenge.learn, challenge.cure
        found.append(Challenged(challenge.id, about, held.said, outcome, so, learn, cure, points, reply, ask))
    return tuple(found)


def _pushed_credit(point: str, replies: Mapping[str, Reply], before: PointGrade, repeated: Collection[str]) -> float:
    """What a reply makes a point worth that was not heard at first: half, and all of it where it was near then and is
    only `repeated`."""
    if point not in replies or before.credit:
        return 0.0
    was_there = point in repeated and before.verdict == "unsure"
    return replies[point].credit * (1.0 if was_there else PUSHED_SHARE)


def _said_of_own_layout(part: Part, sitting: ToGrade) -> dict[str, Reply]:
    """A right number about the own layout is what the point that it stands in for lacked."""
    asked = [each for each in sitting.parts if each.question is part.question and each.own and each.own.instead_of]
    found = {}
    for each in asked:
        known, said = known_to(each, sitting.values, sitting.built_on), sitting.said(each)
        if known and said and each.own and question_of(each, known).grade(said).status == "correct":
            found[each.own.instead_of or ""] = Reply("met", 1.0, (said,), (each.id,))
    return found


def _probed(
    probe: Part, replies: Mapping[str, Reply], outcomes: Mapping[str, str], near: Collection[str], sitting: ToGrade
) -> Pushed:
    """A probe or a challenge with what was heard in the reply to it: of a point that the answer came `near`, who says
    something is not said to have said nothing of it."""
    if probe.challenge is not None:
        said = sitting.said(probe)
        verdict = outcomes.get(probe.challenge.id, NO_ANSWER) if said else NO_ANSWER
        return Pushed(probe.id, sitting.asked(probe), said, verdict)
    assert probe.point is not None, "asked of probes alone"
    said, reply = sitting.said(probe), replies.get(probe.point.id)
    if reply is None:
        return Pushed(probe.id, sitting.asked(probe), said, NO_ANSWER, probe.point.id)
    is_in_it = probe.id in reply.parts  # else another reply says it
    heard: Verdict = reply.verdict if is_in_it else "missed"
    if heard == "missed" and probe.point.id in near and is_an_answer(said):
        heard = "unsure"
    evidence = tuple(each for each in reply.evidence if stands_in(said, each)) if is_in_it else ()
    return Pushed(probe.id, sitting.asked(probe), said, heard, probe.point.id, evidence)


def _plain(text: str, known: Values) -> str:
    return str(render_inline(text, Expressions(known)).striptags())
