"""Call the learner's ring_all_reduce with blocking messages."""

from __future__ import annotations

from types import ModuleType

from labs.code.inside.desk import Desk, callable_of, recv, send


def run(learner: ModuleType, desk: Desk) -> None:
    ring_all_reduce = callable_of(learner, "ring_all_reduce", "x", "rank", "n", "send", "recv")
    for case in desk.cases():
        x = case.inputs["x"]
        returned = ring_all_reduce(x, desk.rank, desk.ranks, send, recv)
        case.result("sum", x if returned is None else returned)
