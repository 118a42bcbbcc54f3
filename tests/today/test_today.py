"""Today draws on everything that was done, and does not offer again what just went wrong without saying why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.content.evidence import Evidence
from app.content.schemas import Concept
from app.core.db import Database
from app.core.moment import Moment
from app.lab.models import Run
from app.practice import service as practice
from app.practice.models import Variant
from app.practice.variants import make_variant
from app.progress.evidence import Standing
from app.progress.mistakes import Mistake
from app.today.day import done_today, due_bars, ranked, standing_lanes
from app.today.reasons import Known, Reasons
from app.today.service import next_interview
from tests.conftest import NOW

MOMENT = Moment(NOW, ZoneInfo("UTC"))
SINCE = datetime(2026, 11, 21, 4, tzinfo=UTC)
YESTERDAY = NOW - timedelta(days=1)


@dataclass(frozen=True)
class _Item:
    id: str


A, B, C = _Item("A"), _Item("B"), _Item("C")


def _problem(item_id: str, share: float, at: datetime = NOW) -> Evidence:
    return Evidence("problem", item_id, at, share)


def _offered(every: list[Evidence], asked: _Item | None = None) -> tuple[str, str] | None:
    offers = ranked([A, B], asked, "problem", every, SINCE, MOMENT, lambda each: Reasons("", f"Why {each.id}.", ""))
    return (offers[0].item.id, offers[0].why) if offers else None


@pytest.mark.parametrize(
    ("every", "offered"),
    [
        ([], ("A", "Why A.")),
        ([_problem("A", 1.0)], ("B", "Why B.")),
        ([_problem("A", 0.0)], ("B", "Why B.")),
        ([_problem("B", 0.0, YESTERDAY)], ("B", "You missed it yesterday.")),
        ([_problem("A", 0.5, YESTERDAY)], ("B", "Why B.")),
        ([_problem("A", 0.5, YESTERDAY), _problem("B", 1.0)], ("A", "You had 50 % of it right yesterday.")),
        ([_problem("A", 0.0, YESTERDAY), _problem("B", 0.0)], ("A", "You missed it yesterday.")),
        ([_problem("A", 0.0), _problem("B", 0.5)], None),
        ([_problem("A", 0.0), _problem("A", 1.0), _problem("B", 0.0)], ("A", "You had it right today.")),
    ],
)
def test_what_failed_today_comes_again_tomorrow(every: list[Evidence], offered: tuple[str, str] | None) -> None:
    assert _offered(every) == offered


def test_what_the_plan_asks_for_is_offered_all_the_same_and_says_so() -> None:
    asks = "The plan's next checkpoint asks for it."
    assert _offered([], asked=B) == ("B", asks)
    assert _offered([_problem("B", 0.0)], asked=B) == ("B", f"You missed it today. {asks}")


def test_a_reason_is_given_once_and_what_shares_it_comes_after_what_has_its_own() -> None:
    found = {"A": Reasons("Missed x.", "Met.", "x again."), "B": Reasons("Missed x.", "Met.", "x again.")}
    found["C"] = Reasons("Missed y.", "", "")
    offers = ranked([A, B, C], None, "problem", [], SINCE, MOMENT, lambda each: found[each.id])
    assert [(each.item.id, each.why) for each in offers] == [("A", "Missed x."), ("C", "Missed y."), ("B", "Met.")]


def test_everything_done_today_counts_by_kind() -> None:
    every = [
        _problem("A", 1.0, YESTERDAY),
        _problem("A", 1.0),
        Evidence("run", "L10", NOW, None),
        Evidence("interview", "M1", NOW, 0.5),
        Evidence("interview", "M1", NOW, 1.0),  # another part of the same sitting
        Evidence("interview", "M2", NOW, 0.5),
        Evidence("interview", "M5.bubble", NOW, 0.5),
        Evidence("interview", "SP2.c", NOW, 0.5),  # of the same generated sitting
    ]
    assert done_today(7, every, SINCE) == [
        ("Cards answered", 7),
        ("Problems settled", 1),
        ("Interviews sat", 3),
        ("Experiments run", 1),
    ]
    assert done_today(0, [], SINCE) == []


def test_the_weakest_concepts_show_with_an_interval_that_holds_them() -> None:
    standings = {
        name: Standing(name, 9, NOW, share, 8, {"problem": 9})
        for name, share in (("a", 0.9), ("b", 0.25), ("c", None), ("d", 1.0))
    }
    lanes = standing_lanes(standings, {name: name.upper() for name in standings})
    assert [lane.label for lane in lanes] == ["B", "A", "D"]
    assert lanes[0].cells == ("8 results", "25 %", "7 to 59 %", "shaky")
    assert all(float(lane.low) <= float(lane.dot) <= float(lane.high) for lane in lanes)


def test_an_interview_that_was_just_sat_is_not_offered_again(content: Catalogue) -> None:
    shortest = min(content.interviews.values(), key=lambda each: each.minutes)
    assert next_interview(content, {}, NOW) == shortest
    sat = {shortest.id: NOW - timedelta(days=6)}
    assert next_interview(content, sat, NOW) not in (shortest, None)
    assert next_interview(content, sat, NOW + timedelta(days=2)) == shortest


def test_the_reason_is_what_the_learner_had_wrong_of_the_same() -> None:
    every = [_problem("P1", 0.0, YESTERDAY), Evidence("run", "L1", NOW, 0.5), Evidence("card", "C1", NOW, 1.0)]
    named = {"P1": ("zero",), "L1": ("ddp", "fsdp"), "C1": ("ddp",)}
    concepts = {
        key: Concept(id=key, title=title, says=key, group="g", needs=needs)
        for key, title, needs in (("zero", "ZeRO stages", ()), ("ddp", "DDP", ()), ("fsdp", "FSDP", ("zero",)))
    }
    concepts["hsdp"] = Concept(id="hsdp", title="HSDP", says="hsdp", group="g", needs=("ddp",))
    mistake = Mistake("run", "L1", NOW, "you left out the gather in L1 {when}", ("fsdp",), ("C9",))
    known = Known(every, named, concepts, {("run", "L1"): mistake}, MOMENT)
    assert known.reasons(("zero", "fsdp")).miss == "ZeRO stages: you missed P1 yesterday."
    assert known.reasons(("fsdp",)).miss == "FSDP: you left out the gather in L1 at 12:00.", "half of it was right"
    assert known.reasons(("ddp",)) == Reasons(
        "", "DDP went right at 12:00: try it on another case.", "DDP once more, from another side."
    )
    assert known.reasons(("hsdp",)).other == "HSDP builds on DDP, which you had right."
    before = Known(every[:2], named, concepts, {("run", "L1"): mistake}, MOMENT)
    assert before.reasons(("ddp",)).miss == "", "what was missed of L1 was the other idea"
    fresh = Known([], named, concepts, {}, MOMENT).reasons(("zero",))
    assert (fresh.miss, fresh.other) == ("", "You have done nothing on ZeRO stages yet.")


def test_concepts_that_stand_alike_share_a_row_and_few_results_come_last() -> None:
    known = (("a", 0.0, 6), ("b", 0.0, 6), ("c", 0.0, 1))
    standings = {name: Standing(name, 9, NOW, share, results, {"problem": 9}) for name, share, results in known}
    lanes = standing_lanes(standings, {name: name.upper() for name in standings})
    assert [(lane.label, lane.value, lane.is_thin) for lane in lanes] == [
        ("A and B", "0 %", False),
        ("C", "0 of 1", True),
    ]


def test_bars_of_coming_cards_begin_today() -> None:
    with_new = due_bars([4, 0, 2], NOW.date(), new=1)
    assert [(bar.height, bar.new, bar.new_percent) for bar in with_new] == [
        ("80.0", 1, "25.0"),
        ("0.0", 0, "0.0"),
        ("40.0", 0, "0.0"),
    ]
    bars = due_bars([4, 0, 2], NOW.date())
    assert [(bar.label, bar.count, bar.height, bar.is_now) for bar in bars] == [
        ("Sa", 4, "100.0", True),
        ("Su", 0, "0.0", False),
        ("Mo", 2, "50.0", False),
    ]


def test_the_page_shows_evidence_of_every_room(client: TestClient, database: Database) -> None:
    shown = client.get("/api/v1/study/next").json()["card"]
    client.post("/api/v1/study/reviews", json={"card_id": shown["card_id"], "level": 3, "version": shown["version"]})
    with database.write() as session:
        settled = {"learner_id": 1, "revision": 1, "drawn": {}, "issued_at": NOW, "settled_at": NOW}
        session.add(Variant(problem_id="P01", seed=1, score=0.0, **settled))
        run = {"spec": {}, "theory": {}, "status": "finished", "created_at": NOW, "ended_at": NOW}
        session.add(Run(learner_id=1, experiment_id="L10", **run))
    page = client.get("/").text
    for words in ("Cards answered", "Problems settled", "Experiments run", "How you stand", "No interview date yet"):
        assert words in page
    assert 'href="/practice/P01' not in page
    assert "zero-by-the-byte" not in page, "what was done today is not first in line again"


def test_what_a_prediction_left_out_is_said_with_its_card_until_that_is_answered(
    client: TestClient, database: Database
) -> None:
    """The second gather, left out of three transfers: near as a factor, and what there was to learn."""
    form = {"key": "k", "value.model_state_bytes": "26 MB", "value.payload_bytes_per_step": "26 MB"}
    client.post("/lab/experiments/L10/runs", data=form, headers={"accept": "text/html"})
    with database.write() as session:
        run = session.get_one(Run, 1)
        measured = {name: run.theory[name] for name in run.prediction or {}}
        run.status, run.ended_at, run.result = "finished", NOW - timedelta(minutes=1), measured
    page = client.get("/").text
    assert "one weak spot" in page
    assert "You left out the second gather in L10 at" in page
    assert 'href="/study/cards/C10"' in page
    assert page.count("left out the second gather") == 1, "a reason is given once"
    assert "7B model not train" not in page, "what was done has a day of its own"
    assert "you left out the second gather in L10" in client.get("/reference/concepts?to=fsdp").text
    assert "FSDP: you left out the second gather in L10" in client.get("/practice").text
    reply = client.post("/api/v1/study/reviews", json={"card_id": "C10", "level": 4, "version": 0})
    assert reply.status_code == 201, reply.text
    assert 'href="/study/cards/C10"' not in client.get("/").text


def test_a_problems_own_slip_is_said_where_it_stands_and_where_its_idea_comes_next(
    client: TestClient, database: Database, content: Catalogue
) -> None:
    """Stage 2 answered with stage 3's formula."""
    problem = content.problems["P03"]
    with database.write() as session:
        seed = practice.issue_variant(session, 1, problem, NOW - timedelta(hours=1)).seed
        answers = {part.id: part.answer_text for part in make_variant(problem, seed).parts if part.points}
        practice.answer(session, 1, problem, seed, answers | {"b": answers["c"]}, NOW)
    page = unescape(client.get("/practice").text)
    assert re.search(r"Your slip today: Stage 2: everything sharded.*?C62</a> answers\s+it", page, re.DOTALL)
    assert re.search(r'<details class="topic-of" open>\s*<summary class="topic">\s*<span>\s*<b>Data parallelism', page)
    assert "ZeRO stages: your slip in P03 at 12:00 was “Stage 2: everything sharded" in page
    assert 'btn btn-primary" href="/practice/fewest-gpus"' in page, "the button and the list say the same"
    today = unescape(client.get("/").text)
    assert "Your slip in P03 at 12:00 was “Stage 2: everything sharded" in today
    assert "Training state went right at 12:00" in page, "what was missed is the other idea"
