"""Studying: which card comes next, what an answer does, and taking it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from app.content.asked import Asked, ask
from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core.errors import DomainError, NotFound, Stale, Violation
from app.core.texts import storable
from app.core.zone import learner_zone
from app.study import checking, queries, scheduling
from app.study import evidence as reviewed
from app.study.checking import Checked
from app.study.models import CardState, Review
from app.study.sorting import sort_cards

NEW_CARDS_PER_DAY = 12
SECONDS_PER_CARD = 25
LONGEST_ANSWER = timedelta(minutes=30)

list_evidence, list_records = reviewed.list_evidence, reviewed.list_records  # other rooms come through here


@dataclass(frozen=True)
class Progress:
    """Where the learner stands today."""

    done: int
    left: int

    @property
    def total(self) -> int:
        return self.done + self.left

    @property
    def minutes_left(self) -> int:
        return max(1, round(self.left * SECONDS_PER_CARD / 60))


@dataclass(frozen=True)
class NextCard:
    """A card to answer, with the interval each rating would give."""

    card: Card
    version: int
    intervals: Mapping[int, timedelta]
    last_seen_at: datetime | None
    is_new: bool
    asked: Asked | None = None
    checked: Checked | None = None

    @property
    def interval_texts(self) -> dict[int, str]:
        return {level: scheduling.interval_text(interval) for level, interval in self.intervals.items()}

    @property
    def is_settled(self) -> bool:
        """Whether the machine has judged an answer, so that it is to be rated."""
        return self.checked is not None and self.checked.counts


@dataclass(frozen=True)
class Desk:
    """What the study page shows: a card, or why there is none."""

    card: NextCard | None
    progress: Progress
    new_left: int
    next_due_at: datetime | None
    can_undo: bool


def study(session: Session, learner_id: int, catalogue: Catalogue, now: datetime, extra_new: int = 0) -> Desk:
    """The learner's next card and progress. `extra_new` cards are introduced beyond today's share."""
    today = scheduling.study_day_start(now, learner_zone())
    done, introduced = queries.count_reviews_since(session, learner_id, today)
    scheduled = queries.list_scheduled(session, learner_id)
    queue = sort_cards(scheduled, catalogue, now, NEW_CARDS_PER_DAY + extra_new - introduced)
    chosen = queue.first
    return Desk(
        _next(session, learner_id, chosen, catalogue, now) if chosen else None,
        Progress(done, queue.left),
        len(queue.new),
        queue.next_due_at,
        done > 0 or queries.has_reviews(session, learner_id),
    )


def show(session: Session, learner_id: int, catalogue: Catalogue, card_id: str, now: datetime) -> NextCard:
    """One card, whether due or not. Raises NotFound."""
    _card_of(catalogue, card_id)
    return _next(session, learner_id, card_id, catalogue, now)


def count_due(session: Session, learner_id: int, catalogue: Catalogue, now: datetime) -> int:
    """Cards to answer today: due ones and today's share of new ones."""
    today = scheduling.study_day_start(now, learner_zone())
    _, introduced = queries.count_reviews_since(session, learner_id, today)
    scheduled = queries.list_scheduled(session, learner_id)
    return sort_cards(scheduled, catalogue, now, NEW_CARDS_PER_DAY - introduced).left


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
    now: datetime,
    elapsed_milliseconds: int | None = None,
    seed: int | None = None,
    answer: str | None = None,
) -> Review:
    """Record an answer and reschedule its card, with what was typed and the seed of what was shown if there was any.

    The machine judges what was typed where the card's kind allows it: a wrong answer comes again whatever `level` says.
    Only the version that was shown may be answered: a second click or another tab raises Stale and changes nothing.
    """
    card = _card_of(catalogue, card_id)
    if level not in scheduling.LEVELS:
        raise DomainError(
            "The answer was not counted.",
            [Violation("level", level, f"{level} is no rating.", "1 (blank) to 5 (easy)")],
        )
    state = queries.find_state(session, learner_id, card_id)
    if (state.version if state else 0) != version:
        raise Stale(f"{card_id} was already answered, here or in another tab. Nothing was counted twice.")
    memory = _current_memory(state, card)
    judged = _judge(learner_id, card, version, seed, answer, elapsed_milliseconds)
    outcome = scheduling.review(memory, min(level, judged.best_level) if judged else level, now)
    _save(session, learner_id, card, state, outcome, now)
    limit = int(LONGEST_ANSWER.total_seconds() * 1000)
    review = Review(
        learner_id=learner_id,
        card_id=card_id,
        revision=card.head.revision,
        level=level,
        rating=outcome.rating,
        reviewed_at=now,
        elapsed_milliseconds=None if elapsed_milliseconds is None else max(0, min(elapsed_milliseconds, limit)),
        seed=judged.asked.seed if judged else seed,
        answer=answer if answer is None else storable(answer),
        verdict=judged.verdict.status if judged else None,
        due_at=outcome.due_at,
        memory_before=memory,
        memory_after=outcome.memory,
        time_zone=str(learner_zone()),
        day_starts_hour=scheduling.DAY_STARTS_HOUR,
        scheduler=scheduling.scheduler_name(),
        parameters_id=scheduling.PARAMETERS_ID,
    )
    session.add(review)
    session.flush()
    return review


def undo(session: Session, learner_id: int, now: datetime) -> str:
    """Take back the newest review that stands; returns its card. Raises DomainError when there is none."""
    review = queries.find_last_review(session, learner_id)
    if review is None:
        raise DomainError("There is no answer to take back.")
    state = queries.find_state(session, learner_id, review.card_id)
    assert state is not None, "a review without a state cannot have been stored"
    marked = session.execute(
        update(Review).where(Review.id == review.id, Review.undone_at.is_(None)).values(undone_at=now)
    )
    if marked.rowcount != 1:  # type: ignore[attr-defined]
        raise Stale("That answer was already taken back.")
    before = review.memory_before
    state.memory = before
    state.is_learning = scheduling.is_learning(before)
    state.due_at = datetime.fromisoformat(before["due"]) if before else None
    state.last_review_at = datetime.fromisoformat(before["last_review"]) if before else None
    state.reviews -= 1
    if scheduling.is_lapse(before, review.rating):
        state.lapses -= 1
    try:
        session.flush()
    except StaleDataError:
        raise Stale(f"{review.card_id} changed in another tab just now. Nothing was taken back.") from None
    return review.card_id


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
        example = found.asked.example or "as offered"
        raise DomainError(
            "The answer was not counted.",
            [Violation("answer", answer, found.verdict.message.striptags(), example)],
        )
    return found


def _card_of(catalogue: Catalogue, card_id: str) -> Card:
    card = catalogue.cards.get(card_id)
    if card is None:
        raise NotFound(f"There is no card {card_id!r}. Accepted: {', '.join(list(catalogue.cards)[:3])} and so on.")
    return card


def _current_memory(state: CardState | None, card: Card) -> dict[str, Any] | None:
    """What is remembered of the card as it reads now: a new revision means something else and is learned anew."""
    if state is None or state.revision != card.head.revision:
        return None
    return state.memory


def _save(
    session: Session, learner_id: int, card: Card, state: CardState | None, outcome: scheduling.Outcome, now: datetime
) -> None:
    """Write the new state where the version still is what was read; by now another tab may have been faster."""
    values = {
        "revision": card.head.revision,
        "memory": outcome.memory,
        "is_learning": scheduling.is_learning(outcome.memory),
        "due_at": outcome.due_at,
        "last_review_at": now,
    }
    if state is None:
        session.add(CardState(learner_id=learner_id, card_id=card.id, reviews=1, lapses=int(outcome.lapsed), **values))
    else:
        for name, value in values.items():
            setattr(state, name, value)
        state.reviews += 1
        state.lapses += int(outcome.lapsed)
    try:
        session.flush()
    except (IntegrityError, StaleDataError):
        raise Stale(f"{card.id} was already answered in another tab. Nothing was counted twice.") from None


def _next(session: Session, learner_id: int, card_id: str, catalogue: Catalogue, now: datetime) -> NextCard:
    state = queries.find_state(session, learner_id, card_id)
    card = catalogue.cards[card_id]
    memory = _current_memory(state, card)
    version = state.version if state else 0
    return NextCard(
        card,
        version,
        scheduling.preview(memory, now),
        state.last_review_at if state else None,
        memory is None,
        ask(card, checking.seed_of(learner_id, card, version)) if card.is_checked else None,
    )
