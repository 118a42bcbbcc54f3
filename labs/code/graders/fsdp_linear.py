"""CL10: a layer that is gathered to be used, twice a step, and lies in shards otherwise, as FSDP has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.fsdp_linear import linear, through
from labs.code.record import Call, Record
from labs.spec.code import Check

STEPS = 3
ROWS = 4
RATE = 0.02
LARGE, LARGE_WIDTH = 4, 768  # so many layers of 2.3 MiB
LARGE_BYTES = (LARGE_WIDTH + 1) * LARGE_WIDTH * 4
_GATHERS, _REDUCES = ("all_gather", "broadcast"), ("reduce_scatter", "reduce")
GATHERS = 2  # of a layer a step: for forward, and again for backward
_FILLED_UP = 1.3  # at most what is sent over what there is: shards may be filled up to equal lengths or whole rows


class FSDPLinear(Grader):
    lab = "CL10"
    task = "fsdp_linear"
    checks_named = ("parameters", "bytes", "shards", "freed")
    signs = (
        Sign("all-reduced", lambda runs: any(_has(run, "all_reduce") for run in runs)),
        Sign(
            "not-sharded", lambda runs: any(run.failed("shards") or not _has(run, "all_gather") for run in _ended(runs))
        ),
        Sign("not-reduced", lambda runs: any(not _has(run, "reduce_scatter", "reduce") for run in _ended(runs))),
        Sign("not-freed", lambda runs: any(run.failed("freed") for run in runs)),
        Sign("cast-after-sending", lambda runs: any(_is_sent_wide(run) for run in runs)),
        Sign("sum-for-mean", lambda runs: any(_is_trained_by(run, "sum") for run in runs)),
        Sign("graph-cut", lambda runs: any(_first_layer_stays(run) for run in runs)),
        Sign("bias-forgotten", lambda runs: any(_biases_stay(run) for run in runs)),
        Sign(
            "gathers-too-often", lambda runs: any(run.failed("bytes") and not run.failed("parameters") for run in runs)
        ),
        Sign("other-parameters", lambda runs: any(run.failed("parameters") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Shapes that the ranks do not divide, in full and in half of the precision; and large layers."""
        return [
            _case(ranks, draw, "float64"),
            _case(ranks, draw, "float32"),
            Case([{"large": [LARGE, LARGE_WIDTH]}] * ranks, None, name="9 MiB of weights"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        for kind in ("weights", "biases"):
            found = checks.values(
                "parameters",
                ranks,
                cases,
                record,
                kind,
                partial(_expected, kind),
                f"After {STEPS} steps the shards together must be what one process has with the mean of all losses.",
                read=_as_sent,
            )
            if kind == "biases" or not found.passed:
                yield found
                break
        yield _check_bytes(ranks, cases, record)
        yield checks.memory(
            "shards",
            ranks,
            cases,
            record,
            "made",
            lambda case, _: LARGE * LARGE_BYTES // ranks + LARGE_BYTES,
            "Between steps a rank keeps its n-th of every layer. A slice is a view that keeps the whole: clone it.",
        )
        yield checks.memory(
            "freed",
            ranks,
            cases,
            record,
            "after forward",
            lambda case, _: LARGE_BYTES,
            "What autograd saves for backward is kept until then: save the shard, and gather once more in backward.",
            since="made",
        )


GRADER = FSDPLinear()


def _case(ranks: int, draw: Draw, dtype: str) -> Case:
    widths = [draw.integer(12, 18) * 2 + 1 for _ in range(4)]
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    weights, biases = [draw.tensor(*pair) / 6 for pair in pairs], [draw.tensor(pair[0]) / 6 for pair in pairs]
    x = [[draw.tensor(ROWS, widths[0]) for _ in range(STEPS)] for _ in range(ranks)]
    targets = [[draw.tensor(ROWS, widths[-1]) for _ in range(STEPS)] for _ in range(ranks)]
    shared = {"weights": weights, "biases": biases, "dtype": dtype, "rate": RATE}
    inputs = [{**shared, "x": x[rank], "targets": targets[rank]} for rank in range(ranks)]
    after = _train(weights, biases, x, targets, 1 / ranks)
    added = _train(weights, biases, x, targets, 1.0)
    expected = {
        "weights": [_to(value, dtype) for value in after[0]],
        "biases": [_to(value, dtype) for value in after[1]],
        "sum": [_to(value, dtype) for value in added[0]],
        "before": weights,
        "before_biases": biases,
        "dtype": dtype,
        "values": sum(value.numel() for value in (*weights, *biases)),
    }
    return Case(inputs, expected, name=f"in {dtype}")


def _to(value: Tensor, dtype: str) -> Tensor:
    return value.float() if dtype == "float32" else value


def _expected(kind: str, case: Case, _rank: int) -> Any:
    return case.expected[kind] if case.expected else True


def _as_sent(case: Case, value: Any) -> Any:
    """What went through half of the precision is compared in it."""
    if case.expected is None or not isinstance(value, list):
        return value
    return [_to(each, case.expected["dtype"]) if isinstance(each, Tensor) else each for each in value]


def _train(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    x: Sequence[Sequence[Tensor]],
    targets: Sequence[Sequence[Tensor]],
    scale: float,
) -> tuple[list[Tensor], list[Tensor]]:
    """Weights and biases after all steps in one process, by all ranks' losses added up and scaled."""
    layers = [linear(weight.clone(), bias.clone()) for weight, bias in zip(weights, biases, strict=True)]
    parameters: list[nn.Parameter] = [each for layer in layers for each in layer.parameters()]
    for step in range(STEPS):
        rows, wanted = torch.cat([each[step] for each in x]), torch.cat([each[step] for each in targets])
        loss = ((through(list(layers), rows) - wanted) ** 2).sum() * scale
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(RATE * gradient)
    return [layer.weight.detach() for layer in layers], [layer.bias.detach() for layer in layers]


def _sent(calls: Sequence[Call], *operations: str) -> int:
    return sum(call.payload_bytes for call in calls if call.operation in operations)


def _most_bytes(case: Case) -> tuple[int, int]:
    """What a rank gathers and what it reduces and scatters in all steps, whole weights at the end included."""
    values, wide = case.expected["values"], case.expected["dtype"] == "float64"
    one = values * (8 if wide else 4)
    return GATHERS * STEPS * one + values * 8, STEPS * one


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """Of a layer two gathers and one reduce-scatter a step, each in the type that is computed with."""
    shown = ""
    for index, case in enumerate(cases):
        if case.expected is None:
            continue
        most = _most_bytes(case)
        expected = (
            f"at most {most[0]:,} bytes gathered, full() at the end among them, and {most[1]:,} reduced and scattered"
        )
        shown = shown or expected
        for rank in range(ranks):
            calls = [call for call in record.of(index, rank) if call.operation != "barrier"]
            sums = _sent(calls, *_GATHERS), _sent(calls, *_REDUCES)
            others = sorted({call.operation for call in calls} - {*_GATHERS, *_REDUCES})
            if others or any(found > _FILLED_UP * wanted for found, wanted in zip(sums, most, strict=True)):
                also = f", and {', '.join(others)}" if others else ""
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=f"rank {rank}, {case.name}: {sums[0]:,} gathered, {sums[1]:,} reduced and scattered{also}",
                    meaning="Gather before forward and before backward, reduce-scatter after it; cast before sending.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="no more, on every rank")


def _ended(runs: Sequence[Judged]) -> list[Judged]:
    return [run for run in runs if run.record.finished]


def _has(run: Judged, *operations: str) -> bool:
    return any(True for _ in run.calls(*operations))


def _is_sent_wide(run: Judged) -> bool:
    """More bytes in the whole of the precision than whole weights at the end have, where half was asked for."""
    return run.failed("bytes") and any(
        sum(call.payload_bytes for call in run.record.of(index, rank) if call.sent and call.sent[0][0] == "float64")
        > _FILLED_UP * case.expected["values"] * 8
        for index, case in enumerate(run.cases)
        if case.expected and case.expected["dtype"] == "float32"
        for rank in range(run.ranks)
    )


def _is_trained_by(run: Judged, what: str) -> bool:
    found = [
        checks.differ(_as_sent(case, value), case.expected[what]) is None
        for case, _, value in run.results("weights")
        if case.expected
    ]
    return run.failed("parameters") and bool(found) and all(found)


def _first_layer_stays(run: Judged) -> bool:
    return run.failed("parameters") and any(
        isinstance(value, list) and checks.differ(value[0], case.expected["before"][0]) is None
        for case, _, value in run.results("weights")
        if case.expected and value
    )


def _biases_stay(run: Judged) -> bool:
    return run.failed("parameters") and any(
        isinstance(value, list) and checks.differ(value, case.expected["before_biases"]) is None
        for case, _, value in run.results("biases")
        if case.expected
    )
