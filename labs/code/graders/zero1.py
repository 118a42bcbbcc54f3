"""CL08: an optimizer whose state is cut over the ranks, as ZeRO-1 has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labs.code import checks
from labs.code.checks import Traffic
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

STEPS = 5
LARGE, LARGE_SIZE = 8, 2**19  # so many parameters of 2 MiB
_SENDS = ("broadcast", "all_gather")


class Zero1(Grader):
    lab = "CL08"
    task = "zero1"
    with_optimizers = True
    checks_named = ("parameters", "state", "bytes")
    signs = (
        Sign("reduces-gradients-again", lambda runs: any(_has(run, "all_reduce", "reduce_scatter") for run in runs)),
        Sign("uneven-owners", lambda runs: any(_is_uneven(run) for run in runs)),
        Sign("state-not-cut", lambda runs: any(run.failed("state") for run in runs)),
        Sign("not-sent", lambda runs: any(run.failed("parameters") and not _has(run, *_SENDS) for run in runs)),
        Sign("groups-ignored", lambda runs: any(_wrong_are(run, "groups") for run in runs)),
        Sign("state-lost", lambda runs: any(_first_step_right(run) for run in runs)),
        Sign("missing-gradient", lambda runs: any(_wrong_are(run, "absent") for run in runs)),
        Sign("sent-twice", lambda runs: any(run.failed("bytes") and not run.failed("parameters") for run in runs)),
        Sign("not-waited", lambda runs: any(checks.never_waits(run, "parameters", *_SENDS) for run in runs)),
        Sign("owners-differ", lambda runs: any(_some_never_move(run) for run in runs)),
        Sign("other-update", lambda runs: any(run.failed("parameters") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """One group; two with options of their own; a parameter without gradient; few parameters; and large ones, each
        in a group of its own, as with a learning rate for every layer: fewer to a group than there are ranks."""
        return [
            _case(draw, "one group"),
            _case(draw, "two groups", groups=True),
            _case(draw, "a parameter without a gradient", absent=True),
            _case(draw, "fewer parameters than ranks", count=ranks - 1),
            Case([{"large": [LARGE, LARGE_SIZE]}] * ranks, {"large": True}, name="16 MiB of parameters"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "parameters",
            ranks,
            cases,
            record,
            "parameters",
            lambda case, _: case.expected["after"][-1] if "after" in case.expected else {"moved": [True] * LARGE},
            f"After {STEPS} steps every rank must hold what one process with the whole optimizer holds: each parameter "
            "is updated by its owner and sent to all.",
        )
        yield checks.memory(
            "state",
            ranks,
            cases,
            record,
            "after a step",
            lambda case, _: most_state_bytes(ranks),
            "AdamW keeps two tensors for each parameter it was given. Give it those this rank owns, and no others.",
        )
        yield _check_bytes(ranks, cases, record)


GRADER = Zero1()


def _is_uneven(run: Judged) -> bool:
    share = 2 * LARGE * LARGE_SIZE * 4 // run.ranks
    return run.failed("state") and checks.one_rank_holds_it(run.record, run.ranks, "after a step", share)


def most_state_bytes(ranks: int) -> int:
    """Two moments of what a rank owns, and a copy of that where somebody cuts a flat buffer: whole parameters cannot
    always be dealt evenly."""
    owned = -(-LARGE // ranks) * LARGE_SIZE * 4
    return 3 * owned


def _case(draw: Draw, name: str, groups: bool = False, absent: bool = False, count: int = 6) -> Case:
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
    gradients = [{each: draw.tensor(*shape) for each, shape in shapes.items() if each != missing} for _ in range(STEPS)]
    options = {"lr": 0.05, "weight_decay": 0.1}
    split: list[dict[str, Any]] | None = None
    if groups:
        split = [
            {"params": ["embedding", "weight", "head"], "weight_decay": 0.3},
            {"params": ["bias", "norm", "scale"], "weight_decay": 0.0, "lr": 0.2},
        ]
    inputs = {"parameters": parameters, "gradients": gradients, "groups": split, "options": options}
    after = train(parameters, gradients, split, options)
    return Case([inputs] * 4, {"after": after, "groups": groups, "absent": absent, "before": parameters}, name=name)


def train(
    given: Mapping[str, Tensor],
    gradients: Sequence[Mapping[str, Tensor]],
    groups: Sequence[Mapping[str, Any]] | None,
    options: Mapping[str, Any],
) -> list[dict[str, Tensor]]:
    """The parameters after each step, in one process."""
    parameters = {name: nn.Parameter(value.clone()) for name, value in given.items()}
    whole: list[Any] = list(parameters.values())
    if groups is not None:
        whole = [{**each, "params": [parameters[name] for name in each["params"]]} for each in groups]
    optimizer, found = torch.optim.AdamW(whole, **options), []
    for step in gradients:
        for name, parameter in parameters.items():
            parameter.grad = step[name].clone() if name in step else None
        optimizer.step()
        found.append({name: parameter.detach().clone() for name, parameter in parameters.items()})
    return found


def _size(case: Case) -> int:
    """Bytes of a case's parameters."""
    if "large" in case.expected:
        return LARGE * LARGE_SIZE * 4
    return sum(value.numel() * value.element_size() for value in case.expected["before"].values())


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """Each parameter once a step, to everybody; shards of a flat buffer may be filled up to equal lengths."""
    shown = ""
    for index, case in enumerate(cases):
        steps = 1 if "large" in case.expected else STEPS
        least = steps * _size(case)
        shown = shown or f"{least:,} bytes broadcast or gathered in {steps} steps: each parameter once a step"
        for rank in range(ranks):
            seen = checks.traffic(record, index, rank)
            sent = sum(seen.get(name, Traffic(0, 0)).payload_bytes for name in _SENDS)
            others = [name for name in seen if name not in (*_SENDS, "barrier")]
            missing = 0 if not case.expected.get("absent") else least  # what has no gradient need not be sent
            if others or not least - missing <= sent <= 1.9 * least:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=f"{least:,} bytes broadcast or gathered in {steps} steps: each parameter once a step",
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="The gradients are averaged already. What is left to send is each updated parameter, once, "
                    "from its owner to all.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="so it was, on every rank")


def _has(run: Judged, *operations: str) -> bool:
    return any(True for _ in run.calls(*operations))


def _exact(run: Judged) -> Iterator[tuple[Case, int, Mapping[str, Tensor]]]:
    for case, rank, value in run.results("parameters"):
        if "after" in case.expected and isinstance(value, Mapping):
            yield case, rank, value


def _moved(case: Case, value: Mapping[str, Tensor]) -> set[str]:
    before = case.expected["before"]
    return {name for name in before if name in value and not torch.equal(value[name], before[name])}


def _wrong_are(run: Judged, kind: str) -> bool:
    """Right but in the cases of this kind."""
    wrong = {
        case.name: case.expected[kind]
        for case, _, value in _exact(run)
        if checks.differ(dict(value), case.expected["after"][-1]) is not None
    }
    return run.failed("parameters") and bool(wrong) and all(wrong.values())


def _first_step_right(run: Judged) -> bool:
    """What comes of an optimizer that is new at each step: it never gets beyond its first."""
    case = run.cases[0]
    found = [value for each, _, value in _exact(run) if each is case]
    return run.failed("parameters") and bool(found) and all(_is_forgetful(case, value) for value in found)


def _is_forgetful(case: Case, value: Mapping[str, Tensor]) -> bool:
    given = case.inputs[0]
    now: dict[str, Tensor] = dict(case.expected["before"])
    for gradients in given["gradients"]:
        now = train(now, [gradients], None, given["options"])[-1]
    return checks.differ(dict(value), now) is None


def _some_never_move(run: Judged) -> bool:
    """Parameters that no rank updates, or that somebody who does not own them sends."""
    return run.failed("parameters") and any(
        _moved(case, value) < set(case.expected["before"])
        for case, _, value in _exact(run)
        if not case.expected["absent"]
    )
