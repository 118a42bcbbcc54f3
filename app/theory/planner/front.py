"""Which plans nothing beats in time, memory and GPUs at once, as far as a few searches show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.theory.planner.asking import SearchRequest
from app.theory.planner.candidates import Candidate
from app.theory.planner.search import search

PARTS = (1, 2, 4)  # of the nodes
LESS = 0.8  # of the memory the last point takes
MOST_POINTS = 4  # for each number of GPUs


@dataclass(frozen=True)
class Point:
    """The fastest plan of `gpus` GPUs that takes no more memory than it does."""

    gpus: int
    candidate: Candidate

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        figures = {"step_seconds": self.candidate.step_seconds, "memory_bytes": self.candidate.memory_bytes}
        return {"gpus": self.gpus, **figures, **self.candidate.to_json()}


def front(request: SearchRequest) -> tuple[Point, ...]:
    """On all the GPUs, half and a quarter of the nodes: the fastest plan, and then again and again the fastest that
    takes at most four fifths of the memory of the one before. No point beats another in all three."""
    nodes, found = request.cluster.nodes or 1, []
    for part in PARTS:
        if nodes % part:
            continue
        cluster = request.cluster.model_copy(update={"nodes": nodes // part})
        found += _of(request.model_copy(update={"cluster": cluster, "limit": 1}), nodes // part)
    fastest = sorted(found, key=lambda point: (point.gpus, point.candidate.step_seconds))
    return tuple(point for point in fastest if not any(_beats(other, point) for other in fastest))


def _of(request: SearchRequest, nodes: int) -> list[Point]:
    points: list[Point] = []
    while len(points) < MOST_POINTS:
        best = search(request).best
        if not best:
            break
        points.append(Point(nodes * request.cluster.gpus_per_node, best[0]))
        request = request.model_copy(update={"memory_bytes": LESS * best[0].memory_bytes})
    return points


def _beats(one: Point, other: Point) -> bool:
    """No worse in any of the three, and better in one."""
    mine, theirs = _three(one), _three(other)
    return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def _three(point: Point) -> tuple[float, float, float]:
    return point.gpus, point.candidate.step_seconds, point.candidate.memory_bytes
