"""Llama 3 70B on 256 ranks in three layouts, dry-run, and what theory expects of it."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.theory.lab_runs import rank_theory, world
from app.theory.planner import parse_estimate_request
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.resolve import plan_of
from labs.spec import LARGE_MODELS, RunSpec, parse_run_spec
from tests.labs.ranks import call

_SP: Mapping[str, Any] = {"tensor": 8, "sequence_parallel": True, "zero": 3}
LAYOUTS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "FSDP": ({"data": 256, "zero": 3}, {}),
    "TP8 + FSDP": ({"data": 32, **_SP}, {}),
    "TP8 x PP8 + FSDP": ({"data": 4, "pipeline": 8, **_SP}, {"micro_batches": 8, "reshard_after_forward": False}),
}
RECOMPUTE = ("none", "full")
MOST_SECONDS = 60.0
MOST_RESIDENT_BYTES = 2**30
_SHARED = ("sequence", "micro_batch", "precision", "state_layout", "recompute", "attention", "optimizer")


@dataclass(frozen=True)
class DryRun:
    """`seconds` are of the processor: other work on the machine does not count."""

    spec: RunSpec
    found: dict[str, Any]
    seconds: float


def given(layout: str, recompute: str, layers: int = 80) -> dict[str, Any]:
    parallel, more = LAYOUTS[layout]
    model = LARGE_MODELS["llama-3-70b"].model_copy(update={"layers": layers}).model_dump()
    training = {"sequence": 4096, "micro_batch": 1, "recompute": recompute, **more}
    return {"model": model, "training": training, "parallel": parallel}


def dry_run(data: Mapping[str, Any]) -> DryRun:
    """In a process of its own, as `rankzero dryrun` does it. Processes beside it must not end meanwhile."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = call([sys.executable, "-m", "labs.dryrun", "-"], input=json.dumps(data), timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return DryRun(parse_run_spec(data, dry=True), json.loads(done.stdout), seconds)


def ratios(run: DryRun) -> list[dict[str, Any]]:
    """For each kind of rank what was found over what theory expects, and whether the payload is theory's to the byte.

    State and payload are those of our own runs, tensor by tensor; activations are the planner's, layer by layer.
    """
    memories = stage_memories(plan_of(parse_estimate_request(_request(run.spec))))
    each = run.spec.parallel.world_size // run.spec.parallel.pipeline
    lines = []
    for kind in run.found["kinds"]:
        theory = rank_theory(run.spec, next(islice(world(run.spec), kind["rank"], None)))
        expected: dict[tuple[str, str, str], tuple[int, float]] = {}
        for part in theory.transfers:
            key = (part.operation, part.phase, part.group)
            count, size = expected.get(key, (0, 0.0))
            expected[key] = (count + part.count, size + part.payload_bytes)
        sent = {(e["operation"], e["phase"], e["group"]): (e["count"], e["payload_bytes"]) for e in kind["collectives"]}
        state = {name: kind["model_state_bytes"][name] / size for name, size in theory.model_state_bytes.items()}
        activations = kind["activation_bytes"] / memories[kind["rank"] // each].activations
        lines.append({"kind": kind["kind"], **state, "activations": activations, "payload_is_equal": sent == expected})
    return lines


def _request(spec: RunSpec) -> dict[str, Any]:
    training = {name: getattr(spec.training, name) for name in _SHARED}
    return {
        "model": spec.model.model_dump(),
        "training": {**training, "global_batch": spec.global_batch},
        "parallel": spec.parallel.model_dump(),
        "profile": "rankzero-labs",
    }
