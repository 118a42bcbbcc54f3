"""The path of decisions: each step says its numbers, and it ends in the plan it names."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlparse

import pytest

from app.planner import deciding, service
from app.theory.planner import is_tie, parse_search_request, search
from app.theory.planner.deciding import decide
from app.theory.planner.kinds import Asked, fits


@pytest.mark.parametrize(
    ("model", "gpus", "sequence", "batch", "ends_in"),
    [
        ("llama-3.2-1b", 8, 8192, 64, "replicas"),
        ("llama-3-70b", 128, 8192, 1024, "pipeline stages"),
        ("llama-3-405b", 2048, 131072, 128, "pipeline stages"),
        ("mixtral-8x7b", 64, 4096, 256, "replicas"),
    ],
)
def test_the_path_ends_in_a_plan_that_fits_and_uses_every_gpu(
    model: str, gpus: int, sequence: int, batch: int, ends_in: str
) -> None:
    found = decide(Asked(model, "h100-80gb", gpus, 8, sequence, batch))
    assert found.chosen is not None
    assert fits(found.chosen.estimate)
    assert found.chosen.parallel.world_size == gpus
    which = next(each for each in found.questions if each.title == "Which of them?")
    assert which.follows.lower().startswith(ends_in)
    titles = [each.title for each in found.questions]
    assert ("Is the sequence long?" in titles) == (sequence >= 32768)
    assert ("Are there experts?" in titles) == (model == "mixtral-8x7b")


KINDS: dict[str, dict[str, object]] = {
    "replicas": {"tensor": [1], "pipeline": [1], "zero": [0, 1]},
    "sharded replicas": {"tensor": [1], "pipeline": [1], "zero": [3]},
    "tensor groups": {"tensor": [2, 4, 8], "pipeline": [1], "zero": [0, 1]},
    "pipeline stages": {"pipeline": [2, 4, 8, 16, 32, 64, 128], "zero": [0, 1]},
}


@pytest.mark.parametrize(
    ("model", "gpu", "gpus", "sequence", "batch"),
    [
        ("llama-3-8b", "h100-80gb", 8, 8192, 512),
        ("llama-3-8b", "a100-40gb", 4, 8192, 64),
        ("llama-3-70b", "h100-80gb", 32, 8192, 256),
        ("llama-3-70b", "a100-40gb", 16, 8192, 64),
    ],
)
def test_no_kind_is_said_not_to_fit_of_which_a_search_finds_a_plan(
    model: str, gpu: str, gpus: int, sequence: int, batch: int
) -> None:
    """And the plan is the fastest that a search of everything finds, or a tie with it."""
    found = decide(Asked(model, gpu, gpus, min(8, gpus), sequence, batch))
    by_kind = {each.kind: each.tried for each in found.questions if each.kind}
    every = []
    for kind, axes in KINDS.items():
        asked = {
            "model": model,
            "training": {"sequence": sequence, "global_batch": batch},
            "cluster": {"gpu": gpu, "gpus_per_node": min(8, gpus), "nodes": max(1, gpus // 8)},
            "axes": {**axes, "context": [1]},
            "limit": 1,
        }
        best, tried = search(parse_search_request(asked)).best, by_kind[kind]
        every += [each.step_seconds for each in best]
        assert bool(best) == (tried is not None and fits(tried.estimate)), kind
    assert bool(every) == (found.chosen is not None)
    assert found.chosen is None or is_tie(found.chosen.step_seconds, min(every))


def test_state_is_counted_before_anything_else() -> None:
    """405.9e9 × 16 bytes are 6.49 TB: 171 GPUs of 42.3 GB at 0.9; there are 16."""
    found = decide(Asked("llama-3-405b", "a100-40gb", 16, 8, 8192, 64))
    assert "6.49 TB" in found.questions[0].says
    assert "171 GPUs" in found.questions[0].follows
    assert found.chosen is None


def test_each_question_says_of_which_state_it_is() -> None:
    """8.03e9 × 16 bytes are 128 GB, more than one GPU of 80 GB; with ZeRO-1 over eight, a replica fits on each
    where all is recomputed."""
    whole, replicas, sharded, *_ = decide(Asked("llama-3-8b", "h100-80gb", 8, 8, 8192, 64)).questions
    assert "unsharded" in whole.title
    assert whole.follows.startswith("Without sharding it would fill 2 GPUs")
    assert "unsharded or with ZeRO-1" in replicas.title
    assert replicas.follows.startswith("It fits with ZeRO-1, recomputing everything")
    assert "all of the state sharded" in sharded.title


@pytest.mark.parametrize(("model", "ranks"), [("llama-3-70b", "128"), ("llama-3-8b", "12"), ("deepseek-v3", "2048")])
def test_the_pages_plan_is_what_the_planner_then_shows(model: str, ranks: str) -> None:
    """On nodes that are not full, and with experts that are not cut as the rest is."""
    shown = deciding.path({"model": model, "ranks": ranks})
    made = service.plan(dict(parse_qsl(urlparse(shown.plan).query)))
    assert not made.errors
    assert shown.decision.chosen is not None
    assert made.estimate.time == shown.decision.chosen.estimate.time
    assert made.estimate.memory == shown.decision.chosen.estimate.memory


def test_a_plan_that_may_not_fit_has_one_beside_it_that_does() -> None:
    decision = deciding.path({"model": "llama-3-70b", "ranks": "256"}).decision
    assert decision.chosen is not None
    made = decision.chosen.estimate
    assert made.interval.memory_bytes is not None
    assert made.memory.capacity_bytes is not None
    assert bool(decision.leaner) == (made.interval.memory_bytes[1] > made.memory.capacity_bytes)
    assert "micro-batches of" in decision.leaner, "degrees alone may be those of the plan that is doubted"


def test_what_cannot_be_read_is_said_at_its_field() -> None:
    shown = deciding.path({"model": "own", "ranks": "many", "gpu": "h100-80gb"})
    assert set(shown.errors) == {"model", "ranks"}


def test_a_size_of_ones_own_is_decided_for_and_what_is_not_understood_is_said() -> None:
    asked = {"model": "sized", "parameters": "30B", "ranks": "512", "global_batch": "4.2M tokens", "gpus": "9"}
    shown = deciding.path(asked)
    assert not shown.errors
    assert [(part.name, part.near) for part in shown.unread] == [("gpus", "ranks")]
    assert "1,024 sequences of 4,096 tokens" in shown.title
    made = service.plan(dict(parse_qsl(urlparse(shown.plan).query)))
    assert not made.errors
    assert shown.decision.chosen is not None
    assert made.estimate.time == shown.decision.chosen.estimate.time
