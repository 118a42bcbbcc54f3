"""What looking costs a run, and how long each strategy's step takes beside DDP's, on two ranks of this machine.

The first is the whole time from the first step to the last, watched steps and reporting included, with the default
probes against none. The second is the typical unwatched step of the same model and global batch.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

PAIRS = 5
TARGET = 0.95
STRATEGY_RUNS = 3
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
    seconds: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for _ in range(STRATEGY_RUNS):
        for name, parallel in STRATEGIES.items():
            seconds[name].append(_step_seconds(parallel))
    ddp = statistics.median(seconds["DDP"])
    beside = {name: statistics.median(found) / ddp for name, found in seconds.items()}
    return {
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "target": TARGET,
        "step_beside_ddp": beside,
        "lines": [
            f"tokens/s with probes {statistics.median(ratios):.3f} × without (target ≥ {TARGET:g} ×), "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f}, {PAIRS} pairs",
            "step beside DDP's: " + ", ".join(f"{name} {ratio:.2f} ×" for name, ratio in beside.items()),
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
    training = {**BASE["training"], "steps": 12, "micro_batch": 2 if parallel.get("data") else 4}
    steps = [event for event in _run({**BASE, "training": training, "parallel": parallel, "probes": []})
             if event["kind"] == "step"]  # fmt: skip
    return statistics.median(event["seconds"] for event in steps[2:])


def _run(spec: dict[str, Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "labs.run", "-"], input=json.dumps(spec), capture_output=True, text=True, check=True,
        timeout=300,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]
