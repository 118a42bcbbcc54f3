"""What may be asked of a search: a SearchRequest from untrusted data, and the space of plans it spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from app.theory.hardware import GPUS
from app.theory.planner.limiting import limit_violations
from app.theory.planner.limits import Axes, Bound, Limits
from app.theory.planner.requests import Amount, Cluster, EstimateRequest, parse_estimate_request
from app.theory.planner.software import Profile
from app.theory.planner.space import Space
from app.theory.presets import PRESETS
from app.units import bytes_text
from labs.spec import Model, SpecError, Strict, Violation, parse

Objective = Literal["step_seconds", "memory", "cost"]
Distinct = Literal["plan", "layout"]
Schedules = Literal["software", "any"]
MOST_GPUS = 1_000_000
USABLE = 0.9  # of a GPU's memory: allocators fragment, and libraries take some


class SearchRequest(Strict):
    """What to search for. `training` is an EstimateRequest's without what is searched; `cluster` has the GPUs.

    A plan may take `memory_bytes` or `memory_share` of a GPU's memory, the less of the two, and 0.9 of it if neither is
    said. `axes` narrows or widens what is looked at, `at_least` and `at_most` bound degrees. `profile` is the one
    software that is looked at; without one each plan is counted as an EstimateRequest without one is. `distinct` layout
    reports one plan for each division of the GPUs. `schedules` any looks at those too that an implementation does not
    run, priced as if it did; a list in `axes` asks for just those.
    """

    model: Any
    training: Mapping[str, Any] = Field(default_factory=dict)
    cluster: Cluster
    profile: Profile | None = None
    axes: Axes = Axes()
    at_least: Bound = Bound()
    at_most: Bound = Bound()
    objective: Objective = "step_seconds"
    distinct: Distinct = "plan"
    schedules: Schedules = "software"
    memory_share: Annotated[float, Field(gt=0, le=1)] | None = None
    memory_bytes: Amount | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 10


def parse_search_request(data: object, may_be_empty: bool = False) -> SearchRequest:
    """A request from untrusted data. Raises SpecError naming every violated field, and limits that leave no plan unless
    it `may_be_empty`."""
    request = parse(SearchRequest, data, _check)
    base = _read(request)
    if not may_be_empty and (violations := list(limit_violations(_space(request, base)))):
        raise SpecError(violations)
    return request


def usable_bytes(request: SearchRequest) -> float:
    """What a plan may take of a GPU's memory."""
    return usable_of(_capacity_bytes(request.cluster), request.memory_bytes, request.memory_share)


def usable_of(capacity_bytes: float, memory_bytes: float | None, memory_share: float | None) -> float:
    """The less of what is said, in bytes and as a share of the capacity; USABLE of it where neither is."""
    share = memory_share or (USABLE if memory_bytes is None else 1.0)
    return min(share * capacity_bytes, memory_bytes or capacity_bytes)


def _capacity_bytes(cluster: Cluster) -> float:
    return cluster.memory_bytes or GPUS[cluster.gpu or ""].capacity_bytes


def gpus_of(cluster: Cluster) -> int:
    return (cluster.nodes or 1) * cluster.gpus_per_node


def read_search(request: SearchRequest) -> tuple[EstimateRequest, Space]:
    """(the request without what is searched, what is searched). Raises SpecError."""
    base = _read(request)
    return base, _space(request, base)


def _read(request: SearchRequest) -> EstimateRequest:
    training = {name: value for name, value in request.training.items() if name != "global_batch"}
    cluster = request.cluster.model_dump(exclude_none=True)
    data = {"model": request.model, "training": training, "parallel": {"data": gpus_of(request.cluster)}}
    read = parse_estimate_request({**data, "cluster": cluster, "profile": request.profile})
    batch = {"global_batch": request.training["global_batch"]}  # whether it shares out is for the search to see
    return read.model_copy(update={"training": read.training.model_copy(update=batch)})


def _space(request: SearchRequest, base: EstimateRequest) -> Space:
    assert isinstance(base.model, Model), "the request was checked"
    assert base.training.global_batch is not None, "the request was checked"
    return Space(
        base.model,
        base.training.sequence,
        base.training.global_batch,
        base.training.attention,
        base.training.precision,
        gpus_of(request.cluster),
        request.cluster.gpus_per_node,
        Limits(request.axes, request.at_least, request.at_most),
        request.profile,
        request.axes.expert_nodes or _routed_nodes(request.model),
        request.schedules == "any",
        "state_layout" in request.training or request.profile is None,
    )


def _routed_nodes(model: object) -> tuple[int, ...]:
    """Over how many nodes a published model's router spreads a token; 0: any number."""
    preset = PRESETS.get(model) if isinstance(model, str) else None
    return (preset.expert_nodes or 0,) if preset else (0,)


def _check(request: SearchRequest) -> list[Violation]:
    found = []
    if request.cluster.gpu is None:
        found.append(Violation("cluster.gpu", None, "Without a GPU nothing can be timed.", "the name of a GPU"))
    if gpus_of(request.cluster) > MOST_GPUS:
        accepted = f"up to {MOST_GPUS:,} GPUs"
        found.append(Violation("cluster.nodes", request.cluster.nodes, "There are too many to search.", accepted))
    if isinstance(request.model, Mapping) and "parameters" in request.model:
        found.append(Violation("model", request.model, "Of a size alone nothing can be timed.", "a name or a shape"))
    found += [*_check_memory(request), *_check_bounds(request)]
    for name in ("global_batch", "sequence"):
        value = request.training.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = "Configurations are compared at the same batch and sequence."
            found.append(Violation(f"training.{name}", value, message, "a whole number from 1 on"))
    for name in ("micro_batch", "recompute"):
        if name in request.training:
            message = f"This is what is searched; axes.{name} narrows it."
            found.append(Violation(f"training.{name}", request.training[name], message, "nothing"))
    return found


def _check_memory(request: SearchRequest) -> Iterator[Violation]:
    """No plan takes more than there is."""
    cluster, most = request.cluster, request.memory_bytes
    if most is None or (cluster.gpu not in GPUS and cluster.memory_bytes is None):
        return
    capacity = _capacity_bytes(cluster)
    if most > capacity:
        message = f"A GPU has {bytes_text(capacity)}."
        yield Violation("memory_bytes", most, message, f"up to {capacity:.0f}", ("cluster.gpu", "cluster.memory_bytes"))


def _check_bounds(request: SearchRequest) -> Iterator[Violation]:
    """The least is no more than the most."""
    for axis, least in request.at_least.model_dump(exclude_none=True).items():
        most = getattr(request.at_most, axis)
        if most is not None and least > most:
            message = f"at_most.{axis} is {most:,}."
            yield Violation(f"at_least.{axis}", least, message, f"up to {most:,}", (f"at_most.{axis}",))
