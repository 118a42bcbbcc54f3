"""CL04: average the gradients of a model over the ranks, as data parallelism does after backward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from labs.code import checks
from labs.code.checks import Traffic
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

_SHARED_HANGS = ("missing call", "wrong order", "wrong shape")


class AverageGrads(Grader):
    lab = "CL04"
    task = "average_grads"
    checks_named = ("mean", "bytes")
    signs = (
        Sign("rank-dependent-skip", lambda runs: any(_hangs_where_absent(run) for run in runs)),
        Sign("order-differs", lambda runs: any(_hangs_by(run, "all_reduce") for run in runs)),
        Sign("tied-twice", lambda runs: any(_averages_tied_twice(run) for run in runs)),
        Sign("sum-for-mean", lambda runs: any(_is_a_share(run, 1 / run.ranks) for run in runs)),
        Sign("divided-twice", lambda runs: any(_is_a_share(run, run.ranks) for run in runs)),
        Sign("not-waited", lambda runs: any(_never_waits(run) for run in runs)),
        Sign("one-ranks-gradients", lambda runs: any(run.failed("mean") and _has_broadcast(run) for run in runs)),
        Sign("no-communication", lambda runs: any(run.failed("bytes") and not run.record.calls for run in runs)),
        Sign("missing-gradient", lambda runs: any(_misses_absent(run) for run in runs)),
        Sign("gathers-all", lambda runs: any(True for run in runs for _ in run.calls("all_gather", "gather"))),
        Sign("parameters-not-gradients", lambda runs: any(_moves_but_changes_nothing(run) for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """All gradients there; tied weights; a gradient that one rank alone lacks; one that no rank has."""
        return [
            _case(ranks, draw, tied=False, absent={}),
            _case(ranks, draw, tied=True, absent={}),
            _case(ranks, draw, tied=True, absent={"norm": {draw.integer(0, ranks - 1)}}),
            _case(ranks, draw, tied=False, absent={"unused": set(range(ranks))}),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "mean",
            ranks,
            cases,
            record,
            "gradients",
            lambda case, _: case.expected["mean"],
            "Every rank must end with the mean over all ranks. A rank without a gradient counts as zeros, and must "
            "take part all the same; tied weights have one gradient.",
            _without_free_zeros,
        )
        yield _check_bytes(ranks, cases, record)


GRADER = AverageGrads()


def _case(ranks: int, draw: Draw, tied: bool, absent: Mapping[str, set[int]]) -> Case:
    shapes = {"embedding": (draw.integer(3, 7), 4), "norm": (4,), "weight": (4, draw.integer(2, 6)), "unused": (3,)}
    parameters = {name: draw.tensor(*shape) for name, shape in shapes.items()}
    own = [
        {name: draw.tensor(*shape) for name, shape in shapes.items() if rank not in absent.get(name, ())}
        for rank in range(ranks)
    ]
    mean = {name: _mean([each.get(name) for each in own], value) for name, value in parameters.items()}
    there = {name: value for name, value in mean.items() if len(absent.get(name, ())) < ranks}
    inputs: list[dict[str, Any]] = [
        {"parameters": parameters, "tied": {"head": "embedding"} if tied else {}, "gradients": each} for each in own
    ]
    names = [name for name, ranks_without in absent.items() if ranks_without]
    said = "tied weights" if tied else "every parameter its own"
    return Case(
        inputs,
        {"mean": there, "all": list(parameters), "own": own, "tied": tied, "absent": absent},
        name=f"{said}{f', {names[0]} without a gradient on some rank' if names else ''}",
    )


def _mean(gradients: Sequence[Tensor | None], like: Tensor) -> Tensor:
    return torch.stack([torch.zeros_like(like) if each is None else each for each in gradients]).mean(0)


def bytes_needed(case: Case) -> set[int]:
    """The bytes that must be reduced: those of every gradient that some rank has. One that no rank has may be reduced
    as zeros, for no rank can know alone."""
    sizes = {name: value.numel() * value.element_size() for name, value in case.inputs[0]["parameters"].items()}
    needed = sum(sizes[name] for name in case.expected["mean"])
    return {needed, sum(sizes.values())}


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    shown = ""
    for index, case in enumerate(cases):
        accepted = bytes_needed(case)
        shown = shown or f"all_reduce of {min(accepted):,} bytes in all: each gradient once"
        for rank in range(ranks):
            seen = checks.traffic(record, index, rank)
            reduced = seen.get("all_reduce", Traffic(0, 0)).payload_bytes
            others = {name: each for name, each in seen.items() if name not in ("all_reduce", "barrier")}
            # flags of who has a gradient may be exchanged first: a byte or eight for each parameter
            flags = 8 * len(case.expected["all"])
            if others or not any(needed <= reduced <= needed + flags for needed in accepted):
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=f"all_reduce of {min(accepted):,} bytes in all: each gradient once",
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="Reduce every gradient once. Tied weights are one tensor with two names; gathering moves n "
                    "times as much as a reduction needs.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="exactly that, on every rank")


def _without_free_zeros(case: Case, gradients: Any) -> Any:
    """A gradient that no rank has may be None or zeros."""
    if not isinstance(gradients, Mapping):
        return gradients
    mean = case.expected["mean"]
    return {
        name: value
        for name, value in gradients.items()
        if name in mean or not isinstance(value, Tensor) or bool(value.any())
    }


def _gradients(run: Judged) -> Iterator[tuple[Case, int, Mapping[str, Tensor]]]:
    for case, rank, value in run.results("gradients"):
        read = _without_free_zeros(case, value)
        yield case, rank, read if isinstance(read, Mapping) else {}


def _hangs_where_absent(run: Judged) -> bool:
    """The ranks lost each other in the case in which one of them lacks a gradient."""
    last = max((call.case for call in run.record.calls), default=0)
    lacking = run.cases[last].expected["absent"].values()
    return run.hang in _SHARED_HANGS and _calls_alike(run) and any(len(ranks) < run.ranks for ranks in lacking)


def _hangs_by(run: Judged, operation: str) -> bool:
    """All made the same calls, of other tensors at the same place."""
    return run.hang == "wrong shape" and _calls_alike(run) and run.record.calls[0].operation == operation


def _calls_alike(run: Judged) -> bool:
    return len({call.operation for call in run.record.calls}) == 1


def _is_a_share(run: Judged, parts: float) -> bool:
    """Whether it is the mean divided by `parts`, in the first case, where nothing else is special."""
    found = [value for case, _, value in _gradients(run) if case is run.cases[0]]
    wanted = {name: value / parts for name, value in run.cases[0].expected["mean"].items()}
    return run.failed("mean") and all(checks.differ(value, wanted) is None for value in found)


def _never_waits(run: Judged) -> bool:
    """A collective was called and its result never waited for."""
    return run.failed("mean") and any(call.waited_at is None for _, call in run.calls("all_reduce"))


def _has_broadcast(run: Judged) -> bool:
    return any(True for _ in run.calls("broadcast"))


def _averages_tied_twice(run: Judged) -> bool:
    """More was reduced where weights are tied, and nowhere else."""
    for index, case in enumerate(run.cases):
        reduced = checks.traffic(run.record, index, 0).get("all_reduce", Traffic(0, 0)).payload_bytes
        embedding = case.inputs[0]["parameters"]["embedding"]
        extra = embedding.numel() * embedding.element_size()
        if case.expected["tied"] and not case.expected["absent"] and reduced - extra in bytes_needed(case):
            return run.record.finished
    return False


def _misses_absent(run: Judged) -> bool:
    """Right but where a rank has no gradient."""
    wrong = {
        id(case) for case, _, value in _gradients(run) if checks.differ(dict(value), case.expected["mean"]) is not None
    }
    return run.failed("mean") and wrong <= {id(case) for case in run.cases if case.expected["absent"]}


def _moves_but_changes_nothing(run: Judged) -> bool:
    found = [(case, rank, value) for case, rank, value in _gradients(run) if case is run.cases[0]]
    kept = all(checks.differ(dict(value), case.expected["own"][rank]) is None for case, rank, value in found)
    return run.failed("mean") and bool(run.record.calls) and kept
