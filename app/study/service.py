"""Studying: which card comes next, what an answer does, and taking it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from app.content.asked import Asked, ask
from app.content.cards import Card
from app.core.days import day_number
from app.core.errors import DomainError, Violation
from app.core.moment import Moment
from app.core.texts import storable
from app.study import checking, queries
from app.study.checking import Checked
from app.study.exam import preparation
from app.study.fsrs import scheduling
from app.study.log import evidence as reviewed
from app.study.log import recording
from app.study.log.recording import Given, Recorded, undo
from app.study.policy import NEW_PER_DAY, Policy, policy_for, rules_of
from app.study.queries import State
from app.study.queue.agenda import NOTHING, Agenda, Filter, agenda, next_due_at
from app.study.queue.marking import mark
from app.study.queue.queues import note_met_blocks

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

__all__ = [
    "NEW_CARDS_PER_DAY",
    "Desk",
    "NextCard",
    "Progress",
    "count_due",
    "has_studied",
    "mark",
    "study",
    "undo",
]

NEW_CARDS_PER_DAY = NEW_PER_DAY
SECONDS_PER_CARD = 25
LONGEST_ANSWER = timedelta(minutes=30)
NOTED_EVERY = 16  # answers: what was met whole only makes reading faster, so that it may be written down late

list_evidence, list_records = reviewed.list_evidence, reviewed.list_records  # other rooms come through here


@dataclass(frozen=True)
class Progress:
    """Where the learner stands today: answers given, new cards to meet, and cards that come again, due or in steps."""

    done: int
    new: int
    again: int

    @property
    def left(self) -> int:
        return self.new + self.again

    @property
    def total(self) -> int:
        return self.done + self.left

    @property
    def minutes_left(self) -> int:
        return max(1, round(self.left * SECONDS_PER_CARD / 60))


@dataclass(frozen=True)
class Marks:
    """What the learner hung on a card."""

    is_flagged: bool = False
    note: str = ""
    is_suspended: bool = False
    buried_until: datetime | None = None


@dataclass(frozen=True)
class NextCard:
    """A card to answer, with the interval each rating would give."""

    card: Card
    version: int
    intervals: Mapping[int, timedelta]
    last_seen_at: datetime | None
    is_new: bool
    lapses: int = 0
    marks: Marks = Marks()
    asked: Asked | None = None
    checked: Checked | None = None

    @property
    def interval_texts(self) -> dict[int, str]:
        return {level: scheduling.interval_text(interval) for level, interval in self.intervals.items()}

    @property
    def is_settled(self) -> bool:
        """Whether the machine has judged an answer, so that it is to be rated."""
        return self.checked is not None and self.checked.counts

    @property
    def is_hard(self) -> bool:
        """Whether it was forgotten so often that repeating it is not what helps."""
        return self.lapses >= scheduling.LEECH_LAPSES


@dataclass(frozen=True)
class Answered:
    """How a showing was answered."""

    level: int
    is_same_request: bool
    is_undone: bool


@dataclass(frozen=True)
class Desk:
    """What the study page shows: a card, or why there is none."""

    card: NextCard | None
    progress: Progress
    new_left: int
    next_due_at: datetime | None
    can_undo: bool
    buried: int = 0
    wanted: Filter = NOTHING


def study(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    moment: Moment,
    extra_new: int = 0,
    wanted: Filter = NOTHING,
) -> Desk:
    """The learner's next card and progress. `extra_new` cards are introduced beyond today's share."""
    policy = policy_for(session, learner_id, moment)
    found = _day(session, learner_id, catalogue, policy, moment, extra_new, wanted)
    card = None
    if found.first is not None:
        shown = queries.find_card(session, learner_id, catalogue, found.first)
        card = _next(session, learner_id, shown, queries.find_state(session, learner_id, found.first), policy, moment)
    return Desk(
        card,
        Progress(found.done, found.new, found.learning + found.due),
        found.new_waiting if card is None else found.new,
        next_due_at(session, learner_id, moment.now) if card is None else None,
        queries.has_reviews(session, learner_id),
        found.buried,
        wanted,
    )


def show(session: Session, learner_id: int, catalogue: Catalogue, card_id: str, moment: Moment) -> NextCard:
    """One card, whether due or not. Raises NotFound."""
    card = queries.find_card(session, learner_id, catalogue, card_id)
    state = queries.find_state(session, learner_id, card_id)
    policy = policy_for(session, learner_id, moment)
    return _next(session, learner_id, card, state, policy, moment)


def count_due(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> int:
    """Cards to answer today: due ones and today's share of new ones."""
    return _day(session, learner_id, catalogue, policy_for(session, learner_id, moment), moment).left


def has_studied(session: Session, learner_id: int) -> bool:
    return queries.has_reviews(session, learner_id)


def submit_review(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    *,
    card_id: str,
    level: int,
    version: int,
    moment: Moment,
    elapsed_milliseconds: int | None = None,
    seed: int | None = None,
    answer: str | None = None,
    request_key: str | None = None,
) -> Recorded:
    """Record an answer and reschedule its card, with what was typed and the seed of what was shown if there was any.

    The machine judges what was typed where the card's kind allows it: a wrong answer comes again whatever `level` says.
    Only the version that was shown may be answered: a second click or another tab raises Stale and changes nothing.
    """
    card = queries.find_card(session, learner_id, catalogue, card_id)
    if level not in scheduling.LEVELS:
        raise DomainError(
            "The answer was not counted.",
            [Violation("level", level, f"{level} is no rating.", "1 (blank) to 5 (easy)")],
        )
    state = queries.find_state(session, learner_id, card_id)
    recording.must_be_shown(state, card_id, version)
    judged = _judge(learner_id, card, version, seed, answer, elapsed_milliseconds)
    policy = policy_for(session, learner_id, moment)
    if policy.is_unplanned:
        preparation.plan_day(session, learner_id, catalogue, moment)
    memory = recording.memory_of(session, learner_id, state, card, policy)
    limit = int(LONGEST_ANSWER.total_seconds() * 1000)
    given = Given(
        level,
        version,
        None if elapsed_milliseconds is None else max(0, min(elapsed_milliseconds, limit)),
        judged.asked.seed if judged else seed,
        answer if answer is None else storable(answer),
        judged.verdict.status if judged else None,
        request_key,
    )
    counted = min(level, judged.best_level) if judged else level
    rules, repetition = rules_of(policy, moment.zone), state.reviews if state else 0
    load = _load(session, learner_id, memory, card_id, repetition, moment.now, rules)
    outcome = scheduling.outcome(memory, card_id, repetition, moment.now, rules, load, counted)
    made = recording.record(session, learner_id, card, state, given, memory, outcome, policy, moment)
    if state is None and made.id % NOTED_EVERY == 0:
        note_met_blocks(session, learner_id, catalogue)
    return made


def find_answer(
    session: Session, learner_id: int, card_id: str, version: int, request_key: str | None
) -> Answered | None:
    """How a showing was answered, if it was: what a page asks whose request got no reply."""
    found = queries.find_answer(session, learner_id, card_id, version)
    if found is None:
        return None
    same = request_key is not None and found.request_key == request_key
    return Answered(found.level, same, found.undone_at is not None)


def checked(shown: NextCard, answer: str, seed: int | None, elapsed_milliseconds: int | None) -> NextCard:
    """The showing with the machine's verdict on `answer`. Raises DomainError."""
    if shown.asked is None:
        raise DomainError(
            f"{shown.card.id} is not checked by the machine.",
            [Violation("card_id", shown.card.id, "You judge this card yourself.", "numeric, choose, match, order")],
        )
    found = checking.check(shown.card, shown.asked.seed if seed is None else seed, answer, elapsed_milliseconds)
    return replace(shown, asked=found.asked, checked=found)


def _judge(
    learner_id: int, card: Card, version: int, seed: int | None, answer: str | None, elapsed_milliseconds: int | None
) -> Checked | None:
    """The machine's verdict on what was typed, if there is any. Raises DomainError where it cannot be read."""
    if not card.is_checked or answer is None or not answer.strip():
        return None
    shown_seed = checking.seed_of(learner_id, card, version) if seed is None else seed
    found = checking.check(card, shown_seed, answer, elapsed_milliseconds)
    if not found.counts:
        accepted = found.asked.written_as or ("a number" if found.asked.number else "as offered")
        raise DomainError(
            "The answer was not counted.",
            [Violation("answer", answer, found.verdict.message.striptags(), accepted)],
        )
    return found


def _day(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    policy: Policy,
    moment: Moment,
    extra_new: int = 0,
    wanted: Filter = NOTHING,
) -> Agenda:
    """The learner's day, as the page, the badge and Today show it; a plan's cards count before anything wrote them."""
    chosen = None
    if policy.is_unplanned:
        found = preparation.choose_day(session, learner_id, catalogue, moment)
        chosen = (found.brought, found.held)
        policy = replace(policy, new_per_day=found.new) if policy.deadline else policy
    return agenda(session, learner_id, catalogue, policy, moment, extra_new, wanted, chosen)


def _load(
    session: Session,
    learner_id: int,
    memory: scheduling.Memory | None,
    card_id: str,
    repetition: int,
    now: datetime,
    rules: scheduling.Rules,
) -> Mapping[int, int]:
    """How many cards come back on each day that some rating may choose, counted from today."""
    days = scheduling.days_in_question(memory, card_id, repetition, now, rules)
    return queries.count_due_by_day(session, learner_id, day_number(now, rules.zone), days, rules.zone)


def _next(
    session: Session,
    learner_id: int,
    card: Card,
    state: State | None,
    policy: Policy,
    moment: Moment,
) -> NextCard:
    memory = recording.memory_of(session, learner_id, state, card, policy)
    version, repetition = (state.version, state.reviews) if state else (0, 0)
    rules = rules_of(policy, moment.zone)
    load = _load(session, learner_id, memory, card.id, repetition, moment.now, rules)
    return NextCard(
        card,
        version,
        scheduling.intervals(memory, card.id, repetition, moment.now, rules, load),
        state.last_review_at if state else None,
        memory is None,
        state.lapses if state else 0,
        marks_of(state, moment.now),
        ask(card, checking.seed_of(learner_id, card, version)) if card.is_checked else None,
    )


def marks_of(state: State | None, now: datetime) -> Marks:
    """What the learner hung on a card, as of `now`."""
    if state is None:
        return Marks()
    buried = state.buried_until if state.buried_until and state.buried_until > now else None
    return Marks(state.flagged_at is not None, state.note or "", state.suspended_at is not None, buried)
