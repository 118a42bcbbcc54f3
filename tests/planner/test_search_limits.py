"""The limits of a search in the planner's form: read, sent to the search, said beside what it found."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.core.errors import SpecError
from app.grading.questions import ConfigurationQuestion
from app.planner.finding import choose
from app.planner.limits import limits_of
from app.planner.service import plan
from app.practice.variants import make_variant

SMALL = {"model": "llama-3-8b", "ranks": "16", "global_batch": "64"}


def test_limits_are_read_as_they_are_typed() -> None:
    typed = {
        "search_memory": "72 GB",
        "search_recompute": "none",
        "search_zero": "1 to 3",
        "search_tensor": "up to 4",
        "search_pipeline": "at least 2",
        "search_context": "1",
        "search_micro_batch": "1, 2",
        "schedules": "plan",
    }
    made = plan(SMALL | typed)
    assert made.errors == {}
    assert limits_of(made.form.values) == {
        "memory_bytes": 72e9,
        "axes": {"schedule": ["1f1b"], "recompute": ["none"], "zero": [1, 2, 3], "context": [1], "micro_batch": [1, 2]},
        "at_least": {"pipeline": 2},
        "at_most": {"tensor": 4},
    }
    assert limits_of(plan(SMALL | {"search_memory": "80 %"}).form.values)["memory_share"] == pytest.approx(0.8)
    assert limits_of(plan(SMALL).form.values) == {"axes": {}, "at_least": {}, "at_most": {}}


@pytest.mark.parametrize(
    ("name", "text", "accepted"),
    [
        ("search_zero", "4", "0 to 3"),
        ("search_tensor", "few", "up to 2"),
        ("search_tensor", "0", "1 to 1,000,000"),
        ("search_memory", "72 s", "72 GB"),
        ("search_memory", "120 %", "100 %"),
        ("search_software", "fast", "any"),
    ],
)
def test_a_limit_that_cannot_be_read_says_what_would_be(name: str, text: str, accepted: str) -> None:
    assert accepted in plan(SMALL | {name: text}).errors[name]


def test_a_search_keeps_to_the_limits_of_the_form_and_says_them(page: TestClient) -> None:
    limits = {"search_tensor": "2", "search_zero": "1", "search_memory": "50 %", "search_recompute": "full"}
    found = choose(plan(SMALL | limits), "any")
    plans = [each.candidate for each in found.options]
    assert plans
    assert {(each.parallel.tensor, each.parallel.zero, each.training.recompute) for each in plans} == {(2, 1, "full")}
    assert max(each.memory_bytes for each in plans) <= 0.5 * 80 * 2**30
    shown = page.get("/planner", params=SMALL | limits | {"find": "any"}).text
    said = " ".join(shown.split())
    assert "in 50 % of the memory" in said
    assert "within your limits (ZeRO stage 1; tensor 2; recompute full)" in said
    assert "more are outside your limits" in said


def test_limits_that_leave_no_plan_say_at_their_fields_what_each_could_be(page: TestClient) -> None:
    limits = {"search_tensor": "8", "search_pipeline": "at least 4"}
    with pytest.raises(SpecError):
        choose(plan(SMALL | limits), "any")
    shown = " ".join(page.get("/planner", params=SMALL | limits | {"find": "any"}).text.split())
    assert "Your limits leave no plan." in shown
    assert "16 GPUs: no plan fits within your limits</h1>" in shown
    assert "Accepted: 1, 2, 4." in shown
    assert "Accepted: up to 2." in shown


@pytest.mark.parametrize("gpus", [256, 512, 1024])
@pytest.mark.parametrize("model", ["llama-2-13b", "gpt-30b", "llama-65b"])
def test_the_page_finds_a_plan_that_the_judge_of_a_problem_calls_best(
    content: Catalogue, model: str, gpus: int
) -> None:
    """SP5 with its limits typed in: 72 GB, its schedule, nothing recomputed, the stages and micro-batches it offers."""
    drawn: dict[str, Any] = {"days": 90, "percent": 40, "layout": "t2p4", "hours": 50677, "write": 60}
    problem = content.problems["SP5"]
    parameters = {name: (value,) for name, value in {**drawn, "model": model, "gpus": gpus}.items()}
    variant = make_variant(problem.model_copy(update={"parameters": parameters, "levels": (), "where": "True"}), 1)
    judge = next(part.question for part in variant.parts if part.id == "l")
    assert isinstance(judge, ConfigurationQuestion)
    shape = judge.plan["model"]
    form = (
        {"model": shape}
        if isinstance(shape, str)
        else {"model": "sized", "architecture": "gpt"}
        | {name: str(shape[name]) for name in ("layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab")}
    )
    if model == "llama-65b":
        form["architecture"] = "llama"
    limits = {
        "search_memory": "72 GB",
        "schedules": "plan",
        "search_recompute": "none",
        "search_zero": "1, 2, 3",
        "search_context": "1",
        "search_micro_batch": "1, 2",
    }
    asked = {"ranks": str(gpus), "sequence": "4096", "global_batch": "1024", "zero": "1", "recompute": "none"}
    best = choose(plan(form | asked | limits), "any").options[0].candidate
    degrees = {name: getattr(best.parallel, name) for name in ("tensor", "pipeline", "data", "zero")}
    answer = ", ".join(
        f"{name} {value}" for name, value in {**degrees, "micro_batch": best.training.micro_batch}.items()
    )
    grade = judge.grade(answer)
    assert (grade.status, "nothing tried is better" in grade.message) == ("correct", True)


def test_1f1b_alone_can_be_asked_for_where_the_plan_has_no_pipeline() -> None:
    made = plan(SMALL | {"schedules": "1f1b"})
    assert limits_of(made.form.values)["axes"] == {"schedule": ["1f1b"]}
    options = choose(made, "any").options
    assert {each.candidate.parallel.schedule for each in options} == {"1f1b"}


def test_plans_that_differ_in_context_parallelism_alone_are_one_row() -> None:
    options = choose(plan(SMALL), "any").options
    shapes = [(p.tensor, p.pipeline, p.expert) for p in (each.candidate.parallel for each in options)]
    assert len(set(shapes)) == len(shapes) > 3
    first = next(each for each in options if each.others)
    other = first.others[0].candidate.parallel
    assert (other.tensor, other.pipeline) == (first.candidate.parallel.tensor, first.candidate.parallel.pipeline)
    assert f"also with context {other.context}, " in first.also
