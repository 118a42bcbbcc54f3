"""Where a rank stands in the grid of ranks, as `labs.parallel.mesh` numbers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from labs.spec import Parallel, RunSpec


@dataclass(frozen=True)
class Place:
    """A rank's coordinates. `shard` counts over data parallelism within a replica group, and `replicate` over those."""

    pipeline: int = 0
    replicate: int = 0
    shard: int = 0
    context: int = 0
    tensor: int = 0


def world(spec: RunSpec) -> Iterator[Place]:
    """Every rank's place, in the order of their numbers: tensor varies fastest."""
    parallel = spec.parallel
    shards = shard_count(parallel)
    sizes = (parallel.pipeline, parallel.data // shards, shards, parallel.context, parallel.tensor)
    return (Place(*place) for place in product(*map(range, sizes)))


def shard_count(parallel: Parallel) -> int:
    """Data ranks that share one copy of what is sharded: all of them, unless HSDP says how many."""
    return parallel.shard or parallel.data


def data_rank(parallel: Parallel, place: Place) -> int:
    """Which rows a rank is trained on."""
    return place.replicate * shard_count(parallel) + place.shard


def data_ranks(parallel: Parallel) -> int:
    """Ranks that gradients are averaged over: data and context, which look alike to parameters."""
    return parallel.data * parallel.context


def shard_ranks(parallel: Parallel) -> int:
    """Ranks that FSDP shards over: of one replica group, if there are several (HSDP)."""
    return shard_count(parallel) * parallel.context
