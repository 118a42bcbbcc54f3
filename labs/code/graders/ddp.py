"""CL06: data parallelism that communicates while backward computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from labs.code import checks
from labs.code.checks import Traffic
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.ddp import LAYERS
from labs.code.record import Record
from labs.spec.code import Check

STEPS = 2
WIDTH = 3
_FLAGS = 16  # bytes for each parameter that may be exchanged besides: who has a gradient


class DDP(Grader):
    lab = "CL06"
    task = "ddp"
    checks_named = ("replicas", "gradients", "bytes", "overlap")
    signs = (
        Sign("unused-parameter", lambda runs: any(_hangs_in(run, "unused") for run in runs)),
        Sign("replicas-differ", lambda runs: any(_replicas_wrong(run, "weight0") for run in runs)),
        Sign("buffers-forgotten", lambda runs: any(_replicas_wrong(run, "scale") for run in runs)),
        Sign("no-sync-communicates", lambda runs: any(_reduces_under_no_sync(run) for run in runs)),
        Sign("not-waited", lambda runs: any(_never_waits(run) for run in runs)),
        Sign("sum-for-mean", lambda runs: any(_is_a_share(run, 1 / run.ranks) for run in runs)),
        Sign("divided-twice", lambda runs: any(_is_a_share(run, run.ranks) for run in runs)),
        Sign("accumulation-lost", lambda runs: any(_last_micro_batch_alone(run) for run in runs)),
        Sign("works-once", lambda runs: any(_second_step_alone_wrong(run) for run in runs)),
        Sign("gathers-all", lambda runs: any(True for run in runs for _ in run.calls("all_gather", "gather"))),
        Sign("missing-gradient", lambda runs: any(_wrong_where_unused(run) for run in runs)),
        Sign("no-communication", lambda runs: any(_never_reduces(run) for run in runs)),
        Sign("not-overlapped", lambda runs: any(run.failed("overlap") and not run.failed("gradients") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """One micro-batch a step; three; and a branch that some ranks leave out, then all."""
        return [
            _case(ranks, draw, "one micro-batch a step", micro_batches=1),
            _case(ranks, draw, "three micro-batches a step", micro_batches=3),
            _case(ranks, draw, "a parameter that some ranks do not use", micro_batches=1, unused=True),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "replicas",
            ranks,
            cases,
            record,
            "replicas",
            lambda case, _: case.expected["replicas"],
            "Training begins from the same model on every rank: rank 0's parameters, and its buffers.",
        )
        yield _check_gradients(ranks, cases, record)
        yield _check_bytes(ranks, cases, record)
        yield checks.overlap(
            "overlap",
            ranks,
            cases,
            record,
            1,
            "Reduce a gradient when backward has made it (`register_post_accumulate_grad_hook`), not after backward; "
            "a bucket that has every gradient in it is full only when the last one is there.",
            lambda case: [f"{step}.{case.expected['micro_batches'] - 1}" for step in range(STEPS)],
        )


GRADER = DDP()


def _case(ranks: int, draw: Draw, name: str, micro_batches: int, unused: bool = False) -> Case:
    given = [_parameters(draw) for _ in range(ranks)]
    steps = [
        [[_micro_batch(draw, unused, rank, step) for _ in range(micro_batches)] for step in range(STEPS)]
        for rank in range(ranks)
    ]
    places = [
        f"{step}.{index}/layer{layer}"
        for step in range(STEPS)
        for index in range(micro_batches)
        for layer in range(LAYERS)
    ]
    gates = {} if unused else {place: [draw.tensor(1).abs() + 0.5 for _ in range(ranks)] for place in places}
    inputs = [{"given": given[rank], "steps": steps[rank], "gated": not unused} for rank in range(ranks)]
    own = [
        [_gradients(given[0], steps[rank][step], step, rank, gates) for step in range(STEPS)] for rank in range(ranks)
    ]
    expected = {
        "replicas": given[0],
        "gradients": [_mean([own[rank][step][0] for rank in range(ranks)], given[0]) for step in range(STEPS)],
        "last": [_mean([own[rank][step][1] for rank in range(ranks)], given[0]) for step in range(STEPS)],
        "micro_batches": micro_batches,
        "unused": unused,
    }
    return Case(inputs, expected, gates, name)


def _parameters(draw: Draw) -> dict[str, Tensor]:
    found = {"branch": draw.tensor(WIDTH), "scale": draw.tensor(1)}
    for layer in range(LAYERS):
        found |= {f"weight{layer}": draw.tensor(WIDTH, WIDTH), f"bias{layer}": draw.tensor(WIDTH)}
    return found


def _micro_batch(draw: Draw, unused: bool, rank: int, step: int) -> dict[str, Any]:
    """In the case of the unused branch rank 0 alone goes through it in the first step, and nobody in the second."""
    return {"x": draw.tensor(draw.integer(2, 5), WIDTH), "with_branch": not unused or (rank == 0 and step == 0)}


def _gradients(
    given: Mapping[str, Tensor],
    micro_batches: Sequence[Mapping[str, Any]],
    step: int,
    rank: int,
    gates: Mapping[str, Sequence[Tensor]],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """A rank's own gradients of a step, of all micro-batches and of the last alone."""
    total: dict[str, Tensor] = {}
    last: dict[str, Tensor] = {}
    for index, each in enumerate(micro_batches):
        leaves = {name: value.clone().requires_grad_(name != "scale") for name, value in given.items()}
        x = each["x"]
        for layer in range(LAYERS):
            x = torch.tanh(x @ leaves[f"weight{layer}"].T + leaves[f"bias{layer}"])
            factor = gates.get(f"{step}.{index}/layer{layer}")
            if factor is not None:
                x = _multiplied(x, factor[rank])
        x = x * leaves["branch"] if each["with_branch"] else x
        (x * leaves["scale"]).mean().backward()
        last = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
        total = {name: total.get(name, 0.0) + value for name, value in last.items()}
    return total, last


def _mean(own: Sequence[Mapping[str, Tensor]], given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = [name for name in given if any(name in each for each in own)]
    none = {name: torch.zeros_like(given[name]) for name in names}
    return {name: torch.stack([each.get(name, none[name]) for each in own]).mean(0) for name in names}


def _without_free_zeros(case: Case, value: Any, step: int) -> Any:
    """What no rank has a gradient of may be None or zeros."""
    if not isinstance(value, Mapping):
        return value
    wanted = case.expected["gradients"][step]
    return {name: each for name, each in value.items() if name in wanted or bool(each.any())}


def _multiplied(x: Tensor, factor: Tensor) -> Tensor:
    """`x` as it is, with a gradient that is multiplied."""
    return x * factor + (x * (1 - factor)).detach()


def _check_gradients(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    found = [_check_step(ranks, cases, record, step) for step in range(STEPS)]
    return next((each for each in found if not each.passed), found[0])


def _check_step(ranks: int, cases: Sequence[Case], record: Record, step: int) -> Check:
    return checks.values(
        "gradients",
        ranks,
        cases,
        record,
        f"gradients {step}",
        lambda case, _: case.expected["gradients"][step],
        "After finish() every gradient is the mean over all ranks of what its micro-batches add up to; a rank that "
        "did not use a parameter counts as zeros.",
        lambda case, value: _without_free_zeros(case, value, step),
    )


def _sizes(case: Case) -> tuple[int, int]:
    """Bytes of parameters, and of buffers."""
    given = case.expected["replicas"]
    buffers = given["scale"].numel() * 8
    return sum(value.numel() * 8 for value in given.values()) - buffers, buffers


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    shown = ""
    for index, case in enumerate(cases):
        size, buffers = _sizes(case)
        reduced = STEPS * size
        shown = shown or f"{reduced:,} bytes all-reduced in {STEPS} steps, {size + buffers:,} broadcast at first"
        flags = STEPS * _FLAGS * len(case.expected["replicas"])
        spared = 0 if not case.expected["unused"] else STEPS * WIDTH * 8
        forwards = STEPS * case.expected["micro_batches"]
        for rank in range(ranks):
            seen = checks.traffic(record, index, rank)
            sent = seen.get("all_reduce", Traffic(0, 0)).payload_bytes
            first = seen.get("broadcast", Traffic(0, 0)).payload_bytes
            others = [name for name in seen if name not in ("all_reduce", "broadcast", "barrier")]
            alike = reduced - spared <= sent <= reduced + flags
            alike &= size + buffers <= first <= size + buffers * (1 + forwards)
            if others or not alike:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=f"{reduced:,} bytes all-reduced in {STEPS} steps, {size + buffers:,} broadcast at first",
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="Each gradient is reduced once a step, whatever the number of micro-batches: under no_sync "
                    "it only adds up. Parameters and buffers are broadcast when the model is wrapped.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="so it was, on every rank")


def _hangs_in(run: Judged, kind: str) -> bool:
    """The run hung in a case of this kind: its last calls are there."""
    if run.hang is None or run.hang in ("still computing", "exception on one rank"):
        return False
    last = max((call.case for call in run.record.calls), default=0)
    return bool(run.cases[last].expected[kind])


def _replicas_wrong(run: Judged, name: str) -> bool:
    return run.failed("replicas") and any(
        isinstance(value, Mapping) and checks.differ(value.get(name), case.expected["replicas"][name]) is not None
        for case, _, value in run.results("replicas")
    )


def _gradients_of(run: Judged, step: int) -> Iterator[tuple[Case, Any]]:
    for case, _, value in run.results(f"gradients {step}"):
        yield case, _without_free_zeros(case, value, step)


def _is_a_share(run: Judged, parts: float) -> bool:
    """Whether it is the mean divided by `parts`, in the first case."""
    found = [value for case, value in _gradients_of(run, 0) if case is run.cases[0]]
    wanted = {name: value / parts for name, value in run.cases[0].expected["gradients"][0].items()}
    return run.failed("gradients") and all(checks.differ(value, wanted) is None for value in found)


def _reduced(run: Judged, case: int) -> int:
    return checks.traffic(run.record, case, 0).get("all_reduce", Traffic(0, 0)).payload_bytes


def _reduces_too_often(run: Judged) -> bool:
    """As often as there are micro-batches."""
    size, _ = _sizes(run.cases[1])
    return run.failed("bytes") and _reduced(run, 1) >= 2 * STEPS * size


def _reduces_under_no_sync(run: Judged) -> bool:
    return _reduces_too_often(run) or _reduces_too_early(run)


def _reduces_too_early(run: Judged) -> bool:
    """In the backward of an earlier micro-batch than the last: what comes after is never reduced."""
    if not run.failed("gradients"):
        return False
    last = f"0.{run.cases[1].expected['micro_batches'] - 1}/"
    for rank in range(run.ranks):
        gates = [gate for gate in run.record.gates if (gate.case, gate.rank) == (1, rank) and gate.name[0] == "0"]
        early = [gate for gate in gates if not gate.name.startswith(last)]
        calls = [call for call in run.record.calls if call.rank == rank]
        if early and any(call.operation == "all_reduce" for call in calls[early[0].after : early[-1].after]):
            return True
    return False


def _never_reduces(run: Judged) -> bool:
    return run.failed("gradients") and _reduced(run, 0) == 0


def _never_waits(run: Judged) -> bool:
    return run.failed("gradients") and any(call.waited_at is None for _, call in run.calls("all_reduce"))


def _last_micro_batch_alone(run: Judged) -> bool:
    found = [value for case, value in _gradients_of(run, 0) if case is run.cases[1]]
    return run.failed("gradients") and all(
        checks.differ(value, run.cases[1].expected["last"][0]) is None for value in found
    )


def _wrong(run: Judged, step: int) -> set[str]:
    found = _gradients_of(run, step)
    return {case.name for case, value in found if checks.differ(value, case.expected["gradients"][step]) is not None}


def _second_step_alone_wrong(run: Judged) -> bool:
    first = run.cases[0].name
    return run.failed("gradients") and first not in _wrong(run, 0) and first in _wrong(run, 1)


def _wrong_where_unused(run: Judged) -> bool:
    names = {case.name for case in run.cases if case.expected["unused"]}
    wrong = _wrong(run, 0) | _wrong(run, 1)
    return run.failed("gradients") and bool(wrong) and wrong <= names
