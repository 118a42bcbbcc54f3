"""From answers to a scorecard. Pure: questions are graded where all are, in `app.grading.questions`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from markupsafe import Markup

from app.codelabs.service import Outcome
from app.content.coding import TaskQuestion
from app.content.interview_schemas import Interview
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.grading.levels import NAMES
from app.grading.questions import ChoiceQuestion, LayoutQuestion, NumberQuestion, OrderQuestion
from app.grading.rubrics.grader import PointGrade
from app.interview.at_levels import at_levels
from app.interview.board_doubts import board_doubt
from app.interview.challenging import TAKEN_BACK, heard_reply, held_in, what_is_so
from app.interview.givens import replies_to
from app.interview.going_back import replaced, said_again
from app.interview.hearing import hear, says_as_before
from app.interview.hints import said_hints
from app.interview.parts import (
    NOTHING_ASKED,
    PUSHED_SHARE,
    Part,
    Reactions,
    Values,
    built_on,
    by_theory,
    contradicted_by,
    known_to,
    parts_of,
)
from app.interview.prompts import prompt
from app.interview.questions import PlainQuestion, choice_of, leads_somewhere, question_of, rubric_of
from app.interview.reacting import Reply, heard_in_replies
from app.interview.rows import (
    BETTER,
    CORRECTED,
    NO_ANSWER,
    NOT_ASKED,
    UNPUSHED,
    VERDICTS,
    Challenged,
    JudgedPoint,
    Pushed,
    Row,
)
from app.interview.scorecards import Scorecard
from app.reveal.number import said_number, slip_of
from app.words import capital

_NOT_REACHED = "It builds on a question that was not answered."
_NO_NUMBER = "The question before it had no number to follow up."
_NOT_IN_IT = "It was not asked in this sitting."
_LEADS_NOWHERE = "Your own figure before it leads to no number here."

Programs = Mapping[str, Outcome]  # what came of programs that were handed in, by the part they answer


def scorecard(
    interview: Interview,
    values: Values,
    answers: Mapping[str, str],
    judged: Mapping[str, Mapping[str, bool]],
    reactions: Reactions = NOTHING_ASKED,
    programs: Programs = MappingProxyType({}),
) -> Scorecard:
    """Every part graded. `judged` are the candidate's own judgements of text answers, by part and point; `reactions`,
    what was asked on account of answers: it counts for the part it is about."""
    own = built_on(answers, reactions)
    sitting = _Sitting(interview, parts_of(interview, reactions), values, answers, own, judged, programs, reactions)
    rows = {part.id: _row(part, sitting) for part in sitting.parts if part.role in (*UNPUSHED, "asked")}
    for part in sitting.parts:
        if part.role == "asked" and part.is_follow_up and rows[part.id].is_true_after:
            rows[part.question.id] = _given_back(rows[part.question.id])
    return Scorecard(tuple(rows.values()))


def _given_back(row: Row) -> Row:
    """The row of a wrong number whose follow-up was then answered by what is so: half of what it lost, as for who puts
    it right when it is questioned."""
    if row.verdict != VERDICTS["wrong"]:
        return row
    gained = PUSHED_SHARE * max(0.0, row.worth - row.reached)
    message = f"{row.message} In the follow-up you went by what is so: half of it is given back.".strip()
    return replace(row, reached=row.reached + gained, gained=row.gained + gained, message=message)


def with_levels(
    card: Scorecard, interview: Interview, values: Values, answers: Mapping[str, str], reactions: Reactions
) -> Scorecard:
    """The card with the same answer at each level beside every answer in words. It takes a while, so it is kept."""
    own, words = built_on(answers, reactions), [each for each in parts_of(interview) if each.kind == "text"]
    told_at = {
        part.id: at_levels(
            rubric_of(part, known), _text(part.question.exemplar, known), _text(part.question.weak, known)
        )
        for part in words
        if (known := known_to(part, values, own)) and card.row(part.id).said
    }
    return Scorecard(tuple(replace(row, at_levels=told_at.get(row.id, row.at_levels)) for row in card.rows))


def _text(source: str | None, known: Values) -> str:
    expressions = Expressions(known)
    return " ".join(expressions.text(expressions.fill(source or "")).split())


@dataclass(frozen=True)
class _Sitting:
    """What there is to grade. `built_on` are the answers that later parts go by."""

    interview: Interview
    parts: Sequence[Part]
    values: Values
    answers: Mapping[str, str]
    built_on: Mapping[str, str]
    judged: Mapping[str, Mapping[str, bool]]
    programs: Programs
    reactions: Reactions

    def said(self, part: Part) -> str:
        return self.answers.get(part.id, "").strip()

    def pushed(self, part: Part) -> list[Part]:
        """What the interviewer asked about the answer to `part`."""
        if part.role in UNPUSHED:
            return []
        roles = ("again", "probe", "challenge")
        about = [each for each in self.parts if each.role in roles and each.question is part.question]
        return [each for each in about if each.is_follow_up == part.is_follow_up]


def _row(part: Part, sitting: _Sitting) -> Row:
    known = known_to(part, sitting.values, sitting.built_on)
    row = Row(part.id, part.title, part.kind, sitting.said(part), part.points, NOT_ASKED)
    row = replace(row, is_harder=part.role in UNPUSHED)
    if known is None:
        return replace(row, message=_NO_NUMBER if part.builds_on_own else _NOT_REACHED)
    if not leads_somewhere(part, known):
        return replace(row, message=_LEADS_NOWHERE)
    try:
        row = replace(row, asked=_asked(part, sitting))
        row = replace(row, explanation=str(render(part.source.explanation, Expressions(known))))
        return _BY_KIND.get(part.kind, _graded)(row, part, known, sitting)
    except ExpressionError:
        if part.goes_by_own_numbers:
            return replace(row, message=_LEADS_NOWHERE, explanation="")
        raise


def _asked(part: Part, sitting: _Sitting) -> str:
    return str(prompt(part, sitting.values, sitting.built_on) or "")


def _graded(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of a number, of what was chosen, arranged or laid out, or of a plan."""
    question = question_of(part, known)
    row = replace(
        row, key=question.key_text, hints=said_hints(part, sitting.answers), criterion=part.question.criterion
    )
    if not row.said:
        return replace(row, verdict=NO_ANSWER)
    grade = question.grade(row.said)
    number = None
    if isinstance(question, NumberQuestion):
        number = said_number(question.by_own, row.said, grade)
        row = _after_own(row, part, known, question)
    row = replace(
        row,
        slip=slip_of(number, grade),
        number=number,
        verdict=VERDICTS[grade.status],
        reached=row.worth * grade.credit,
        message=grade.message,
        ticked=_ticked(question, row.said) if part.kind == "set" and isinstance(question, ChoiceQuestion) else None,
        cure=grade.cure,
        did=grade.did,
        learn=grade.learn or part.question.learn or "",
        said_text=question.said(row.said),
        placed=_placed(question, row.said) if isinstance(question, OrderQuestion) else (),
    )
    if isinstance(question, LayoutQuestion):
        row = _laid_out(row, part, known, question)
    for again in sitting.pushed(part):
        row = _questioned(row, again, known, question, sitting)
    return row


def _after_own(row: Row, part: Part, known: Values, question: NumberQuestion) -> Row:
    """The row of a number that goes by own wrong ones, with what follows from these; explained by what it comes to."""
    own = question.by_own
    if own.grade(question.key_text).status == "correct":
        return row
    row = replace(row, own_key=own.key_text, own_from=" and ".join(question.carried.parts if question.carried else ()))
    if part.role == "asked" and replace(question, carried=None).grade(row.said).status == "correct":
        row = replace(row, explanation=str(render(part.source.explanation, Expressions(by_theory(part, known)))))
        row = replace(row, is_true_after=own.grade(row.said).status != "correct")
    return row


def _ticked(question: ChoiceQuestion, said: str) -> tuple[int, int, int]:
    chosen = question.chosen(said) or []
    right = sum(each.correct for each in chosen)
    return right, len(question.right), len(chosen) - right


def _laid_out(row: Row, part: Part, known: Values, question: LayoutQuestion) -> Row:
    """The row of a layout with what it keeps to and breaks, and known layouts with the level each comes to."""
    expressions = Expressions(known)
    levels = []
    for each in part.question.layouts:
        said = expressions.text(expressions.fill(each.said))
        levels.append((each.level, f"{capital(question.said(said))}. {question.grade(said).message}"))
    levels.sort(key=lambda each: NAMES.index(each[0]))
    checks = tuple((each.text, each.held) for each in question.reasons(row.said))
    return replace(row, checks=checks, exemplar=question.key_text, at_levels=tuple(levels))


def _placed(question: OrderQuestion, said: str) -> tuple[tuple[str, str], ...]:
    placed = question.placed(said) or ()
    pairs = zip(question.beside(placed), placed, strict=False)
    return tuple((right.text.striptags(), mine.text.striptags()) for right, mine in pairs)


def _asked_for(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of what was asked for before computing: what is needed and was not earns nothing, what does not matter
    takes back as much."""
    if not row.said and any(part.question in each.builds_on and sitting.said(each) for each in sitting.parts):
        return replace(row, points=0.0, verdict=NOT_ASKED, message=_NOT_IN_IT)  # begun before the question was there
    row = _graded(row, part, known, sitting)
    if not row.said:
        return row
    givens = replies_to(part, known, row.said)
    asked = sum(each.standing == "right" for each in givens)
    needed = asked + sum(each.standing == "missed" for each in givens)
    if row.verdict == "right":
        return replace(row, givens=givens)
    left_out = {each.id for each in givens if each.standing == "missed"}
    why = [option.message for option in choice_of(part, known).options if option.id in left_out]
    message = " ".join(why) or "All that was needed was asked for, and more that does not matter here."
    return replace(row, givens=givens, verdict=f"{asked} of {needed} asked for", message=message)


def _questioned(row: Row, again: Part, known: Values, question: PlainQuestion, sitting: _Sitting) -> Row:
    """The row of a wrong answer not in words with what was said when it was questioned: put right, it earns half of
    what it lost; made better, half of what that gained."""
    said = sitting.said(again)
    grade = question.grade(said)
    if said and row.kind in ("choice", "set"):
        said = choice_of(again, known).said(said)
    gained = PUSHED_SHARE * max(0.0, row.worth * grade.credit - row.reached) if said else 0.0
    became = BETTER if gained and grade.status == "wrong" else VERDICTS[grade.status]
    pushed = Pushed(again.id, _asked(again, sitting), said, became if said else NO_ANSWER)
    if isinstance(question, OrderQuestion):
        placed = tuple(each.text.striptags() for each in question.placed(said) or ())
        pushed = replace(pushed, said=question.said(said), placed=placed)
    elif row.kind in ("layout", "configuration") and said:
        pushed = replace(pushed, said=question.said(said), message=grade.message)
    row = replace(row, pushed=(*row.pushed, pushed))
    if row.verdict != VERDICTS["wrong"]:
        return row
    verdict = CORRECTED if grade.status == "correct" else row.verdict
    return replace(row, verdict=verdict, reached=row.reached + gained, gained=row.gained + gained)


def _heard(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of an answer in words: a share of the points for each point of the rubric that was heard in it, half of
    it for one that was said only when it was asked for."""
    judged = sitting.judged.get(part.id)
    exemplar = str(render_inline(part.question.exemplar or "", Expressions(known)))
    rubric = rubric_of(part, known)
    heard = hear(rubric, part.question.rubric, row.said)
    found = heard if judged is None else hear(rubric, part.question.rubric, row.said, judged)
    probes = sitting.pushed(part)
    challenged = _challenged(part, row.said, probes, known, sitting)
    against = {point: each.quote for each in challenged for point in each.contradicts}
    taken_back = {
        point: Reply("met", 1.0, (sitting.said(probe),))
        for probe in probes
        for each in challenged
        if probe.challenge and each.id == probe.challenge.id and each.outcome == TAKEN_BACK
        for point in each.contradicts
    }
    replies = {
        **heard_in_replies(rubric, probes, known, sitting.answers),
        **_said_of_own_layout(part, sitting),
        **taken_back,
    }
    repeated = {each.point.id for each in probes if each.point and says_as_before(sitting.said(each))}
    points = tuple(
        JudgedPoint(
            each.id,
            _plain(each.text, known),
            each.weight,
            None if judged is None else bool(judged.get(each.id)),
            before.verdict,
            after.credit,
            after.evidence,
            each.half or "",
            _pushed_credit(each.id, replies, before, repeated),
            replies[each.id].evidence if each.id in replies and not before.credit else (),
            each.criterion,
            each.topic,
        )
        for each, before, after in zip(
            part.question.rubric,
            _held_against(heard.points, against),
            _held_against(found.points, against),
            strict=True,
        )
    )
    outcomes = {each.id: each.outcome for each in challenged}
    pushed = tuple(_probed(probe, replies, outcomes, sitting) for probe in probes)
    row = replace(row, rubric=points, exemplar=exemplar, pushed=pushed, challenged=challenged)
    if not row.said:
        return replace(row, verdict=NO_ANSWER)
    met = sum(each.credit > 0 for each in points)
    late = sum(each.counts > each.credit for each in points)
    verdict = f"{met} of {len(points)} points heard" + (f", {late} more when asked" if late else "")
    weights = sum(each.weight for each in points)
    reached = part.points * sum(each.weight * each.counts for each in points) / weights
    gained = part.points * sum(each.weight * (each.counts - each.credit) for each in points) / weights
    changed = list(replaced(sitting.parts, sitting.answers, sitting.reactions))
    back = said_again(row.said, changed)
    said_first = (back.says if back else "", board_doubt(part.id, sitting.answers, rubric))
    not_so = (f"Not so: “{each.quote.rstrip('.')}.” {each.so}" for each in challenged)
    notes = (*found.notes, *not_so, *filter(None, said_first))
    return replace(row, verdict=verdict, reached=reached, gained=gained, notes=notes)


def _held_against(points: Sequence[PointGrade], against: Mapping[str, str]) -> list[PointGrade]:
    """Points as they were heard; those that what was said is `against` are not."""
    return [
        PointGrade(each.id, "contradicted", 0.0, (against[each.id],)) if each.id in against else each for each in points
    ]


def _challenged(
    part: Part, said: str, probes: Sequence[Part], known: Values, sitting: _Sitting
) -> tuple[Challenged, ...]:
    """What an answer says that is false, with what became of what was asked about."""
    asked = {each.challenge.id: each for each in probes if each.challenge}
    found = []
    for held in held_in(part, said, known):
        challenge, outcome = held.challenge, NOT_ASKED
        if challenge.id in asked:
            reply = sitting.said(asked[challenge.id])
            outcome = heard_reply(challenge, held.said, reply, part, known) if reply else NO_ANSWER
        file, points = challenge.file, tuple(sorted(contradicted_by(challenge, part)))
        so = what_is_so(challenge, known)
        found.append(Challenged(file.id, file.topic, held.said, outcome, so, file.learn, file.cure, points))
    return tuple(found)


def _pushed_credit(point: str, replies: Mapping[str, Reply], before: PointGrade, repeated: Collection[str]) -> float:
    """What a reply makes a point worth that was not heard at first: half, and all of it where it was near then and is
    only `repeated`."""
    if point not in replies or before.credit:
        return 0.0
    was_there = point in repeated and before.verdict == "unsure"
    return replies[point].credit * (1.0 if was_there else PUSHED_SHARE)


def _said_of_own_layout(part: Part, sitting: _Sitting) -> dict[str, Reply]:
    """A right number about the own layout is what the point that it stands in for lacked."""
    asked = [each for each in sitting.parts if each.question is part.question and each.own and each.own.instead_of]
    found = {}
    for each in asked:
        known, said = known_to(each, sitting.values, sitting.built_on), sitting.said(each)
        if known and said and each.own and question_of(each, known).grade(said).status == "correct":
            found[each.own.instead_of or ""] = Reply("met", 1.0, (said,))
    return found


def _probed(probe: Part, replies: Mapping[str, Reply], outcomes: Mapping[str, str], sitting: _Sitting) -> Pushed:
    """A probe or a challenge with what was heard in the reply to it."""
    if probe.challenge is not None:
        said = sitting.said(probe)
        verdict = outcomes.get(probe.challenge.id, NO_ANSWER) if said else NO_ANSWER
        return Pushed(probe.id, _asked(probe, sitting), said, verdict)
    assert probe.point is not None, "asked of probes alone"
    said, reply = sitting.said(probe), replies.get(probe.point.id)
    verdict = reply.verdict if reply else NO_ANSWER
    return Pushed(probe.id, _asked(probe, sitting), said, verdict, probe.point.id, reply.evidence if reply else ())


def _run(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of a program: of its points the share of the checks that held, less what hints cost. Where it could not
    be judged it was not asked."""
    row = replace(row, hints=said_hints(part, sitting.answers))
    if isinstance(part.question, TaskQuestion):
        program = Markup('<pre class="log" tabindex="0">{}</pre>').format(part.question.lab.reference.rstrip())
        row = replace(row, exemplar=str(program))
    judged = sitting.programs.get(part.id)
    if judged is None:
        return replace(row, said="", verdict=NO_ANSWER)
    if judged.why_not:
        return replace(row, points=0.0, verdict=NOT_ASKED, message=judged.why_not)
    held = sum(each for _, each in judged.checks)
    says = f"{held} of {len(judged.checks)} checks held"
    return replace(
        row,
        verdict="right" if judged.share == 1 else says,
        reached=row.worth * judged.share,
        said_text=says,
        slip=judged.mistake,
        message=judged.says,
        cure=judged.cure,
        checks=judged.checks,
    )


def _plain(text: str, known: Values) -> str:
    return str(render_inline(text, Expressions(known)).striptags())


_BY_KIND: Mapping[str, Callable[[Row, Part, Values, _Sitting], Row]] = {
    "text": _heard,
    "givens": _asked_for,
    "coding": _run,
}
