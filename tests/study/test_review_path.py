"""A review goes through few files of study, and the architecture page names every one of them."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from fastapi.testclient import TestClient

import app as package
from app.core.db import Database
from app.core.settings import ROOT, Settings
from app.main import create_app
from tests.conftest import Clock

STUDY = Path(package.__file__).parent / "study"


def _named() -> set[str]:
    """What the page says a review runs through."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    journey = text[text.index("**A review.**") : text.index("These ten are all the files")]
    return set(re.findall(r"`app/study/([\w/]+\.py)`", journey))


def test_a_review_runs_through_the_files_that_the_architecture_page_names(
    sqlite: Database, settings_for: Callable[..., Settings], clock: Clock
) -> None:
    entered: set[str] = set()
    tracing = False

    def note(frame: FrameType, event: str, _: Any) -> None:
        if tracing and event == "call" and frame.f_code.co_filename.startswith(f"{STUDY}/"):
            entered.add(Path(frame.f_code.co_filename).relative_to(STUDY).as_posix())

    app = create_app(settings_for(), sqlite)
    app.state.clock = clock
    before = sys.getprofile()
    threading.setprofile(note)  # the application answers in threads that start within the client
    try:
        with TestClient(app, base_url="http://127.0.0.1") as client:
            card = client.get("/api/v1/study/next").json()["card"]
            assert card["ask"] is None, "one that the learner judges"
            given = {"card_id": card["card_id"], "version": card["version"], "level": 4}
            tracing = True
            reply = client.post("/study/reviews", data=given, headers={"hx-request": "true"})
            tracing = False
            following = client.get("/api/v1/study/next").json()["card"]["card_id"]
    finally:
        threading.setprofile(before)
    assert reply.status_code == 200
    assert following != card["card_id"]
    assert following in reply.text, "the next card came in the same reply"
    assert entered == _named()
    assert len(entered) <= 10
