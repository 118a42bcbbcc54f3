"""FSRS around five levels: the same input gives the same date, better answers give longer intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from fsrs import Card, Rating, Scheduler
from fsrs import scheduler as fsrs_scheduler
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.days import day_number
from app.study.fsrs import parameters, scheduling

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RULES = scheduling.Rules(ZoneInfo("Europe/Berlin"))


QUIET: dict[int, int] = {}  # days on which nothing else is due


def review(memory, level, now=NOW, repetition=0, load=QUIET, rules=RULES):  # type: ignore[no-untyped-def]
    return scheduling.outcome(memory, "C61", repetition, now, rules, load, level)


@pytest.mark.parametrize(
    ("level", "rating"),
    [(1, Rating.Again), (2, Rating.Again), (3, Rating.Hard), (4, Rating.Good), (5, Rating.Easy)],
)
def test_levels_map_to_ratings_and_the_arithmetic_is_fsrs(level: int, rating: Rating) -> None:
    expected, _ = Scheduler(enable_fuzzing=False).review_card(Card(card_id=1, due=NOW), rating, NOW)
    outcome = review(None, level)
    assert (outcome.memory["stability"], outcome.memory["difficulty"]) == (expected.stability, expected.difficulty)
    assert outcome.memory["state"] == expected.state.value
    assert outcome.rating == int(rating)
    if level < 5:
        assert outcome.due_at == expected.due, "minutes are not touched"


def test_the_default_parameters_are_those_fsrs_publishes() -> None:
    assert parameters.DEFAULT == fsrs_scheduler.DEFAULT_PARAMETERS
    assert parameters.identify(parameters.DEFAULT) == "fsrs-6-default"
    other = (*parameters.DEFAULT[:-1], 0.2)
    assert parameters.identify(other) == parameters.identify(list(other)) != "fsrs-6-default"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-2, 3), st.integers(0, 23)), min_size=1, max_size=12))
def test_a_history_is_fsrs_on_study_days(history: list[tuple[int, int, int]]) -> None:
    """Step by step the memory is what py-fsrs makes of dates that lie whole study days apart."""
    scheduler, card, memory, now = Scheduler(enable_fuzzing=False), Card(card_id=1, due=NOW), None, NOW
    for repetition, (level, late_days, hour) in enumerate(history):
        today = datetime.fromordinal(day_number(now, RULES.zone)).replace(tzinfo=UTC)
        card, _ = scheduler.review_card(card, scheduling.LEVELS[level], today)
        outcome = review(memory, level, now, repetition)
        memory = outcome.memory
        assert (memory["stability"], memory["difficulty"]) == (card.stability, card.difficulty)
        assert (memory["state"], memory["step"]) == (card.state.value, card.step)
        now = max(now, outcome.due_at + timedelta(days=late_days, hours=hour))


def test_yesterday_evening_is_a_day_ago_this_morning() -> None:
    evening = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
    known = review(None, 5, evening).memory
    assert scheduling.elapsed_days(known, evening + timedelta(hours=9), RULES.zone) == 1
    assert scheduling.elapsed_days(known, evening + timedelta(hours=4), RULES.zone) == 0, "02:00 is the same night"
    assert scheduling.elapsed_days(known, evening - timedelta(days=3), RULES.zone) == 0, "the clock went back"


def test_a_known_card_comes_back_when_a_study_day_starts() -> None:
    outcome = review(None, 5)
    assert outcome.due_at.astimezone(RULES.zone).strftime("%H:%M") == "04:00"
    assert outcome.interval.days == day_number(outcome.due_at, RULES.zone) - day_number(NOW, RULES.zone)


def test_nothing_is_random_and_cards_learned_together_come_apart() -> None:
    memory = review(None, 5).memory
    later = NOW + timedelta(days=30)
    assert len({review(memory, 4, later).due_at for _ in range(20)}) == 1
    spread = {scheduling.outcome(memory, f"C{i}", 1, later, RULES, QUIET, 4).interval.days for i in range(1, 60)}
    low, high = scheduling.fuzz_range(scheduling.rate(memory, Rating.Good, 30, RULES.scheduler).days or 0)
    assert spread == set(range(low, high + 1))


@settings(max_examples=200, deadline=None)
@given(
    days=st.integers(1, 40000),
    fraction=st.floats(0, 1, exclude_max=True),
    load=st.dictionaries(st.integers(1, 400), st.integers(0, 90), max_size=20),
)
def test_the_chosen_day_is_in_the_range_of_fsrs_and_next_to_the_pick(
    days: int, fraction: float, load: dict[int, int]
) -> None:
    days = min(days, scheduling.LONGEST_DAYS)
    low, high = scheduling.fuzz_range(days)
    pick, around = scheduling.candidate_days(days, fraction)
    chosen = scheduling.choose_day(days, fraction, load)
    assert low <= pick <= high
    assert chosen in around
    assert abs(chosen - pick) <= scheduling.NEIGHBOUR_DAYS
    assert low <= around[0] <= around[-1] <= high
    assert all(load.get(chosen, 0) <= load.get(day, 0) for day in around), "no neighbour has less to do"


def test_the_range_is_the_one_py_fsrs_draws_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """At random() = 0 py-fsrs takes its shortest interval; its longest is one more than the range has, now and then."""
    monkeypatch.setattr(fsrs_scheduler, "random", lambda: 0.0)
    for days in (*range(1, 120), 365, 3000):
        drawn = Scheduler()._get_fuzzed_interval(interval=timedelta(days=days)).days
        assert drawn == scheduling.fuzz_range(days)[0], days


@pytest.mark.parametrize("days", [1, 12, 200])
@pytest.mark.parametrize("first", [3, 5])
def test_whatever_is_pressed_the_day_was_in_question(days: int, first: int) -> None:
    """The load is read of these days only: any other would have looked free."""
    memory = review(None, first).memory
    later = NOW + timedelta(days=days)
    asked = scheduling.days_in_question(memory, "C61", 1, later, RULES)
    chosen = scheduling.intervals(memory, "C61", 1, later, RULES, QUIET).values()
    assert {gap.days for gap in chosen if gap >= timedelta(days=1)} <= set(asked)
    assert len(asked) > 0
    assert len(scheduling.days_in_question(None, "C61", 0, NOW, scheduling.Rules(RULES.zone))) > 0, "Easy is days off"


def test_the_place_among_cards_of_a_day_fits_a_column_of_every_database() -> None:
    places = [scheduling.fuzz_seed(f"C{index}", 0)[1] for index in range(200)]
    assert len(set(places)) == len(places)
    assert 2**28 < max(places) < 2**31, "a signed 32-bit number, drawn from all of them"


def test_a_busy_day_is_avoided() -> None:
    memory, later = review(None, 5).memory, NOW + timedelta(days=40)
    free = review(memory, 4, later).interval.days
    moved = review(memory, 4, later, load={free: 30}).interval.days
    assert moved != free
    assert abs(moved - free) == 1, "the nearest quiet day"
    assert review(memory, 4, later, load={free: 1}).interval.days == moved, "none is quieter than one"


@settings(max_examples=100, deadline=None)
@given(
    stability=st.floats(0.01, 3000),
    difficulty=st.floats(1, 10),
    elapsed=st.integers(0, 2000),
    state=st.sampled_from([1, 2, 3]),
    load=st.dictionaries(st.integers(1, 4000), st.integers(0, 50), max_size=40),
)
def test_a_better_answer_never_comes_back_sooner(  # type: ignore[no-untyped-def]
    stability, difficulty, elapsed, state, load
) -> None:
    memory = {
        "state": state,
        "step": None if state == 2 else 0,
        "stability": stability,
        "difficulty": difficulty,
        "due": NOW.isoformat(),
        "last_review": (NOW - timedelta(days=elapsed)).isoformat(),
    }
    found = {level: review(memory, level, repetition=3, load=load) for level in scheduling.LEVELS}
    shown = scheduling.intervals(memory, "C61", 3, NOW, RULES, load)
    assert shown == {level: outcome.interval for level, outcome in found.items()}, "the page says what happens"
    dues = [found[level].due_at for level in sorted(found)]
    assert dues == sorted(dues)
    assert all(due > NOW for due in dues)
    assert found[1].due_at == found[2].due_at, "blank and partly wrong both repeat the card"


def test_a_placed_card_skips_its_first_steps() -> None:
    for rating, days in ((Rating.Easy, 8), (Rating.Good, 2)):
        step = scheduling.place(rating, RULES.scheduler)
        assert (step.state, step.step, step.days) == (2, None, days)
        assert step.stability == scheduling.rate(None, rating, 0, RULES.scheduler).stability


def test_recall_falls_to_the_desired_retention_when_a_card_is_due() -> None:
    memory = review(None, 5).memory
    assert scheduling.recall(memory, NOW, RULES) == 1
    due = datetime.fromisoformat(memory["last_review"]) + timedelta(days=memory["stability"])
    assert scheduling.recall(memory, due, RULES) == pytest.approx(0.9, abs=0.005)


def test_a_higher_retention_shortens_every_interval_by_the_same_share() -> None:
    share = scheduling.interval_share(0.95, 0.90)
    for stability in (40.0, 400.0):
        at = [scheduling.scheduler_of(parameters.DEFAULT, r)._next_interval(stability=stability) for r in (0.95, 0.9)]
        assert at[0] / at[1] == pytest.approx(share, rel=0.03)


def test_only_forgetting_a_known_card_is_a_lapse() -> None:
    assert not review(None, 1).lapsed
    known, learning = review(None, 5).memory, review(None, 4).memory
    assert review(known, 2, NOW + timedelta(days=8)).lapsed
    assert not review(known, 3, NOW + timedelta(days=8)).lapsed
    assert not review(learning, 1, NOW + timedelta(minutes=10)).lapsed


def test_the_eighth_lapse_and_every_fourth_after_it_are_said() -> None:
    assert [lapses for lapses in range(30) if scheduling.is_leech(lapses)] == [8, 12, 16, 20, 24, 28]


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (timedelta(seconds=20), "1 min"),
        (timedelta(minutes=10), "10 min"),
        (timedelta(hours=5), "5 h"),
        (timedelta(days=6), "6 d"),
        (timedelta(days=91), "3.0 months"),
        (timedelta(days=500), "1.4 years"),
    ],
)
def test_intervals_are_said_shortly(interval: timedelta, text: str) -> None:
    assert scheduling.interval_text(interval) == text


@pytest.mark.parametrize(
    ("findings", "best"),
    [([], 5), (["correct"], 5), (["wrong"], 2), (["correct", "slow"], 4), (["wrong", "slow"], 2)],
)
def test_what_the_machine_found_bounds_the_rating(findings: list[str], best: int) -> None:
    assert scheduling.best_level(findings) == best


def test_what_a_card_is_follows_from_its_memory() -> None:
    known, learning, again = ({"state": state} for state in (scheduling.KNOWN, 1, 3))
    assert [scheduling.is_learning(each) for each in (None, known, learning, again)] == [False, False, True, True]
    assert [scheduling.phase_of(each) for each in (None, learning, known, again)] == [0, 1, 2, 3]
    assert scheduling.elapsed_days(None, NOW, RULES.zone) == 0


def test_parameters_are_taken_as_they_are_and_named_in_sixteen_digits() -> None:
    other = (*parameters.DEFAULT[:-1], parameters.DEFAULT[-1] * 1.1)
    assert parameters.validated(list(other)) == other
    assert len(parameters.identify(other)) == len("fsrs-6-") + 16


@pytest.mark.parametrize(
    ("days", "text"), [(59, "59 d"), (60, "2.0 months"), (364, "12.0 months"), (365, "1.0 years"), (730, "2.0 years")]
)
def test_long_intervals_change_their_unit_on_the_day(days: int, text: str) -> None:
    assert scheduling.interval_text(timedelta(days=days)) == text


def test_hours_and_minutes_are_rounded_to_their_own() -> None:
    assert scheduling.interval_text(timedelta(minutes=50)) == "50 min"
    assert scheduling.interval_text(timedelta(hours=23)) == "23 h"
    assert scheduling.interval_text(timedelta(hours=30)) == "1 d"
