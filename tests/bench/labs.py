"""What looking costs a run, and how long each strategy's step takes beside DDP's, on two ranks of this machine.

The first is the whole time from the first step to the last, watched steps and reporting included, with the default
probes against none. The second is the typical unwatched step of the same model and global batch, and what theory
expects of it here: every strategy computes for as long as DDP does, a pipeline idles besides, and each sends what
`app.theory.lab_runs` says over a link whose latency and bandwidth two ranks of this machine have measured just before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.theory.lab_runs import rank_theory, world
from app.theory.pipeline import bubble
from labs.collectives.cost import Cost
from labs.spec import RunSpec, parse_run_spec

PAIRS = 5
TARGET = 0.95
STRATEGY_RUNS = 3
_STEPS = {"all_reduce": 2}  # times n−1 messages after each other around a ring
BASE: dict[str, Any] = {
    "model": "gpt-small",
    "training": {"sequence": 128, "micro_batch": 2, "micro_batches": 4, "steps": 40},
    "parallel": {"data": 2},
    "device": "cpu",
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "DDP": {"data": 2},
    "ZeRO-1": {"data": 2, "zero": 1},
    "ZeRO-2": {"data": 2, "zero": 2},
    "FSDP2": {"data": 2, "zero": 3},
    "tensor": {"tensor": 2},
    "tensor, sequence": {"tensor": 2, "sequence_parallel": True},
    "context": {"context": 2},
    "pipeline, 1F1B": {"pipeline": 2},
    "pipeline, GPipe": {"pipeline": 2, "schedule": "gpipe"},
}


def measure(_data: Path) -> dict[str, Any]:
    """Pairs taken in turns; the strategies' runs too, so that a slow minute of the machine meets all of them."""
    ratios = sorted(_tokens_per_second(BASE) / _tokens_per_second({**BASE, "probes": []}) for _ in range(PAIRS))
    link = _link()
    seconds: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for _ in range(STRATEGY_RUNS):
        for name, parallel in STRATEGIES.items():
            seconds[name].append(_step_seconds(parallel))
    ddp = statistics.median(seconds["DDP"])
    beside = {name: statistics.median(found) / ddp for name, found in seconds.items()}
    expected = {name: _expected_seconds(parallel, ddp, link) / ddp for name, parallel in STRATEGIES.items()}
    return {
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "target": TARGET,
        "step_beside_ddp": beside,
        "expected_beside_ddp": expected,
        "latency_seconds": link.latency_seconds,
        "bytes_per_second": link.bytes_per_second,
        "lines": [
            f"tokens/s with probes {statistics.median(ratios):.3f} × without (target ≥ {TARGET:g} ×), "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f}, {PAIRS} pairs",
            f"a message: {1e6 * link.latency_seconds:.0f} µs and {link.bytes_per_second / 1e9:.2f} GB/s",
            "step beside DDP's, and as theory expects: "
            + ", ".join(f"{name} {ratio:.2f} × ({expected[name]:.2f} ×)" for name, ratio in beside.items()),
        ],
    }


def _tokens_per_second(spec: dict[str, Any]) -> float:
    """Tokens of all steps after the first over the time from the first step's end to the run's."""
    events = _run(spec)
    steps = [event for event in events if event["kind"] == "step"]
    end = next(event["t"] for event in events if event["kind"] == "phase" and event["phase"] == "finished")
    return float(sum(event["tokens"] for event in steps[1:]) / (end - steps[0]["t"]))


def _step_seconds(parallel: dict[str, Any]) -> float:
    """The same sequences a step, whatever the layout."""
    steps = [event for event in _run(_spec(parallel)) if event["kind"] == "step"]
    return statistics.median(event["seconds"] for event in steps[2:])


def _spec(parallel: dict[str, Any]) -> dict[str, Any]:
    training = {**BASE["training"], "steps": 12, "micro_batch": 2 if parallel.get("data") else 4}
    return {**BASE, "training": training, "parallel": parallel, "probes": []}


def _link() -> Cost:
    """One message between two ranks of this machine, as the program that measures collectives fits it."""
    (found,) = (
        event["summary"]
        for event in _run({"program": "collectives", "parallel": {"data": 2}, "device": "cpu"})
        if event["kind"] == "result" and event["rank"] == 0
    )
    return Cost(found["latency_seconds"], found["bytes_per_second"])


def _expected_seconds(parallel: dict[str, Any], ddp_seconds: float, link: Cost) -> float:
    """Nothing is hidden: on two cores whoever sends does not compute."""
    spec, ddp = (parse_run_spec(_spec(each)) for each in (parallel, STRATEGIES["DDP"]))
    compute = ddp_seconds - _communication_seconds(ddp, link)
    overhead = bubble(spec.parallel.pipeline, spec.training.micro_batches, "overhead")
    return compute * (1 + overhead) + _communication_seconds(spec, link)


def _communication_seconds(spec: RunSpec, link: Cost) -> float:
    """Of the rank that sends most."""
    return max(
        sum(
            each.count * _STEPS.get(each.operation, 1) * (each.group_size - 1) * link.latency_seconds
            + each.wire_bytes / link.bytes_per_second
            for each in rank_theory(spec, place).transfers
        )
        for place in world(spec)
    )


def _run(spec: dict[str, Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "labs.run", "-"],
        input=json.dumps(spec),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
