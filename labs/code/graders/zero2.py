"""CL09: gradients that are reduced to their owners as backward makes them, as ZeRO-2 has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

STEPS = 4
LARGE, LARGE_SIZE = 8, 2**19  # so many parameters of 2 MiB
LARGE_BYTES = LARGE_SIZE * 4
_REDUCES, _SENDS = ("reduce", "reduce_scatter"), ("broadcast", "all_gather")
_MOST_TIMES = 1.9  # what may be sent over what there is: shards may be filled up to equal lengths


class Zero2(Grader):
    lab = "CL09"
    task = "zero2"
    with_optimizers = True
    checks_named = ("parameters", "gradients", "state", "bytes")
    signs = (
        Sign("all-reduce-then-slice", lambda runs: any(_has(run, "all_reduce") for run in runs)),
        Sign("not-reduced", lambda runs: any(run.failed("parameters") and not _has(run, *_REDUCES) for run in runs)),
        Sign("not-sent", lambda runs: any(run.failed("parameters") and not _has(run, *_SENDS) for run in runs)),
        Sign("sum-for-mean", lambda runs: any(_is_trained_by(run, "sum") for run in runs)),
        Sign("groups-ignored", lambda runs: any(_wrong_are(run, "groups") for run in runs)),
        Sign("missing-gradient", lambda runs: any(_wrong_are(run, "absent") for run in runs)),
        Sign("uneven-owners", lambda runs: any(_is_uneven(run) for run in runs)),
        Sign("state-not-cut", lambda runs: any(run.failed("state") and not run.failed("gradients") for run in runs)),
        Sign("gradients-kept", lambda runs: any(run.failed("gradients") for run in runs)),
        Sign("sent-twice", lambda runs: any(run.failed("bytes") and not run.failed("parameters") for run in runs)),
        Sign(
            "not-waited",
            lambda runs: any(checks.never_waits(run, "parameters", *_REDUCES, *_SENDS) for run in runs),
        ),
        Sign("other-update", lambda runs: any(run.failed("parameters") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """One group; two with options of their own; a parameter without gradient; few parameters; and large ones."""
        return [
            _case(draw, ranks, "one group"),
            _case(draw, ranks, "two groups", groups=True),
            _case(draw, ranks, "a parameter without a gradient", absent=True),
            _case(draw, ranks, "fewer parameters than ranks", count=ranks - 1),
            Case([{"large": [LARGE, LARGE_SIZE]}] * ranks, {"large": True}, name="16 MiB of parameters"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "parameters",
            ranks,
            cases,
            record,
            "parameters",
            lambda case, _: case.expected["after"] if "after" in case.expected else {"moved": [True] * LARGE},
            f"After {STEPS} steps every rank must hold what one process holds that has the mean of all gradients.",
        )
        yield checks.memory(
            "gradients",
            ranks,
            cases,
            record,
            "after backward",
            lambda case, _: owned_bytes(ranks) + LARGE_BYTES,
            "Reduce a gradient to its owner as soon as backward has made it, and set it to None on every other rank.",
            since="made",
        )
        yield checks.memory(
            "state",
            ranks,
            cases,
            record,
            "after a step",
            lambda case, _: 3 * owned_bytes(ranks),
            "Of a momentum, a gradient and perhaps a copy a rank keeps what it owns.",
        )
        yield _check_bytes(ranks, cases, record)


GRADER = Zero2()


def _is_uneven(run: Judged) -> bool:
    """Some ranks keep hardly a gradient, and another keeps theirs."""
    share = LARGE * LARGE_BYTES // run.ranks
    return run.failed("gradients") and checks.one_rank_holds_it(
        run.record, run.ranks, "after backward", share, since="made"
    )


def owned_bytes(ranks: int) -> int:
    """Of the large parameters a rank's share, where whole ones are dealt."""
    return -(-LARGE // ranks) * LARGE_BYTES


def _case(draw: Draw, ranks: int, name: str, groups: bool = False, absent: bool = False, count: int = 6) -> Case:
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (draw.integer(5, 9), 3),
        "weight": (3, draw.integer(2, 5)),
        "bias": (draw.integer(2, 5),),
        "norm": (3,),
        "head": (draw.integer(2, 4), 3),
        "scale": (1,),
    }
    shapes = dict(list(shapes.items())[:count])
    parameters = {each: draw.tensor(*shape) for each, shape in shapes.items()}
    missing = draw.choice(list(shapes)) if absent else None
    gradients = [
        [{each: draw.tensor(*shape) for each, shape in shapes.items() if each != missing} for _ in range(STEPS)]
        for _ in range(ranks)
    ]
    options = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}
    split: list[dict[str, Any]] | None = None
    if groups:
        split = [
            {"params": ["embedding", "weight", "head"], "weight_decay": 0.3},
            {"params": ["bias", "norm", "scale"], "weight_decay": 0.0, "lr": 0.2},
        ]
    shared = {"parameters": parameters, "groups": split, "options": options}
    expected = {
        "after": _train(parameters, gradients, split, options, 1 / ranks),
        "sum": _train(parameters, gradients, split, options, 1.0),
        "groups": groups,
        "absent": absent,
        "bytes": STEPS * sum(value.numel() * value.element_size() for value in parameters.values()),
    }
    return Case([{**shared, "gradients": gradients[rank]} for rank in range(ranks)], expected, name=name)


def _train(
    given: Mapping[str, Tensor],
    gradients: Sequence[Sequence[Mapping[str, Tensor]]],
    groups: Sequence[Mapping[str, Any]] | None,
    options: Mapping[str, Any],
    scale: float,
) -> dict[str, Tensor]:
    """The parameters after all steps in one process, by the ranks' gradients added up and scaled."""
    parameters = {name: nn.Parameter(value.clone()) for name, value in given.items()}
    whole: list[Any] = list(parameters.values())
    if groups is not None:
        whole = [{**each, "params": [parameters[name] for name in each["params"]]} for each in groups]
    optimizer = torch.optim.SGD(whole, **options)
    for step in zip(*gradients, strict=True):
        for name, parameter in parameters.items():
            parameter.grad = torch.stack([each[name] for each in step]).sum(0) * scale if name in step[0] else None
        optimizer.step()
    return {name: parameter.detach() for name, parameter in parameters.items()}


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """Each gradient reduced once, and each parameter sent once, a step."""
    shown = "each gradient reduced once and each parameter sent once a step"
    for index, case in enumerate(cases):
        whole = LARGE * LARGE_BYTES if "large" in case.expected else case.expected["bytes"]
        least = 0 if case.expected.get("absent") else whole  # what has no gradient need be neither
        for rank in range(ranks):
            seen = checks.traffic(record, index, rank)
            sums = [sum(seen[name].payload_bytes for name in each if name in seen) for each in (_REDUCES, _SENDS)]
            others = [name for name in seen if name not in (*_REDUCES, *_SENDS, "barrier")]
            if others or any(not least <= each <= _MOST_TIMES * whole for each in sums):
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=f"{whole:,} bytes reduced and {whole:,} bytes broadcast or gathered: {shown}",
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="Its owner alone needs a gradient: a reduce or a reduce-scatter, half of an all-reduce.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="so it was, on every rank")


def _has(run: Judged, *operations: str) -> bool:
    return any(True for _ in run.calls(*operations))


def _exact(run: Judged) -> Iterator[tuple[Case, Mapping[str, Tensor]]]:
    for case, _, value in run.results("parameters"):
        if "after" in case.expected and isinstance(value, Mapping):
            yield case, value


def _is_trained_by(run: Judged, what: str) -> bool:
    found = [checks.differ(dict(value), case.expected[what]) is None for case, value in _exact(run)]
    return run.failed("parameters") and bool(found) and all(found)


def _wrong_are(run: Judged, kind: str) -> bool:
    """Right but in the cases of this kind."""
    wrong = [
        case.expected[kind]
        for case, value in _exact(run)
        if checks.differ(dict(value), case.expected["after"]) is not None
    ]
    return run.failed("parameters") and bool(wrong) and all(wrong)
