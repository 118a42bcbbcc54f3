"""When to see a card again: FSRS around a five-level self-rating. Pure: state and time in, new state out.

py-fsrs does the arithmetic with its fuzz off. Time between reviews reaches it in whole study days, so that a card of
yesterday evening is a day old this morning; a known card comes back at the start of a study day, a card in its first
steps after minutes. On which day of several that are as good is said by a fuzz whose range is that of FSRS as py-fsrs
ships it: the card's own seed picks one, the same whenever it is asked for, so that cards learned together come apart;
then the quietest of the days next to that pick is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from fsrs import Card, Rating, Scheduler, State

from app.core.days import DAY_STARTS_HOUR, day_number, day_start
from app.study.fsrs.parameters import DEFAULT, Parameters
from app.units import factor_of

LEVELS: Mapping[int, Rating] = {1: Rating.Again, 2: Rating.Again, 3: Rating.Hard, 4: Rating.Good, 5: Rating.Easy}

# The best level each finding of the machine leaves: what is wrong comes again, what took very long was not easy.
BEST_LEVEL: Mapping[str, int] = {"wrong": 2, "slow": 4}

LEECH_LAPSES, LEECH_AGAIN = 8, 4

SHORTEST_FUZZED_DAYS = 3
NEIGHBOUR_DAYS = 3
LONGEST_DAYS = 36500
_FUZZ_FACTORS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, float("inf"), 0.05))

# What a card was when it was reviewed, as the log's `phase` says it; FSRS's own numbers, and two it does not need.
NEW, KNOWN, NOT_REVIEWED = 0, State.Review.value, 4

RULES_NAME = "rankzero 2"
SCHEDULER_NAME = f"{RULES_NAME}, py-fsrs {version('fsrs')}"  # as the review log records it
AT = datetime(2000, 1, 1, tzinfo=UTC)  # py-fsrs takes dates and counts days between them: any will do
MEMORY_FIELDS = ("state", "step", "stability", "difficulty")  # of a memory, as the log writes it

Memory = Mapping[str, Any]
Load = Mapping[int, int]  # how many cards come back on a day, counted from today


@dataclass(frozen=True)
class Rules:
    """What an interval depends on besides the memory: the learner's day, the retention wanted, the parameters."""

    zone: ZoneInfo
    desired_retention: float = 0.9
    parameters: Parameters = DEFAULT
    starts_hour: int = DAY_STARTS_HOUR

    @cached_property
    def scheduler(self) -> Scheduler:
        return scheduler_of(self.parameters, self.desired_retention)


class Step(NamedTuple):
    """A memory after a rating, before a day was chosen. `days` is None while minutes count."""

    state: int
    step: int | None
    stability: float
    difficulty: float
    delay: timedelta

    @property
    def memory(self) -> dict[str, object]:
        """What the log keeps of it, less the dates."""
        return dict(zip(MEMORY_FIELDS, self[:4], strict=True))

    @property
    def days(self) -> int | None:
        return self.delay.days if self.state == KNOWN else None


class Outcome(NamedTuple):
    """What a rating does to a card's memory. `interval` is what the page says: whole days, or minutes."""

    memory: dict[str, object]
    due_at: datetime
    interval: timedelta
    rating: int
    lapsed: bool


def scheduler_of(parameters: Parameters, desired_retention: float) -> Scheduler:
    """py-fsrs with its own fuzz off."""
    return Scheduler(parameters, desired_retention, enable_fuzzing=False)


def rate(memory: Memory | None, rating: Rating, elapsed_days: int, scheduler: Scheduler) -> Step:
    """One review by FSRS-6 as py-fsrs computes it, `elapsed_days` after the last."""
    before = Card(card_id=0, due=AT) if memory is None else _card(memory, elapsed_days)
    after, _ = scheduler.review_card(before, rating, AT)
    return step_of(after, AT)


def step_of(card: Card, now: datetime) -> Step:
    """What py-fsrs made of a card that was reviewed at `now`."""
    assert card.stability is not None
    assert card.difficulty is not None
    return Step(card.state.value, card.step, card.stability, card.difficulty, card.due - now)


def place(rating: Rating, rules: Rules) -> Step:
    """A card that skips its learning steps: what a first answer of `rating` is worth, known from then on."""
    scheduler = Scheduler(
        rules.parameters, rules.desired_retention, learning_steps=(), relearning_steps=(), enable_fuzzing=False
    )
    return rate(None, rating, 0, scheduler)


def elapsed_days(memory: Memory | None, now: datetime, zone: ZoneInfo, starts_hour: int = DAY_STARTS_HOUR) -> int:
    """Study days since the last review; none where the clock went back."""
    if memory is None:
        return 0
    last = datetime.fromisoformat(memory["last_review"])
    return max(0, day_number(now, zone, starts_hour) - day_number(last, zone, starts_hour))


def intervals(
    memory: Memory | None, card_id: str, repetition: int, now: datetime, rules: Rules, load: Load
) -> dict[int, timedelta]:
    """When each level would bring the card back: whole days, or the minutes of a first step."""
    chosen = _choices(memory, card_id, repetition, now, rules, load, Rating.Easy)
    gaps = [step.delay if days is None else timedelta(days=days) for step, days in chosen]
    return {level: gaps[rating - 1] for level, rating in LEVELS.items()}


def outcome(
    memory: Memory | None, card_id: str, repetition: int, now: datetime, rules: Rules, load: Load, level: int
) -> Outcome:
    """What `level` does to the card."""
    rating = LEVELS[level]
    step, days = _choices(memory, card_id, repetition, now, rules, load, rating)[-1]
    return settle(step, days, now, rules, memory, rating)


def days_in_question(memory: Memory | None, card_id: str, repetition: int, now: datetime, rules: Rules) -> range:
    """Every day, from today, that some rating may choose; empty where only minutes count."""
    fraction, _ = fuzz_seed(card_id, repetition)
    steps = _steps(memory, now, rules, Rating.Easy)
    around = [candidate_days(step.days, fraction)[1] for step in steps if step.days is not None]
    return range(min(each.start for each in around), max(each.stop for each in around)) if around else range(0)


def _choices(
    memory: Memory | None, card_id: str, repetition: int, now: datetime, rules: Rules, load: Load, best: Rating
) -> list[tuple[Step, int | None]]:
    """Each rating's step up to `best`, and the day chosen for it (from today) where days count.

    A better rating never comes back sooner, so that what is chosen for one depends on the worse ones only.
    """
    fraction, _ = fuzz_seed(card_id, repetition)
    chosen: list[tuple[Step, int | None]] = []
    longest = 0
    for step in _steps(memory, now, rules, best):
        if step.days is not None:
            longest = choose_day(step.days, fraction, load, longest)
        chosen.append((step, None if step.days is None else longest))
    return chosen


def _steps(memory: Memory | None, now: datetime, rules: Rules, best: Rating) -> list[Step]:
    """What py-fsrs makes of each rating up to `best`."""
    elapsed, scheduler = elapsed_days(memory, now, rules.zone, rules.starts_hour), rules.scheduler
    return [rate(memory, rating, elapsed, scheduler) for rating in Rating if rating <= best]


def fuzz_range(days: int) -> tuple[int, int]:
    """The fewest and most days that may be chosen instead of `days`."""
    if days < SHORTEST_FUZZED_DAYS:
        return days, days
    delta = 1.0 + sum(factor * max(min(float(days), end) - start, 0.0) for start, end, factor in _FUZZ_FACTORS)
    high = min(round(days + delta), LONGEST_DAYS)
    return min(max(2, round(days - delta)), high), high


def fuzz_seed(card_id: str, repetition: int) -> tuple[float, int]:
    """A fraction in [0, 1) to fuzz with, and a 31-bit number to order by, both of this repetition of this card."""
    digest = sha256(f"{card_id}:{repetition}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48, int.from_bytes(digest[8:12]) >> 1


def candidate_days(days: int, fraction: float) -> tuple[int, range]:
    """The day the fuzz picks, and the days next to it that may be taken instead."""
    low, high = fuzz_range(days)
    pick = low + int(fraction * (high - low + 1))
    return pick, range(max(low, pick - NEIGHBOUR_DAYS), min(high, pick + NEIGHBOUR_DAYS) + 1)


def choose_day(days: int, fraction: float, load: Mapping[int, int], at_least: int = 0) -> int:
    """The candidate with the fewest cards due (`load`, by days from today); among equals the nearest to the pick."""
    pick, around = candidate_days(days, fraction)
    return min((day for day in around if day >= at_least), key=lambda day: (load.get(day, 0), abs(day - pick), day))


def settle(step: Step, days: int | None, now: datetime, rules: Rules, memory: Memory | None, rating: Rating) -> Outcome:
    """The memory that is kept once the day is chosen (`days` from today), or after the minutes of a first step."""
    now = now.astimezone(UTC)
    if days is None:
        due_at, interval = now + step.delay, step.delay
    else:
        due_at = day_start(day_number(now, rules.zone, rules.starts_hour) + days, rules.zone, rules.starts_hour)
        interval = timedelta(days=days)
    kept = {**step.memory, "due": due_at.isoformat(), "last_review": now.isoformat()}
    return Outcome(kept, due_at, interval, int(rating), is_lapse(memory, rating))


def recall(memory: Memory, now: datetime, rules: Rules) -> float:
    """The retrievability, in 0..1: the probability that the card is recalled at `now`."""
    elapsed = elapsed_days(memory, now, rules.zone, rules.starts_hour)
    return float(rules.scheduler.get_card_retrievability(_card(memory, elapsed), AT))


def interval_share(retention: float, other: float, parameters: Parameters = DEFAULT) -> float:
    """How long an interval is at one desired retention, beside one at the `other`."""
    decay = -parameters[20]
    return float((retention ** (1 / decay) - 1) / (other ** (1 / decay) - 1))


def best_level(findings: Iterable[str]) -> int:
    """The best level that counts after what the machine found."""
    return min((BEST_LEVEL[finding] for finding in findings if finding in BEST_LEVEL), default=max(LEVELS))


def is_lapse(memory: Memory | None, rating: int) -> bool:
    """Whether `rating` forgets a card that was known."""
    return memory is not None and memory["state"] == KNOWN and rating == Rating.Again


def is_learning(memory: Memory | None) -> bool:
    """Whether the card is still in its first steps (or back in them), where minutes count."""
    return memory is not None and memory["state"] != KNOWN


def phase_of(memory: Memory | None) -> int:
    """What the card is, as the log says it."""
    return NEW if memory is None else int(memory["state"])


def is_leech(lapses: int) -> bool:
    """Whether this lapse is one to say something about: the eighth, then every fourth."""
    return lapses >= LEECH_LAPSES and (lapses - LEECH_LAPSES) % LEECH_AGAIN == 0


def interval_text(interval: timedelta) -> str:
    """1 min, 3 h, 6 d, 2.1 months, 1.4 years."""
    if interval < timedelta(hours=1):
        return f"{max(1, round(interval / timedelta(minutes=1)))} min"
    if interval < timedelta(days=1):
        return f"{round(interval / timedelta(hours=1))} h"
    if interval < timedelta(days=60):
        return f"{round(interval / timedelta(days=1))} d"
    unit = "months" if interval < timedelta(days=365) else "years"
    return f"{interval.total_seconds() / factor_of(unit):.1f} {unit}"


def _card(memory: Memory, elapsed_days: int) -> Card:
    """The memory as py-fsrs holds it, reviewed `elapsed_days` before `AT`."""
    return Card(
        0,
        State(memory["state"]),
        memory["step"],
        memory["stability"],
        memory["difficulty"],
        AT,
        AT - timedelta(days=elapsed_days),
    )
