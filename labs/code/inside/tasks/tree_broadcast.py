"""Call the learner's tree_broadcast with blocking messages."""

from __future__ import annotations

from types import ModuleType

from labs.code.inside.desk import Desk, callable_of, recv, send


def run(learner: ModuleType, desk: Desk) -> None:
    tree_broadcast = callable_of(learner, "tree_broadcast", "x", "root", "rank", "n", "send", "recv")
    for case in desk.cases():
        x = case.inputs["x"]
        returned = tree_broadcast(x, case.inputs["root"], desk.rank, desk.ranks, send, recv)
        case.result("x", x if returned is None else returned)
