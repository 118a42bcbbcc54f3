"""Practising: a fresh variant, answers that count once, hints that cost what they say."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.content import problem_draws
from app.content.catalogue import Catalogue
from app.content.evidence import Evidence
from app.content.live import ExpressionError
from app.content.problem_schemas import Problem
from app.content.sources import digest_of, item_then, keep_source
from app.core.errors import NotFound, Stale
from app.core.records import as_record
from app.core.texts import storable
from app.grading.grade import Grade
from app.grading.hints import after_hints
from app.practice import queries, variants
from app.practice.desk import (
    Desk,
    PartState,
    check_answers,
    check_seed,
    grade_alone,
    grade_in_order,
    is_solved,
    is_unaided,
    score_of,
)
from app.practice.models import Attempt
from app.practice.models import Variant as VariantRow
from app.practice.queries import Settled
from app.practice.topics import Topic, topics_of

__all__ = ["Settled"]

STREAK, STREAK_SCORE, FAILED_SCORE = 2, 0.9, 0.5  # so many variants in a row, at least so good, lead a level up
PAGE = 25  # variants on a page of the history
OTHER_THAN = 3  # newest variants whose numbers are not asked again
MOST_DRAWS = 20
MISSED_FOR = timedelta(days=14)  # what went wrong before that says little of now
MOST_SLIPS = 8  # that are told of: each variant is made again from its seed


def find_problem(content: Catalogue, key: str) -> Problem:
    """Raises NotFound."""
    problem = content.problem(key)
    if problem is None:
        raise NotFound(f"There is no problem {key!r}. Accepted: {', '.join(content.problems)}.")
    return problem


def issue_variant(session: Session, learner_id: int, problem: Problem, now: datetime) -> VariantRow:
    """A seed this learner has not had, of the level a streak has led to; only issued seeds count as evidence.

    Its numbers are others than those of the newest variants, as far as a problem has so many.
    """
    level = next_level(session, learner_id, problem)
    newest = [row.drawn for row in queries.list_newest(session, learner_id, problem.id, OTHER_THAN)]
    for _ in range(MOST_DRAWS):
        seed = _new_seed(session, learner_id, problem, level)
        drawn = problem_draws.draw(problem, seed)
        if drawn not in newest:
            break
    row = VariantRow(
        learner_id=learner_id,
        problem_id=problem.id,
        revision=problem.revision,
        seed=seed,
        drawn=drawn,
        issued_at=now,
        source=keep_source(session, problem, now),
    )
    session.add(row)
    session.flush()
    return row


def _new_seed(session: Session, learner_id: int, problem: Problem, level: int) -> int:
    while True:
        seed = secrets.randbelow(variants.LARGEST_ISSUED_SEED) + 1
        of_level = problem_draws.level_of(problem, seed) == level
        if of_level and queries.find_variant(session, learner_id, problem.id, seed) is None:
            return seed


def next_level(session: Session, learner_id: int, problem: Problem) -> int:
    """The level of the next variant: one up after a streak at the last one, one down after a failure."""
    settled = queries.list_settled(session, learner_id, problem.id, STREAK)
    if not problem.levels or not settled:
        return 0
    last = problem_draws.level_of(problem, settled[0].seed)
    scores = [row.score or 0.0 for row in settled if problem_draws.level_of(problem, row.seed) >= last]
    if len(scores) == STREAK and min(scores) >= STREAK_SCORE:
        return min(last + 1, len(problem.levels) - 1)
    return max(0, last - 1) if scores[0] < FAILED_SCORE else last


def find_seed_under_way(session: Session, learner_id: int, problem: Problem) -> int | None:
    """The seed of the variant under way, if there is one."""
    row = queries.find_open_variant(session, learner_id, problem.id, problem.revision)
    return None if row is None else row.seed


def start_variant(session: Session, learner_id: int, problem: Problem, now: datetime) -> int:
    """The seed of the variant under way, or of one that is issued now."""
    under_way = find_seed_under_way(session, learner_id, problem)
    return issue_variant(session, learner_id, problem, now).seed if under_way is None else under_way


def show(session: Session, learner_id: int, problem: Problem, seed: int) -> Desk:
    """A variant with everything answered so far."""
    check_seed(seed)
    row = queries.find_variant(session, learner_id, problem.id, seed)
    return grade_alone(problem, seed, {}) if row is None else _desk(session, problem, row)


def answer(
    session: Session, learner_id: int, problem: Problem, seed: int, answers: Mapping[str, str], now: datetime
) -> Desk:
    """Grade `answers` by part. A part counts once, with its first answer that can be read; invalid ones count nothing.

    A seed that was not issued is graded and forgotten. Raises DomainError for parts that do not exist, and Stale when
    the problem was revised meanwhile: what it asks may have changed.
    """
    check_seed(seed)
    answers = {part: storable(text) for part, text in answers.items()}
    row = queries.find_variant(session, learner_id, problem.id, seed, lock=True)
    if row is None:
        return grade_alone(problem, seed, answers)
    before = _desk(session, problem, row)
    check_answers(answers, {state.part.id: state.part for state in before.parts})
    if row.revision != problem.revision and not before.is_settled:
        raise Stale(f"{problem.id} was revised since variant {seed} was issued; nothing was counted. Take a new one.")
    own = {state.part.id: state.grade for state in before.parts if state.settled and state.grade is not None}
    waiting = [state.part for state in before.parts if not state.settled and not before.is_settled]
    found = grade_in_order(waiting, answers, own)
    fresh = {part: after_hints(each, row.hints_opened) for part, each in found.items()}
    if fresh:
        attempt = Attempt(
            learner_id=learner_id,
            variant_id=row.id,
            answered_at=now,
            answers={part: answers[part] for part in fresh},
            results={part: grade.to_json() for part, grade in fresh.items()},
            counted=any(grade.status != "invalid" for grade in fresh.values()),
        )
        session.add(attempt)
        if row.source != digest_of(problem):  # reworded since it was issued
            row.source = keep_source(session, problem, now)
        session.flush()
    after = _desk(session, problem, row, before.variant)
    if row.settled_at is None and all(state.settled for state in after.parts):
        row.settled_at, row.score = now, score_of(after.parts)
        session.flush()
        after = _desk(session, problem, row, before.variant)
    return after


def show_solution(session: Session, learner_id: int, problem: Problem, seed: int, now: datetime) -> Desk:
    """Settle a variant as it stands and open its solution: parts still open count nothing."""
    check_seed(seed)
    row = queries.find_variant(session, learner_id, problem.id, seed, lock=True)
    if row is None:
        raise NotFound(f"Variant {seed} of {problem.id} was not issued to you.")
    desk = _desk(session, problem, row)
    if row.settled_at is None:
        row.settled_at, row.score = now, score_of(desk.parts)
        session.flush()
    return _desk(session, problem, row, desk.variant)


def open_hint(session: Session, learner_id: int, problem: Problem, seed: int) -> Desk:
    """Open the next hint of a variant under way; a settled one has paid for all."""
    check_seed(seed)
    row = queries.find_variant(session, learner_id, problem.id, seed, lock=True)
    if row is None:
        raise NotFound(f"Variant {seed} of {problem.id} was not issued to you.")
    if row.settled_at is None and row.hints_opened < len(problem.hints):
        row.hints_opened += 1
        session.flush()
    return show(session, learner_id, problem, seed)


def history(session: Session, learner_id: int, problem: Problem) -> list[VariantRow]:
    return list(queries.list_settled(session, learner_id, problem.id))


def list_settled(session: Session, learner_id: int) -> Sequence[Settled]:
    """Every variant that is done with, oldest first."""
    return queries.list_all_settled(session, learner_id)


def solves(variant: Settled, *, unaided: bool) -> bool:
    """Whether a variant was all right; `unaided`: and no hint was open."""
    return (is_unaided if unaided else is_solved)(variant.score, variant.hints_opened)


def list_topics(session: Session, learner_id: int, content: Catalogue) -> list[Topic]:
    """Every problem by topic, as taught, with what the learner's settled variants say."""
    return topics_of(content.problems.values(), content.concepts, queries.list_all_settled(session, learner_id))


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every settled variant. Seeds that were not issued are never stored, so they say nothing."""
    settled = queries.list_all_settled(session, learner_id)
    return [Evidence("problem", each.problem_id, each.at, each.score) for each in settled]


@dataclass(frozen=True)
class Slip:
    """What a problem's newest settled variant got wrong, as its page says it in its title; `is_named` where that is a
    mistake's name. `cards` answer it."""

    problem: Problem
    at: datetime
    says: str
    is_named: bool
    cards: tuple[str, ...]


def list_slips(session: Session, learner_id: int, content: Catalogue, now: datetime) -> list[Slip]:
    """The slips of the problems missed of late, newest first: those whose newest variant has a wrong answer."""
    newest = {row.problem_id: row for row in queries.list_settled_since(session, learner_id, now - MISSED_FOR)}
    missed = [row for row in newest.values() if (row.score or 0.0) < 1 and row.problem_id in content.problems]
    found = []
    for row in sorted(missed, key=lambda each: (each.settled_at, each.id), reverse=True)[:MOST_SLIPS]:
        desk = _desk(session, content.problems[row.problem_id], row)
        if desk.wrong and row.settled_at is not None:
            cards = dict.fromkeys(state.grade.cure for state in desk.wrong if state.grade and state.grade.cure)
            is_named = any(state.finding for state in desk.wrong)
            found.append(Slip(content.problems[row.problem_id], row.settled_at, desk.headline, is_named, tuple(cards)))
    return found


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Issued variants and the answers to them as an export holds them."""
    variants = queries.list_all_variants(session, learner_id)
    issued = [as_record("variant", row, row.issued_at) for row in variants]
    attempts = queries.list_all_attempts(session, learner_id)
    problems = {row.id: {"problem_id": row.problem_id, "seed": row.seed} for row in variants}
    return [*issued, *(as_record("attempt", row, row.answered_at) | problems[row.variant_id] for row in attempts)]


@dataclass(frozen=True)
class Tried:
    """A variant in the history of attempts: as it stood when its last answer came."""

    desk: Desk
    attempts: int
    answered_at: datetime
    row: VariantRow
    problem: Problem


def list_tried(
    session: Session, learner_id: int, content: Catalogue, before: int | None = None, problem: Problem | None = None
) -> tuple[list[Tried], int | None]:
    """A page of the variants somebody answered, the one answered last first, and where the next page begins.

    A variant of a problem that is gone is left out: its answers stay in the export.
    """
    rows = queries.list_tried(session, learner_id, PAGE + 1, before, problem.id if problem else None)
    found = []
    for row in rows[:PAGE]:
        asked = content.problems.get(row.problem_id)
        if asked is None:
            continue
        attempts = queries.list_attempts(session, row.id)
        at = max(each.answered_at for each in attempts) if attempts else row.settled_at or row.issued_at
        found.append(Tried(_desk(session, asked, row), len(attempts), at, row, asked))
    return found, rows[PAGE - 1].id if len(rows) > PAGE else None


def _desk(session: Session, problem: Problem, row: VariantRow, made: variants.Variant | None = None) -> Desk:
    """Fold the attempts: the newest answer to a part stands, unless an earlier one already counted."""
    revised = row.revision != problem.revision
    is_history = revised or row.settled_at is not None
    variant = made or (_variant_then(session, problem, row) if is_history else None)
    in_todays_words = is_history and variant is None
    variant = variant or variants.make_variant(problem, row.seed, row.drawn)
    texts: dict[str, str] = {}
    grades: dict[str, Grade] = {}
    for attempt in queries.list_attempts(session, row.id):
        for part_id, result in attempt.results.items():
            if part_id in grades and grades[part_id].status != "invalid":
                continue
            texts[part_id], grades[part_id] = attempt.answers[part_id], Grade.from_json(result)
    states = tuple(PartState(part, texts.get(part.id, ""), grades.get(part.id)) for part in variant.parts)
    return Desk(
        variant,
        states,
        row.hints_opened,
        row.score,
        row.settled_at,
        is_revised=revised,
        in_todays_words=in_todays_words and revised,
    )


def _variant_then(session: Session, problem: Problem, row: VariantRow) -> variants.Variant | None:
    """The variant in the words it was answered in; None where they are not kept or do not compute any more."""
    if row.source is None:
        return None
    then = item_then(session, problem, row.source)
    if then is problem and row.source != digest_of(problem):
        return None
    try:
        variant = variants.make_variant(then, row.seed, row.drawn)
        if then is not problem:  # formulas may have changed since; what is shown later must not fail then
            _ = variant.statement, variant.given, variant.hints, variant.solution, variant.figure
    except ExpressionError:
        return None
    return variant
