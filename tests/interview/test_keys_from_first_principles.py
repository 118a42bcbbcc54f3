"""The numbers interviews ask for, worked out here from what their prompts say.

Nothing of `app.theory` is used: data sheets, conventions and formulas stand here again, as an interviewer would have
them in a notebook. A key that the theory library gets wrong, or that asks for another quantity than its prompt, fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, sqrt
from typing import Any

import pytest

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.interview.drawing import draw, values_of
from app.interview.parts import Part, Reaction, harder_id, known_to, parts_of
from app.interview.questions import number_of, right_answer
from app.interview.reacting import is_last_number

Drawn = Mapping[str, Any]
Keys = dict[str, float]  # by part, in SI units
SEEDS = range(4)
DAY, HOUR = 86_400, 3_600

# NVIDIA's data sheets: dense bf16 FLOP/s, NVLink and network card in bytes per second and direction
PEAK = {"a100-80gb": 312e12, "h100-80gb": 989e12}
NVLINK = {"a100-80gb": 300e9, "h100-80gb": 450e9}
CARD = {"a100-80gb": 25e9, "h100-80gb": 50e9}


def egress(device: str) -> float:
    """What each rank of a ring over whole nodes finds: its rail, and never more than NVLink."""
    return min(8 * CARD[device], NVLINK[device])


def idle(stages: int, micro_batches: float) -> float:
    return (stages - 1) / (micro_batches + stages - 1)


def fundamentals(v: Drawn) -> Keys:
    small, whole = v["small"] * 1e9, {1: 4, 2: 2}[v["stage"]]
    return {
        "state": (2 + 2 + 4 + 4 + 4) * small,
        "state.follow": 16 * v["big"] * 1e9 / 8,
        "stages": small * (whole + (16 - whole) / 8),
        "stages.follow": small * (whole + (16 - whole) / 64),
        "activations": 34 * v["sequence"] * 4096 * 32,
        "activations.harder": (34 * 10 * v["sequence"] * 4096 + 5 * 32 * (10 * v["sequence"]) ** 2) * 32,
    }


def ddp_internals(v: Drawn) -> Keys:
    ranks = v["nodes"] * 8
    sent = 2 * (ranks - 1) / ranks * 2 * v["billions"] * 1e9
    seconds = sent / egress(v["device"])
    compute = floor(seconds * v["ease"] * 1000) / 1000
    step = compute + max(0.0, seconds - compute * 2 / 3)
    return {
        "moved": sent,
        "moved.follow": seconds,
        "hidden": step,
        "hidden.follow": step + (v["accumulation"] - 1) * compute,
        "hidden.harder": compute + max(0.0, 2 * seconds - compute * 2 / 3),
    }


def zero_and_fsdp(v: Drawn) -> Keys:
    parameters, ranks = v["billions"] * 1e9, v["nodes"] * 8
    passed = (ranks - 1) / ranks * 2 * parameters  # by one gather or one scatter of bf16 values
    flops = {"a100-80gb": 0.5, "h100-80gb": 0.4}[v["device"]] * PEAK[v["device"]]
    return {
        "held": 2 * parameters + (2 + 12) * parameters / ranks,
        "held.harder": (4 + 1 + 1) * parameters / ranks,
        "moved": 2 * passed,
        "accumulated": 3 * passed * v["accumulation"],
        "accumulated.follow": 2 * passed * v["accumulation"],
        "hide": 3 * passed / egress(v["device"]) * flops / (6 * parameters),
        "hide.follow": 3 * 7 / 8 * 2 * parameters / NVLINK[v["device"]] * flops / (6 * parameters),
    }


def tensor_and_pipeline(v: Drawn) -> Keys:
    layers = {4096: 32, 8192: 64, 12288: 96}[v["hidden"]]
    element = v["sequence"] * v["hidden"]
    return {
        "calls": 2 * 2 * layers,
        "calls.harder": 2 * 3 * layers,
        "kept": element * (10 + 24 / v["tensor"]),
        "kept.follow": element * (10 + 24) / v["tensor"],
        "idle": idle(v["stages"], v["micro_batches"]),
        "idle.follow": idle(v["stages"], v["micro_batches"] * v["chunks"]),
        "flight": min(v["micro_batches"], v["stages"] - 1),
        "sent": 2 * 2 * element,
    }


def design(v: Drawn) -> Keys:
    device, tensor, stages = v["device"], v["tensor"], v["stages"]
    data = 256 // (tensor * stages)
    seconds = 6 * 70e9 * v["trillions"] * 1e12 / (256 * 0.4 * PEAK[device])
    deadline = {"a100-80gb": 100, "h100-80gb": 30}[device] * DAY
    each = 70e9 / (tensor * stages)
    state = each * (2 + 2 + 12 / data)
    # the first stage holds as many micro-batches as there are stages, each of 80 / stages layers
    saved = stages * (80 / stages) * 34 * 4096 * 8192 / tensor
    all_reduce = 2 * (tensor - 1) / tensor * 4096 * 8192 * 2 / NVLINK[device]
    return {
        "time": seconds,
        "time.follow": ceil(256 * seconds / deadline / 8) * 8,
        "state": state,
        "state.follow": state + saved,
        "state.harder": each * (2 + 4 + 12 / data),
        "traffic": 4 * (80 / stages) * all_reduce,
        "bubble": idle(stages, v["sequences"] / data),
        "bubble.follow": idle(stages, v["sequences"] / (2 * data)),
        "bubble.harder": idle(stages, 2 * v["sequences"] / (2 * data)),
        "failures": 512 * (seconds / 2) / (50_000 * HOUR),
    }


def debugging(v: Drawn) -> Keys:
    parameters = v["billions"] * 1e9
    return {
        "scale": 65_504 / (65_536 / 2 ** v["halvings"]),
        "memory": (4 + 4) * parameters / v["ranks"],
        "memory.follow": (4 + 4 + 4) * parameters,
        "memory.harder": (1 + 1) * parameters / v["ranks"],
    }


def scaling_laws(v: Drawn) -> Keys:
    flops, smaller = v["budget"] * 1e23, v["smaller"] * 1e9
    best = sqrt(flops / (6 * 20))
    parameters, tokens = {"gpt-3": (175e9, 300e9), "gopher": (280e9, 300e9), "mt-nlg": (530e9, 270e9)}[v["past"]]

    # Besiroglu et al. 2024: the loss of 70B on 1.4T tokens, and the tokens at which the smaller model has it
    bottom, by_size, by_data = 1.8172, (482.01, 0.3478), (2085.43, 0.3658)
    loss = bottom + by_size[0] / 70e9 ** by_size[1] + by_data[0] / 1.4e12 ** by_data[1]
    longer = (by_data[0] / (loss - bottom - by_size[0] / smaller ** by_size[1])) ** (1 / by_data[1])
    longer = round(longer / 1e10) * 1e10
    return {
        "allocate": best,
        "allocate.follow": flops / (6 * (best / v["divisor"]) ** 2),
        "allocate.harder": sqrt(10 * flops / (6 * 20)),
        "past": sqrt(parameters * tokens / 20),
        "serve": (6 * smaller * longer - 6 * 70e9 * 1.4e12) / (2 * (70e9 - smaller)),
    }


def operations(v: Drawn) -> Keys:
    peak, gpus, parameters = PEAK[v["device"]], v["gpus"], v["billions"] * 1e9
    rate = floor(gpus * peak * v["percent"] / 100 / (6 * parameters) / 1000) * 1000
    reached = 6 * parameters * rate / (gpus * peak)
    between = v["failure_hours"] * HOUR / gpus
    best = sqrt(2 * v["writing"] * between)
    return {
        "mfu": reached,
        "mfu.follow": reached * (6 + 2) / 6,
        "between": between,
        "between.follow": best,
        "between.harder": sqrt(2 * v["writing"] * between / 4),
        # saving, on average half an interval done again, and the restart, each over what lies between
        "lost": v["writing"] / best + (best / 2 + 600) / between,
    }


def fits(v: Drawn) -> Keys:
    state = 16 * v["billions"] * 1e9
    return {"q1": state, "q1.follow": state / v["ranks"], "q1.harder": 0.9 * 141e9 / 16}


def deep_dive(v: Drawn) -> Keys:
    after = v["restart"] * 60 + v["every"] * 60 / 2  # until it trains, and what is run again on average
    return {"cost": v["gpus"] * (v["hours"] * HOUR + after), "cost.follow": v["gpus"] * (600 + after)}


BY_HAND: Mapping[str, Callable[[Drawn], Keys]] = {
    "M1": fundamentals,
    "M2": ddp_internals,
    "M3": zero_and_fsdp,
    "M4": tensor_and_pipeline,
    "M5": design,
    "M6": debugging,
    "M7": scaling_laws,
    "M8": operations,
    "M9": fits,
    "M10": deep_dive,
}


def test_every_interview_is_here(content: Catalogue) -> None:
    """Rounds ask what problems ask: `tests/practice/test_hand_checked_problems.py` has those."""
    assert set(BY_HAND) == {each.id for each in content.interviews.values() if not each.is_round}


def _asked_of_who_is_right(interview: Interview) -> list[Part]:
    """Every part, and the harder variants that right numbers lead to."""
    last = [each for each in parts_of(interview) if each.question.harder and is_last_number(each)]
    return parts_of(interview, {each.id: Reaction(harder_id(each)) for each in last})


@pytest.mark.parametrize("identity", BY_HAND)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_key_is_what_its_prompt_says(content: Catalogue, identity: str, seed: int) -> None:
    interview = content.interviews[identity]
    values = values_of(interview, draw(interview, seed))
    expected = BY_HAND[identity](values)
    answers: dict[str, str] = {}
    found = {}
    for part in _asked_of_who_is_right(interview):
        if part.kind == "number":
            found[part.id] = number_of(part, known_to(part, values, answers) or values).key
        answers[part.id] = "words" if part.question.kind == "text" else right_answer(part, values, answers)
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=2e-3), name
