"""CL12: a linear layer cut by columns and one cut by rows, with one all-reduce each way for the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from labs.code import checks
from labs.code.checks import Traffic
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

LARGE = 1440  # a side of the large weights: 7.9 MiB each, and 2, 3 and 4 divide it
_RESIDUAL = 1  # the case of a residual around both


class SplitLinear(Grader):
    lab = "CL12"
    task = "split_linear"
    checks_named = ("output", "gradients", "bytes", "memory")
    signs = (
        Sign("wrong-cut", lambda runs: any(_cut_wrongly(run) for run in runs)),
        Sign("gathered", lambda runs: any(True for run in runs for _ in run.calls("all_gather", "gather"))),
        Sign("bias-n-times", lambda runs: any(_y_is(run, "biased") for run in runs)),
        Sign("missing-forward-reduce", lambda runs: any(_y_is(run, "partial", "unbiased partial") for run in runs)),
        Sign("mean-for-sum", lambda runs: any(_y_is(run, "mean", "mean of all") for run in runs)),
        Sign("reduced-both-ways", lambda runs: any(_too_large(run) for run in runs)),
        Sign("residual-counted", lambda runs: any(_x_is(run, "residual n times", _RESIDUAL) for run in runs)),
        Sign("missing-backward-reduce", lambda runs: any(_x_is(run, "partial x", 0) for run in runs)),
        Sign("graph-lost", lambda runs: any(_misses_gradients(run) for run in runs)),
        Sign("more-calls", lambda runs: any(run.failed("bytes") for run in runs)),
        Sign("whole-kept", lambda runs: any(run.failed("memory") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """An MLP of two layers; with a residual; without biases, on an input without gradient; and large weights."""
        return [
            _case(ranks, draw, "an MLP"),
            _case(ranks, draw, "an MLP with a residual around it", residual=True),
            _case(ranks, draw, "no bias, an input without gradient", bare=True),
            Case([{"large": LARGE}] * ranks, {"large": True}, name=f"two weights of {LARGE**2 * 4 / 2**20:.0f} MiB"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        exact = [case for case in cases if "large" not in case.expected]
        yield checks.values(
            "output",
            ranks,
            exact,
            record,
            "y",
            lambda case, _: case.expected["y"],
            "RowLinear must give what one process gives: the sum of all ranks' products, and the bias once.",
        )
        yield checks.values(
            "gradients",
            ranks,
            exact,
            record,
            "gradients",
            lambda case, rank: case.expected["gradients"][rank],
            "Every rank has the gradient of its own part of the weights, and the whole gradient of x: each rank's "
            "columns contribute to it.",
        )
        yield _check_bytes(ranks, exact, record)
        yield checks.memory(
            "memory",
            ranks,
            cases,
            record,
            "layers made",
            lambda _case, _rank: 2 * LARGE**2 * 4 // ranks,
            "Each rank keeps its own part of a weight and lets the whole go. A slice is a view: it keeps the whole "
            "alive until it is cloned.",
        )


GRADER = SplitLinear()


def _case(ranks: int, draw: Draw, name: str, residual: bool = False, bare: bool = False) -> Case:
    width, hidden = draw.integer(2, 6), ranks * draw.integer(1, 4)
    out = width if residual else width + draw.integer(1, 3)
    shape = (2, 3, width) if residual else (draw.integer(2, 7), width)
    given = {
        "x": draw.tensor(*shape),
        "factors": draw.tensor(*shape[:-1], out),
        "column.weight": draw.tensor(hidden, width),
        "column.bias": None if bare else draw.tensor(hidden),
        "row.weight": draw.tensor(out, hidden),
        "row.bias": None if bare else draw.tensor(out),
    }
    inputs = {**given, "residual": residual, "with_gradient": not bare}
    return Case([inputs] * ranks, _expected(given, ranks, residual, bare), name=name)


def _expected(given: Mapping[str, Any], ranks: int, residual: bool, bare: bool) -> dict[str, Any]:
    leaves: dict[str, Any] = {
        name: None if value is None else value.clone().requires_grad_() for name, value in given.items()
    }
    x, bias = leaves["x"], leaves["column.bias"]
    between = gelu(torch.nn.functional.linear(x, leaves["column.weight"], bias))
    y = torch.nn.functional.linear(between, leaves["row.weight"], leaves["row.bias"])
    y = y + x if residual else y
    torch.autograd.backward((y * given["factors"]).sum())
    whole = {name: leaf.grad for name, leaf in leaves.items() if leaf is not None and name != "factors"}
    gradients = [
        {name: _part(name, value, rank, ranks) for name, value in whole.items() if not (bare and name == "x")}
        for rank in range(ranks)
    ]
    parts = [_part_of_x(given, rank, ranks) for rank in range(ranks)]
    rest, biased = (given["x"] if residual else 0.0), (0.0 if bare else given["row.bias"])
    partial = [_partial(given, between.detach(), rank, ranks) for rank in range(ranks)]
    return {
        "y": y.detach(),
        "gradients": gradients,
        "shapes": {"column.weight": [len(whole["column.weight"]) // ranks, given["x"].shape[-1]]}
        | {"row.weight": [given["factors"].shape[-1], len(whole["column.weight"]) // ranks]},
        "bare": bare,
        "residual": residual,
        # what comes out of some mistakes, rank by rank
        "biased": [y.detach() + (ranks - 1) * biased] * ranks,
        "partial": [each + biased + rest for each in partial],
        "unbiased partial": [each + rest for each in partial],
        "mean": [sum(partial) / ranks + biased + rest] * ranks,
        "mean of all": [sum(partial) / ranks + biased / ranks + rest] * ranks,
        "partial x": [each + (given["factors"] if residual else 0.0) for each in parts],
        "residual n times": [whole["x"] + (ranks - 1) * given["factors"] if residual else whole["x"]] * ranks,
    }


def _part(name: str, value: Tensor, rank: int, ranks: int) -> Tensor:
    """A rank's part of a gradient: columns are dimension 0 of a weight, rows dimension 1."""
    if name.startswith("column"):
        return value.chunk(ranks)[rank]
    return value.chunk(ranks, 1)[rank] if name == "row.weight" else value


def _partial(given: Mapping[str, Any], between: Tensor, rank: int, ranks: int) -> Tensor:
    weight: Tensor = given["row.weight"]
    return between.chunk(ranks, -1)[rank] @ weight.chunk(ranks, 1)[rank].T


def _part_of_x(given: Mapping[str, Any], rank: int, ranks: int) -> Tensor:
    """What a rank's own columns contribute to the gradient of x."""
    x = given["x"].clone().requires_grad_()
    bias = None if given["column.bias"] is None else given["column.bias"].chunk(ranks)[rank]
    between = gelu(torch.nn.functional.linear(x, given["column.weight"].chunk(ranks)[rank], bias))
    partial = between @ given["row.weight"].chunk(ranks, 1)[rank].T
    gradients: Sequence[Tensor] = torch.autograd.grad((partial * given["factors"]).sum(), x)
    return gradients[0]


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    shown = ""
    for index, case in enumerate(cases):
        forward, backward = (case.expected["y"].numel() * 8, case.inputs[0]["x"].numel() * 8)
        shown = shown or f"all_reduce of {forward:,} bytes in forward and of {backward:,} in backward"
        enough = [{"all_reduce": Traffic(2, forward + backward)}]
        if case.expected["bare"]:  # nobody asks for the gradient of x there
            enough.append({"all_reduce": Traffic(1, forward)})
        for rank in range(ranks):
            seen = {name: each for name, each in checks.traffic(record, index, rank).items() if name != "barrier"}
            if seen not in enough:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=f"all_reduce of {forward:,} bytes in forward and of {backward:,} in backward",
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="What the column layer leaves split the row layer takes split. The two need one sum of the "
                    "output in forward and one of the gradient of x in backward, and nothing between.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="exactly that, on every rank")


def _exact(run: Judged, name: str, index: int | None = None) -> Iterator[tuple[Case, int, Any]]:
    for case, rank, value in run.results(name):
        if "large" not in case.expected and (index is None or case is run.cases[index]):
            yield case, rank, value


def _cut_wrongly(run: Judged) -> bool:
    """A layer holds another part than its own, whether that runs or not."""
    told = [(case, value) for case, _, value in _exact(run, "shapes") if isinstance(value, Mapping)]
    return any(checks.differ(dict(value), case.expected["shapes"]) is not None for case, value in told)


def _y_is(run: Judged, *alternatives: str) -> bool:
    """In the first case, on every rank."""
    return run.failed("output") and any(
        all(checks.differ(value, case.expected[name][rank]) is None for case, rank, value in _exact(run, "y", 0))
        for name in alternatives
    )


def _x_is(run: Judged, alternative: str, index: int) -> bool:
    """The gradient of x in a case, on every rank."""
    return run.failed("gradients") and all(
        isinstance(value, Mapping) and checks.differ(value.get("x"), case.expected[alternative][rank]) is None
        for case, rank, value in _exact(run, "gradients", index)
    )


def _too_large(run: Judged) -> bool:
    """The gradients of weights are n times too large: the sum of the output was one of gradients as well."""
    return run.failed("gradients") and all(
        isinstance(value, Mapping)
        and checks.differ(value.get("row.weight"), run.ranks * case.expected["gradients"][rank]["row.weight"]) is None
        for case, rank, value in _exact(run, "gradients", 0)
    )


def _misses_gradients(run: Judged) -> bool:
    return run.failed("gradients") and any(
        not isinstance(value, Mapping) or not set(case.expected["gradients"][rank]) <= set(value)
        for case, rank, value in _exact(run, "gradients")
    )
