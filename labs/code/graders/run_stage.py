"""CL16: carry out a stage's actions, with real sends and receives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.run_stage import LARGE_WIDTH, LAST_NOTE, MOST_PASSES
from labs.code.record import MESSAGES, Record
from labs.spec.code import Check

WIDTH = 3
LARGE_MICRO_BATCHES, LARGE_ROWS = 24, 2**14
LARGE_BYTES = LARGE_ROWS * LARGE_WIDTH * 4  # what crosses a boundary for one micro-batch: 512 KiB
MOST_HELD = 8  # such tensors in the last backward: its own activations, their gradients, and what is on its way


class RunStage(Grader):
    lab = "CL16"
    task = "run_stage"
    with_optimizers = True  # a backward pass from a given gradient loads the same modules
    deadline_seconds = (
        30.0  # loading them the first time takes ten on a busy machine; a hang is found at once all the same
    )
    checks_named = ("order", "loss", "gradients", "messages", "memory")
    signs = (
        Sign("around-the-ends", lambda runs: any(_goes_around(run) for run in runs)),
        Sign("both-send-first", lambda runs: any(_both_send(run) for run in runs)),
        Sign("library-call", lambda runs: any(_others(run.record) for run in runs)),
        Sign("oldest-for-any", lambda runs: any(_goes_back_through_others(run) for run in runs)),
        Sign("other-order", lambda runs: any(run.failed("order") for run in runs)),
        Sign("sum-for-mean", lambda runs: any(_is_sum(run) for run in runs)),
        Sign("not-waited", lambda runs: any(_never_waits(run) for run in runs)),
        Sign("accumulation-lost", lambda runs: any(_is_one_alone(run) for run in runs)),
        Sign("numbers-ignored", lambda runs: any(_wrong_in(run, {"downwards"}) for run in runs)),
        Sign("wrong-gradient-sent", lambda runs: any(_later_stages_right(run) for run in runs)),
        Sign("wrong-loss", lambda runs: any(run.failed("loss") and not run.failed("gradients") for run in runs)),
        Sign("sent-twice", lambda runs: any(run.failed("messages") for run in runs)),
        Sign("kept", lambda runs: any(run.failed("memory") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """1F1B, long and short; GPipe that goes backward from the newest; 1F1B that counts down, that has one more
        under way than it needs; and one with large activations."""
        many = draw.integer(2 * ranks, 2 * ranks + 3)
        small = [
            (one_f_one_b(ranks, many), "1F1B", ""),
            (gpipe(ranks, ranks + 1), "GPipe, the newest backward first", "newest first"),
            (one_f_one_b(ranks, max(1, ranks - 1)), "1F1B, fewer micro-batches than stages", ""),
            (_downwards(one_f_one_b(ranks, ranks + 2)), "1F1B, the last micro-batch first", "downwards"),
            (one_f_one_b(ranks, many, earlier=1), "1F1B, one more under way", ""),
        ]
        large = {
            "rows": LARGE_ROWS,
            "micro_batches": LARGE_MICRO_BATCHES,
            "seed": draw.integer(0, 2**31),
        }
        orders = one_f_one_b(ranks, LARGE_MICRO_BATCHES)
        gates = _factors(ranks, LARGE_MICRO_BATCHES, lambda: torch.ones(1))
        return [
            *(_case(draw, orders, name, kind) for orders, name, kind in small),
            Case(
                [{**large, "actions": orders[rank]} for rank in range(ranks)],
                {"orders": orders, "kind": "large", "micro_batches": LARGE_MICRO_BATCHES},
                gates,
                "24 micro-batches of 512 KiB",
            ),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield _check_order(ranks, cases, record)
        yield checks.values(
            "loss",
            ranks,
            cases,
            record,
            "loss",
            lambda case, rank: case.expected["loss"] if rank == ranks - 1 and "loss" in case.expected else None,
            "The last stage returns the mean of the losses of all micro-batches.",
            lambda case, value: value if "loss" in case.expected else None,
        )
        yield checks.values(
            "gradients",
            ranks,
            cases,
            record,
            "gradient",
            lambda case, rank: case.expected["gradients"][rank] if "loss" in case.expected else True,
            "A stage's gradients add up over its micro-batches to those of the mean loss of the whole batch. What a "
            "stage sends back is the gradient of what it was sent.",
            lambda case, value: value if "loss" in case.expected else isinstance(value, Tensor),
        )
        yield _check_messages(ranks, cases, record)
        yield checks.memory(
            "memory",
            ranks,
            cases,
            record,
            LAST_NOTE,
            lambda _case, _rank: MOST_HELD * LARGE_BYTES,
            "In the last backward pass one micro-batch is left. Who keeps what others needed, keeps all of the batch.",
        )


GRADER = RunStage()
Orders = list[list[str]]


def one_f_one_b(stages: int, micro_batches: int, earlier: int = 0) -> Orders:
    """1F1B with so many forward passes more before the first backward pass of each stage."""
    found = []
    for stage in range(stages):
        warm_up = min(stages - stage - 1 + earlier, micro_batches)
        order = [f"F{i}" for i in range(warm_up)]
        for i in range(micro_batches - warm_up):
            order += [f"F{warm_up + i}", f"B{i}"]
        found.append(order + [f"B{i}" for i in range(micro_batches - warm_up, micro_batches)])
    return found


def gpipe(stages: int, micro_batches: int) -> Orders:
    forward = [f"F{i}" for i in range(micro_batches)]
    return [forward + [f"B{i}" for i in reversed(range(micro_batches))] for _ in range(stages)]


def _downwards(orders: Orders) -> Orders:
    last = len(orders[0]) // 2 - 1
    return [[f"{word[0]}{last - int(word[1:])}" for word in order] for order in orders]


def _factors(ranks: int, micro_batches: int, made: Callable[[], Tensor]) -> dict[str, list[Tensor]]:
    """By the pass: `F2` is the third forward pass that a stage makes, `B2` the backward pass of that."""
    return {
        f"{kind}{number}": [made() for _ in range(ranks)]
        for kind in "FB"
        for number in range(MOST_PASSES * micro_batches)
    }


def _case(draw: Draw, orders: Orders, name: str, kind: str) -> Case:
    ranks, micro_batches = len(orders), len(orders[0]) // 2
    rows = draw.integer(2, 4)
    weights = [draw.tensor(WIDTH, WIDTH) for _ in range(ranks)]
    inputs = [draw.tensor(rows, WIDTH) for _ in range(micro_batches)]
    targets = [draw.tensor(rows, WIDTH) for _ in range(micro_batches)]
    gates = _factors(ranks, micro_batches, lambda: draw.tensor(1).abs() + 0.5)
    given: list[dict[str, Any]] = [
        {
            "actions": orders[rank],
            "weight": weights[rank],
            "micro_batches": micro_batches,
            "inputs": inputs if rank == 0 else None,
            "targets": targets if rank == ranks - 1 else None,
            "like": torch.zeros(rows, WIDTH, dtype=torch.float64),
        }
        for rank in range(ranks)
    ]
    each = [_one_process(orders, weights, inputs[i], targets[i], i, gates) for i in range(micro_batches)]
    expected = {
        "orders": orders,
        "kind": kind,
        "micro_batches": micro_batches,
        "boundary_bytes": rows * WIDTH * 8,
        "loss": sum(loss for loss, _ in each) / micro_batches,
        "gradients": [torch.stack([own[rank] for _, own in each]).mean(0) for rank in range(ranks)],
        "last": [each[int(orders[rank][-1][1:])][1][rank] for rank in range(ranks)],
    }
    return Case(given, expected, gates, name)


def _one_process(
    orders: Orders,
    weights: Sequence[Tensor],
    x: Tensor,
    target: Tensor,
    micro_batch: int,
    gates: dict[str, list[Tensor]],
) -> tuple[float, list[Tensor]]:
    """The loss and the stages' gradients of one micro-batch."""
    leaves = [weight.clone().requires_grad_() for weight in weights]
    for rank, leaf in enumerate(leaves):
        number = [word for word in orders[rank] if word.startswith("F")].index(f"F{micro_batch}")
        forward, backward = gates[f"F{number}"][rank], gates[f"B{number}"][rank]
        x = torch.tanh(x @ leaf)
        x = x * backward + (x * (forward - backward)).detach()
    loss = (x * target).mean()
    gradients = torch.autograd.grad(loss, leaves)
    return float(loss.detach()), list(gradients)


def _passes(case: Case, rank: int) -> list[str]:
    """The actions of a stage as its passes are numbered, from 0 in the order of its forward passes."""
    order = case.expected["orders"][rank]
    forward = [word[1:] for word in order if word.startswith("F")]
    return [f"{word[0]}{forward.index(word[1:])}" for word in order]


def _check_order(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    expected = "each stage does its actions, one after the other"
    for index, case in enumerate(cases):
        for rank in range(ranks):
            seen = [each.name for each in record.gates if (each.case, each.rank) == (index, rank)]
            wanted = _passes(case, rank)
            if seen != wanted:
                place = next((i for i, pair in enumerate(zip(seen, wanted, strict=False)) if pair[0] != pair[1]), None)
                at = f"{len(seen)} passes for {len(wanted)} actions"
                if place is not None:
                    word = case.expected["orders"][rank][place]
                    at = f"action {place + 1} of {len(wanted)} is {word}, and what came was {_pass(seen[place])}"
                return Check(
                    name="order",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=f"rank {rank}, {case.name}: {at}",
                    meaning="The schedule decides what is alive, and when a neighbour has what it waits for.",
                )
    return Check(name="order", ranks=ranks, passed=True, expected=expected, seen="so it was")


def _pass(word: str) -> str:
    number = int(word[1:]) + 1
    return f"forward pass no. {number}" if word.startswith("F") else f"the backward pass of forward pass no. {number}"


def _others(record: Record) -> list[str]:
    return sorted({call.operation for call in record.calls if call.operation not in (*MESSAGES, "barrier")})


def _check_messages(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """Each boundary is crossed once each way for each micro-batch; and every message was waited for."""
    shown = ""
    for index, case in enumerate(cases):
        m = case.expected["micro_batches"]
        size = case.expected.get("boundary_bytes", LARGE_BYTES)
        for rank in range(ranks):
            wanted = {peer: (m, m * size) for peer in (rank - 1, rank + 1) if 0 <= peer < ranks}
            calls = [call for call in record.of(index, rank) if call.operation in MESSAGES]
            sent = {
                peer: checks.sums(call for call in calls if call.peer == peer)
                for peer in sorted({call.peer for call in calls if call.peer is not None})
            }
            shown = shown or f"{m} messages to each neighbour, {size:,} bytes each, all of them waited for"
            left = sum(call.waited_at is None for call in calls)
            if sent != wanted or left or _others(record):
                told = ", ".join(f"{n} of {b:,} bytes in all to rank {peer}" for peer, (n, b) in sent.items())
                also = f"; {left} never waited for" if left else ""
                also += f"; {', '.join(_others(record))} called" if _others(record) else ""
                return Check(
                    name="messages",
                    ranks=ranks,
                    passed=False,
                    expected=f"{m} messages to each neighbour, {size:,} bytes each, all of them waited for",
                    seen=f"rank {rank}, {case.name}: {told or 'none'}{also}",
                    meaning="A micro-batch crosses each boundary twice: its activations forward, their gradient back.",
                )
    return Check(name="messages", ranks=ranks, passed=True, expected=shown, seen="exactly that, on every rank")


# --- mistakes


def _goes_around(run: Judged) -> bool:
    """With three stages or more: the first and the last one talk."""
    return run.ranks > 2 and any(
        {call.rank, call.peer} == {0, run.ranks - 1} for _, call in run.calls(*MESSAGES) if call.peer is not None
    )


def _both_send(run: Judged) -> bool:
    """Two neighbours that each wait for the other to receive."""
    if run.hang is None:
        return False
    waiting = {
        (call.rank, call.peer) for _, call in run.calls("send") if call.done_at is None and call.waited_at is not None
    }
    return any((peer, rank) in waiting for rank, peer in waiting)


def _goes_back_through_others(run: Judged) -> bool:
    """Forward and backward in the order given, but through other micro-batches."""
    if not run.failed("order"):
        return False
    pairs = [
        (
            [each.name for each in run.record.gates if (each.case, each.rank) == (index, rank)],
            _passes(case, rank),
        )
        for index, case in enumerate(run.cases)
        for rank in range(run.ranks)
    ]
    return all([name[0] for name in seen] == [name[0] for name in wanted] for seen, wanted in pairs)


def _gradients(run: Judged) -> Iterator[tuple[Case, int, Any]]:
    for case, rank, value in run.results("gradient"):
        if "loss" in case.expected:
            yield case, rank, value


def _is_right(case: Case, rank: int, value: Any) -> bool:
    return checks.differ(value, case.expected["gradients"][rank]) is None


def _is_sum(run: Judged) -> bool:
    """m times the mean, in the first case."""
    found = [(case, rank, value) for case, rank, value in _gradients(run) if case is run.cases[0]]
    return run.failed("gradients") and all(
        checks.differ(value, case.expected["gradients"][rank] * case.expected["micro_batches"]) is None
        for case, rank, value in found
    )


def _is_one_alone(run: Judged) -> bool:
    """The gradient of the micro-batch that went backward last, as it is or divided."""
    found = [(case, rank, value) for case, rank, value in _gradients(run) if case is run.cases[0]]
    return run.failed("gradients") and all(
        any(
            checks.differ(value, case.expected["last"][rank] / parts) is None
            for parts in (1, case.expected["micro_batches"])
        )
        for case, rank, value in found
    )


def _never_waits(run: Judged) -> bool:
    return run.record.finished and any(call.waited_at is None for _, call in run.calls(*MESSAGES))


def _wrong_in(run: Judged, kinds: set[str]) -> bool:
    """Wrong in the cases of these kinds alone; the loss may be what is wrong."""
    wrong = {case.expected["kind"] for case, rank, value in _gradients(run) if not _is_right(case, rank, value)}
    return run.failed("gradients") and bool(wrong) and wrong <= kinds


def _later_stages_right(run: Judged) -> bool:
    right = {rank for case, rank, value in _gradients(run) if case is run.cases[0] and _is_right(case, rank, value)}
    return run.failed("gradients") and run.ranks - 1 in right and 0 not in right
