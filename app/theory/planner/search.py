"""Which configuration of a cluster's GPUs trains a model best: the sensible ones are estimated, those that fit ranked.

Sensible is what large runs do: tensor parallelism within a node and with sequence parallelism, ZeRO-2 and 3 without a
pipeline (with one, every micro-batch would reduce or gather again), interleaving where it divides the layers, and
micro-batches of 1 to 8. Every GPU is used, and every configuration takes the same global batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field

from app.theory.hardware import GPUS
from app.theory.planner.estimate import estimate
from app.theory.planner.fields import PlanTraining
from app.theory.planner.requests import Cluster, EstimateRequest, parse_estimate_request
from app.theory.planner.results import Estimate
from app.theory.presets import model_named
from app.theory.state import zero_state_bytes
from app.theory.transformer import parameter_count
from labs.spec import Model, Parallel, Recompute, SpecError, Strict, Violation, parse

Objective = Literal["step_seconds", "memory", "cost"]
MICRO_BATCHES = (1, 2, 4, 8)
RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")
VIRTUAL_STAGES = (1, 2, 4)
MOST_GPUS, MOST_CONSIDERED = 32_768, 4_000
USABLE = 0.9  # of a GPU's memory: allocators fragment, and libraries take some
NO_ROOM, NO_SHARE = "does not fit in 90 % of the memory", "the global batch does not share out"


class SearchRequest(Strict):
    """What to search for. `training` is an EstimateRequest's without what is searched; `cluster` has the GPUs."""

    model: Any
    training: Mapping[str, Any] = Field(default_factory=dict)
    cluster: Cluster
    objective: Objective = "step_seconds"
    limit: Annotated[int, Field(ge=1, le=100)] = 10


@dataclass(frozen=True)
class Candidate:
    """A configuration that fits: the request it is, and its Estimate."""

    request: EstimateRequest
    estimate: Estimate

    @property
    def parallel(self) -> Parallel:
        return self.request.parallel

    @property
    def training(self) -> PlanTraining:
        return self.request.training

    @property
    def step_seconds(self) -> float:
        assert self.estimate.time.step_seconds is not None, "a search names a GPU"
        return self.estimate.time.step_seconds

    @property
    def memory_bytes(self) -> float:
        return self.estimate.memory.per_rank_bytes.total

    def to_json(self) -> dict[str, Any]:
        """The fields that were asked for or chosen, without those left as they are by default."""
        return {
            "parallel": self.parallel.model_dump(exclude_unset=True),
            "training": self.training.model_dump(exclude_unset=True),
            "estimate": self.estimate.to_json(),
        }


@dataclass(frozen=True)
class SearchResult:
    """Candidates that fit, the best first, how many were considered, and by reason how many were rejected."""

    best: tuple[Candidate, ...]
    considered: int
    rejected: Mapping[str, int]

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        """As JSON data, with the first `limit` candidates or all."""
        return {
            "considered": self.considered,
            "best": [candidate.to_json() for candidate in self.best[:limit]],
            "rejected": dict(self.rejected),
        }


def parse_search_request(data: Any) -> SearchRequest:
    """A request from untrusted data. Raises SpecError naming every violated field."""
    request = parse(SearchRequest, data, _check)
    first = _request(request, {"data": _gpus(request.cluster)}, {"micro_batch": 1})
    first["training"].pop("global_batch")  # whether it shares out is for the search to see
    parse_estimate_request(first)
    return request


def search(request: SearchRequest) -> SearchResult:
    """Every sensible configuration, those that fit ranked by the objective; equal ones by what is simpler.

    Raises SpecError where there are too many to look at.
    """
    model, usable, rejected = _shape(request.model), _usable(request.cluster), Counter[str]()
    found: list[Candidate] = []
    configurations = list(islice(_configurations(request, model), MOST_CONSIDERED + 1))
    if len(configurations) > MOST_CONSIDERED:
        message = f"{_gpus(request.cluster):,} GPUs can be divided in more than {MOST_CONSIDERED:,} ways."
        accepted = "fewer GPUs, or a number with fewer divisors"
        raise SpecError([Violation("cluster.nodes", request.cluster.nodes, message, accepted)])
    for parallel, training in configurations:
        candidate = _request(request, parallel, training)
        try:
            read = parse_estimate_request(candidate)
        except SpecError as error:
            field = error.violations[0].field
            rejected[NO_SHARE if field == "training.global_batch" else f"{field} breaks a rule"] += 1
            continue
        if _state_alone(model, parallel, candidate) > usable:
            rejected[NO_ROOM] += 1
            continue
        made = Candidate(read, estimate(read))
        if made.memory_bytes <= usable:
            found.append(made)
        else:
            rejected[NO_ROOM] += 1
    key = (lambda each: each.memory_bytes) if request.objective == "memory" else (lambda each: each.step_seconds)
    return SearchResult(tuple(sorted(found, key=key)), len(configurations), dict(rejected))


def _configurations(request: SearchRequest, model: Model) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Simple ones first, so that of equals the simpler one is kept."""
    gpus, per_node = _gpus(request.cluster), request.cluster.gpus_per_node
    for tensor in _divisors(min(per_node, gpus)):
        if gpus % tensor or model.heads % tensor:
            continue
        for pipeline in _divisors(gpus // tensor):
            if pipeline > model.layers:
                continue
            data = gpus // tensor // pipeline
            for expert in _expert_shares(model, data):
                for zero in (0, 1, 2, 3) if pipeline == 1 else (0, 1):
                    if zero and data == 1:
                        continue
                    parallel = {
                        "data": data,
                        "tensor": tensor,
                        "pipeline": pipeline,
                        "expert": expert,
                        "zero": zero,
                        "sequence_parallel": tensor > 1,
                    }
                    yield from _shapes(parallel, model)


def _shapes(parallel: dict[str, Any], model: Model) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for virtual in VIRTUAL_STAGES if parallel["pipeline"] > 1 else (1,):
        if virtual > 1 and model.layers % (virtual * parallel["pipeline"]):
            continue
        chunks = {"virtual_stages": virtual, "schedule": "interleaved" if virtual > 1 else "1f1b"}
        for recompute in RECOMPUTE:
            for micro_batch in MICRO_BATCHES:
                yield {**parallel, **chunks}, {"micro_batch": micro_batch, "recompute": recompute}


def _expert_shares(model: Model, data: int) -> tuple[int, ...]:
    """No expert parallelism, or as much of it as experts and ranks allow."""
    shared = [each for each in _divisors(data) if model.experts % each == 0]
    return (1,) if model.experts == 1 else tuple(sorted({1, max(shared)}))


def _request(request: SearchRequest, parallel: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": request.model,
        "training": {**request.training, **training},
        "parallel": dict(parallel),
        "cluster": request.cluster.model_dump(exclude_none=True),
    }


def _state_alone(model: Model, parallel: Mapping[str, Any], candidate: Mapping[str, Any]) -> float:
    """Model state of an equal share of the weights: what no stage can do with less of, on the mean."""
    training = candidate["training"]
    share = parameter_count(model, training["sequence"]) / (parallel["tensor"] * parallel["pipeline"])
    ranks = parallel["data"] if model.experts == 1 else parallel["data"] * parallel["expert"]
    return zero_state_bytes(share, ranks, parallel["zero"], training.get("state_layout", "zero-16"))


def _usable(cluster: Cluster) -> float:
    return USABLE * (cluster.memory_bytes or GPUS[cluster.gpu or ""].capacity_bytes)


def _gpus(cluster: Cluster) -> int:
    return (cluster.nodes or 1) * cluster.gpus_per_node


def _shape(model: Any) -> Model:
    found = model_named(model) if isinstance(model, str) else Model.model_validate(model)
    assert found is not None, "the request was checked"
    return found


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(each for each in range(1, number + 1) if number % each == 0)


def _check(request: SearchRequest) -> list[Violation]:
    found = []
    if request.cluster.gpu is None:
        found.append(Violation("cluster.gpu", None, "Without a GPU nothing can be timed.", "the name of a GPU"))
    if _gpus(request.cluster) > MOST_GPUS:
        accepted = f"up to {MOST_GPUS:,} GPUs"
        found.append(Violation("cluster.nodes", request.cluster.nodes, "There are too many to search.", accepted))
    if isinstance(request.model, Mapping) and "parameters" in request.model:
        found.append(Violation("model", request.model, "Of a size alone nothing can be timed.", "a name or a shape"))
    for name in ("global_batch", "sequence"):
        value = request.training.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = "Configurations are compared at the same batch and sequence."
            found.append(Violation(f"training.{name}", value, message, "a whole number from 1 on"))
    for name in ("micro_batch", "recompute"):
        if name in request.training:
            found.append(Violation(f"training.{name}", request.training[name], "This is what is searched.", "nothing"))
    return found
