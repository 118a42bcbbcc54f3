"""CL11: clip by the norm of the whole gradient, of which each rank holds a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

MOST_CALLS, MOST_BYTES = 6, 256
_SHARDED = ("column", "row")
_ADDED = ("added", "added-apart", "added-shards")
_MESHES = {2: ((1, 2), (2, 1)), 3: ((1, 3), (3, 1)), 4: ((2, 2), (1, 4))}  # data × tensor ranks


class ClipGradNorm(Grader):
    lab = "CL11"
    task = "clip_grad_norm"
    checks_named = ("norm", "gradients", "bytes")
    signs = (
        Sign("rank-dependent-skip", lambda runs: any(run.hang in ("missing call", "wrong order") for run in runs)),
        Sign("local-norm", lambda runs: any(_says(run, "local") or _clipped_by(run, "local") for run in runs)),
        Sign("replicas-counted", lambda runs: _all_say(runs, "replicas") or _all_say(runs, "everything")),
        Sign("data-counted", lambda runs: _all_say(runs, "data") or _all_say(runs, "data-shards")),
        Sign("wrong-axis", lambda runs: _all_say(runs, "axis")),
        Sign("norms-added", lambda runs: any(_all_say(runs, each) for each in _ADDED)),
        Sign("left-out", lambda runs: _all_say(runs, "sharded") or _all_say(runs, "replicated")),
        Sign("not-rooted", lambda runs: _all_say(runs, "square")),
        Sign("not-clipped", lambda runs: any(_left_alone(run) for run in runs)),
        Sign("several-factors", lambda runs: any(_turned(run) for run in runs)),
        Sign("lengthened", lambda runs: any(_longer(run) for run in runs)),
        Sign("another-factor", lambda runs: any(run.failed("gradients") for run in runs)),
        Sign("sends-too-much", lambda runs: any(run.failed("bytes") for run in runs)),
        Sign("another-norm", lambda runs: any(run.failed("norm") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Two meshes, a limit that clips and one that does not, and a rank that has no gradient at all."""
        first, second = _MESHES[ranks]
        return [
            _case(draw, first, 0.3),
            _case(draw, second, 0.3),
            _case(draw, first, 3.0),
            _case(draw, first, 0.5, bare=draw.integer(0, first[1] - 1)),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "norm",
            ranks,
            cases,
            record,
            "norm",
            lambda case, _: case.expected["norm"],
            "The norm of the whole gradient, before clipping: squares of shards are added over the tensor ranks, once; "
            "what all ranks hold alike counts once.",
            lambda _, value: _single(value),
        )
        yield checks.values(
            "gradients",
            ranks,
            cases,
            record,
            "gradients",
            lambda case, rank: case.expected["clipped"][rank],
            "All gradients of all ranks are multiplied by one factor, the limit over the norm, where the norm is above "
            "the limit, and left alone where it is not.",
            lambda _, value: _singles(value),
        )
        yield _check_bytes(ranks, cases, record)


GRADER = ClipGradNorm()


def _case(draw: Draw, mesh: tuple[int, int], share: float, bare: int | None = None) -> Case:
    """`share` is the limit's, of the norm. On tensor rank `bare` nothing has a gradient; then all is sharded."""
    data, tensor = mesh
    shapes = {
        "column": (4, 3),
        "norm": (4,),
        "row": (draw.integer(2, 5), 3),
        "bias": (draw.integer(2, 6),),
        "frozen": (3,),
    }
    names = [name for name in shapes if name != "frozen" and (bare is None or name in _SHARDED)]
    whole = {name: draw.tensor(*shapes[name]) for name in names}
    shard = [{name: draw.tensor(*shapes[name]) for name in names if name in _SHARDED} for _ in range(tensor)]
    own = [{} if place == bare else {**whole, **shard[place]} for place in range(tensor)]
    sharded = [sum(float(row[name].pow(2).sum()) for name in _SHARDED) if row else 0.0 for row in own]
    replicated = sum(float(whole[name].pow(2).sum()) for name in names if name not in _SHARDED)
    norm = (sum(sharded) + replicated) ** 0.5
    limit = share * norm
    gradients = [own[rank % tensor] for rank in range(data * tensor)]
    parameters = {name: draw.tensor(*shape) for name, shape in shapes.items()}
    inputs: list[dict[str, Any]] = [
        {"mesh": list(mesh), "parameters": parameters, "sharded": list(_SHARDED), "gradients": each, "max_norm": limit}
        for each in gradients
    ]
    local = [(part + replicated) ** 0.5 for part in sharded]
    said = {
        "local": [local[rank % tensor] for rank in range(data * tensor)],
        "replicas": (sum(sharded) + tensor * replicated) ** 0.5,
        "everything": (data * (sum(sharded) + tensor * replicated)) ** 0.5,
        "data": (data * norm**2) ** 0.5,
        "data-shards": (data * sum(sharded) + replicated) ** 0.5,
        "axis": [(data * local[rank % tensor] ** 2) ** 0.5 for rank in range(data * tensor)],
        "added": sum(local),
        "added-apart": replicated**0.5 + sum(part**0.5 for part in sharded),
        "added-shards": (sum(part**0.5 for part in sharded) ** 2 + replicated) ** 0.5,
        "sharded": sum(sharded) ** 0.5,
        "replicated": replicated**0.5,
        "square": norm**2,
    }
    expected = {
        "norm": _single(norm),
        "clipped": [_singles(_times(each, min(1.0, share))) for each in gradients],
        "own": gradients,
        "limit": limit,
        "said": said,
        "clips": share < 1,
    }
    what = "above" if share < 1 else "below"
    rest = ", a rank without any gradient" if bare is not None else ""
    return Case(inputs, expected, name=f"{data} × {tensor} ranks, the norm {what} the limit{rest}")


def _times(gradients: Mapping[str, Tensor], factor: float) -> dict[str, Tensor]:
    return {name: value * factor for name, value in gradients.items()}


def _single(value: Any) -> Any:
    """In fp32: nobody is asked to add squares in fp64."""
    if isinstance(value, Tensor) and value.numel() == 1:
        return value.reshape(()).float()
    return torch.tensor(value, dtype=torch.float32) if isinstance(value, int | float) else value


def _singles(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: each.float() if isinstance(each, Tensor) else each for name, each in value.items()}


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    expected = f"at most {MOST_CALLS} calls of {MOST_BYTES} bytes together"
    for index, case in enumerate(cases):
        for rank in range(ranks):
            calls = [call for call in record.of(index, rank) if call.operation not in ("barrier", "recv")]
            sent = sum(call.payload_bytes for call in calls)
            if len(calls) > MOST_CALLS or sent > MOST_BYTES:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=f"rank {rank}, {case.name}: {len(calls)} calls of {sent:,} bytes",
                    meaning="A norm is a sum of squares: each rank adds its own, and one number is summed over ranks.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=expected, seen="no more, on every rank")


def _says(run: Judged, alternative: str) -> bool:
    """Whether what was returned is that alternative, in every case."""
    return run.failed("norm") and _matches(run, alternative)


def _matches(run: Judged, alternative: str) -> bool:
    return all(
        checks.differ(_single(value), _single(_of(case.expected["said"][alternative], rank))) is None
        for case, rank, value in run.results("norm")
    )


def _all_say(runs: Sequence[Judged], alternative: str) -> bool:
    """In every run: on some meshes an alternative is what another one is, or right."""
    ended = [run for run in runs if run.record.finished]
    return any(run.failed("norm") for run in ended) and all(_matches(run, alternative) for run in ended)


def _of(alternative: Any, rank: int) -> float:
    found: float = alternative[rank] if isinstance(alternative, list) else alternative
    return found


def _clipped_by(run: Judged, alternative: str) -> bool:
    """Whether the gradients were clipped as if that were the norm."""
    return run.failed("gradients") and all(
        checks.differ(_singles(value), _singles(_times(case.expected["own"][rank], _factor(case, rank, alternative))))
        is None
        for case, rank, value in run.results("gradients")
    )


def _factor(case: Case, rank: int, alternative: str) -> float:
    norm = _of(case.expected["said"][alternative], rank)
    return min(1.0, case.expected["limit"] / norm) if norm else 1.0


def _scales(run: Judged) -> Iterator[tuple[Case, dict[str, float], bool]]:
    """By case and rank: how much longer each gradient is than it was, and whether each still points where it did."""
    for case, rank, value in run.results("gradients"):
        own = case.expected["own"][rank]
        if run.failed("gradients") and isinstance(value, Mapping) and own and set(own) <= set(value):
            scales = {name: float((value[name] * each).sum() / each.pow(2).sum()) for name, each in own.items()}
            parallel = all(torch.allclose(value[name], own[name] * scales[name], rtol=1e-4, atol=1e-6) for name in own)
            yield case, scales, parallel


def _left_alone(run: Judged) -> bool:
    """Nothing was done to any gradient."""
    found = [(scales, parallel) for case, scales, parallel in _scales(run) if case.expected["clips"]]
    return bool(found) and all(
        parallel and all(abs(scale - 1) < 1e-5 for scale in scales.values()) for scales, parallel in found
    )


def _turned(run: Judged) -> bool:
    return any(
        not parallel or max(scales.values()) - min(scales.values()) > 1e-4 * abs(max(scales.values()))
        for _, scales, parallel in _scales(run)
    )


def _longer(run: Judged) -> bool:
    return any(max(scales.values()) > 1 + 1e-4 for case, scales, _ in _scales(run) if not case.expected["clips"])
