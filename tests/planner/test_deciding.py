"""The path of decisions: each step says its numbers, and it ends in the plan it names."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlparse

import pytest

from app.planner import deciding, service
from app.theory.planner.deciding import Asked, decide, fits


@pytest.mark.parametrize(
    ("model", "gpus", "sequence", "batch", "ends_in"),
    [
        ("llama-3.2-1b", 8, 8192, 64, "replicas"),
        ("llama-3-70b", 128, 8192, 1024, "tensor groups"),
        ("llama-3-405b", 2048, 131072, 128, "stages"),
        ("mixtral-8x7b", 64, 4096, 256, "replicas"),
    ],
)
def test_the_path_ends_in_a_plan_that_fits_and_uses_every_gpu(
    model: str, gpus: int, sequence: int, batch: int, ends_in: str
) -> None:
    found = decide(Asked(model, "h100-80gb", gpus, 8, sequence, batch))
    assert found.request is not None
    assert found.estimate is not None
    assert fits(found.estimate)
    assert found.request.parallel.world_size == gpus
    which = next(each for each in found.questions if each.title == "Which of them?")
    assert which.follows.lower().startswith(ends_in)
    titles = [each.title for each in found.questions]
    assert ("Is the sequence long?" in titles) == (sequence >= 32768)
    assert ("Are there experts?" in titles) == (model == "mixtral-8x7b")


def test_state_is_counted_before_anything_else() -> None:
    """405.9e9 × 16 bytes are 6.49 TB: 171 GPUs of 42.3 GB at nine tenths, and there are 16."""
    found = decide(Asked("llama-3-405b", "a100-40gb", 16, 8, 8192, 64))
    assert "6.49 TB" in found.questions[0].says
    assert "171 GPUs" in found.questions[0].follows
    assert found.request is None


def test_each_question_says_of_which_state_it_is() -> None:
    """8.03e9 × 16 bytes are 128 GB, more than one GPU of 80 GB; with ZeRO-1 over eight, a replica fits on each."""
    whole, replicas, sharded, *_ = decide(Asked("llama-3-8b", "h100-80gb", 8, 8, 8192, 64)).questions
    assert "unsharded" in whole.title
    assert whole.follows.startswith("Without sharding it would fill 2 GPUs")
    assert "unsharded or with ZeRO-1" in replicas.title
    assert replicas.follows.startswith("It fits with ZeRO-1")
    assert "all of the state is sharded" in sharded.title


def test_the_pages_plan_is_what_the_planner_then_shows() -> None:
    shown = deciding.path({"model": "llama-3-70b", "ranks": "128", "sequence": "8192", "global_batch": "1024"})
    made = service.plan(dict(parse_qsl(urlparse(shown.plan).query)))
    assert not made.errors
    assert shown.decision.estimate is not None
    assert made.estimate.time == shown.decision.estimate.time
    assert made.estimate.memory == shown.decision.estimate.memory


def test_what_cannot_be_read_is_said_at_its_field() -> None:
    shown = deciding.path({"model": "own", "ranks": "many", "gpu": "h100-80gb"})
    assert set(shown.errors) == {"model", "ranks"}


def test_a_size_of_ones_own_is_decided_for_and_what_is_not_understood_is_said() -> None:
    asked = {"model": "sized", "parameters": "30B", "ranks": "512", "global_batch": "4.2M tokens", "gpus": "9"}
    shown = deciding.path(asked)
    assert not shown.errors
    assert [(part.name, part.near) for part in shown.unread] == [("gpus", "gpu")]
    assert "1,024 sequences of 4,096 tokens" in shown.title
    made = service.plan(dict(parse_qsl(urlparse(shown.plan).query)))
    assert not made.errors
    assert shown.decision.estimate is not None
    assert made.estimate.time == shown.decision.estimate.time
