"""CL05: a loss per token over micro-batches and ranks that hold different numbers of valid tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.token_loss import IGNORED, loss_sum
from labs.code.record import Record
from labs.spec.code import Check

LENGTH = 16  # tokens of a micro-batch, most of them valid or few
WIDTH, CLASSES = 12, 12
MOST_CALLS, MOST_BYTES = 4, 1024  # for a micro-batch; the gradient is larger
_UNEVEN = 1  # the case in which every micro-batch has another count


class TokenLoss(Grader):
    lab = "CL05"
    task = "token_loss"
    checks_named = ("gradient", "loss", "counts")
    signs = (
        Sign("rank-dependent-skip", lambda runs: any(run.hang in ("missing call", "wrong order") for run in runs)),
        Sign("graph-lost", lambda runs: any(_is_zero_everywhere(run) for run in runs)),
        Sign("mean-of-means", lambda runs: any(_scale(run, "micro-batches") is not None for run in runs)),
        Sign("ranks-apart", lambda runs: any(_scale(run, "ranks") is not None for run in runs)),
        Sign("micro-batches-apart", lambda runs: any(_scale(run, "micro-steps") is not None for run in runs)),
        Sign("averaged-twice", lambda runs: any(_is_share(run, run.ranks) for run in runs)),
        Sign("divided-by-accumulation", lambda runs: any(_is_share(run, _steps(run)) for run in runs)),
        Sign("empty-micro-batch", lambda runs: any(_fails_where_empty(run) for run in runs)),
        Sign("another-divisor", lambda runs: any(_scale(run, "right") is not None for run in runs)),
        Sign("sends-too-much", lambda runs: any(run.failed("counts") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """One micro-batch a step; several; one without a valid token; and a rank without any."""
        steps = 2 if ranks == 3 else 3  # never as many as ranks: who divided by which must show
        none = [draw.integer(0, ranks - 1), draw.integer(0, steps - 1)]
        with_hole = _counts(draw, ranks, steps)
        with_hole[none[0]][none[1]] = 0
        without_rank = _counts(draw, ranks, steps)
        without_rank[none[0]] = [0] * steps
        return [
            _case(draw, _counts(draw, ranks, 1), "one micro-batch a step"),
            _case(draw, _counts(draw, ranks, steps), f"{steps} micro-batches a step"),
            _case(draw, with_hole, "a micro-batch without a valid token", empty=True),
            _case(draw, without_rank, "a rank without a valid token", empty=True),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield _check_mean(
            "gradient",
            ranks,
            cases,
            record,
            "A token counts the same wherever it lies: divide by the valid tokens of all micro-batches of all ranks. "
            "What you return is added up over micro-batches, and its gradient is then averaged over ranks.",
        )
        yield _check_mean(
            "loss",
            ranks,
            cases,
            record,
            "Added up over micro-batches and averaged over ranks, what you return is the mean loss per valid token.",
        )
        yield _check_counts(ranks, cases, record)


GRADER = TokenLoss()


def _counts(draw: Draw, ranks: int, steps: int) -> list[list[int]]:
    """Valid tokens by rank and micro-batch: no two alike, nor the sums of two ranks or of two micro-steps."""
    while True:
        left = list(range(1, LENGTH + 1))
        found = [[left.pop(draw.integer(0, len(left) - 1)) for _ in range(steps)] for _ in range(ranks)]
        by_rank, by_step = [sum(row) for row in found], [sum(column) for column in zip(*found, strict=True)]
        if len(set(by_rank)) == ranks and len(set(by_step)) == steps:
            return found


def _case(draw: Draw, counts: list[list[int]], name: str, empty: bool = False) -> Case:
    weight = draw.tensor(CLASSES, WIDTH)
    x = [[draw.tensor(LENGTH, WIDTH) for _ in row] for row in counts]
    labels = [[_labels(draw, count) for count in row] for row in counts]
    losses, gradients = zip(
        *(_one(weight, *each) for i, _ in enumerate(counts) for each in zip(x[i], labels[i], strict=True)), strict=True
    )
    inputs = [{"weight": weight, "x": x[rank], "labels": labels[rank]} for rank in range(len(counts))]
    total = sum(map(sum, counts))
    steps = len(counts[0])
    by_rank = [sum(row) for row in counts for _ in row]
    by_step = [sum(column) for _ in counts for column in zip(*counts, strict=True)]
    each = [count for row in counts for count in row]
    expected = {
        "loss": torch.stack(losses).sum() / total,
        "gradient": torch.stack(gradients).sum(0) / total,
        # the directions of what comes out where each is divided by another count
        "right": torch.stack(gradients).sum(0) / total,
        "micro-batches": _weighted(gradients, each),
        "ranks": _weighted(gradients, by_rank),
        "micro-steps": _weighted(gradients, by_step),
        "steps": steps,
        "empty": empty,
    }
    return Case(inputs, expected, name=name)


def _labels(draw: Draw, valid: int) -> Tensor:
    labels = draw.integers(CLASSES, LENGTH)
    labels[valid:] = IGNORED
    return labels


def _one(weight: Tensor, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    leaf = weight.clone().requires_grad_()
    loss = loss_sum(leaf, x, labels)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return loss.detach(), gradient


def _weighted(gradients: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
    return torch.stack([each / max(1, count) for each, count in zip(gradients, counts, strict=True)]).sum(0)


def _mean(record: Record, case: int, ranks: int, name: str) -> Tensor | None:
    """What data parallelism makes of the ranks' results: their mean."""
    handed = [record.results.get((case, rank, name)) for rank in range(ranks)]
    found = [each for each in handed if isinstance(each, Tensor)]
    return torch.stack(found).mean(0) if len(found) == ranks else None


def _check_mean(name: str, ranks: int, cases: Sequence[Case], record: Record, meaning: str) -> Check:
    for index, case in enumerate(cases):
        difference = checks.differ(_mean(record, index, ranks, name), case.expected[name])
        if difference is not None:
            wanted, seen = difference
            where = f"the mean over ranks, {case.name}: "
            return Check(name=name, ranks=ranks, passed=False, expected=wanted, seen=where + seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=True, expected="as one process has it", seen="the same, on the mean")


def _check_counts(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    expected = f"at most {MOST_CALLS} calls a micro-batch, of {MOST_BYTES:,} bytes together"
    for index, case in enumerate(cases):
        steps = case.expected["steps"]
        for rank in range(ranks):
            calls = [call for call in record.of(case=index, rank=rank) if call.operation != "barrier"]
            sent = sum(call.payload_bytes for call in calls)
            if len(calls) > MOST_CALLS * steps or sent > MOST_BYTES * steps:
                seen = f"rank {rank}, {case.name}: {len(calls)} calls of {sent:,} bytes for {steps} micro-batches"
                return Check(
                    name="counts",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=seen,
                    meaning="The ranks need only agree on how many valid tokens there are: one number.",
                )
    return Check(name="counts", ranks=ranks, passed=True, expected=expected, seen="so it was, on every rank")


def _steps(run: Judged) -> int:
    steps: int = run.cases[_UNEVEN].expected["steps"]
    return steps


def _scale(run: Judged, direction: str) -> float | None:
    """By what the direction must be multiplied to give what came out where all counts differ; None where it does
    not point there."""
    found, wanted = _mean(run.record, _UNEVEN, run.ranks, "gradient"), run.cases[_UNEVEN].expected[direction]
    if not run.failed("gradient") or found is None or found.shape != wanted.shape or not bool(found.isfinite().all()):
        return None
    scale = float((found * wanted).sum() / (wanted * wanted).sum())
    return scale if scale and checks.differ(found, wanted * scale) is None else None


def _is_share(run: Judged, parts: int) -> bool:
    scale = _scale(run, "right")
    return scale is not None and abs(scale * parts - 1) < 1e-6


def _is_zero_everywhere(run: Judged) -> bool:
    return run.failed("gradient") and not any(
        bool(value.any()) for _, _, value in run.results("gradient") if isinstance(value, Tensor)
    )


def _fails_where_empty(run: Judged) -> bool:
    """Right but where somebody has no valid token."""
    wrong = [
        case.expected["empty"]
        for index, case in enumerate(run.cases)
        for name in ("gradient", "loss")
        if checks.differ(_mean(run.record, index, run.ranks, name), case.expected[name]) is not None
    ]
    return run.record.finished and bool(wrong) and all(wrong)
