"""The search of the planner's page: the fastest plan of every way to divide the GPUs, each with its address."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlencode

from app.core.errors import SpecError, Violation
from app.planner.service import Plan
from app.theory.hardware import GPUS
from app.theory.planner import (
    Candidate,
    SearchResult,
    Step,
    Term,
    next_bottleneck,
    one_step_away,
    parse_estimate_request,
    parse_search_request,
    search,
    terms,
)
from app.theory.planner.space import GATHERS, KEEPS

MOST_OPTIONS = 8
AXES = ("tensor", "pipeline", "context", "expert", "data")


@dataclass(frozen=True)
class Option:
    """A plan the search found, and the address of its page."""

    candidate: Candidate
    address: str
    compare: str

    @property
    def axes(self) -> str:
        """How it divides the GPUs."""
        parallel = self.candidate.parallel
        said = [f"{name} {getattr(parallel, name):,}" for name in AXES if getattr(parallel, name) > 1]
        return ", ".join(said).capitalize() or "One GPU"

    @property
    def choices(self) -> str:
        """What it chooses besides."""
        parallel, training = self.candidate.parallel, self.candidate.training
        said = [self.candidate.request.profile or "", f"ZeRO-{parallel.zero}" if parallel.zero else "no sharding"]
        if parallel.shard:
            said[-1] += f" over {parallel.shard:,}"
        if parallel.reshard_after_forward is not None:
            said.append(f"{GATHERS if parallel.reshard_after_forward else KEEPS} weights")
        said.append(f"micro-batch {training.micro_batch}")
        if parallel.pipeline > 1:
            chunks = f", {parallel.virtual_stages} chunks a stage" if parallel.virtual_stages > 1 else ""
            said.append(f"{parallel.schedule}{chunks}")
        return ", ".join([*said, f"recompute {training.recompute}"])


@dataclass(frozen=True)
class Choice:
    """The fastest plan of each way to divide the GPUs, the best first, and the search they came from."""

    options: tuple[Option, ...]
    result: SearchResult
    global_batch: int
    csv: str

    @property
    def beats(self) -> tuple[Term, ...]:
        """Why the first is faster than the second."""
        if len(self.options) < 2:
            return ()
        first, second = (option.candidate.estimate for option in self.options[:2])
        return terms(first, second)

    @property
    def bottleneck(self) -> str:
        """What costs the first most besides the model's own compute."""
        return next_bottleneck(self.options[0].candidate.estimate)


def steps_from(made: Plan) -> tuple[Step, ...]:
    """One step on every axis from the form's plan."""
    return tuple(one_step_away(parse_estimate_request(json.loads(made.request_text))))


def choose(made: Plan) -> Choice:
    """The best plans of the form's GPUs at its model, sequence, precision, batch and implementation. Raises
    SpecError."""
    values = made.form.values
    joined = values["gpus_per_node"] or GPUS[values["gpu"]].scale_up_gpus
    ranks, per_node = values["ranks"], min(joined, values["ranks"])
    if ranks % per_node:
        message = f"{ranks:,} GPUs are no whole nodes of {per_node:,}."
        raise SpecError([Violation("ranks", ranks, message, f"a multiple of {per_node:,}")])
    request = json.loads(made.request_text)
    micro_batches = made.estimate.pipeline.micro_batches
    assert micro_batches is not None, "only a model with a shape is searched for"
    batch = micro_batches * values["micro_batch"] * made.form.data
    fixed = {name: request["training"][name] for name in ("sequence", "precision", "state_layout")}
    nodes = request["parallel"].get("expert_nodes")
    data = {
        "model": request["model"],
        "training": {**fixed, "global_batch": batch},
        "cluster": {**request["cluster"], "gpus_per_node": per_node, "nodes": ranks // per_node},
        "profile": values["profile"],
        "axes": {"expert_nodes": [nodes]} if nodes else {},
        "distinct": "layout",
        "limit": MOST_OPTIONS,
    }
    found = search(parse_search_request(data))
    options = []
    for each in found.best:
        query = _query(made, each, batch)
        beside = urlencode({"a": urlencode(made.typed), "b": query})
        options.append(Option(each, f"/planner?{query}", f"/planner/compare?{beside}"))
    return Choice(tuple(options), found, batch, f"/planner/search.csv?{urlencode(made.typed)}")


def _query(made: Plan, candidate: Candidate, batch: int) -> str:
    parallel, training = candidate.parallel, candidate.training
    names = ("tensor", "pipeline", "virtual_stages", "schedule", "context", "expert", "zero")
    reshard = {None: "", True: GATHERS, False: KEEPS}[parallel.reshard_after_forward]
    chosen = {name: str(getattr(parallel, name)) for name in names} | {
        "shard": str(parallel.shard or ""),
        "reshard": reshard,
        "expert_nodes": str(parallel.expert_nodes or ""),
        "profile": candidate.request.profile or "",
        "global_batch": str(batch),
        "micro_batch": str(training.micro_batch),
        "recompute": training.recompute,
        "sequence_parallel": "on" if parallel.sequence_parallel else "off",
        "ranks": str(made.ranks),
    }
    return urlencode({**made.typed, **chosen})
