"""What the charts say, from rows whose answer is known."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.share import Share
from app.decks.cards import Stored, make_own_card
from app.decks.drafts import Draft
from app.lab.predictions import Guess
from app.practice.service import Settled
from app.progress import figures, guesses
from app.progress.checkpoints import Done, standings, up_to_next
from app.study.fsrs.parameters import DEFAULT
from app.study.log import statistics
from app.study.log.statistics import Answer, Memory
from tests.conftest import NOW
from tests.support.seeding import seed_reviews

UTC_ZONE = ZoneInfo("UTC")


def _answer(rating: int = 3, stability: float | None = 10.0, days: int | None = 10, **more: object) -> Answer:
    values = {"card_id": "C62", "phase": 2, "level": rating + 1, "verdict": None, "seconds": 12.0, **more}
    return Answer(rating=rating, stability=stability, elapsed_days=days, **values)  # type: ignore[arg-type]


def test_retention_counts_first_answers_of_known_cards_by_how_long_they_held() -> None:
    answers = [_answer(3, 3), _answer(1, 3), _answer(3, 30), _answer(3, 10), _answer(1, 10, 0), _answer(1, phase=3)]
    found = {each.name: each.share for each in statistics.retention(answers, DEFAULT[20])}
    assert (found["New"].right, found["New"].count) == (1, 2)
    assert (found["Young"].right, found["Young"].count) == (1, 1)
    assert (found["Mature"].right, found["Mature"].count) == (1, 1)
    assert (found["All"].right, found["All"].count) == (3, 4)


def test_what_the_scheduler_expected_is_its_own_curve() -> None:
    found = statistics.retention([_answer(3, 10.0, 10)], DEFAULT[20])
    assert found[-1].expected == pytest.approx(0.9)


def test_the_wilson_interval_is_the_textbooks() -> None:
    low, high = Share(8, 10).interval
    assert (low, high) == (pytest.approx(0.4902, abs=1e-3), pytest.approx(0.9433, abs=1e-3))
    assert Share(0, 0).interval == (0.0, 1.0)
    assert Share(5, 5).interval[1] == 1.0


def test_calibration_compares_the_button_with_the_machine() -> None:
    answers = [
        _answer(level=4, verdict="correct"),
        _answer(level=4, verdict="wrong"),
        _answer(level=1, verdict="wrong"),
    ]
    found = statistics.calibration([*answers, _answer(level=5, verdict=None)])
    assert {level: (share.right, share.count) for level, share in found.items()} == {4: (1, 2), 1: (0, 1)}


def test_a_card_left_open_does_not_count_as_slow() -> None:
    assert statistics.seconds_of([_answer(seconds=12.0), _answer(seconds=4000.0)]) == {"C62": [12.0]}


def test_time_is_shown_for_every_deck_ones_own_too(content: Catalogue) -> None:
    own = make_own_card(Stored("guid", Draft(deck="My deck", sections={"Question": "?", "Answer": "!"})))
    answers = [_answer(card_id=card, seconds=seconds) for card in (own.id, "C62") for seconds in (4.0, 8.0, 12.0)]
    lanes, _ = figures.time_lanes([*answers, _answer(card_id="gone")], {**content.cards, own.id: own})
    assert {each.label: each.value for each in lanes} == {"My deck": "8 s", content.cards["C62"].deck.title: "8 s"}


def test_the_calendar_counts_study_days_and_marks_today() -> None:
    heat = figures.heat_map([0] * 7 + [1, 0, 5, 20, 0, 0, 3], date(2026, 11, 22))
    assert (heat.total, heat.days_studied) == (29, 4)
    assert heat.now == (14, 89), "a Sunday is the last row of the second week"
    assert heat.rows == [("November 2026", 29, 4)]
    assert sum(path.count("M") for path in heat.squares.values()) == 14


def test_the_calendar_begins_with_the_first_review_and_is_twenty_weeks_or_more() -> None:
    nothing, year = [0] * (7 * 52 + 3), 7 * 52 + 3
    assert len(figures.since_begun(nothing)) == 7 * 19 + 3
    assert len(figures.since_begun([*nothing[:-1], 4])) == 7 * 19 + 3
    early = [0] * 16 + [1] + [0] * (year - 17)
    assert len(figures.since_begun(early)) == year - 14, "from the Monday of its week on"
    begun = figures.heat_map(figures.since_begun(early), date(2026, 11, 25))
    assert (begun.weeks, begun.span) == (51, "51 weeks")
    assert figures.heat_map([1, *nothing[1:]], date(2026, 11, 25)).span == "a year"


def test_predictions_stand_over_what_was_measured_by_kind() -> None:
    made = [
        Guess("seconds", 2.0, False),
        Guess("bytes", 1.0, True),
        Guess("bytes", 0.5, None),
        Guess("bytes", 100.0, True),
    ]
    lanes = guesses.lanes(made)
    assert [lane.label for lane in lanes] == ["Bytes", "Time"]
    assert lanes[0].dots == (("50.0", ""), ("41.7", ""), ("100.0", "")), "what lies beyond the axis stands at its end"
    assert (lanes[0].middle, lanes[0].value) == ("50.0", "2 of 2")
    assert lanes[0].cells == ("3", "1.00 ×", "5.85 ×", "2 of 2")
    assert (lanes[1].dots, lanes[1].value) == ((("58.3", "miss"),), "0 of 1")
    assert [tick.text for tick in guesses.ticks_of(made)] == ["1/64", "⅛", "measured", "8", "64 ×"]
    assert [tick.text for tick in guesses.ticks_of(made[:3])] == ["¼", "½", "measured", "2", "4 ×"]
    assert guesses.lanes([Guess("bytes", 0.0223, False)])[0].dots == (("4.3", "miss"),), (
        "45 times too low, in its place"
    )
    assert guesses.ranges(made) == (2, 3)


def test_bins_take_every_value_once() -> None:
    found = figures.histogram([0.1, 2.0, 6.9, 7.0, 500.0], *figures.STABILITY)
    assert [each.count for each in found] == [1, 2, 1, 0, 0, 1]
    assert max(float(each.height) for each in found) == 100


def test_concepts_are_ranked_by_what_is_recalled_of_their_cards(content: Catalogue) -> None:
    first, second = next(iter(content.cards)), list(content.cards)[-1]
    recall = figures.recalls([Memory(first, 1.0, 5, 60), Memory(second, 900.0, 5, 1)], DEFAULT[20])
    lanes = figures.concept_lanes(recall, [_answer(card_id=first)], content)
    concept = content.cards[first].head.concepts[0]
    assert lanes[0].label == content.concepts[concept].title
    assert float(lanes[0].dot or 0) < float(lanes[-1].dot or 0)
    assert "1 of 1" in lanes[0].cells[2]


def test_days_are_counted_where_the_study_day_ends(database: Database, content: Catalogue) -> None:
    made = seed_reviews(database, content, NOW, days=40, cards=10)
    today = NOW.date().toordinal()
    with database.read() as session:
        counts = statistics.count_by_day(session, 1, today - 60, today, UTC_ZONE)
        due = statistics.count_due_by_day(session, 1, today, 400, UTC_ZONE)
        answers = statistics.newest_answers(session, 1, UTC_ZONE)
        remembered = statistics.memories(session, 1, NOW, UTC_ZONE)
    assert sum(counts) == made == len(answers)
    assert len(counts) == 61
    assert counts[:20] == [0] * 20
    assert sum(due) == len(remembered) == 10
    assert all(each.elapsed_days >= 0 for each in remembered)


def _variant(problem: str, minutes: int, hints: int = 0, score: float = 1.0, start: int = 0) -> Settled:
    issued = datetime(2026, 11, 21, 10, tzinfo=UTC) + timedelta(minutes=start)
    return Settled(problem, issued, issued + timedelta(minutes=minutes), score, hints)


def _met(content: Catalogue, done: Done) -> dict[int, list[bool]]:
    found = standings(content, done, date(2026, 11, 21), date(2026, 12, 12))
    return {stand.checkpoint.day: [gate.is_met for gate in stand.gates] for stand in found}


def test_gates_open_by_what_was_done(content: Catalogue) -> None:
    nothing = _met(content, Done({}, [], {}))
    assert not any(any(gates) for gates in nothing.values())
    all_known = Done(
        dict.fromkeys(content.cards, 0.9), [_variant("P01", 40), _variant("P03", 40, hints=1), _variant("P08", 10)], {}
    )
    met = _met(content, all_known)
    assert met[0] == [True, True]
    assert met[3] == [True, True, True]
    assert met[7] == [True, True, True, False, False], "a hint was opened, and M1 was not sat"
    assert met[14] == [True, True, True, False, False], "P18 and T1 are still to do"
    assert met[21][-1] is False


def test_a_hire_in_the_interview_meets_its_gate_and_less_does_not(content: Catalogue) -> None:
    for score, met in ((0.59, False), (0.6, True)):
        done = Done({}, [], {"M1": score, "T1": score, "M5": score})
        gates = [
            gate for stand in standings(content, done, date(2026, 11, 21), date(2026, 12, 12)) for gate in stand.gates
        ]
        found = {gate.href: gate for gate in gates if gate.href.startswith("/interview")}
        assert set(found) == {
            "/interview/fundamentals",
            "/interview/degrees-in-fifteen-minutes",
            "/interview/design-70b",
        }
        assert [gate.is_met for gate in found.values()] == [met, met, met]
        assert {gate.says for gate in found.values()} == {f"best {100 * score:.0f} %"}


def test_five_different_problems_within_an_hour_meet_the_timed_set(content: Catalogue) -> None:
    within = [_variant(f"P0{index}", 10, start=11 * index) for index in range(1, 6)]
    assert _met(content, Done({}, within, {}))[21][-1]
    spread = [_variant(f"P0{index}", 10, start=30 * index) for index in range(1, 6)]
    assert not _met(content, Done({}, spread, {}))[21][-1]
    same = [_variant("P01", 5, start=6 * index) for index in range(5)]
    assert not _met(content, Done({}, same, {}))[21][-1]


def test_checkpoints_stretch_with_the_time_there_is(content: Catalogue) -> None:
    start = date(2026, 11, 21)
    short = standings(content, Done({}, [], {}), start, start + timedelta(days=7))
    assert [(stand.day - start).days for stand in short] == [0, 1, 2, 5, 7]


def test_what_is_late_and_the_next_checkpoint_are_to_be_worked_at(content: Catalogue) -> None:
    start = date(2026, 11, 21)

    def asked(done: Done, days: int) -> list[int]:
        stands = standings(content, done, start, start + timedelta(days=21))
        return [each.checkpoint.day for each in up_to_next(stands, start + timedelta(days=days))]

    nothing = Done({}, [], {})
    assert [asked(nothing, days) for days in (0, 1, 3, 10, 21)] == [
        [0],
        [0, 3],
        [0, 3],
        [0, 3, 7, 14],
        [0, 3, 7, 14, 21],
    ]
    ground = [card.id for card in content.cards.values() if card.deck.id in ("DK1", "DK2")]
    assert asked(Done(dict.fromkeys(ground, 0.9), [], {}), 0) == [3], "ahead of the plan, the one after comes"
