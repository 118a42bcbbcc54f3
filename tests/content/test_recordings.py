"""Recorded runs: a fault is read from what the ranks had, and a recording that does not show its own is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from app.content.catalogue import Catalogue
from app.content.recordings import Recording, diagnose, facts, first_lost, number_that_parts
from app.core.settings import ROOT
from app.interview.drawing import draw, values_of
from app.interview.parts import parts_of
from app.interview.prompts import prompt
from app.interview.questions import right_answer

FOLDER = ROOT / "cards" / "recordings"


def _stored(identity: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{identity}.yaml").read_text())
    return found


def test_what_is_kept_names_its_fault_from_the_records_alone() -> None:
    for path in FOLDER.glob("*.yaml"):
        found = Recording.model_validate(_stored(path.stem))
        assert found.id == path.stem
        if found.steps:
            assert first_lost(found.steps) == found.planted.step
        else:
            assert diagnose(found.ranks) == (found.planted.kind, found.planted.rank)


def test_a_recording_that_shows_something_else_is_refused() -> None:
    def refused(identity: str, match: str, **changes: Any) -> None:
        with pytest.raises(ValidationError, match=match):
            Recording.model_validate(_stored(identity) | changes)

    stuck, lost = _stored("stuck-loader-3"), _stored("overflow-21")
    refused("stuck-loader-3", "planted stuck-loader on rank 5, but it reads as", planted=stuck["planted"] | {"rank": 5})
    refused("stuck-loader-3", "not one record for each rank", ranks=stuck["ranks"][1:])
    refused("stuck-loader-3", "spec: ", spec=stuck["spec"] | {"parallel": {"data": 99}})
    refused("overflow-21", "lost from step 21", planted=lost["planted"] | {"step": 20})
    healed = [*lost["steps"][:-1], lost["steps"][-1] | {"loss": 2.0}]
    refused("overflow-21", "lost from step None", steps=healed)


def test_ranks_that_all_wait_for_two_others_name_nobody() -> None:
    ranks = Recording.model_validate(_stored("stuck-loader-3")).ranks
    absent = ranks[3].model_copy(update={"rank": 4})
    assert diagnose((*ranks[:4], absent, *ranks[5:])) is None
    assert (diagnose(ranks[:3]), number_that_parts(ranks[3:4])) == (None, None)


def test_what_an_interview_says_and_asks_follows_from_the_recording(content: Catalogue) -> None:
    """Keys worked out again from the file, and every figure of the log in the prompt."""
    for name, question in (("M2", "hang"), ("M6", "mismatch"), ("M6", "scale")):
        interview = content.interviews[name]
        part = next(each for each in parts_of(interview) if each.id == question)
        for seed in range(6):
            drawn = draw(interview, seed)
            values = values_of(interview, drawn)
            asked = str(prompt(part, values, {}))
            if question == "scale":
                steps = {each["step"]: each for each in _stored(str(drawn["overflows"]))["steps"]}
                last = steps[next(each for each in steps if steps[each]["loss"] is None) + int(drawn["halvings"]) - 1]  # type: ignore[call-overload]
                assert f"{last['loss_scale']:,.0f}" in asked
                assert right_answer(part, values, {}).startswith(f"{65504 / last['loss_scale']:,.4g}"[:4])
                continue
            stored = _stored(str(drawn["stands" if question == "hang" else "parts"]))
            assert all(line in asked for line in facts(Recording.model_validate(stored))["log"].splitlines())
            odd = stored["planted"]["rank"]
            assert values["stuck" if question == "hang" else "rank"] == odd


def test_an_interview_that_hands_out_what_is_not_recorded_is_a_mistake(content: Catalogue) -> None:
    with pytest.raises(ValueError, match=r"recordings.hang: there is no recording stuck-loader-5.*Accepted: stuck"):
        content.interviews["M2"].hand_out({"stuck-loader-3": {}})
