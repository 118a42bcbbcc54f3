"""A sitting on a real database: the server's clock, saved drafts, closed once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError, NotFound
from app.grading.levels import level_of
from app.interview import (
    answering,
    closing,
    drawing,
    parts,
    prompts,
    queries,
    scorecards,
    scoring,
    service,
    sitting_page,
    stored,
)
from app.interview.models import Sitting
from tests.conftest import NOW
from tests.support.shipped import shipped

MINUTES_10 = timedelta(minutes=10)


def _start(database: Database, content: Catalogue, now=NOW) -> Sitting:  # type: ignore[no-untyped-def]
    with database.write() as session:
        return service.start(session, 1, content, content.interviews["M9"], now)


def _save(database: Database, content: Catalogue, part: str, text: str, final: bool = True, now=NOW) -> None:  # type: ignore[no-untyped-def]
    with database.write() as session:
        sitting = queries.list_closed(session, 1) or [queries.find_open(session, 1)]
        answering.save_answer(session, content, sitting[0], part, text, final, now)  # type: ignore[arg-type]


def _state_gb(sitting: Sitting, content: Catalogue) -> float:
    return float(16 * drawing.values_of(content.interviews["M9"], sitting.drawn)["billions"])


def _again(session: Session, sitting: Sitting) -> Sitting:
    found = session.get(Sitting, sitting.id)
    assert found is not None
    return found


def test_the_deadline_is_stored_when_it_starts(database: Database, content: Catalogue) -> None:
    assert _start(database, content).deadline_at == NOW + MINUTES_10


def test_starting_again_returns_the_sitting_under_way(database: Database, content: Catalogue) -> None:
    first = _start(database, content)
    assert _start(database, content, NOW + timedelta(minutes=3)).id == first.id


def test_of_simultaneous_starts_one_sitting_comes(database: Database, content: Catalogue) -> None:
    barrier, ids, failures = threading.Barrier(5), [], []

    def press() -> None:
        barrier.wait()
        try:
            ids.append(_start(database, content).id)
        except Exception as error:  # reported below
            failures.append(error)

    threads = [threading.Thread(target=press) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(set(ids)) == 1


def test_a_sittings_numbers_never_change(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    assert drawing.draw(interview, 42) == drawing.draw(interview, 42)
    assert len({str(drawing.draw(interview, seed)) for seed in range(40)}) > 5


def test_a_sitting_draws_others_than_the_one_before_it(database: Database, content: Catalogue) -> None:
    before: dict[str, object] = {}
    for minutes in range(0, 200, 20):
        sitting = _start(database, content, NOW + timedelta(minutes=minutes))  # closes the one before
        assert sitting.drawn != before
        before = sitting.drawn


@pytest.mark.parametrize("name", sorted(set(shipped().interviews) - {"T3"}))
def test_two_sittings_in_a_row_share_few_numbers(name: str) -> None:
    interview, before = shipped().interviews[name], dict[str, object]()
    for first in range(0, 50, 10):
        seeds = range(first, first + service.DRAWS)
        shared = [drawing.in_common(drawing.draw(interview, seed), before) for seed in seeds]
        drawn = drawing.draw_anew(interview, before, seeds)
        assert drawn != before
        assert drawing.in_common(drawn, before) == min(shared)
        before = drawn


def test_drafts_are_replaced_and_given_answers_stay(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    _save(database, content, "q3", "first thought", final=False)
    _save(database, content, "q3", "second thought", final=False)
    _save(database, content, "q3", "given")
    with pytest.raises(answering.AlreadyFinal):
        _save(database, content, "q3", "another")
    with database.read() as session:
        assert stored.answers_of(session, sitting)["q3"].answer == "given"


def test_the_last_second_counts_and_the_next_does_not(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    _save(database, content, "q2", "memory-alone", now=sitting.deadline_at)
    with pytest.raises(answering.TooLate, match=r"1 s before.*saved until then was graded"):
        _save(database, content, "q3", "late", now=sitting.deadline_at + timedelta(seconds=1))
    with database.read() as session:
        assert "q3" not in stored.answers_of(session, sitting)


def test_a_number_that_cannot_be_read_is_not_given(database: Database, content: Catalogue) -> None:
    _start(database, content)
    with pytest.raises(DomainError) as caught:
        _save(database, content, "q1", "112 GB/s")
    assert "bandwidth" in caught.value.violations[0].message
    _save(database, content, "q1", "112 GB/s", final=False)  # a draft may say anything


def test_the_follow_up_is_about_the_candidates_own_number(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    interview = content.interviews["M9"]
    values = drawing.values_of(interview, sitting.drawn)
    follow = next(part for part in parts.parts_of(interview) if part.is_follow_up)
    assert prompts.prompt(follow, values, {}) is None
    asked = prompts.prompt(follow, values, {"q1": "100 GB"})
    assert asked is not None
    assert "You said 100 GB" in asked.striptags()
    card = scoring.scorecard(interview, values, {"q1": "100 GB", "q1.follow": f"{100 / values['ranks']} GB"}, {})
    assert card.row("q1.follow").verdict == "right", "carried forward from a wrong first answer"


def test_what_is_asked_about_an_answer_is_decided_once_and_kept(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    _save(database, content, "q1", "100 GB", final=False)
    with pytest.raises(NotFound):
        _save(database, content, "q1.again", "100 GB")
    _save(database, content, "q1", "100 GB")
    _save(database, content, "q1.again", f"{_state_gb(sitting, content)} GB", final=False)
    for part, text in (("q1", "7 GB"), ("q1", "100 GB")):  # another tab, and the same again
        with pytest.raises(answering.AlreadyFinal):
            _save(database, content, part, text)
    with database.read() as session:
        found = _again(session, sitting)
        saved = stored.answers_of(session, found)
        assert saved["q1"].reaction == stored.reactions_in(saved)["q1"].to_json()
        assert saved["q1.again"].reaction is None
        shown = sitting_page.show_part(session, content, found, "", NOW)
        assert (shown.current.part.id, shown.current.answer, shown.earlier) == (
            "q1.again",
            saved["q1.again"].answer,
            "100 GB",
        )
        assert sitting_page.next_part(session, content, found, "q1") == "q1.again"
    with database.write() as session:
        closing.close_overdue(session, content, NOW + timedelta(minutes=20))
        row = stored.scorecard_of(_again(session, sitting)).row("q1")
    assert (row.verdict, row.reached) == ("corrected", 12.0), "the draft of a correction counts as any draft"


def test_slips_are_named_on_the_scorecard(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    _save(database, content, "q1", f"{_state_gb(sitting, content) / 8} GB")
    with database.write() as session:
        found = _again(session, sitting)
        closing.close(session, content, found, NOW, "candidate")
        row = found.scorecard["rows"][0]  # type: ignore[index]
    assert row["slip"] == "Weights only"
    assert row["message"].startswith("That is 2 bytes"), "its name is not said twice"
    assert row["cure"] == "C27"


def test_everybody_may_try_to_close_and_one_does(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    late = NOW + timedelta(minutes=11)
    with database.write() as session:
        assert closing.close_overdue(session, content, late) == 1
        assert closing.close_overdue(session, content, late) == 0
        assert not closing.close(session, content, _again(session, sitting), late, "candidate")
        found = _again(session, sitting)
        assert (found.closed_by, found.closed_at) == ("sweep", sitting.deadline_at)
        assert found.scorecard is not None


def test_drafts_count_when_the_clock_closes(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    _save(database, content, "q1", f"{_state_gb(sitting, content)} GB", final=False)
    with database.write() as session:
        closing.close_overdue(session, content, NOW + timedelta(minutes=20))
        found = _again(session, sitting)
    assert found.scorecard is not None
    assert found.scorecard["rows"][0]["verdict"] == "right"


def test_a_new_sitting_starts_after_an_overdue_one(database: Database, content: Catalogue) -> None:
    first = _start(database, content)
    second = _start(database, content, NOW + timedelta(minutes=11))
    assert second.id != first.id
    with database.read() as session:
        assert _again(session, first).closed_by == "deadline"


def test_words_are_heard_and_the_candidates_judgement_is_kept_beside(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    _save(database, content, "q3", "A layer's weights are freed after forward. Two all-gathers and a reduce-scatter.")
    with database.write() as session:
        closing.close(session, content, _again(session, sitting), NOW, "candidate")
        card = stored.scorecard_of(_again(session, sitting))
        heard = {point.id: point.heard for point in card.row("q3").rubric}
        assert heard == {"freed": "met", "needed": "missed", "bytes": "met", "avoid": "missed", "price": "missed"}
        assert (card.reached, card.level) == (20.0, "no hire"), "5 of 10 weights of 40 points"
        closing.judge(session, content, _again(session, sitting), "q3", {"needed"}, NOW)
        judged = stored.scorecard_of(_again(session, sitting))
        assert [point.id for point in judged.row("q3").rubric if point.differs] == ["freed", "needed", "bytes"]
    assert judged.reached == card.reached, "what was heard counts, and the other judgement stands beside it"


def test_where_hearing_is_unsure_the_candidate_decides(content: Catalogue) -> None:
    interview = content.interviews["M9"]
    answers = {"q3": "The backward gathers. Allgather twice, reducescatter, keep, weights."}
    values = drawing.values_of(interview, drawing.draw(interview, 1))
    before = scoring.scorecard(interview, values, answers, {}).row("q3")
    unsure = [point for point in before.rubric if point.heard == "unsure"]
    assert unsure
    assert all(point.counts == 0 for point in unsure)
    after = scoring.scorecard(interview, values, answers, {"q3": {each.id: True for each in unsure}}).row("q3")
    assert after.reached - before.reached == sum(40 * point.weight / 10 for point in unsure)


def test_a_card_of_before_words_were_heard_is_read_as_it_was() -> None:
    point = {"id": "freed", "point": "Freed.", "weight": 2, "met": None}
    row = {"id": "q3", "title": "Explain", "kind": "text", "said": "x", "points": 40.0, "verdict": "to judge"}
    card = scorecards.Scorecard.from_json({"rows": [row | {"rubric": [point]}]})
    assert (card.level, card.to_judge, card.row("q3").rubric[0].heard) == (None, ["q3"], None)


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (1.0, "strong hire"),
        (0.8, "strong hire"),
        (0.79, "hire"),
        (0.6, "hire"),
        (0.35, "lean no hire"),
        (0.34, "no hire"),
        (0.0, "no hire"),
    ],
)
def test_levels(score: float, level: str) -> None:
    assert level_of(score) == level


def test_what_does_not_exist_is_refused(database: Database, content: Catalogue) -> None:
    sitting = _start(database, content)
    with pytest.raises(NotFound):
        _save(database, content, "q9", "x")
    with pytest.raises(DomainError, match="once it is closed"), database.write() as session:
        closing.judge(session, content, _again(session, sitting), "q3", set(), NOW)
    with pytest.raises(NotFound), database.read() as session:
        service.find_sitting(session, 2, sitting.id)
    with pytest.raises(DomainError), database.write() as session:
        found = _again(session, sitting)
        answering.save_answer(session, content, found, "q3", "x" * 20_001, False, NOW)
