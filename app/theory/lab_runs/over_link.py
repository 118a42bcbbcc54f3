"""What a run over several hosts sends between them, and how long the links need for that alone.

Ranks of a group pass a collective around a ring in the order of their numbers, so a host sends on only what its last
rank of the group does; a pipeline's messages go to the neighbouring stage. Links carry both ways at once. What remains
is a lower bound of a step: nothing is computed in it, and nothing waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from app.theory.lab_runs.place import Place, world
from app.theory.lab_runs.transfers import RunTheory, Transfer
from labs.spec import RunSpec, host_of

_AXES = ("pipeline", "replicate", "shard", "context", "tensor")  # the fields of a place, in their order
_SPREAD = {
    "pipeline": ("pipeline",),
    "replicate": ("replicate",),
    "shard": ("shard",),
    "context": ("context",),
    "tensor": ("tensor",),
    "data": ("replicate", "shard", "context"),
    "ends": ("pipeline",),  # the first and the last of them
}


def bytes_between_hosts(spec: RunSpec, ranks: Sequence[RunTheory]) -> float | None:
    """What the busiest host sends to others in a step; None where a group's members are not known here."""
    places = list(world(spec))
    sent = dict.fromkeys(range(spec.hosts), 0.0)
    for rank, theory in enumerate(ranks):
        for each in theory.transfers:
            if each.group_size < 2 or not each.wire_bytes:
                continue
            if each.group not in _SPREAD:
                return None
            host = host_of(rank, spec)
            if host_of(_sends_to(rank, each, places), spec) != host:
                sent[host] += each.wire_bytes
    return max(sent.values())


def link_seconds(spec: RunSpec, ranks: Sequence[RunTheory]) -> float | None:
    """How long the busiest host's link takes for a step's bytes; None without a link that is known."""
    if spec.link is None:
        return None
    between = bytes_between_hosts(spec, ranks)
    return None if between is None else between / spec.link.bytes_per_second


def _sends_to(rank: int, transfer: Transfer, places: Sequence[Place]) -> int:
    """The rank that `rank` passes a transfer's bytes to: the next of its group, or for gradients of a pipeline, the one
    before."""
    group = _group(rank, transfer.group, places)
    step = -1 if (transfer.operation, transfer.phase) == ("send", "backward") else 1
    return group[(group.index(rank) + step) % len(group)]


def _group(rank: int, name: str, places: Sequence[Place]) -> list[int]:
    """The ranks that differ from `rank` on the group's axes only."""
    fixed = [index for index, axis in enumerate(_AXES) if axis not in _SPREAD[name]]
    keys = [tuple(astuple(place)[index] for index in fixed) for place in places]
    found = [other for other, key in enumerate(keys) if key == keys[rank]]
    return [found[0], found[-1]] if name == "ends" else found
