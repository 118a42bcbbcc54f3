"""Answers of an open sitting: saved as they are typed, given for good once, and what may be given at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.core.errors import DomainError, NotFound, Violation
from app.core.texts import storable
from app.grading.quantities import Unreadable
from app.grading.questions import read_number
from app.grading.questions.reading import read_ids
from app.interview import programs, queries, timing, versions
from app.interview.boards import Board, board_id, heard, read_board
from app.interview.drawing import values_of
from app.interview.hints import hint, hint_id, hinted_part, opened
from app.interview.models import Sitting, SittingAnswer
from app.interview.offers import interview_of
from app.interview.on_the_way import on_the_way
from app.interview.parts import Part, Values, built_on, has_board, known_to, parts_of, scope_of
from app.interview.prompts import prompt
from app.interview.questions import configuration_of, layout_of, options_of, order_of
from app.interview.reacting import react
from app.interview.stored import answers_of, reactions_in

LONGEST_ANSWER = 20_000


class TooLate(DomainError):
    """The sitting's time is up; what was saved before stays."""

    status = 409
    code = "time-is-up"


class AlreadyFinal(DomainError):
    """An answer that was given cannot be changed."""

    status = 409
    code = "already-answered"


@dataclass(frozen=True)
class Saved:
    """An answer as it is kept now, and what it is called by whoever types over it."""

    row: SittingAnswer
    version: str


def save_answer(
    session: Session,
    content: Catalogue,
    sitting: Sitting,
    part_id: str,
    text: str,
    final: bool,
    now: datetime,
    drawn: str | None = None,
    over: str | None = None,
) -> Saved:
    """Save a draft, or give an answer for good: then what the interviewer asks on account of it is decided and kept.
    With it goes what was `drawn` on its board. `over` is the version that it was typed over.

    Raises TooLate (what was saved stays), Stale where another answer was saved since, or DomainError. Closing a
    sitting that is over is another transaction, `close_if_over`: a refusal here rolls back.
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
        values = values_of(interview, sitting.drawn)
        _must_not_be_on_the_way(part, text, values, given)
        _must_be_an_answer(part, text, values)
    answer = session.get(SittingAnswer, (sitting.id, part_id), with_for_update=True)
    if answer is not None and answer.final:
        raise AlreadyFinal("This answer was already given; it stays as it was.")
    versions.must_not_be_another(part, given, text, board, over)
    if answer is None:
        answer = SittingAnswer(sitting_id=sitting.id, part_id=part_id, answer=text, final=final, saved_at=now)
        session.add(answer)
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
    return Saved(answer, versions.version_of(part, given))


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
    session: Session,
    content: Catalogue,
    sitting: Sitting,
    part_id: str,
    text: str,
    now: datetime,
    over: str | None = None,
) -> SittingAnswer:
    """Save a program as a draft, and have its visible checks run on real ranks.

    Raises TooLate, AlreadyFinal, Stale, NotFound, or DomainError for what cannot be a program.
    """
    answer = save_answer(session, content, sitting, part_id, text, False, now, over=over).row
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


def _must_not_be_on_the_way(part: Part, text: str, values: Values, given: Mapping[str, SittingAnswer]) -> None:
    """Raises DomainError for a reply that answers what was asked on the way to a number, and not that itself."""
    own = built_on({each.part_id: each.answer for each in given.values() if each.final}, reactions_in(given))
    known = known_to(part, values, own)
    if known is not None and (why := on_the_way(part, known, text)):
        unit = part.source.unit or "a number"
        raise DomainError("Not taken yet.", [Violation(part.id, text, why, f"{unit}, or stay with your first number")])


def _must_be_an_answer(part: Part, text: str, values: Values) -> None:
    """Raises DomainError for what cannot be given: a blank, a number nobody can read, an option that is not offered, an
    order that lacks something, a layout that names no axis, a plan that lacks a field."""
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
            untouched = "Nothing is moved yet. What is shown was drawn at random: if it is right as it stands, say so."
            why = str(order.grade(text).message) if text.strip() else untouched
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
    why = plan.unreadable(text)
    return Violation(part.id, text, why, f"a value for each of {', '.join(plan.fields)}") if why else None


def _too_late(sitting: Sitting, now: datetime) -> str:
    late = max(1, round((now - sitting.deadline_at).total_seconds()))
    return (
        f"Time was up {late} s before this arrived. What you had saved until then was graded; this change is not in it."
    )
