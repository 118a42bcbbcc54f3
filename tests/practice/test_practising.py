"""Answers that count once, hints that cost what they say, and only for seeds that were issued."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from app.content import problem_draws
from app.content.catalogue import Catalogue
from app.content.problem_schemas import Problem
from app.core.db import Database
from app.core.errors import DomainError, NotFound, Stale
from app.core.models import LOCAL_LEARNER as LEARNER
from app.practice import desk as desks
from app.practice import queries, service
from app.practice.models import Attempt
from app.practice.variants import make_variant
from tests.conftest import NOW


@pytest.fixture
def problem(content: Catalogue) -> Problem:
    return content.problems["P03"]


class Desk:
    """A learner at one variant of a problem, each action in a transaction of its own."""

    def __init__(self, database: Database, problem: Problem) -> None:
        self.database, self.problem = database, problem
        with database.write() as session:
            self.seed = service.issue_variant(session, LEARNER, problem, NOW).seed
        self.keys = {part.id: part.answer_text for part in make_variant(problem, self.seed).parts if part.points}

    def answer(self, *, minutes: int = 0, **answers: str) -> desks.Desk:
        with self.database.write() as session:
            at = NOW + timedelta(minutes=minutes)
            return service.answer(session, LEARNER, self.problem, self.seed, answers, at)

    def hint(self) -> desks.Desk:
        with self.database.write() as session:
            return service.open_hint(session, LEARNER, self.problem, self.seed)

    def give_up(self) -> desks.Desk:
        with self.database.write() as session:
            return service.show_solution(session, LEARNER, self.problem, self.seed, NOW)

    def show(self) -> desks.Desk:
        with self.database.read() as session:
            return service.show(session, LEARNER, self.problem, self.seed)

    def attempts(self) -> int:
        with self.database.read() as session:
            return session.scalar(select(func.count()).select_from(Attempt)) or 0


@pytest.fixture
def desk(database: Database, problem: Problem) -> Desk:
    return Desk(database, problem)


def statuses(found: desks.Desk) -> list[str]:
    return [state.grade.status if state.grade else "open" for state in found.parts]


def test_all_right_is_a_score_of_one_and_settles_the_variant(desk: Desk) -> None:
    found = desk.answer(**desk.keys)
    assert statuses(found) == ["correct"] * 3
    assert (found.score, found.settled_at, found.right) == (1.0, NOW, 3)
    assert desk.show() == found


def test_the_score_is_the_share_of_right_parts(desk: Desk) -> None:
    found = desk.answer(**{**desk.keys, "b": "1 B"})
    assert statuses(found) == ["correct", "wrong", "correct"]
    assert found.score == pytest.approx(2 / 3, abs=1e-4)


def test_a_part_counts_once_with_its_first_answer_that_can_be_read(desk: Desk) -> None:
    desk.answer(a="1 B")
    found = desk.answer(a=desk.keys["a"], minutes=1)
    assert statuses(found) == ["wrong", "open", "open"]
    assert found.parts[0].text == "1 B"
    assert not found.is_settled
    found = desk.answer(b=desk.keys["b"], c=desk.keys["c"], minutes=2)
    assert found.score == pytest.approx(2 / 3, abs=1e-4)


def test_an_answer_that_cannot_be_read_uses_up_nothing(desk: Desk) -> None:
    found = desk.answer(a="lots", b="112", c="")
    assert statuses(found) == ["invalid", "invalid", "open"]
    assert (found.score, found.is_settled) == (None, False)
    assert found.parts[0].text == "lots"
    assert desk.answer(**desk.keys).score == 1.0


def test_the_newest_unreadable_answer_is_the_one_that_is_shown(desk: Desk) -> None:
    desk.answer(a="lots")
    found = desk.answer(a="even more")
    assert found.parts[0].text == "even more"


def test_the_same_answers_sent_twice_count_once(desk: Desk) -> None:
    first = desk.answer(**desk.keys)
    again = desk.answer(**desk.keys, minutes=5)
    assert again == first
    assert desk.attempts() == 1


def test_two_submissions_at_the_same_time_count_once(desk: Desk, database: Database, problem: Problem) -> None:
    """The second waits for the first to commit, then finds every part answered."""
    results: list[desks.Desk] = []
    second = threading.Thread(target=lambda: results.append(desk.answer(a="1 B", b="1 B", c="1 B", minutes=1)))
    with database.write() as session:
        service.answer(session, LEARNER, problem, desk.seed, desk.keys, NOW)
        second.start()
        second.join(0.2)
        assert second.is_alive()
    second.join(10)
    assert results[0].score == 1.0
    assert results[0].settled_at == NOW
    assert desk.attempts() == 1
    assert desk.show() == results[0]


def test_blank_answers_change_nothing(desk: Desk) -> None:
    found = desk.answer(a="", b="   ")
    assert statuses(found) == ["open"] * 3
    assert desk.attempts() == 0


def test_a_slip_is_kept_with_its_cause(desk: Desk, problem: Problem) -> None:
    slip = make_variant(problem, desk.seed).parts[0].question.slips[0]
    desk.answer(a=f"{slip.value!r} B")
    grade = desk.show().parts[0].grade
    assert grade is not None
    assert (grade.status, grade.misconception, grade.cure) == ("wrong", slip.id, slip.cure)


@pytest.mark.parametrize(("hints", "score"), [(0, 1.0), (1, 0.75), (2, 0.5625), (3, 0.4219)])
def test_each_hint_leaves_three_quarters(desk: Desk, hints: int, score: float) -> None:
    for _ in range(hints):
        desk.hint()
    assert desk.answer(**desk.keys).score == pytest.approx(score, abs=1e-4)


def test_a_hint_costs_only_the_parts_that_were_still_open(desk: Desk) -> None:
    """As the page says: a quarter of what is still open."""
    desk.answer(a=desk.keys["a"], b=desk.keys["b"])
    desk.hint()
    found = desk.answer(c=desk.keys["c"])
    assert [state.grade.credit for state in found.parts if state.grade] == [1.0, 1.0, 0.75]
    assert found.score == pytest.approx((1 + 1 + 0.75) / 3, abs=1e-4)


def test_the_solution_settles_what_is_open_for_nothing(desk: Desk) -> None:
    desk.answer(a=desk.keys["a"])
    found = desk.give_up()
    assert (found.score, found.settled_at) == (pytest.approx(1 / 3, abs=1e-4), NOW)
    assert statuses(found) == ["correct", "open", "open"]
    assert desk.give_up() == found
    assert desk.answer(b=desk.keys["b"], c=desk.keys["c"]) == found  # too late: the key has been shown
    assert desk.attempts() == 1


def test_trying_again_never_lowers_the_best(database: Database, content: Catalogue, problem: Problem) -> None:
    first = Desk(database, problem)
    first.answer(**first.keys)
    Desk(database, problem).give_up()
    with database.read() as session:
        stands = [stand for topic in service.list_topics(session, LEARNER, content) for stand in topic.stands]
    (stand,) = (each for each in stands if each.problem.id == problem.id)
    assert (stand.state, stand.best, [each.score for each in stand.tries]) == ("solved", 1.0, [1.0, 0.0])


def test_a_streak_leads_a_level_up_and_a_failure_one_down(database: Database, content: Catalogue) -> None:
    problem = content.problems["P07"]
    levels = []
    for right in (True, True, True, True, False, True):
        desk = Desk(database, problem)
        levels.append(problem_draws.level_of(problem, desk.seed))
        desk.answer(**desk.keys) if right else desk.give_up()
    assert levels == [0, 0, 1, 1, 1, 0]


def test_a_level_narrows_what_is_drawn(content: Catalogue) -> None:
    problem = content.problems["P07"]
    for seed in range(60):
        made = make_variant(problem, seed)
        share = made.values["latency_part"] / made.values["bandwidth_part"]
        assert share < 0.01 if seed % 2 == 0 else share > 0.05


def test_every_attempt_is_listed_newest_first_as_it_stood(database: Database, content: Catalogue) -> None:
    for identity in ("P03", "P11"):
        desk = Desk(database, content.problems[identity])
        desk.answer(a="lots")
        desk.answer(**desk.keys, minutes=1)
    Desk(database, content.problems["P15"])  # never answered: not an attempt
    with database.read() as session:
        tried, following = service.list_tried(session, LEARNER, content)
        assert [each.row.problem_id for each in tried] == ["P11", "P03"]
        assert tried[1].desk.variant.values["ranks"] == tried[1].row.drawn["ranks"]
        assert (tried[0].attempts, tried[0].desk.score, following) == (2, 1.0, None)
        only, _ = service.list_tried(session, LEARNER, content, problem=content.problems["P03"])
        assert [each.row.problem_id for each in only] == ["P03"]
        older, _ = service.list_tried(session, LEARNER, content, before=tried[0].row.id)
        assert [each.row.problem_id for each in older] == ["P03"]


def test_a_variant_that_was_opened_before_and_answered_after_is_listed_before(
    database: Database, content: Catalogue
) -> None:
    opened = [Desk(database, content.problems[identity]) for identity in ("P03", "P11", "P15")]  # opened in this order
    for minutes, desk in enumerate(reversed(opened), 1):
        desk.answer(**desk.keys, minutes=minutes)
    with database.read() as session:
        pages = [queries.list_tried(session, LEARNER, 2)]
        pages.append(queries.list_tried(session, LEARNER, 2, before=pages[0][-1].id))
    assert [[each.problem_id for each in page] for page in pages] == [["P03", "P11"], ["P15"]]


def test_a_revision_keeps_the_numbers_and_says_so(database: Database, problem: Problem, desk: Desk) -> None:
    before = desk.answer(**desk.keys)
    revised = problem.model_copy(update={"revision": 2})
    with database.read() as session:
        found = service.show(session, LEARNER, revised, desk.seed)
    assert found.is_revised
    assert not before.is_revised
    assert [state.part.key for state in found.parts] == [state.part.key for state in before.parts]
    assert [state.grade for state in found.parts] == [state.grade for state in before.parts]


def test_hints_open_one_by_one_to_the_last(desk: Desk) -> None:
    assert [desk.hint().hints_opened for _ in range(5)] == [1, 2, 3, 3, 3]


def test_hints_of_a_settled_variant_cost_nothing_more(desk: Desk) -> None:
    desk.answer(**desk.keys)
    assert desk.hint().hints_opened == 0
    assert desk.show().score == 1.0


def test_a_seed_that_was_not_issued_is_graded_and_forgotten(database: Database, problem: Problem, desk: Desk) -> None:
    seed = desk.seed % 900_000 + 1
    keys = {part.id: part.answer_text for part in make_variant(problem, seed).parts}
    with database.write() as session:
        found = service.answer(session, LEARNER, problem, seed, keys, NOW)
    assert (found.score, found.settled_at) == (1.0, None)
    assert desk.attempts() == 0
    with database.read() as session:
        assert statuses(service.show(session, LEARNER, problem, seed)) == ["open"] * 3
        assert service.history(session, LEARNER, problem) == []
    with pytest.raises(NotFound, match="not issued"), database.write() as session:
        service.open_hint(session, LEARNER, problem, seed)


@pytest.mark.parametrize("seed", [-1, 2**31, 2**63, 10**30])
def test_a_seed_beyond_all_seeds_is_not_found(database: Database, problem: Problem, seed: int) -> None:
    actions: list[Any] = [
        lambda session: service.show(session, LEARNER, problem, seed),
        lambda session: service.answer(session, LEARNER, problem, seed, {"a": "1 GB"}, NOW),
        lambda session: service.open_hint(session, LEARNER, problem, seed),
    ]
    for act in actions:
        with pytest.raises(NotFound, match="out of range"), database.write() as session:
            act(session)


def test_parts_that_do_not_exist_are_named_and_nothing_is_counted(desk: Desk) -> None:
    with pytest.raises(DomainError) as raised:
        desk.answer(a=desk.keys["a"], d="1 GB", e="x")
    assert [violation.field for violation in raised.value.violations] == ["answers.d", "answers.e"]
    assert raised.value.violations[0].accepted == "a, b, c"
    assert desk.attempts() == 0


def test_an_endless_answer_is_refused(desk: Desk) -> None:
    with pytest.raises(DomainError) as raised:
        desk.answer(a="1" * 10_000)
    assert "10000 characters" in raised.value.violations[0].message
    assert desk.answer(a="1" * 300).parts[0].grade.status == "invalid"  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["\ud800 GB", "5\x00 GB", "🙂", "\u202e5 GB", "<b>5</b>"])
def test_any_character_can_be_stored_and_shown(desk: Desk, text: str) -> None:
    desk.answer(a=text)
    shown = desk.show().parts[0].text
    assert shown.encode()
    assert "\0" not in shown


def test_a_new_variant_has_other_numbers_than_the_last_three(database: Database, desk: Desk) -> None:
    with database.write() as session:
        drawn = [service.issue_variant(session, LEARNER, desk.problem, NOW).drawn for _ in range(12)]
    assert all(numbers not in drawn[max(0, at - 3) : at] for at, numbers in enumerate(drawn))


def test_an_open_variant_is_taken_up_again_and_a_settled_one_is_not(database: Database, desk: Desk) -> None:
    with database.write() as session:
        assert service.start_variant(session, LEARNER, desk.problem, NOW) == desk.seed
    desk.answer(**desk.keys)
    with database.write() as session:
        fresh = service.start_variant(session, LEARNER, desk.problem, NOW)
    assert fresh != desk.seed


def test_a_revised_problem_gets_a_fresh_variant(database: Database, desk: Desk) -> None:
    """The old one had other numbers: answers to them are not graded against the new ones."""
    revised = desk.problem.model_copy(update={"revision": 2})
    with database.write() as session:
        assert service.start_variant(session, LEARNER, revised, NOW) != desk.seed
    with pytest.raises(Stale, match="revised"), database.write() as session:
        service.answer(session, LEARNER, revised, desk.seed, desk.keys, NOW)
    assert desk.attempts() == 0


def test_history_has_the_newest_first(database: Database, problem: Problem) -> None:
    seeds = []
    for minutes in range(3):
        desk = Desk(database, problem)
        desk.answer(**desk.keys, minutes=minutes)
        seeds.append(desk.seed)
    with database.read() as session:
        assert [row.seed for row in service.history(session, LEARNER, problem)] == seeds[::-1]


def test_another_learner_has_variants_of_their_own(database: Database, desk: Desk) -> None:
    with database.read() as session:
        assert service.history(session, LEARNER + 1, desk.problem) == []
    with pytest.raises(NotFound), database.write() as session:
        service.open_hint(session, LEARNER + 1, desk.problem, desk.seed)
