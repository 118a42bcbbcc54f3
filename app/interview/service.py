"""Sitting an interview: one open at a time, saved as it is typed, closed exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content import coding, problem_draws, recipes, seeded
from app.content.catalogue import Catalogue
from app.content.coding import CodingRound
from app.content.composed import Composed, borrowed_id, compose
from app.content.evidence import Evidence
from app.content.interview_schemas import Interview
from app.content.problem_schemas import Problem
from app.content.rounds import Round
from app.core.errors import DomainError, NotFound, Violation
from app.core.records import as_record
from app.core.texts import storable
from app.grading import levels
from app.grading.quantities import Unreadable
from app.grading.questions import read_number
from app.grading.questions.reading import read_ids
from app.interview import expectation, programs, queries, scoring, timing
from app.interview.boards import Board, board_id, heard, read_board
from app.interview.expectation import Expectation
from app.interview.hints import hint, hint_id, hinted_part, opened
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import (
    Part,
    Reaction,
    Reactions,
    Values,
    built_on,
    configuration_of,
    has_board,
    known_to,
    layout_of,
    options_of,
    order_of,
    parts_of,
    prompt,
    scope_of,
)
from app.interview.reacting import react
from app.interview.scoring import Scorecard

LONGEST_ANSWER = 20_000


class TooLate(DomainError):
    """The sitting's time is up; what was saved before stays."""

    status = 409
    code = "time-is-up"


class AlreadyFinal(DomainError):
    """An answer that was given cannot be changed."""

    status = 409
    code = "already-answered"


def find_interview(content: Catalogue, key: str) -> Interview:
    """Raises NotFound."""
    found = content.interview(key)
    if found is None:
        raise NotFound(f"There is no interview {key!r}. Accepted: {', '.join(content.interviews)}.")
    return found


def find_offer(
    session: Session, learner_id: int, content: Catalogue, key: str
) -> tuple[Interview, Mapping[str, object] | None]:
    """What can be sat under `key`: an interview of the content, or a generated one that this learner has sat, with what
    was drawn for it. Raises NotFound."""
    sitting = queries.find_newest_of(session, learner_id, key.capitalize())
    if sitting is None or not _is_generated(sitting):
        return find_interview(content, key), None
    return interview_of(content, sitting), sitting.drawn


def was_sat(session: Session, learner_id: int, interview_id: str) -> bool:
    """Whether there is a sitting of this interview."""
    return queries.find_newest_of(session, learner_id, interview_id) is not None


def draw_tasks(
    session: Session, learner_id: int, content: Catalogue, interview: CodingRound, code_labs: str
) -> dict[str, object]:
    """The tasks of a coding round. Where learners' code cannot be run (`code_labs` is how it is configured) all are to
    be read, and `instead` says why."""
    why = codelabs.why_not_here(session, code_labs)
    known, seed = codelabs.list_passed_labs(session, learner_id), secrets.randbelow(2**31 - 1)
    tasks = coding.draw_tasks(interview.file, content.labs, seed, not why, known)
    return {"questions": tasks, "values": {}, "instead": why}


def interview_of(content: Catalogue, sitting: Sitting) -> Interview:
    """What a sitting asks: an interview of the content, or what was put together for it. Raises NotFound."""
    return made_of(content, sitting.interview_id, sitting.drawn)


def made_of(content: Catalogue, interview_id: str, drawn: Mapping[str, Any]) -> Interview:
    """The interview that what was `drawn` for a sitting makes. Raises NotFound."""
    if "questions" not in drawn:
        return find_interview(content, interview_id)
    try:
        if "recipe" in drawn:
            return recipes.composed_of(content, drawn)
        return coding_sitting(content, find_interview(content, interview_id), drawn["questions"])
    except ValueError:
        raise NotFound(f"The questions of {interview_id} are no longer there.") from None


def coding_sitting(content: Catalogue, interview: Interview, tasks: Sequence[str]) -> Composed:
    """A sitting of a coding round: as long as its tasks. Raises ValueError where none of them is left."""
    questions = [each for each in (coding.task(name, content.labs) for name in tasks) if each is not None]
    head = interview.model_dump(include={"id", "slug", "title", "about", "revision"})
    return compose(content, tasks, {**head, "minutes": sum(each.minutes for each in questions) or interview.minutes})


def _is_generated(sitting: Sitting) -> bool:
    return "recipe" in sitting.drawn


def find_sitting(session: Session, learner_id: int, sitting_id: int) -> Sitting:
    """Raises NotFound."""
    sitting = queries.find_sitting(session, learner_id, sitting_id)
    if sitting is None:
        raise NotFound(f"There is no sitting {sitting_id}.")
    return sitting


def find_running(session: Session, learner_id: int, now: datetime) -> Sitting | None:
    """The learner's open sitting, if it still has time."""
    opened = queries.find_open(session, learner_id)
    return opened if opened is not None and not timing.is_over(opened.deadline_at, now) else None


def start(
    session: Session,
    learner_id: int,
    content: Catalogue,
    interview: Interview,
    now: datetime,
    drawn: Mapping[str, object] | None = None,
) -> Sitting:
    """The learner's open sitting if there is one that still runs (starting again returns it), else a new one, of a
    generated interview with what was `drawn` for it."""
    opened = queries.find_open(session, learner_id)
    if opened is not None and not close_if_over(session, content, opened, now):
        return opened
    sitting = Sitting(
        learner_id=learner_id,
        interview_id=interview.id,
        revision=interview.revision,
        drawn=dict(drawn) if drawn is not None else draw(interview, secrets.randbelow(2**31 - 1)),
        started_at=now,
        deadline_at=now + timedelta(minutes=interview.minutes),
    )
    try:
        with session.begin_nested():
            session.add(sitting)
    except IntegrityError:  # another tab was faster: the partial unique index keeps one open
        opened = queries.find_open(session, learner_id)
        assert opened is not None
        return opened
    return sitting


def draw(interview: Interview, seed: int) -> dict[str, object]:
    """The parameters of a sitting, drawn by seed. They are stored: a later revision must not change a sitting."""
    if isinstance(interview, Round):  # beyond the seeds that practice has
        beyond = problem_draws.LARGEST_SEED + 1 + seed
        return {name: problem_draws.draw(problem, beyond) for name, problem in interview.problems.items()}
    return seeded.draw(f"{interview.id}:{interview.revision}", interview.parameters, interview.let, None, seed)


def values_of(interview: Interview, drawn: Mapping[str, object]) -> dict[str, object]:
    """Drawn parameters (those the interview still has, with its first choice for new ones) and what `let` computes; of
    a round, by problem, with what is right in each of its parts; of a generated interview, by what it borrows from."""
    if isinstance(interview, Round):
        return {name: _values_in(problem, drawn.get(name)) for name, problem in interview.problems.items()}
    if isinstance(interview, Composed):
        return {name: _values_from(source, drawn["values"]) for name, source in interview.sources.items()}
    return _values_for(interview, drawn)


def _values_from(source: Interview | Problem, drawn: object) -> dict[str, object]:
    """The values of what questions were borrowed from."""
    found = drawn.get(source.id) if isinstance(drawn, Mapping) else None
    if isinstance(source, Problem):
        return _values_in(source, found)
    return _values_for(source, found if isinstance(found, Mapping) else {})


def _values_for(interview: Interview, drawn: Mapping[str, object]) -> dict[str, object]:
    kept = {name: drawn.get(name, choices[0]) for name, choices in interview.parameters.items()}
    return seeded.with_lets(interview.let, kept)


def _values_in(problem: Problem, drawn: object) -> dict[str, object]:
    """The values of a problem in a round; drawn anew where its content has other parameters since."""
    kept = drawn if isinstance(drawn, Mapping) and set(drawn) == set(problem.parameters) else None
    if kept is None:
        kept = problem_draws.draw(problem, problem_draws.LARGEST_SEED + 1)
    values = seeded.with_lets(problem.let, kept)
    return {**values, "answer": problem_draws.right_numbers(problem, values)}


def save_answer(
    session: Session,
    content: Catalogue,
    sitting: Sitting,
    part_id: str,
    text: str,
    final: bool,
    now: datetime,
    drawn: str | None = None,
) -> SittingAnswer:
    """Save a draft, or give an answer for good: then what the interviewer asks on account of it is decided and kept.
    With it goes what was `drawn` on its board.

    Raises TooLate (what was saved stays) or DomainError. Closing a sitting that is over is another transaction,
    `close_if_over`: a refusal here rolls back.
    """
    sitting = queries.lock_sitting(session, sitting.id)  # it must not be closed and graded while this is saved
    text = storable(text)
    interview, given = interview_of(content, sitting), answers_of(session, sitting)
    part = next((each for each in parts_of(interview, reactions_in(given)) if each.id == part_id), None)
    if part is None:
        raise NotFound(f"There is no question {part_id!r} in {interview.id}.")
    _must_be_open(sitting, now)
    if len(text) > LONGEST_ANSWER:
        raise DomainError(
            "The answer was not saved.",
            [Violation(part_id, "…", f"{len(text):,} characters are too many.", f"up to {LONGEST_ANSWER:,}")],
        )
    board = read_board(part_id, drawn or "") if drawn is not None and has_board(part) else None
    if final and (board is None or board.is_blank):
        _must_be_an_answer(part, text, values_of(interview, sitting.drawn))
    answer = session.get(SittingAnswer, (sitting.id, part_id), with_for_update=True)
    if answer is None:
        answer = SittingAnswer(sitting_id=sitting.id, part_id=part_id, answer=text, final=final, saved_at=now)
        session.add(answer)
    elif answer.final:
        raise AlreadyFinal("This answer was already given; it stays as it was.")
    else:
        answer.answer, answer.final, answer.saved_at = text, final, now
    given[part_id] = answer
    if board is not None or board_id(part_id) in given:
        given[board_id(part_id)] = _kept_board(session, sitting, part_id, board, given, final, now)
    if final:
        answer.reaction = _reaction(interview, sitting, part, given)
        if part.kind == "coding":
            programs.hand_in(session, sitting, part, given, now)
    session.flush()
    return answer


def _kept_board(
    session: Session,
    sitting: Sitting,
    part_id: str,
    board: Board | None,
    given: Mapping[str, SittingAnswer],
    final: bool,
    now: datetime,
) -> SittingAnswer:
    """The board beside an answer, as final as that; one that did not come with it stays as it was."""
    row = given.get(board_id(part_id))
    if row is None:
        row = SittingAnswer(sitting_id=sitting.id, part_id=board_id(part_id), answer="", final=final, saved_at=now)
        session.add(row)
    if board is not None:
        row.answer = board.model_dump_json(exclude_defaults=True)
    row.final, row.saved_at = final, now
    return row


def try_program(
    session: Session, content: Catalogue, sitting: Sitting, part_id: str, text: str, now: datetime
) -> SittingAnswer:
    """Save a program as a draft, and have its visible checks run on real ranks.

    Raises TooLate, AlreadyFinal, NotFound, or DomainError for what cannot be a program.
    """
    answer = save_answer(session, content, sitting, part_id, text, False, now)
    given = answers_of(session, sitting)
    part = next(each for each in parts_of(interview_of(content, sitting), reactions_in(given)) if each.id == part_id)
    if part.kind != "coding":
        raise NotFound(f"There is no program to run in {part_id!r}.")
    programs.tried(session, sitting, part, answer, opened(part, given), now)
    session.flush()
    return answer


def open_hint(
    session: Session, content: Catalogue, sitting: Sitting, part_id: str, number: int, now: datetime
) -> SittingAnswer:
    """Open hint `number`, from 1, of a part that is asked and not answered; one that is open stays as it is.

    Raises TooLate, AlreadyFinal, NotFound, or DomainError for a hint that is not the next one.
    """
    sitting = queries.lock_sitting(session, sitting.id)
    interview, given = interview_of(content, sitting), answers_of(session, sitting)
    part = next((each for each in parts_of(interview, reactions_in(given)) if each.id == part_id), None)
    if part is None or hinted_part(part) != part_id:
        raise NotFound(f"There is no hint to {part_id!r} in {interview.id}.")
    _must_be_open(sitting, now)
    if part_id in given and given[part_id].final:
        raise AlreadyFinal("This answer was already given; no hint can be opened to it.")
    before = given.get(hint_id(part_id, number))
    if before is not None:
        return before
    values = values_of(interview, sitting.drawn)
    texts = built_on({each.part_id: each.answer for each in given.values() if each.final}, reactions_in(given))
    if prompt(part, values, texts) is None:
        raise DomainError("No hint was opened: what the question builds on is not answered yet.")
    following = opened(part, given) + 1
    if number != following or number > len(part.question.hints):
        accepted = str(following) if following <= len(part.question.hints) else "none, all are open"
        raise DomainError("No hint was opened.", [Violation("hint", number, "That is not the next hint.", accepted)])
    said = hint(part, number, values, texts)
    row = SittingAnswer(sitting_id=sitting.id, part_id=hint_id(part_id, number), answer=said, final=True, saved_at=now)
    session.add(row)
    session.flush()
    return row


def _must_be_open(sitting: Sitting, now: datetime) -> None:
    """Raises TooLate."""
    if timing.is_over(sitting.deadline_at, now):
        raise TooLate(_too_late(sitting, now))
    if sitting.closed_at is not None:
        raise TooLate("This sitting is closed; nothing was changed.")


def _reaction(
    interview: Interview, sitting: Sitting, part: Part, given: Mapping[str, SittingAnswer]
) -> dict[str, object] | None:
    """What the interviewer asks on account of an answer, as it is stored."""
    texts = heard({each.part_id: each.answer for each in given.values() if each.final})
    reactions = reactions_in(given)
    found = react(part, parts_of(interview, reactions), values_of(interview, sitting.drawn), texts, reactions)
    return found.to_json() if found else None


def reactions_in(saved: Mapping[str, SittingAnswer]) -> Reactions:
    """What the interviewer asked on account of answers, by their part."""
    return {part: Reaction.from_json(answer.reaction) for part, answer in saved.items() if answer.reaction}


def close(session: Session, content: Catalogue, sitting: Sitting, now: datetime, by: str) -> bool:
    """End a sitting and grade it, once: finishing, what is sent after the deadline and the sweep may all try."""
    queries.lock_sitting(session, sitting.id)  # answers on their way in come before or after, not in between
    ended_at = max(sitting.started_at, min(now, sitting.deadline_at))  # a clock may have been set back since
    changed = session.execute(
        update(Sitting)
        .where(Sitting.id == sitting.id, Sitting.closed_at.is_(None))
        .values(closed_at=ended_at, closed_by=by)
    )
    session.refresh(sitting)
    if changed.rowcount != 1:  # type: ignore[attr-defined]
        return False
    _hand_in_drafts(session, content, sitting, now)
    settle(session, content, sitting, now)
    return True


def settle(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> bool:
    """Grade a closed sitting once all that it handed in was judged, or was given up; returns whether it is graded."""
    if sitting.scorecard is not None or sitting.closed_at is None:
        return sitting.scorecard is not None
    queries.lock_sitting(session, sitting.id)
    graded = _graded(session, content, sitting, now)
    if graded is None:
        return False
    programs.give_up(session, sitting, answers_of(session, sitting), now)
    sitting.scorecard = graded.to_json()
    session.flush()
    return True


def _hand_in_drafts(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> None:
    """What was written and not given counts as it was saved."""
    saved = answers_of(session, sitting)
    for part in parts_of(interview_of(content, sitting)):
        if part.kind == "coding" and part.id in saved and not programs.is_blank(part, saved[part.id].answer):
            with suppress(DomainError):  # it is no program
                programs.hand_in(session, sitting, part, saved, now)


def close_if_over(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> bool:
    """Close a sitting whose time is up; returns whether it was up."""
    if sitting.closed_at is None and timing.is_over(sitting.deadline_at, now):
        close(session, content, sitting, now, "deadline")
        return True
    return False


def as_it_stands(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> Sitting:
    """The sitting to show. One whose time is up is shown as closing it will leave it, and nothing is written."""
    if sitting.closed_at is None and timing.is_over(sitting.deadline_at, now):
        graded = None if _has_drafts(session, content, sitting) else _graded(session, content, sitting, now)
        session.expunge(sitting)
        sitting.closed_at, sitting.closed_by = sitting.deadline_at, "deadline"
    elif sitting.closed_at is not None and sitting.scorecard is None:
        graded = _graded(session, content, sitting, now)
        session.expunge(sitting)
    else:
        return sitting
    if graded is not None:
        sitting.scorecard = graded.to_json()
    return sitting


def _has_drafts(session: Session, content: Catalogue, sitting: Sitting) -> bool:
    """Whether closing it will hand something in."""
    saved = answers_of(session, sitting)
    return any(
        part.kind == "coding"
        and part.id in saved
        and "submission" not in (saved[part.id].judged or {})
        and not programs.is_blank(part, saved[part.id].answer)
        for part in parts_of(interview_of(content, sitting))
    )


def close_overdue(session: Session, content: Catalogue, now: datetime) -> int:
    """The sweep: close what nobody touched after its deadline, and grade what the judge has come to meanwhile."""
    closed = sum(close(session, content, sitting, now, "sweep") for sitting in queries.list_overdue(session, now))
    for sitting in queries.list_unsettled(session):
        settle(session, content, queries.lock_sitting(session, sitting.id), now)
    return closed


def judge(session: Session, content: Catalogue, sitting: Sitting, part_id: str, met: set[str], now: datetime) -> None:
    """The learner's own judgement of a text answer, point by point; may be corrected later."""
    if sitting.closed_at is None:
        raise DomainError("A sitting is judged once it is closed.")
    interview = interview_of(content, sitting)
    part = next((each for each in parts_of(interview) if each.id == part_id), None)
    answer = session.get(SittingAnswer, (sitting.id, part_id))
    if part is None or part.question.kind != "text" or answer is None:
        raise NotFound(f"There is no text answer {part_id!r} to judge.")
    known = {point.id for point in part.question.rubric}
    if met - known:
        raise DomainError(
            "Not judged.",
            [Violation("met", sorted(met - known), "Not points of this rubric.", ", ".join(sorted(known)))],
        )
    answer.judged = {point.id: point.id in met for point in part.question.rubric}
    session.flush()
    graded = _graded(session, content, sitting, now)
    if sitting.scorecard is not None and graded is not None:
        sitting.scorecard = graded.to_json()
        session.flush()


def expect(session: Session, sitting: Sitting, level: str) -> None:
    """Keep the level that is expected before the debrief. The first word stands: it is worth something only before."""
    accepted = (*levels.NAMES, expectation.NOT_SAID)
    if sitting.closed_at is None:
        raise DomainError("A level is expected once the sitting is closed.")
    if level not in accepted:
        message = "That is no level."
        raise DomainError("Not kept.", [Violation("level", level, message, ", ".join(levels.NAMES) + ", or nothing")])
    session.execute(
        update(Sitting)
        .where(Sitting.id == sitting.id, Sitting.expected_level.is_(None))
        .values(expected_level=level)
        .execution_options(synchronize_session="fetch")
    )


def list_expectations(session: Session, learner_id: int) -> list[Expectation]:
    """What was expected of closed sittings beside what they became, oldest first."""
    closed = [each for each in queries.list_all(session, learner_id) if each.closed_at is not None]
    found = (expectation.compare(each.expected_level, scorecard_of(each).level) for each in closed)
    return [each for each in found if each is not None]


def answers_of(session: Session, sitting: Sitting) -> dict[str, SittingAnswer]:
    return queries.list_answers(session, sitting.id)


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every part of every closed sitting that was asked and judged. In a generated one it says something of where its
    question stands; sat again, whose answers were seen, it says nothing."""
    found, generated = list[Evidence](), set[str]()
    for sitting in queries.list_all(session, learner_id):
        if sitting.interview_id in generated:
            continue
        if _is_generated(sitting):
            generated.add(sitting.interview_id)
        if sitting.closed_at is not None:
            named = _items_of(sitting)
            found += [
                Evidence("interview", named(row.id), sitting.closed_at, row.reached / row.points)
                for row in scorecard_of(sitting).rows
                if row.is_evidence and not (row.kind == "coding" and row.verdict == "right")  # the lab's own pass is
            ]
    return found


def _items_of(sitting: Sitting) -> Callable[[str], str]:
    """What a part of a sitting says something of: its interview, or the question that was borrowed."""
    if "questions" not in sitting.drawn:
        return lambda _: sitting.interview_id
    borrowed = {borrowed_id(each): _item_of(each) for each in sitting.drawn["questions"]}
    return lambda part: borrowed.get(part.partition(".")[0], sitting.interview_id)


def _item_of(reference: str) -> str:
    """A task says something of its lab."""
    return reference.partition(".")[0] if reference.startswith("CL") else reference


def list_results(session: Session, learner_id: int) -> dict[str, list[Sitting]]:
    """The closed sittings of each interview, oldest first."""
    found: dict[str, list[Sitting]] = {}
    for sitting in queries.list_all(session, learner_id):
        if sitting.closed_at is not None and sitting.scorecard:
            found.setdefault(sitting.interview_id, []).append(sitting)
    return found


def best_scores(session: Session, learner_id: int) -> dict[str, float]:
    """The best score of each interview, 0 to 1. Words that are not judged yet count nothing in it."""
    return {
        interview_id: max(scorecard_of(sitting).score for sitting in sittings)
        for interview_id, sittings in list_results(session, learner_id).items()
    }


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Sittings with their answers and scorecards as an export holds them."""
    found = []
    for sitting in queries.list_all(session, learner_id):
        answers = queries.list_answers(session, sitting.id).values()
        kept = [as_record("sitting answer", each, each.saved_at) for each in answers]
        found.append(as_record("sitting", sitting, sitting.started_at) | {"answers": kept})
    return found


def scorecard_of(sitting: Sitting) -> Scorecard:
    """What a closed sitting came to; an empty card before it is closed."""
    return Scorecard.from_json(sitting.scorecard) if sitting.scorecard else Scorecard()


def _graded(session: Session, content: Catalogue, sitting: Sitting, now: datetime) -> Scorecard | None:
    """None while the judge has yet to say something of a program."""
    interview = interview_of(content, sitting)
    saved = answers_of(session, sitting)
    handed_in = programs.outcomes(session, content, sitting, saved, now)
    if handed_in is None:
        return None
    texts = heard({part: answer.answer for part, answer in saved.items()})
    judged: dict[str, Mapping[str, bool]] = {part: answer.judged for part, answer in saved.items() if answer.judged}
    values, reactions = values_of(interview, sitting.drawn), reactions_in(saved)
    card = scoring.scorecard(interview, values, texts, judged, reactions, handed_in)
    return scoring.with_levels(card, interview, values, texts, reactions)


def _must_be_an_answer(part: Part, text: str, values: Values) -> None:
    """Raises DomainError for what cannot be given: a blank, a number nobody can read, an option that is not offered, an
    order that lacks something, a layout that names no axis, a plan that no cluster could run."""
    violation = None
    if part.kind == "number":
        try:
            read_number(text, part.source.unit or "")
        except Unreadable as error:
            violation = Violation(part.id, text, str(error), "a number with its unit")
    elif part.kind == "choice":
        known = [option.id for option in options_of(part.question)]
        if text not in known:
            violation = Violation(part.id, text, "That is none of the options.", ", ".join(known))
    elif part.kind in ("givens", "set"):
        known = [option.id for option in options_of(part.question)]
        chosen = read_ids(text)
        if not chosen or not set(chosen) <= set(known):
            why = "That is none of what is offered." if chosen else "Nothing is chosen yet."
            violation = Violation(part.id, text, why, f"one or more of {', '.join(known)}")
    elif part.kind == "order":
        order = order_of(part, known_to(part, values, {}) or scope_of(part.question, values))
        if order.placed(text) is None:
            why = str(order.grade(text).message) if text.strip() else "Nothing is moved yet."
            violation = Violation(part.id, text, why, f"each of {', '.join(item.id for item in order.items)} once")
    elif part.kind in ("layout", "configuration"):
        violation = _not_a_plan(part, text, values)
    elif not text.strip():
        violation = Violation(part.id, text, "There is nothing to give yet.", "your words")
    if violation is not None:
        raise DomainError("Not taken yet.", [violation])


def _not_a_plan(part: Part, text: str, values: Values) -> Violation | None:
    """What keeps a plan or a layout from being read as one."""
    if part.kind == "layout":
        layout = layout_of(part, known_to(part, values, {}) or scope_of(part.question, values))
        read = layout.read(text)
        accepted = f"axes with their degrees, such as {layout.example}"
        return Violation(part.id, text, read, accepted) if isinstance(read, str) else None
    plan = configuration_of(part, known_to(part, values, {}) or values)
    why = plan.invalid(text)
    return Violation(part.id, text, why, f"a value for each of {', '.join(plan.fields)}") if why else None


def _too_late(sitting: Sitting, now: datetime) -> str:
    late = max(1, round((now - sitting.deadline_at).total_seconds()))
    return (
        f"Time was up {late} s before this arrived. What you had saved until then was graded; this change is not in it."
    )
