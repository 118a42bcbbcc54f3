"""The kinds of plans that a decision weighs, from plain to elaborate, each looked through by a search of that kind.

Each is counted as an estimate counts it that leaves its software and layout open: all but one by one implementation,
so that two of them differ by what they are, and sharded replicas by one that shards them. Of stages, which have most
plans, the usual ones are looked at first, and all where none of those fits: no kind is said not to fit of which a
search would find a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.theory.hardware import GPUS
from app.theory.planner.asking import USABLE, SearchRequest, parse_search_request
from app.theory.planner.candidates import Candidate, SearchResult
from app.theory.planner.estimate import estimate
from app.theory.planner.requests import EstimateRequest
from app.theory.planner.results import Estimate
from app.theory.planner.search import search
from app.theory.planner.software import OPEN_LAYOUT, Profile, default_of
from app.theory.planner.space import divisors
from app.theory.planner.ties import choices_of, is_tie
from labs.spec import Precision, StateLayout

PROFILE: Profile = default_of(0)
SHARDING: Profile = default_of(3)  # of what the other has no ZeRO stage for
LIMIT = 8  # of the best of a kind: the simplest of those that are a tie is taken
BOUNDLESS_BYTES = 1e18  # memory in which every plan fits
USUAL: Mapping[str, Any] = {"virtual_stages": (1, 2, 4, 8), "micro_batch": (1, 2)}
# What holds least: where none of these fits, nothing does. Deeper interleaving holds more and is left out.
LEANEST: Mapping[str, Any] = {"virtual_stages": (1, 2), "micro_batch": (1,), "recompute": ("full",)}


@dataclass(frozen=True)
class Asked:
    """What is decided for: `model` as an EstimateRequest has it, `gpus` of `gpu` in nodes of `per_node`, which divides
    them, and a batch in sequences."""

    model: Any
    gpu: str
    gpus: int
    per_node: int
    sequence: int
    global_batch: int
    precision: Precision = "bf16-mixed"
    layout: StateLayout = OPEN_LAYOUT


@dataclass(frozen=True)
class Kind:
    """A kind of plan: the question that it answers, and the axes that make it one. `usual` narrows what is looked at
    first."""

    name: str
    title: str
    axes: Mapping[str, Any]
    usual: Mapping[str, Any]
    profile: Profile = PROFILE


@dataclass(frozen=True)
class Looked:
    """What a search of one kind found: its best plans; where there is none, the one that lacks least memory, if any
    plan of the kind runs at all."""

    kind: Kind
    result: SearchResult
    is_usual: bool
    leanest: Candidate | None = None

    def simplest(self, fastest_seconds: float) -> Candidate:
        """Of the plans that are a tie with the fastest of all, or else with the best of this kind, the simplest."""
        best = self.result.best
        tied = [each for each in best if is_tie(fastest_seconds, each.step_seconds)] or self.result.tied
        return min(tied, key=lambda each: (choices_of(each.request), each.step_seconds))


def kinds_of(asked: Asked) -> Iterator[Kind]:
    """From plain to elaborate."""
    inside = tuple(each for each in divisors(asked.per_node) if each > 1)
    stages = tuple(each for each in divisors(asked.gpus) if each > 1)
    alone = {"tensor": (1,), "pipeline": (1,)}
    yield Kind("replicas", "Does a replica fit on one GPU, unsharded or with ZeRO-1?", alone, {})
    sharded = "Does it fit with all of the state sharded, ZeRO-3?"
    yield Kind("sharded replicas", sharded, alone | {"zero": (3,)}, {}, SHARDING)
    yield Kind("tensor groups", "What do tensor groups inside a node bring?", {"tensor": inside, "pipeline": (1,)}, {})
    yield Kind("pipeline stages", "What do pipeline stages bring?", {"pipeline": stages}, USUAL)


# What is left where none of them fits with the sequence and the experts divided as a rule has it.
OTHERWISE = Kind("other divisions", "Does it fit with the sequence and the experts divided otherwise?", {}, USUAL)


def fits(made: Estimate) -> bool:
    """With room for what allocators and libraries take."""
    return made.memory.per_rank_bytes.total <= USABLE * (made.memory.capacity_bytes or 0.0)


def look(asked: Asked, kind: Kind, held: Mapping[str, int]) -> Looked:
    """The best plans of a kind, with the axes in `held` as they were decided before."""
    axes = {**{name: (value,) for name, value in held.items()}, **kind.axes}
    usual = search(_request(asked, {**axes, **kind.usual}, kind.profile))
    if usual.best:
        return Looked(kind, usual, bool(kind.usual))
    leanest = _leanest(asked, axes, kind.profile)
    if leanest is None or not fits(leanest.estimate):
        return Looked(kind, usual, bool(kind.usual), leanest)
    return Looked(kind, search(_request(asked, axes, kind.profile)), False)


def look_otherwise(asked: Asked) -> Looked:
    """Whether any plan fits if nothing is decided before."""
    found = search(_request(asked, USUAL))
    if found.best:
        return Looked(OTHERWISE, found, True)
    return Looked(OTHERWISE, search(_request(asked, LEANEST)), False)


def look_leaner(asked: Asked, held: Mapping[str, int], share: float) -> list[Candidate]:
    """The best plans of all kinds that hold no more than a share of a GPU's memory."""
    capacity = GPUS[asked.gpu].capacity_bytes * share / USABLE
    axes = {**USUAL, **{name: (value,) for name, value in held.items()}}
    found = search(_request(asked, axes, memory_bytes=capacity)).best
    return [_on_whole(each.request) for each in found]


def _on_whole(request: EstimateRequest) -> Candidate:
    """A plan that was found in another memory, estimated in its GPU's own."""
    assert request.cluster is not None, "a search names its GPUs"
    again = request.model_copy(update={"cluster": request.cluster.model_copy(update={"memory_bytes": None})})
    return Candidate(again, estimate(again))


def _leanest(asked: Asked, axes: Mapping[str, Any], profile: Profile) -> Candidate | None:
    """The plan that holds least on its fullest rank, of those that recompute everything."""
    boundless = _request(asked, {**axes, **LEANEST}, profile, memory_bytes=BOUNDLESS_BYTES)
    found = search(boundless.model_copy(update={"objective": "memory", "limit": 1})).best
    if not found:
        return None
    return _on_whole(found[0].request)


def _request(asked: Asked, axes: Mapping[str, Any], profile: Profile = PROFILE, **cluster: float) -> SearchRequest:
    nodes = {"gpu": asked.gpu, "gpus_per_node": asked.per_node, "nodes": asked.gpus // asked.per_node}
    training = {
        "sequence": asked.sequence,
        "global_batch": asked.global_batch,
        "precision": asked.precision,
        "state_layout": asked.layout,
    }
    return parse_search_request(
        {
            "model": asked.model,
            "training": training,
            "cluster": nodes | cluster,
            "profile": profile,
            "axes": dict(axes),
            "limit": LIMIT,
        },
        may_be_empty=True,
    )
