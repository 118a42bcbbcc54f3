"""CL14: a tensor-parallel block between whose matrices and the next each rank has its own tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear

from labs.code import checks
from labs.code.checks import Traffic
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

TOKENS, WIDTH, HIDDEN = 4608, 256, 8  # of the large case: 4.5 MiB of activations; 2, 3 and 4 divide the tokens
_WHOLE_BYTES = TOKENS * WIDTH * 4
_MOVES = ("all_gather", "reduce_scatter", "all_to_all")  # an all-to-all and a sum are a reduce-scatter
_OWN = ("norm.weight", "norm.bias", "row.bias")  # every rank's tokens contribute to their gradients


class SequenceParallel(Grader):
    lab = "CL14"
    task = "sequence_parallel"
    checks_named = ("output", "gradients", "bytes", "memory")
    signs = (
        Sign("weights-reduced", lambda runs: any(_is(run, "weights reduced", "column.weight") for run in runs)),
        Sign("all-reduced", lambda runs: any(_reduces_activations(run) for run in runs)),
        Sign("bias-n-times", lambda runs: any(_y_is(run, "biased") for run in runs)),
        Sign("missing-reduce-scatter", lambda runs: any(_y_is(run, "partial") for run in runs)),
        Sign("graph-lost", lambda runs: any(_misses_gradients(run) for run in runs)),
        Sign("missing-backward-gather", lambda runs: any(_is(run, "own tokens", "column.weight") for run in runs)),
        Sign("missing-backward-reduce", lambda runs: any(_is(run, "partial x", "x") for run in runs)),
        Sign("norm-gradients-apart", lambda runs: any(_is(run, "apart", "norm.weight", "norm.bias") for run in runs)),
        Sign("bias-gradient-apart", lambda runs: any(_is(run, "apart", "row.bias") for run in runs)),
        Sign("mean-for-sum", lambda runs: any(_is(run, "mean", "norm.weight") for run in runs)),
        Sign("reduced-again", lambda runs: any(_right_once(run) for run in runs)),
        Sign("more-bytes", lambda runs: any(run.failed("bytes") for run in runs)),
        Sign("whole-sequence-kept", lambda runs: any(run.failed("memory") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """One micro-batch; two whose gradients add up; and many tokens."""
        return [
            _case(ranks, draw, "one micro-batch", 1),
            _case(ranks, draw, "two micro-batches", 2),
            Case([{"large": [TOKENS // ranks, WIDTH, HIDDEN]}] * ranks, {"large": True}, name=f"{TOKENS:,} tokens"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        exact = [case for case in cases if "large" not in case.expected]
        yield checks.values(
            "output",
            ranks,
            exact,
            record,
            "y",
            lambda case, rank: case.expected["y"][rank],
            "Every rank must give its own tokens of what one process gives. The sum over ranks is there after the "
            "reduce-scatter; bias and residual come after it, once.",
        )
        yield checks.values(
            "gradients",
            ranks,
            exact,
            record,
            "gradients",
            lambda case, rank: case.expected["gradients"][rank],
            "The backward of a gather is a reduce-scatter and the other way round. What every rank holds whole (norm, "
            "row bias) saw only this rank's tokens: add its gradients over the ranks.",
        )
        yield _check_bytes(ranks, exact, record)
        yield checks.memory(
            "memory",
            ranks,
            cases,
            record,
            "after forward",
            lambda _case, _rank: _WHOLE_BYTES + 5 * _WHOLE_BYTES // (4 * ranks),
            "The first matrix takes the whole sequence; all else is kept for this rank's tokens alone. Apply the norm "
            "before the gather.",
        )


GRADER = SequenceParallel()


def _case(ranks: int, draw: Draw, name: str, micro_batches: int) -> Case:
    width, hidden, tokens = draw.integer(3, 6), ranks * draw.integer(1, 3), ranks * draw.integer(1, 3)
    shapes = {
        "norm.weight": (width,),
        "norm.bias": (width,),
        "column.weight": (hidden, width),
        "column.bias": (hidden,),
    }
    shapes |= {"row.weight": (width, hidden), "row.bias": (width,)}
    given = {each: draw.tensor(*shape) for each, shape in shapes.items()}
    x = [draw.tensor(tokens, 2, width) for _ in range(micro_batches)]
    factors = [draw.tensor(tokens, 2, width) for _ in range(micro_batches)]
    inputs = [
        {
            "parameters": _part(given, rank, ranks),
            "x": [each.chunk(ranks)[rank].contiguous() for each in x],
            "factors": [each.chunk(ranks)[rank].contiguous() for each in factors],
        }
        for rank in range(ranks)
    ]
    return Case(inputs, _expected(given, x, factors, ranks), name=name)


def _part(given: Mapping[str, Tensor], rank: int, ranks: int) -> dict[str, Tensor]:
    """What a rank holds: the first matrix and its bias cut by outputs, the second by inputs."""
    cut = {"column.weight": 0, "column.bias": 0, "row.weight": 1}
    return {
        name: value.chunk(ranks, cut[name])[rank].contiguous() if name in cut else value
        for name, value in given.items()
    }


def _block(leaves: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Without bias of the second matrix and without residual: a rank's part of a sum, or all of it."""
    normed = layer_norm(x, (x.shape[-1],), leaves["norm.weight"], leaves["norm.bias"])
    return linear(gelu(linear(normed, leaves["column.weight"], leaves["column.bias"])), leaves["row.weight"])


def _gradients(given: Mapping[str, Tensor], x: Sequence[Tensor], factors: Sequence[Tensor]) -> dict[str, Any]:
    """Of one process that has these parameters and these tokens; those of x without the residual's."""
    leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
    tokens = [each.clone().requires_grad_() for each in x]
    for each, factor in zip(tokens, factors, strict=True):
        torch.autograd.backward(((_block(leaves, each) + leaves["row.bias"]) * factor).sum())
    return {name: leaf.grad for name, leaf in leaves.items()} | {"x": [each.grad for each in tokens]}


def _own(values: Sequence[Tensor], rank: int, ranks: int) -> list[Tensor]:
    """A rank's tokens of each."""
    return [each.chunk(ranks)[rank] for each in values]


def _expected(
    given: Mapping[str, Tensor], x: Sequence[Tensor], factors: Sequence[Tensor], ranks: int
) -> dict[str, Any]:
    whole = _gradients(given, x, factors)
    y = [_block(given, each) + given["row.bias"] + each for each in x]
    parameters, found = {name: whole[name] for name in given}, []
    for rank in range(ranks):
        of_x = _added(_own(whole["x"], rank, ranks), _own(factors, rank, ranks))
        found.append({"x": of_x} | _part(parameters, rank, ranks))
    return {
        "y": [_own(y, rank, ranks) for rank in range(ranks)],
        "gradients": found,
        "micro_batches": len(x),
        "width": len(given["row.bias"]),
        "activation": 8 * x[0].numel(),
    } | (_mistaken(given, x, factors, ranks, whole, y) if len(x) == 1 else {})


def _mistaken(
    given: Mapping[str, Tensor],
    x: Sequence[Tensor],
    factors: Sequence[Tensor],
    ranks: int,
    whole: Mapping[str, Any],
    y: Sequence[Tensor],
) -> dict[str, Any]:
    """What comes out of some mistakes, rank by rank."""
    found: dict[str, list[Any]] = {name: [] for name in ("biased", "partial", "apart", "own tokens", "partial x")}
    for rank in range(ranks):
        part, own_x, own_factors = _part(given, rank, ranks), _own(x, rank, ranks), _own(factors, rank, ranks)
        partial = _own([_block(part, each) + given["row.bias"] for each in x], rank, ranks)
        found["biased"].append([each + (ranks - 1) * given["row.bias"] for each in _own(y, rank, ranks)])
        found["partial"].append(_added(partial, own_x))
        found["apart"].append(_gradients(given, own_x, own_factors))
        found["own tokens"].append(_gradients(part, own_x, own_factors))
        of_x = _own(_gradients(part, x, factors)["x"], rank, ranks)
        found["partial x"].append({"x": _added(of_x, own_factors)})
    return found | {
        "mean": [{name: whole[name] / ranks for name in _OWN}] * ranks,
        "weights reduced": [{"column.weight": torch.stack(whole["column.weight"].chunk(ranks)).sum(0)}] * ranks,
    }


def _added(some: Sequence[Tensor], others: Sequence[Tensor]) -> list[Tensor]:
    return [one + other for one, other in zip(some, others, strict=True)]


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    shown = ""
    for index, case in enumerate(cases):
        micro_batches, size = case.expected["micro_batches"], case.expected["activation"]
        once, small = micro_batches * size, 3 * 8 * case.expected["width"]
        expected = (
            f"all_gather and reduce_scatter of {2 * once:,} bytes each, and all_reduce of {small:,} for the gradients "
            "of norm and bias"
        )
        shown = shown or expected
        for rank in range(ranks):
            seen = checks.traffic(record, index, rank)
            gathered, scattered, exchanged, reduced = (
                seen.get(name, Traffic(0, 0)).payload_bytes for name in (*_MOVES, "all_reduce")
            )
            scattered += exchanged
            others = set(seen) - {*_MOVES, "all_reduce", "barrier"}
            # the input of the first matrix may be gathered again in backward
            alike = (
                gathered in (2 * once, 3 * once) and scattered == 2 * once and small <= reduced <= micro_batches * small
            )
            if others or not alike:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="A gather before the first matrix, a reduce-scatter after the second, and their mirror "
                    "images in backward: what tensor parallelism's two all-reduces cost.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="so it was, on every rank")


def _results(run: Judged, name: str, index: int = 0) -> Iterator[tuple[dict[str, Any], int, Any]]:
    for case, rank, value in run.results(name):
        if case is run.cases[index]:
            yield case.expected, rank, value


def _y_is(run: Judged, alternative: str) -> bool:
    return run.failed("output") and all(
        checks.differ(value, expected[alternative][rank]) is None for expected, rank, value in _results(run, "y")
    )


def _is(run: Judged, alternative: str, *names: str) -> bool:
    """Whether one of these gradients is that alternative in the first case, on every rank."""
    return run.failed("gradients") and any(
        all(
            isinstance(value, Mapping) and checks.differ(value.get(name), expected[alternative][rank][name]) is None
            for expected, rank, value in _results(run, "gradients")
        )
        for name in names
    )


def _misses_gradients(run: Judged) -> bool:
    return run.failed("gradients") and any(
        not isinstance(value, Mapping) or not set(expected["gradients"][rank]) <= set(value) or None in value["x"]
        for expected, rank, value in _results(run, "gradients")
    )


def _right_once(run: Judged) -> bool:
    """Right for one micro-batch, and not for two."""
    right = all(
        checks.differ(value, expected["gradients"][rank]) is None
        for expected, rank, value in _results(run, "gradients")
    )
    return run.failed("gradients") and right


def _reduces_activations(run: Judged) -> bool:
    """An all-reduce that is as large as the activations."""
    return run.failed("bytes") and any(
        call.payload_bytes >= case.expected["activation"]
        for case, call in run.calls("all_reduce")
        if "large" not in case.expected
    )
