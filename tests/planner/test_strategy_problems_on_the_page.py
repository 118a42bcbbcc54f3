"""Every number that SP1 to SP5 ask for stands on the planner's pages of the plan that the problem describes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.grading.questions import ConfigurationQuestion, NumberQuestion
from app.planner.finding import choose
from app.planner.here import NotDry, dry
from app.planner.made import Plan
from app.planner.service import plan
from app.planner.textbook import textbook
from app.practice.variants import Variant, make_variant
from app.theory import estimate, parse_estimate_request, parse_search_request, search
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.software import OPEN_LAYOUT, default_of
from app.theory.presets import PRESETS
from app.units import SCALES

PROBLEMS = ("SP1", "SP2", "SP3", "SP4", "SP5")
SEEDS = (1, 2, 3)
PLANNER, TEXTBOOK = "/planner", "/planner/textbook"
Pages = list[tuple[str, dict[str, object]]]  # a path and the form it is asked with
RATES = {50677: "llama-3", 8090: "rsc-1024"}  # GPU-hours a failure, and the record that has them


def _sized(values: Mapping[str, Any], **form: object) -> dict[str, object]:
    return {"model": "sized", "parameters": f"{values['billions']}B", **form}


def _memory_budget(v: Mapping[str, Any]) -> Pages:
    shape = {name: v[name] for name in ("layers", "hidden", "heads", "ranks", "sequence", "micro_batch")}
    memory = {"memory": "80 GB", "search_memory": f"{v['percent']} %"}
    plan = _sized(v, architecture="gpt", gpu="a100-80gb", recompute="none", zero=3, **memory, **shape)
    return [(PLANNER, plan), (TEXTBOOK, plan)]


def _degrees(v: Mapping[str, Any]) -> Pages:
    ranks, budget = v["gpus"], f"{v['trillions']}T tokens"
    axes = {"tensor": v["tensor"], "pipeline": v["stages"], "zero": 1, "schedule": "1f1b", "recompute": "none"}
    shape = {"layers": 80, "hidden": 8192, "heads": 64, "sequence": 4096, "global_batch": v["batch"]}
    plan = _sized(v, gpu=v["device"], ranks=ranks, budget=budget, mfu=f"{v['percent']} %", **axes, **shape)
    state = {"model": "own", "parameters": f"{v['billions']}B", "ranks": ranks, "memory": f"{v['room']} GB"}
    return [(PLANNER, plan), (TEXTBOOK, plan), (PLANNER, state)]


def _scaling(v: Mapping[str, Any]) -> Pages:
    plan = {
        "model": "own",
        "parameters": f"{v['small']:.10g}",
        "gpu": v["device"],
        "budget": f"{v['budget']:.10g} FLOPs",
        "mfu": f"{v['percent']} %",
        "served": f"{v['inference']:.10g} tokens",
        "deadline": f"{v['days']} days",
    }
    return [(PLANNER, plan)]


def _bottleneck(v: Mapping[str, Any]) -> Pages:
    link = {"inter_node": f"{v['port'] / 8} Gb/s", "gpu": "a100-80gb", "zero": 0, "recompute": "none"}
    batch = {"sequence": v["tokens"], "micro_batch": 1, "global_batch": v["ranks"], "mfu": f"{v['percent']} %"}
    plan = _sized(v, architecture="gpt", ranks=v["ranks"], **link, **batch)
    return [(PLANNER, plan), (TEXTBOOK, plan)]


def _run(v: Mapping[str, Any]) -> Pages:
    sizes = re.findall(r"\d[\d,]*", v["about"])
    shape = dict(zip(("layers", "hidden", "heads"), (each.replace(",", "") for each in sizes), strict=True))
    axes = {"tensor": v["tensor"], "pipeline": v["stages"], "zero": 1, "recompute": "none"}
    batch = {"sequence": 4096, "global_batch": 1024, "budget": f"{v['days']} days", "mfu": f"{v['percent']} %"}
    fails = {"failures": RATES[v["hours"]], "checkpoint": f"{v['write']} s"}
    plan = _sized(v, gpu="h100-80gb", ranks=v["gpus"], **shape, **axes, **batch, **fails)
    return [(PLANNER, plan), (TEXTBOOK, plan)]


DESCRIBED: Mapping[str, Callable[[Mapping[str, Any]], Pages]] = {
    "SP1": _memory_budget,
    "SP2": _degrees,
    "SP3": _scaling,
    "SP4": _bottleneck,
    "SP5": _run,
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_asked_for_is_on_the_page(page: TestClient, content: Catalogue, problem: str, seed: int) -> None:
    variant = make_variant(content.problems[problem], seed)
    shown = _numbers(page, DESCRIBED[problem](variant.values))
    missing = [part for part, key in _asked(variant).items() if not any(each.is_of(*key) for each in shown)]
    assert not missing, f"{problem} at seed {seed}: {', '.join(missing)}"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_and_not_on_the_page_of_another_plan(page: TestClient, content: Catalogue, problem: str) -> None:
    """What is looked for is the number of this plan: of the one that the form opens with, a few happen to be alike."""
    variant = make_variant(content.problems[problem], 1)
    shown = _numbers(page, [(PLANNER, {}), (TEXTBOOK, {})])
    keys = _asked(variant)
    assert sum(any(each.is_of(*key) for each in shown) for key in keys.values()) <= len(keys) / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_stage_that_fits_is_said(content: Catalogue, seed: int) -> None:
    """SP1 g, a choice: the first ZeRO stage whose state and activations the page says fit."""
    variant = make_variant(content.problems["SP1"], seed)
    (_, form) = _memory_budget(variant.values)[1]
    lines = [line for section in textbook(plan({k: str(v) for k, v in form.items()})) for line in section.lines]
    stages = [line for line in lines if line.name.startswith("Model state of a GPU, ZeRO-")]
    fitting = [line.name[-1] for line in stages if "fits in" in line.besides]
    (key,) = next(part.question.key for part in variant.parts if part.id == "g")
    assert key == (f"stage-{fitting[0]}" if fitting else "none")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_within_the_problems_limits_finds_the_plan_it_calls_best(content: Catalogue, seed: int) -> None:
    """SP2 i, a configuration; SP5 l is asked in test_search_limits."""
    variant = make_variant(content.problems["SP2"], seed)
    judge = next(part.question for part in variant.parts if part.id == "i")
    (_, form), *_ = _degrees(variant.values)
    limits = {
        "search_memory": "72 GB",
        "schedules": "plan",
        "search_recompute": "none",
        "search_zero": "1, 3",
        "search_context": "1",
        "search_micro_batch": "1, 2",
    }
    model = {"model": variant.values["model"]}
    made = plan({name: str(value) for name, value in (form | limits | model).items()})
    best = choose(made, "any").options[0].candidate
    chosen = {name: getattr(best.parallel, name) for name in ("tensor", "pipeline", "data", "zero")}
    chosen["micro_batch"] = best.training.micro_batch
    grade = judge.grade(", ".join(f"{name} {value}" for name, value in chosen.items()))
    assert (grade.status, "nothing tried is better" in grade.message) == ("correct", True), chosen


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_that_leaves_its_software_open_is_counted_alike_everywhere(
    content: Catalogue, problem: str, seed: int
) -> None:
    """On the page, by an estimate of a program, by the search, by the judge of a problem and for a dry run."""
    variant = make_variant(content.problems[problem], seed)
    _, form = DESCRIBED[problem](variant.values)[0]
    made = plan({name: str(value) for name, value in form.items()})
    asked = json.loads(made.request_text)
    assert not asked.keys() & {"profile"}, "it is left open"
    assert made.request.training.state_layout == OPEN_LAYOUT
    assert estimate(parse_estimate_request(asked)) == made.estimate
    if made.form.is_own:
        return
    assert profile_of(made.request) == default_of(made.request.parallel.zero)
    found = dry(made.request.model_copy(update={"model": PRESETS["llama-3-8b"].model}), made.estimate)
    assert isinstance(found, NotDry) or found.spec["training"]["state_layout"] == OPEN_LAYOUT
    for part in variant.parts:
        if isinstance(part.question, ConfigurationQuestion):
            _counted_alike(part.question, made)


def _counted_alike(judge: ConfigurationQuestion, made: Plan) -> None:
    """The judge's best plan, taken to the search and to the page of the same GPUs."""
    training, parallel, cluster = (judge.plan[name] for name in ("training", "parallel", "cluster"))
    best = judge.best()
    chosen = dict(best.chosen)
    axes = {name: [value] for name, value in chosen.items()} | {
        "context": [1],
        "schedule": [parallel["schedule"]],
        "recompute": ["none"],
        "shard": [None],
        "reshard_after_forward": [None],
    }
    room = {name: value for name, value in cluster.items() if name != "memory_bytes"}
    request = {"model": judge.plan["model"], "training": training, "cluster": room, "axes": axes}
    (found,) = search(parse_search_request(request)).best
    names = ("tensor", "pipeline", "data", "zero")
    assert [getattr(found.parallel, name) for name in names] == [chosen[name] for name in names]
    assert (found.step_seconds, found.memory_bytes) == (best.seconds, best.memory)
    degrees = {name: str(chosen[name]) for name in ("tensor", "pipeline", "zero", "micro_batch")}
    model = {"model": judge.plan["model"]} if isinstance(judge.plan["model"], str) else {}
    split = {"sequence_parallel": "on", "recompute": "none", "global_batch": str(training["global_batch"])}
    shown = plan({**made.typed, **model, **degrees, **split, "sequence": str(training["sequence"])})
    if shown.request.model == found.request.model:  # of some the problem says more than its text
        assert (shown.estimate.time.step_seconds, shown.stage.total) == (best.seconds, best.memory)


@dataclass(frozen=True)
class Written:
    """A number of a page in units of `size` base units; `dimension` is empty where its unit is not known."""

    number: float
    size: float
    dimension: str

    def is_of(self, key: float, dimension: str) -> bool:
        """Whether it is `key` as one would write it, to three digits or more."""
        counts = ("count", "tokens", "")
        alike = self.dimension in counts if dimension in counts else self.dimension == dimension
        written = (float(f"{key / self.size:.{figures}g}") for figures in range(3, 8))
        return alike and any(abs(self.number - each) <= 1e-9 * abs(each) for each in written)


_NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?: × 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(?:([TBM])\b| ?([A-Za-zµ%×]+))?")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_LETTERS = {"T": 1e12, "B": 1e9, "M": 1e6, None: 1.0}


def _numbers(page: TestClient, pages: Pages) -> list[Written]:
    """Every number that can be read on some pages."""
    found = []
    for path, form in pages:
        reply = page.get(f"{path}?{urlencode(form)}")
        assert reply.status_code == 200
        assert "Showing" not in reply.text, "the form is as it was asked"
        text = unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", reply.text.partition("<main")[2])))
        for number, power, letter, unit in _NUMBER.findall(text):
            dimension, size = SCALES.get(unit, ("", 1.0)) if unit not in ("", "×") else ("count", 1.0)
            larger = _LETTERS[letter or None] * 10.0 ** int(power.translate(_RAISED) or 0)
            found.append(Written(float(number.replace(",", "")), size * larger, dimension))
    return found


def _asked(variant: Variant) -> dict[str, tuple[float, str]]:
    """By part: the key in base units, and its dimension."""
    return {
        part.id: (part.question.key, part.question.dimension)
        for part in variant.parts
        if isinstance(part.question, NumberQuestion)
    }
