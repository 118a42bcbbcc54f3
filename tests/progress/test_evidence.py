"""What every room knows of a learner, brought to concepts: on the concept page, after an attempt, and as a log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.evidence import Kind
from app.core.db import Database
from app.core.errors import DomainError
from app.core.models import Learner
from app.core.settings import Settings
from app.interview import answering, closing
from app.interview import service as interview
from app.lab import service as lab
from app.lab.models import Run
from app.main import create_app
from app.practice import service as practice
from app.practice.models import Attempt
from app.practice.variants import make_variant
from app.progress import evidence, export, mistakes
from app.rubrics import service as rubrics
from app.study import service as study
from tests.conftest import NOW, Clock, moment_at

DAY = timedelta(days=1)
EXPERIMENT = "L10"


def review(session: Session, content: Catalogue, card: str, *levels: int, start: int = 0) -> None:
    for at, level in enumerate(levels, start):
        study.submit_review(
            session, 1, content, card_id=card, level=level, version=at - start, moment=moment_at(NOW + at * DAY)
        )


def solve(session: Session, content: Catalogue, problem: str, right: bool = True) -> int:
    found = content.problems[problem]
    seed = practice.issue_variant(session, 1, found, NOW).seed
    parts = [part for part in make_variant(found, seed).parts if part.points]
    practice.answer(session, 1, found, seed, {each.id: each.answer_text if right else "1 B" for each in parts}, NOW)
    return seed


def ran(session: Session, prediction: dict[str, Any] | None, result: dict[str, Any] | None) -> Run:
    """A finished run of an experiment; what ranks do on the way there is told in tests/lab."""
    run = lab.submit_run(session, 1, {"model": "gpt-mini"}, None, NOW, EXPERIMENT)
    run.prediction = {name: {"value": value, "text": "", "within": None} for name, value in (prediction or {}).items()}
    run.status, run.ended_at, run.result = "finished", NOW, result
    session.flush()
    return run


def standing(
    session: Session, content: Catalogue, concept: str, now: Any = NOW + 9 * DAY, learner: int = 1
) -> evidence.Standing | None:
    return evidence.by_concept(session, learner, content, now).get(concept)


def card_of(content: Catalogue, concept: str) -> str:
    return next(each.id for each in content.cards.values() if each.head.concepts == (concept,))


@pytest.fixture
def concept(content: Catalogue) -> str:
    """A concept that some card is about, and nothing else it names."""
    return next(each.head.concepts[0] for each in content.cards.values() if len(each.head.concepts) == 1)


def test_every_room_counts_for_the_concepts_of_its_items(database: Database, content: Catalogue) -> None:
    with database.write() as session:
        review(session, content, "C62", 4)
        solve(session, content, "P03")
        rubric = content.rubrics["R01"]
        rubrics.submit_answer(session, 1, rubric, rubric.exemplar("strong hire"), NOW)
        sitting = interview.start(session, 1, content, content.interviews["M9"], NOW)
        answering.save_answer(session, content, sitting, "q1", "1 GB", True, NOW)
        closing.close(session, content, sitting, NOW + timedelta(minutes=1), "candidate")
        ran(session, {"model_state_bytes": 100.0}, {"model_state_bytes": 120.0})
    with database.read() as session:
        found = evidence.by_concept(session, 1, content, NOW + DAY)
    zero = found["zero-stages"]
    assert set(zero.kinds) >= {"card", "problem", "free answer"}
    assert zero.count == sum(zero.kinds.values())
    about = evidence.concepts_of_items(content)
    assert set(about["M9.q1"]) < set(about["M9"])
    items: tuple[tuple[str, Kind], ...] = (("M9.q1", "interview"), (EXPERIMENT, "run"))
    for item, kind in items:
        counted = {concept: each.kinds[kind] for concept, each in found.items() if each.kinds.get(kind)}
        assert counted == dict.fromkeys(about[item], 1), "of the one question that was answered, and nothing else"
    touched = {concept for each in ("C62", "P03", "R01", "M9.q1", EXPERIMENT) for concept in about[each]}
    assert set(found) == touched


def test_what_was_said_that_is_false_has_its_card_offered_until_it_is_taken_back(
    database: Database, content: Catalogue
) -> None:
    false = "ZeRO-2 halves the traffic because a reduce-scatter is half an all-reduce."
    for minute, words in ((1, false), (3, "I do not know.")):
        at = NOW + timedelta(minutes=minute)
        with database.write() as session:
            sitting = interview.start(session, 1, content, content.interviews["M9"], at)
            answering.save_answer(session, content, sitting, "q3", words, True, at)
            closing.close(session, content, sitting, at, "candidate")
        with database.read() as session:
            missed = mistakes.mistakes_of(session, 1, content, NOW + DAY)
            found = mistakes.open_cards(missed, evidence.gather(session, 1), content, 3)
        assert [(card, each.concepts[0]) for card, each in found] == (
            [("C67", "data-parallel-traffic")] if words == false else []
        )
        said = [each.sentence(moment_at(NOW + DAY)) for _, each in found]
        assert all("you said something false about the traffic of ZeRO-2" in each for each in said)


def test_a_follow_up_says_something_of_what_it_asks_beside_its_question(database: Database, content: Catalogue) -> None:
    """State was right; dividing it by ranks, which is ZeRO, was not."""
    with database.write() as session:
        sitting = interview.start(session, 1, content, content.interviews["M9"], NOW)
        state = 16e9 * sitting.drawn["billions"]
        answering.save_answer(session, content, sitting, "q1", f"{state / 1e9:g} GB", True, NOW)
        answering.save_answer(session, content, sitting, "q1.follow", f"{state / 1e9:g} GB", True, NOW)
        closing.close(session, content, sitting, NOW + timedelta(minutes=1), "candidate")
        found = evidence.by_concept(session, 1, content, NOW + DAY)
    assert {each: found[each].recent for each in ("training-state", "zero-stages")} == {
        "training-state": 1.0,
        "zero-stages": 0.0,
    }


def test_the_standing_is_the_mean_of_the_newest_results(database: Database, content: Catalogue, concept: str) -> None:
    card = card_of(content, concept)
    with database.write() as session:
        review(session, content, card, 1, 2, 4, 4)
        found = standing(session, content, concept)
        assert found is not None
        assert (found.count, found.results, found.recent, found.word) == (4, 4, 0.5, "getting there")
        assert found.last_at == NOW + 3 * DAY
        for at in range(4, 4 + evidence.RECENT):
            study.submit_review(
                session, 1, content, card_id=card, level=5, version=at, moment=moment_at(NOW + at * DAY)
            )
        found = standing(session, content, concept, NOW + 20 * DAY)
        assert found is not None
        assert (found.count, found.results, found.recent, found.word) == (12, 8, 1.0, "firm")
        later = standing(session, content, concept, NOW + 200 * DAY)
        assert later is not None
        assert (later.count, later.recent, later.word) == (12, None, "too little to say")


def test_one_lucky_answer_is_no_standing(database: Database, content: Catalogue, concept: str) -> None:
    with database.write() as session:
        review(session, content, card_of(content, concept), 5)
        found = standing(session, content, concept)
    assert found is not None
    assert (found.recent, found.word) == (1.0, "too little to say")


def test_the_weakest_are_those_not_firm_of_which_enough_is_known() -> None:
    known = {"firm": (0.8, 3), "shaky": (0.4, 3), "few": (0.1, 2), "getting there": (0.79, 8), "done only": (None, 0)}
    standings = [evidence.Standing(name, 9, NOW, recent, results, {}) for name, (recent, results) in known.items()]
    assert evidence.weakest_of(standings) == ("shaky", "getting there")


def test_what_was_undone_is_no_evidence(database: Database, content: Catalogue, concept: str) -> None:
    with database.write() as session:
        review(session, content, card_of(content, concept), 1)
        study.undo(session, 1, NOW + DAY)
        assert standing(session, content, concept) is None


def test_only_issued_and_settled_variants_count(database: Database, content: Catalogue) -> None:
    problem = content.problems["P03"]
    with database.write() as session:
        variant = make_variant(problem, 7)
        answers = {part.id: part.answer_text for part in variant.parts if part.points}
        practice.answer(session, 1, problem, 7, answers, NOW)
        issued = practice.issue_variant(session, 1, problem, NOW).seed
        assert standing(session, content, "zero-stages") is None
        practice.show_solution(session, 1, problem, issued, NOW)
        found = standing(session, content, "zero-stages")
    assert found is not None
    assert (found.count, found.recent) == (1, 0.0)


def test_a_prediction_is_held_to_the_measurement(database: Database, content: Catalogue) -> None:
    concept = content.experiments[EXPERIMENT].concepts[0]
    both = {"model_state_bytes": 100.0, "payload_bytes_per_step": 0.0}
    with database.write() as session:
        ran(session, None, both)
        found = standing(session, content, concept)
        assert found is not None
        assert (found.count, found.recent) == (1, None)
        ran(session, {"model_state_bytes": 124.0, "payload_bytes_per_step": 0.0}, both)
        ran(session, {"model_state_bytes": 126.0, "payload_bytes_per_step": 1.0}, both)
        ran(session, {"model_state_bytes": 100.0}, {})
        found = standing(session, content, concept)
    assert found is not None
    assert (found.count, found.results, found.recent) == (4, 2, 0.5)


def test_evidence_is_the_learners_own(database: Database, content: Catalogue, concept: str) -> None:
    with database.write() as session:
        session.add(Learner(id=2, name="Other", created_at=NOW))
        session.flush()
        review(session, content, card_of(content, concept), 4)
        assert standing(session, content, concept, learner=2) is None
        assert list(evidence.log_records(session, 2)) == []


def test_items_and_concepts_that_are_gone_count_for_nothing(sqlite: Database, content: Catalogue, concept: str) -> None:
    with sqlite.write() as session:
        review(session, content, card_of(content, concept), 4)
        left = {name: each for name, each in content.concepts.items() if name != concept}
        assert evidence.by_concept(session, 1, replace(content, concepts=left), NOW) == {}
        assert evidence.by_concept(session, 1, replace(content, cards={}), NOW) == {}


@pytest.fixture
def page(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_the_concept_page_says_how_the_learner_stands(
    page: TestClient, sqlite: Database, content: Catalogue, concept: str
) -> None:
    assert "<dt>You</dt>" not in page.get("/reference/concepts").text
    with sqlite.write() as session:
        review(session, content, card_of(content, concept), 1, 4, 4, 4, start=-10)
    html = page.get("/reference/concepts").text
    entry = text_of(html.split(f'<li id="{concept}"')[1].partition(">")[2].split("</li>")[0])
    assert "You Getting there : 75 % of the newest 4 results right; 4 card reviews, last" in entry
    assert html.count("map-known") == 1
    assert html.count("<dt>You</dt>") == 1


def test_after_an_attempt_it_is_said_what_it_counts_for(page: TestClient, sqlite: Database, content: Catalogue) -> None:
    problem = content.problems["P03"]
    said = "This counts for " + " and ".join(content.concepts[each].title for each in problem.concepts)
    seed = page.post(f"/practice/{problem.slug}/variants").headers["location"].rsplit("/", 1)[1]
    assert "This counts for" not in page.get(f"/practice/{problem.slug}/{seed}").text
    answers = {part.id: part.answer_text for part in make_variant(problem, int(seed)).parts}
    form = {f"answer.{part}": text for part, text in answers.items()}
    page.post(f"/practice/{problem.slug}/{seed}", data=form)
    assert len(problem.concepts) <= 2
    assert said in text_of(page.get(f"/practice/{problem.slug}/{seed}").text).replace(" .", ".")
    not_issued = page.post(f"/practice/{problem.slug}/7", data=form).text
    assert "This counts for" not in not_issued
    answer = page.post("/rubrics/memory-walk", data={"text": "ZeRO-3 shards all state."}).headers["location"]
    assert "This counts for" in page.get(answer).text


def test_the_log_holds_everything_a_learner_did(database: Database, content: Catalogue, tmp_path: Path) -> None:
    with database.write() as session:
        review(session, content, "C62", 4)
        study.undo(session, 1, NOW + DAY)
        seed = solve(session, content, "P03", right=False)
        rubrics.submit_answer(session, 1, content.rubrics["R01"], "ZeRO-3\nshards 26 GB − “all”.", NOW)
        sitting = interview.start(session, 1, content, content.interviews["M9"], NOW)
        answering.save_answer(session, content, sitting, "q1", "26 GB", True, NOW)
        run = ran(session, None, {"model_state_bytes": 1})
        run.lease = "secret"
    out = tmp_path / "log.jsonl"
    count = export.write_log(database, str(out), NOW + DAY)
    head, *records = [json.loads(line) for line in out.read_text().splitlines()]
    assert head == {
        "record": "log",
        "at": (NOW + DAY).isoformat(),
        "format": export.FORMAT,
        "learner_id": 1,
        "records": count,
    }
    by_kind = {each["record"]: each for each in records}
    assert set(by_kind) == {"review", "variant", "attempt", "free answer", "sitting", "run"}
    assert len(records) == count == 6
    assert [each["at"] for each in records] == sorted(each["at"] for each in records)
    assert by_kind["review"]["undone_at"] == (NOW + DAY).isoformat()
    assert (by_kind["attempt"]["problem_id"], by_kind["attempt"]["seed"]) == ("P03", seed)
    assert set(by_kind["attempt"]) >= {column.key for column in Attempt.__table__.columns}
    assert by_kind["free answer"]["text"] == "ZeRO-3\nshards 26 GB − “all”."
    assert by_kind["sitting"]["answers"][0]["answer"] == "26 GB"
    assert by_kind["run"]["result"] == {"model_state_bytes": 1}
    assert "lease" not in by_kind["run"]


def test_a_log_that_cannot_be_written_leaves_what_was_there(sqlite: Database, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="not written") as refused:
        export.write_log(sqlite, str(tmp_path / "nowhere" / "log.jsonl"), NOW)
    assert refused.value.violations[0].field == "OUT"
    assert not list(tmp_path.glob(".log*"))


def test_an_install_that_never_started_has_no_log(settings_for: Callable[..., Settings]) -> None:
    configuration = settings_for()
    with pytest.raises(DomainError, match="rankzero start"):
        export.open_existing(configuration)
    assert not configuration.data.exists()


def test_a_database_of_an_older_schema_is_said_to_be_one(tmp_path: Path, settings_for: Callable[..., Settings]) -> None:
    configuration = settings_for()
    configuration.data.mkdir()
    (configuration.data / "rankzero.sqlite3").touch()
    with pytest.raises(DomainError, match="rankzero migrate"):
        export.write_log(export.open_existing(configuration), "-", NOW)


def test_the_clock_is_a_parameter(client: TestClient, database: Database, content: Catalogue, clock: Clock) -> None:
    with database.write() as session:
        review(session, content, "C62", 4)
    assert "Too little to say" in client.get("/reference/concepts").text
    clock.advance(days=120)
    assert "Too little to say" not in client.get("/reference/concepts").text
