"""The progress page, the interview date's page, and a learner's data over HTTP."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.codelabs.models import CodeChunk, CodeDesk, CodeSubmission
from app.content.catalogue import Catalogue
from app.content.concept_map import way_to
from app.core.db import Database
from app.core.models import IdempotentReply, Learner
from app.decks.models import CardReport, OwnCard, OwnShelf
from app.exchange.models import ImportReport
from app.first.models import FirstGuess
from app.interview.models import Sitting, SittingAnswer
from app.lab.models import Chunk, GpuLease, Run, Sweep
from app.models import METADATA
from app.practice.models import Attempt, Variant
from app.progress import data
from app.rubrics.models import RubricAnswer
from app.study.models import MetBlock, ParameterFit, ParameterSet, StudySettings
from tests.conftest import NOW, Clock
from tests.support.seeding import seed_reviews
from tests.support.strategies import strategies_are_found_once  # noqa: F401 - used by every test

DAY = (NOW + timedelta(days=14)).date().isoformat()
NOBODYS = {"item_source", "served_release", "worker_presence"}  # what items said, and who is there
QUESTIONS = (
    "Do you study often enough?",
    "What comes back in the next two weeks?",
    "Do you remember as much as the scheduler expects?",
    "How firm is what you know?",
    "Which concepts slip?",
    "Do you rate yourself too kindly?",
    "Where does the time go?",
    "Is the memory model yours?",
)


def test_an_empty_page_says_what_will_be_here_and_offers_the_first_step(client: TestClient, content: Catalogue) -> None:
    text = client.get("/progress").text
    for question in QUESTIONS:
        assert question in text
    assert 'href="/study"' in text
    assert 'role="img"' not in text
    assert "The way to Training state" in text, "of the ground, which the first checkpoint asks for"
    assert re.findall(r'class="idea on[ a-z]*" href="/reference/concepts\?to=([\w-]+)#map"', text) == way_to(
        content.concepts, "training-state"
    )


def test_every_chart_has_a_question_a_sentence_and_a_table(
    client: TestClient, database: Database, content: Catalogue
) -> None:
    seed_reviews(database, content, NOW, days=40, cards=134)
    text = client.get("/progress").text
    for question in QUESTIONS:
        assert question in text
    assert text.count('role="img"') == 9
    assert text.count("As a table") >= 9
    assert "134 cards met" in text


@pytest.mark.slow
def test_a_date_is_set_shown_and_dropped(client: TestClient, content: Catalogue) -> None:
    assert "When is the interview?" in client.get("/progress/plan").text
    reply = client.post("/progress/plan", data={"day": DAY, "minutes_per_day": 20})
    assert (reply.status_code, reply.headers["location"]) == (303, "/progress/plan")
    text = client.get("/progress/plan").text
    assert "expected on Saturday 5 December" in text
    cards = len(content.cards)
    assert f"{cards} cards met by then" in text or f"of {cards} cards" in text
    assert "Interview in 14 days" in client.get("/").text
    client.post("/progress/plan/drop")
    assert "When is the interview?" in client.get("/progress/plan").text
    assert "Interview in" not in client.get("/").text


def test_the_preset_is_three_weeks_with_checkpoints_on_their_days(client: TestClient) -> None:
    client.post("/progress/plan", data={"preset": "true"})
    text = client.get("/progress/plan").text
    for day in ("21 November", "24 November", "28 November", "5 December", "12 December"):
        assert f"{day}: " in text


def test_today_leads_to_what_the_next_checkpoint_asks_for(client: TestClient, clock: Clock) -> None:
    client.post("/progress/plan", data={"preset": "true"})
    text = client.get("/").text
    assert "21 November: The ground" in text
    assert "Sit M9, 10 min" in text
    clock.advance(days=5)
    text = client.get("/").text
    assert "28 November: Sharding and a first interview" in text
    assert "5 things are open from checkpoints before." in text
    assert 'href="/practice/zero-bytes-per-gpu"' in text
    assert "Sit M1, 20 min" in text, "the interview it asks for, not the shortest one"
    client.post("/progress/plan/drop")
    assert "Sharding and a first interview" not in client.get("/").text


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"day": "2026-11-01", "minutes_per_day": "20"}, "That day is over."),
        ({"day": "2031-11-01", "minutes_per_day": "20"}, "too far ahead"),
        ({"day": "tomorrow", "minutes_per_day": "20"}, "That is no date."),
        ({"day": DAY, "minutes_per_day": "0"}, "5 to 480 minutes"),
    ],
)
def test_a_date_that_cannot_be_planned_is_refused(client: TestClient, form: dict[str, str], says: str) -> None:
    reply = client.post("/progress/plan", data=form)
    assert reply.status_code == 422
    assert says in reply.text


def test_the_day_itself_and_a_day_that_passed_have_pages(client: TestClient, clock: Clock) -> None:
    client.post("/progress/plan", data={"day": NOW.date().isoformat(), "minutes_per_day": 20})
    assert "Today is the day" in client.get("/progress/plan").text
    clock.advance(days=2)
    assert "That was Saturday 21 November" in client.get("/progress/plan").text


def test_a_fit_is_refused_with_what_it_takes_or_asked_for(
    client: TestClient, database: Database, content: Catalogue
) -> None:
    assert "A fit needs 640" in client.post("/progress/fit").text
    seed_reviews(database, content, NOW, days=150, cards=134)
    seed = client.post("/progress/fit")
    with database.read() as session:
        asked = session.scalars(select(ParameterFit)).all()
    assert (seed.status_code, len(asked)) in ((303, 1), (422, 0))


def _fill_every_table(database: Database, content: Catalogue) -> None:
    """A row of the learner in each table that has any."""
    seed_reviews(database, content, NOW, days=30, cards=5)
    with database.write() as session:
        variant = Variant(learner_id=1, problem_id="P01", revision=1, seed=1, drawn={}, issued_at=NOW)
        sitting = Sitting(
            learner_id=1, interview_id="M9", revision=1, drawn={}, started_at=NOW, deadline_at=NOW, closed_at=NOW
        )
        run = Run(learner_id=1, spec={}, theory={}, status="finished", created_at=NOW)
        submission = CodeSubmission(
            learner_id=1, lab_id="CL01", revision=1, mode="submit", code="x", created_at=NOW, status="judged"
        )
        session.add_all([variant, sitting, run, submission])
        session.flush()
        session.add_all(
            [
                Attempt(learner_id=1, variant_id=variant.id, answered_at=NOW, answers={}, results={}, counted=True),
                MetBlock(learner_id=1, block="b"),
                FirstGuess(learner_id=1, guess_bytes=14e9, guessed_at=NOW),
                SittingAnswer(sitting_id=sitting.id, part_id="q1", answer="x", saved_at=NOW),
                Chunk(run_id=run.id, sequence=1, events=[], created_at=NOW),
                GpuLease(uuid="GPU-1", run_id=run.id),
                RubricAnswer(
                    learner_id=1,
                    rubric_id="R01",
                    revision=1,
                    answered_at=NOW,
                    text="x",
                    grade={},
                    judged={},
                    score=0.5,
                    level="hire",
                ),
                IdempotentReply(learner_id=1, key="k", request="r", reply={}, created_at=NOW),
                ParameterSet(learner_id=1, id="x", parameters=[], created_at=NOW),
                StudySettings(learner_id=1, new_per_day=5, desired_retention=0.9, updated_at=NOW),
                ParameterFit(learner_id=1, asked_at=NOW, reviews=1),
                OwnCard(
                    learner_id=1,
                    card_id="O1",
                    guid="g",
                    kind="basic",
                    deck="Mine",
                    title="t",
                    tags=[],
                    sections={},
                    options=[],
                    source="page",
                    created_at=NOW,
                    updated_at=NOW,
                ),
                OwnShelf(learner_id=1, state="s"),
                CardReport(learner_id=1, card_id="C61", revision=1, text="wrong", created_at=NOW),
                ImportReport(learner_id=1, file_name="in.apkg", report={}, created_at=NOW),
                Sweep(learner_id=1, name="s", knobs=[], created_at=NOW),
                CodeDesk(learner_id=1, lab_id="CL01", opened_at=NOW),
                CodeChunk(submission_id=submission.id, sequence=1, events=[], created_at=NOW),
            ]
        )


def _rows(database: Database) -> dict[str, int]:
    with database.read() as session:
        return {table.name: len(session.execute(select(table)).all()) for table in METADATA.sorted_tables}


def test_the_export_holds_every_row_of_every_table(client: TestClient, database: Database, content: Catalogue) -> None:
    client.post("/progress/plan", data={"day": DAY, "minutes_per_day": 20})
    _fill_every_table(database, content)
    reply = client.get("/progress/export")
    assert reply.headers["content-disposition"] == 'attachment; filename="rankzero-2026-11-21.jsonl"'
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert lines[0]["record"] == "export"
    expected = {name: count for name, count in _rows(database).items() if name not in NOBODYS}
    held = {name: sum(line["record"] == name for line in lines) for name in expected}
    assert held == expected
    assert [name for name, count in held.items() if not count] == [], "the test must fill every table"


def test_deleting_leaves_no_row_of_the_learner_in_any_table_and_none_of_anothers_goes(
    client: TestClient, database: Database, content: Catalogue, tmp_path: Path
) -> None:
    client.post("/progress/plan", data={"day": DAY, "minutes_per_day": 20})
    _fill_every_table(database, content)
    with database.write() as session:
        session.add(Learner(id=2, name="Another", created_at=NOW))
        session.flush()
        session.add(StudySettings(learner_id=2, new_per_day=5, desired_retention=0.9, updated_at=NOW))
    folder = tmp_path / "var" / "runs" / "1-abcdef12"
    folder.mkdir(parents=True)
    refused = client.post("/progress/delete", data={"confirmation": "yes"})
    assert refused.status_code == 422
    assert folder.exists()
    reply = client.post("/progress/delete", data={"confirmation": "Delete"})
    assert (reply.status_code, reply.headers["location"]) == (303, "/progress?deleted=true")
    left = {name: count for name, count in _rows(database).items() if count and name not in NOBODYS}
    assert left == {"learner": 2, "study_settings": 1}
    assert not folder.exists()
    assert "Everything of yours was deleted" in client.get("/progress?deleted=true").text
    assert client.get("/study").status_code == 200


def test_every_table_with_a_learner_is_found(database: Database) -> None:
    names = {table.name for table, _, _ in data.owned_tables()}
    assert names == {table.name for table in METADATA.sorted_tables} - {"learner", *NOBODYS}


def _finished_run(client: TestClient, database: Database, prediction: dict[str, Any]) -> None:
    spec = {"model": "gpt-small", "training": {"steps": 5}, "parallel": {"data": 2, "zero": 3}}
    run_id = client.post("/api/v1/lab/runs", json={"spec": spec, "prediction": prediction}).json()["id"]
    with database.write() as session:
        run = session.get_one(Run, run_id)
        run.status, run.started_at, run.ended_at = "finished", NOW, NOW
        held = {name: run.theory[name] for name in ("model_state_bytes", "model_state", "payload_bytes_per_step")}
        run.result = held


def test_predictions_show_with_what_they_left_out_and_how_often_the_range_held(
    client: TestClient, database: Database
) -> None:
    assert "Predict one" in client.get("/progress").text
    _finished_run(client, database, {"payload_bytes_per_step": {"value": "26 MB", "within": 1.1}})
    _finished_run(
        client,
        database,
        {"model_state_bytes": {"value": "26 MB", "within": 1.1}, "payload_bytes_per_step": {"value": "39 MB"}},
    )
    page = client.get("/progress").text
    assert "2 runs predicted, 1 of 2 inside your range" in page
    assert "Nothing to show yet" not in page
    assert "You left out the all-gather in backward" in page
    assert "all-gather in backward, 12.6 MB" in page
    assert "nothing missing" in page


def test_on_the_first_day_nobody_has_remembered_anything_yet(client: TestClient) -> None:
    shown = client.get("/api/v1/study/next").json()["card"]
    review = {"card_id": shown["card_id"], "level": 4, "version": shown["version"]}
    client.post("/api/v1/study/reviews", json=review)
    page = client.get("/progress").text
    assert "1 card met today; what stays shows from tomorrow on" in page
    assert "100 %\n      recalled" not in page
    assert "% recalled today on average" not in page
