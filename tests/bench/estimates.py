"""Estimates a second on one core, and how long `rankzero estimate` takes to start, beside importing pydantic."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from app.theory.planner import estimate, parse_estimate_request

PLANS = 2000
ROUNDS = 5
LEAST_PER_SECOND = 2000
PLAN: dict[str, Any] = {
    "model": "gpt-3-175b",
    "training": {"sequence": 2048, "recompute": "selective"},
    "parallel": {"tensor": 8, "pipeline": 8, "sequence_parallel": True, "zero": 1},
    "cluster": {"gpu": "a100-80gb"},
}


def measure(data: Path) -> dict[str, Any]:
    """No two plans are the same, so that what is cached between them is what a search would reuse."""
    requests = [parse_estimate_request(_plan(index)) for index in range(PLANS)]
    began = time.process_time()
    for request in requests:
        estimate(request)
    per_second = PLANS / (time.process_time() - began)
    file = data / "plan.json"
    file.write_text(json.dumps(_plan(1)))
    command = _median([sys.executable, "-m", "app.cli", "estimate", str(file)])
    bare = _median([sys.executable, "-c", "import pydantic"])
    return {
        "estimates_per_second": per_second,
        "command_seconds": command,
        "import_pydantic_seconds": bare,
        "ratio_to_import_pydantic": command / bare,
        "lines": [
            f"{per_second:,.0f} estimates a second and core (at least {LEAST_PER_SECOND:,} wanted)",
            f"`rankzero estimate` takes {command / bare:.1f} × `python -c 'import pydantic'`",
        ],
    }


def _plan(index: int) -> dict[str, Any]:
    data = 1 + index % 50
    batch = {"micro_batch": 1 + index // 50 % 4, "global_batch": 0}
    batch["global_batch"] = batch["micro_batch"] * data * 8 * (1 + index // 200)
    return {**PLAN, "training": {**PLAN["training"], **batch}, "parallel": {**PLAN["parallel"], "data": data}}


def _median(command: list[str]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
