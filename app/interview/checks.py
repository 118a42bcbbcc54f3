"""Interviews over their seeds: every prompt renders, every key grades as right, every follow-up is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.coding import ASK, READ, WRITE, CodingRound, task
from app.content.interview_draws import hidden_slips
from app.content.interview_schemas import Interview
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render_inline
from app.content.questions import hint_findings, number_findings
from app.content.rubric_schemas import make_points
from app.grading.levels import level_of
from app.grading.rubrics.grader import grade
from app.interview.challenge_checks import check_challenges, check_misbeliefs
from app.interview.claim_checks import check_interview_claims
from app.interview.doubt_checks import doubt_findings, number_doubt_findings
from app.interview.drawing import draw, values_of
from app.interview.givens import replies_to
from app.interview.givens_checks import givens_findings
from app.interview.hints import hint
from app.interview.offers import coding_sitting
from app.interview.parts import NOTHING_ASKED, Answers, Part, Values, known_to, own_id, parts_of
from app.interview.probe_checks import probe_findings
from app.interview.prompts import prompt
from app.interview.questions import layout_of, number_of, offered, order_of, right_answer, rubric_of, said_of, scene
from app.interview.reacting import is_last_number, react
from app.interview.scoring import scorecard
from app.units import SCALES

LEAST_OPTIONS = 4  # of a program to read
SEEDS = range(50)
QUESTIONED = range(4)  # of them: what is asked about a slip hardly depends on the numbers either
WRONG_BY = (0.437, 3.19)  # times the right number: what no slip comes to
HEARD = range(2)  # what is heard in words hardly depends on the numbers, and hearing takes its time


def check_interviews(catalogue: Catalogue) -> Iterator[Finding]:
    """Each finding once, with the first seed that shows it; what seeds draw alike is looked at once."""
    yield from check_challenges(catalogue)
    yield from check_misbeliefs(catalogue)
    yield from check_interview_claims(catalogue)
    for interview in catalogue.interviews.values():
        if sum(question.minutes for question in interview.questions) > interview.minutes:
            yield interview.id, ("minutes",), "the questions take longer than the sitting"
        if isinstance(interview, CodingRound):
            yield from ((interview.id, ("labs",), each) for each in _coding_findings(interview, catalogue))
            continue
        for finding in givens_findings(interview):
            yield interview.id, ("questions",), finding
        seen: list[dict[str, object]] = []
        for seed in QUESTIONED if interview.is_round else SEEDS:  # of a round's numbers practice checks many more
            try:
                drawn = draw(interview, seed)
                reason = None if drawn in seen else _finding(interview, seed, drawn)
                seen.append(drawn)
            except ExpressionError as error:
                reason = str(error)
            if reason:
                yield interview.id, ("questions",), f"seed {seed}: {reason}"
                break


def _coding_findings(interview: CodingRound, catalogue: Catalogue) -> Iterator[str]:
    """Each lab has programs to read, of which each is told from others by what the judge calls it."""
    for lab in catalogue.labs.values():
        for solution in lab.wrong:
            question = task(f"{lab.id}.{READ}.{solution.name}", catalogue.labs)
            if question is not None and len(question.options) < LEAST_OPTIONS:
                yield f"{lab.id} has too few mistakes to tell {solution.name} from"
        for seed in SEEDS if lab.head.afterwards else ():
            asked = coding_sitting(catalogue, interview, [f"{lab.id}.{WRITE}", f"{lab.id}.{ASK}.{seed}"])
            part = next(each for each in parts_of(asked) if each.kind == "number")
            number = number_of(part, known_to(part, {}, {}) or {})
            if reason := next(iter((*number_findings(number), *_reactions(part, asked, {}, {}, seed))), None):
                yield f"{lab.id} afterwards: {reason}"
                break
    if not set(interview.file.labs) < set(catalogue.labs):
        yield "there is no other lab whose programs could be read"


def _finding(interview: Interview, seed: int, drawn: Mapping[str, object]) -> str | None:
    values = values_of(interview, drawn)
    if not interview.is_round and (hidden := list(hidden_slips(interview, values))):
        return f"{', '.join(hidden)}: a slip that counts as right; draw numbers where they differ, or ask more exactly"
    answers: dict[str, str] = {}
    for part in parts_of(interview):
        asked = prompt(part, values, answers)
        if asked is None:
            return f"{part.id} is not asked although what it builds on was answered"
        scene(part.question, values)
        if "data-live" in "".join((asked, *(each.says for each in replies_to(part, values, "")))):
            return f"what is said in {part.id} links to a formula: name the value in let"
        if uncured := [slip.id for slip in part.source.slips if not slip.cure]:
            return f"no card cures slip {', '.join(uncured)} of {part.id}"
        offered(part, values, answers, seed)
        if part.question.kind == "text":
            _compute_words(part, values, answers)
        answers[part.id] = "words" if part.question.kind == "text" else right_answer(part, values, answers)
        if unasked := _unasked(part, interview, values, answers, seed):
            return unasked
    rows = scorecard(interview, values, answers, {}, left_out=() if seed in HEARD else ("text",)).rows
    wrong = [row.id for row in rows if row.kind != "text" and row.verdict != "right"]
    return f"the key does not grade as right: {', '.join(wrong)}" if wrong else None


def _compute_words(part: Part, values: Values, answers: Answers) -> None:
    """Everything that a question in words computes, without hearing an answer. Raises ExpressionError."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    said_of(part, known)
    make_points("rubric", part.question.rubric, known, part.let)
    for text in (part.question.exemplar or "", part.source.explanation, *(each.text for each in part.question.rubric)):
        render_inline(text, Expressions(known))


def _unasked(part: Part, interview: Interview, values: Values, answers: Answers, seed: int) -> str | None:
    """What is wrong with how an answer is heard, or with what is asked on account of it."""
    if part.kind == "text":
        if seed in HEARD and (misheard := _misheard(part, values, answers, seed)):
            return misheard
        return next(_own_layouts(part, interview, values, answers), None) if seed in QUESTIONED else None
    if part.kind == "layout":
        return next(_laid_out(part, interview, values, answers), None) if seed in QUESTIONED else None
    if part.kind in ("choice", "set", "configuration"):
        return next(doubt_findings(part, interview, values, answers), None) if seed in QUESTIONED else None
    if part.kind == "order":
        return next(_arranged(part, interview, values, answers), None)
    return next(_reactions(part, interview, values, answers, seed), None) if part.kind == "number" else None


def _misheard(part: Part, values: Values, answers: Answers, seed: int) -> str | None:
    """What is wrong where a full answer is not heard as one, a weak one as more than it is, or a probe leads
    nowhere."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    rubric = rubric_of(part, known)
    for name, source in (("exemplar", part.question.exemplar or ""), ("weak", part.question.weak or "")):
        expressions = Expressions(known)
        said = " ".join(expressions.text(expressions.fill(source)).split())  # a line of a file is no sentence
        found = grade(rubric, said)
        if found.level != ("strong hire" if name == "exemplar" else "no hire"):
            points = ", ".join(f"{each.id} {each.verdict}" for each in found.points)
            return f"the {name} answer to {part.id} is heard as {found.level} ({found.score:.2f}): {points}"
        if name == "exemplar" and seed == HEARD[0] and (finding := next(probe_findings(part, known, said), None)):
            return f"{part.id}: {finding}"
    return None


def _own_layouts(part: Part, interview: Interview, values: Values, answers: Answers) -> Iterator[str]:
    """What is wrong with what is asked about an own layout: the example of each must lead to it, and to a number."""
    for own in part.question.own:
        said = {**answers, part.id: own.example}
        found = react(part, [part], values, said, NOTHING_ASKED)  # no number was asked for before
        if found is None or found.asks != own_id(part, own):
            yield f"{part.id}: the example of {own.id} does not lead to it: {found}"
            continue
        asked = next(each for each in parts_of(interview, {part.id: found}) if each.own)
        known = known_to(asked, values, said)
        if known is None or "data-live" in (prompt(asked, values, said) or "data-live"):
            yield f"{asked.id} is not asked, or links to a formula: name the value in let"
        else:
            yield from (f"{asked.id}: {each}" for each in number_findings(number_of(asked, known)))


def _laid_out(part: Part, interview: Interview, values: Values, answers: Answers) -> Iterator[str]:
    """What is wrong with a layout's known ones: each must come to its level, be its mistake, and be questioned."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    question, expressions = layout_of(part, known), Expressions(known)
    for each in part.question.layouts:
        said = expressions.text(expressions.fill(each.said))
        found = question.grade(said)
        if (found.misconception, level_of(found.credit)) != (each.mistake, each.level):
            name = found.misconception or "right"
            yield f"{part.id}: {said} is {name}, {level_of(found.credit)}: {found.message}"
        reaction = react(part, parts_of(interview), values, {**answers, part.id: said}, NOTHING_ASKED)
        if each.mistake and reaction is None:
            yield f"{part.id}: nobody is asked about {said}"
    yield from _own_layouts(part, interview, values, answers)


def _arranged(part: Part, interview: Interview, values: Values, answers: Answers) -> Iterator[str]:
    """What is wrong with an order: each item that is put first and is not must be asked about, in words of its own."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    right = order_of(part, known).right
    if len({item.value for item in right}) < len(right) / 2:
        yield f"{part.id}: hardly any item of it has a place of its own"
    for item in right:
        if item.value == right[0].value:
            continue
        moved = ", ".join(each.id for each in (item, *(other for other in right if other is not item)))
        found = react(part, parts_of(interview), values, {**answers, part.id: moved}, NOTHING_ASKED)
        if found is None or found.slip != item.id:
            yield f"{part.id}: nobody is asked about {item.id} when it is put first"
        elif not interview.is_round and not next(each.ask for each in part.question.items if each.id == item.id):
            yield f"{part.id}: {item.id} needs ask, what the interviewer asks who puts it too early"


def _reactions(part: Part, interview: Interview, values: Values, answers: Answers, seed: int) -> Iterator[str]:
    """What is wrong with what is asked about a number: each listed slip is questioned, and the key gives what is
    harder of it."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    number = number_of(part, known)
    for index in range(len(part.question.hints) if part.id == part.question.id else 0):
        for finding in hint_findings(hint(part, index + 1, values, answers), number):
            yield f"{part.id}: {finding}"
    for slip in number.slips if seed in QUESTIONED else ():
        said = {**answers, part.id: f"{slip.value / SCALES[number.unit][1]!r} {number.unit}"}
        found = react(part, parts_of(interview), values, said, NOTHING_ASKED)
        if found is None or found.slip != slip.id:
            yield f"slip {slip.id} of {part.id} is not questioned: {found}"
            continue
        again = next(each for each in parts_of(interview, {part.id: found}) if each.role == "again")
        if number.key_text in (prompt(again, values, answers) or ""):
            yield f"what is asked about slip {slip.id} of {part.id} says the right number, {number.key_text}"
    for by in WRONG_BY if seed in QUESTIONED else ():
        said = {**answers, part.id: f"{by * number.key / SCALES[number.unit][1]!r} {number.unit}"}
        yield from number_doubt_findings(part, interview, values, said)
    if part.question.harder is None or not is_last_number(part):
        return
    found = react(part, parts_of(interview), values, answers, NOTHING_ASKED)
    if found is None:
        yield f"nobody is asked the harder variant of {part.question.id}"
        return
    harder = next(each for each in parts_of(interview, {part.id: found}) if each.role == "harder")
    asked, known = prompt(harder, values, answers), known_to(harder, values, answers)
    if asked is None or known is None:
        yield f"{harder.id} is not asked although its question was answered"
    elif "data-live" in asked:
        yield f"the prompt of {harder.id} links to a formula: name the value in let"
    else:
        yield from (f"{harder.id}: {each}" for each in number_findings(number_of(harder, known)))
