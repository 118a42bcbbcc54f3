"""The first minute: a question before anything is known, one guess for good, and what was left out of it."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.first import service
from app.first.finding import finding
from app.first.numbers import MOST_RANKS, STAGES
from app.lab.models import Run
from app.lab.terms import terms_of
from app.progress.evidence import log_records
from app.reveal.gap import find_gap
from app.theory.state import zero_state_bytes
from labs.spec import parse_run_spec
from tests.conftest import NOW

HINTS = ("112", "16 bytes", "Weights", "Gradients", "Optimizer", "optimizer")


def test_an_empty_install_opens_on_the_question_and_hints_at_nothing(client: TestClient) -> None:
    opened = client.get("/")
    assert (opened.status_code, opened.headers["location"]) == (303, "/first")
    page = client.get("/first").text
    assert "How much memory does training a 7B model take?" in page
    assert "Learn distributed training" in page
    shown = re.sub(r"<(head|script).*?</\1>", "", page, flags=re.DOTALL)
    assert not [hint for hint in HINTS if hint in shown]


def test_a_guess_is_locked_once_and_today_shows_from_then_on(client: TestClient) -> None:
    locked = client.post("/first", data={"guess": "14"})
    assert (locked.status_code, locked.headers["location"]) == (303, "/first")
    assert client.post("/first", data={"guess": "112 GB"}).status_code == 303
    study = client.get("/study", follow_redirects=False)
    assert study.headers["location"] == "/study?deck=DK2", "by whatever way one comes, the first cards go on from it"
    page = client.get("/first").text
    assert "<h1" in page
    assert "You counted the weights alone" in page
    assert "8 × too low" in page
    assert 'value="14"' in page
    assert client.get("/").status_code == 200


def test_it_can_be_skipped_and_answered_later(client: TestClient, database: Database) -> None:
    assert client.post("/first/skip").headers["location"] == "/"
    assert client.get("/").status_code == 200
    assert "How much memory does training" in client.get("/first").text
    client.post("/first", data={"guess": "0.1 TB"})
    client.post("/first/skip")
    with database.read() as session:
        guess = service.find_guess(session, 1)
        assert guess is not None
        assert guess.guess_bytes == 1e11


@pytest.mark.parametrize("text", ["", "0", "0.5", "2000", "a lot", "14 GB/s", "1e400"])
def test_what_is_no_guess_is_said_at_its_field_and_locks_nothing(client: TestClient, text: str) -> None:
    refused = client.post("/first", data={"guess": text})
    assert refused.status_code == 422
    if text:
        assert "Accepted: a number of GB from 1 to 1,000." in refused.text
        assert f'value="{text}"' in refused.text
    assert client.get("/").headers["location"] == "/first"


def test_whoever_did_anything_is_not_asked(client: TestClient) -> None:
    spec = {"model": "gpt-mini", "training": {"steps": 5, "sequence": 32}}
    run = client.post("/api/v1/lab/runs", json={"spec": spec}).json()["id"]
    client.post(f"/api/v1/lab/runs/{run}/cancel")
    shown = client.get("/api/v1/study/next").json()["card"]
    review = {"card_id": shown["card_id"], "level": 3, "version": shown["version"]}
    assert client.post("/api/v1/study/reviews", json=review).status_code == 201
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("guess_gb", "title"),
    [
        (3, "That is less than the weights alone"),
        (14, "You counted the weights alone"),
        (28, "You counted weights and gradients, not the optimizer"),
        (42, "You left out the weights and the optimizer's moments, or the gradients and the optimizer's moments"),
        (56, "You left out the optimizer's moments"),
        (84, "Close: you left out the fp32 copy"),
        (96, "You left out the weights or the gradients"),
        (112, "You counted all 16 bytes"),
        (140, "You counted 20 bytes a parameter; 16 stay"),
        (700, "That is 6.2 times the state"),
    ],
)
def test_the_gap_has_the_name_of_what_was_left_out(guess_gb: float, title: str) -> None:
    assert finding(guess_gb * 1e9).title == title
    off = finding(guess_gb * 1e9).off
    assert off == "right" if guess_gb == 112 else off.endswith("too low" if guess_gb < 112 else "too high")


def test_every_state_that_is_drawn_is_the_theory_librarys(client: TestClient) -> None:
    packed = client.get("/first/states", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = client.get("/first/states", headers={"Accept-Encoding": "identity"})
    states = plain.json()
    assert states == packed.json() == json.loads(plain.content)
    assert [len(states), len(states[0])] == [MOST_RANKS, len(STAGES)]
    for ranks in (1, 2, 8, 64):
        for stage in STAGES:
            drawn = sum(float(height) for height in states[ranks - 1][stage]["heights"])
            assert drawn / 100 * 120e9 == pytest.approx(zero_state_bytes(7e9, ranks, stage), rel=1e-3)
    assert states[7][3]["held"] == ["1.75 GB", "1.75 GB", "10.5 GB", "14 GB"]
    assert states[7][3]["per_parameter"] == ["0.25 bytes", "0.25 bytes", "1.5 bytes", "2 bytes"]
    assert states[7][3]["says"] == ["14 GB each: it fits,", "with 66 GB left for activations."]
    assert states[1][1]["says"] == ["70 GB each: it fits,", "with 10 GB left for activations."]


def test_without_a_script_the_page_redraws_by_its_address(client: TestClient) -> None:
    client.post("/first", data={"guess": "14"})
    page = client.get("/first?ranks=8&stage=3").text
    assert "14 GB each: it fits," in page
    assert page.count('<i class="optimizer" style="--h:8.7500%') == 8
    assert client.get("/first?ranks=65").status_code == 422


def test_the_button_runs_the_question_in_small_with_the_guess_as_prediction(
    client: TestClient, database: Database
) -> None:
    client.post("/first", data={"guess": "14"})
    started = client.post("/first/run")
    assert started.status_code == 303
    run = client.get("/api/v1" + started.headers["location"]).json()
    assert run["experiment"] == "L10"
    assert (run["spec"]["parallel"]["data"], run["spec"]["parallel"]["zero"]) == (2, 0)
    said = run["prediction"]["model_state_bytes"]["value"]
    with database.read() as session:
        theory = session.get_one(Run, run["id"]).theory
    # the weights alone, there and here, though here they are fp32: what the run finds missing is what the guess lacked
    assert said == pytest.approx(theory["model_state"]["parameters"], rel=1e-3)
    terms = terms_of("model_state_bytes", parse_run_spec(run["spec"]), theory, {}, {}, {})
    gap = find_gap(said, theory["model_state_bytes"], terms, None)
    assert gap.finding == "You left out the gradients and the optimizer"


@pytest.mark.parametrize(
    ("guess", "lacks"),
    [
        (14, {"gradients", "optimizer"}),
        (28, {"optimizer"}),
        (84, set()),  # without its fp32 copy: half of the optimizer's state
        (112, set()),
        (5, set()),
        (400, set()),
        (50, set()),
    ],
)
def test_what_a_guess_left_out_is_named_by_part(guess: float, lacks: set[str]) -> None:
    assert service.lacking(guess * 1e9) == lacks


def test_the_guess_is_in_the_log_and_goes_with_everything_else(client: TestClient, database: Database) -> None:
    client.post("/first", data={"guess": "14"})
    with database.read() as session:
        (record,) = [each for each in log_records(session, 1) if each["record"] == "first_guess"]
    assert (record["guess_bytes"], record["guessed_at"]) == (14e9, NOW.isoformat())
    client.post("/progress/delete", data={"confirmation": "delete"})
    assert client.get("/").headers["location"] == "/first"
