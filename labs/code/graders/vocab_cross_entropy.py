"""CL13: cross-entropy where each rank has the logits of its own part of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

PART = 48  # words of the vocabulary on a rank: far more than the numbers a token needs
_OUTSIDE = ("out of bounds", "out of range", "Class values must be")  # torch's words for an index that is not there
# What comes out of a mistake where the maximum was not subtracted, and where it was.
_FOREIGN = (
    *("clamped", "looped", "first"),
    *("clamped below the maximum", "looped below the maximum", "first below the maximum"),
)
_OWN_PART = ("own part", "all own", "all own below its maximum")
_OWN_TARGET = ("own target", "own target below the maximum")
_UNSHIFTED = ("unshifted", "unshifted below the maximum")
_LARGE = 1  # the case in which exp() overflows


class VocabCrossEntropy(Grader):
    lab = "CL13"
    task = "vocab_cross_entropy"
    checks_named = ("loss", "gradient", "bytes")
    signs = (
        Sign("target-not-shifted", lambda runs: any(_is(run, "loss", *_UNSHIFTED) for run in runs)),
        Sign("foreign-target", lambda runs: any(_reads_foreign(run) for run in runs)),
        Sign("logits-gathered", lambda runs: any(run.failed("bytes") for run in runs)),
        Sign("not-per-token", lambda runs: any(_is_one_number(run) for run in runs)),
        Sign("overflow", lambda runs: any(_overflows(run) for run in runs)),
        Sign("local-max", lambda runs: any(_is(run, "loss", "local max", "local max of own") for run in runs)),
        Sign("own-part-alone", lambda runs: any(_is(run, "loss", *_OWN_PART) for run in runs)),
        Sign("target-not-shared", lambda runs: any(_is(run, "loss", *_OWN_TARGET) for run in runs)),
        Sign("graph-lost", lambda runs: any(_has_no_gradient(run) for run in runs)),
        Sign("reduced-both-ways", lambda runs: any(_is(run, "gradient", "n times") for run in runs)),
        Sign("incoming-ignored", lambda runs: any(_is(run, "gradient", "as if one") for run in runs)),
        Sign("target-not-subtracted", lambda runs: any(_is(run, "gradient", "softmax") for run in runs)),
        Sign("local-softmax", lambda runs: any(_is(run, "gradient", "own softmax") for run in runs)),
        Sign("another-target-logit", lambda runs: any(_loss_alone_is_wrong(run) for run in runs)),
        Sign("another-sum", lambda runs: any(run.failed("loss") and run.failed("gradient") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Targets on all ranks; logits whose exp() overflows; and targets that all lie on one rank."""
        return [
            _case(ranks, draw, "targets on all ranks", range(ranks)),
            _case(ranks, draw, "large logits", range(ranks), scale=500.0),
            _case(ranks, draw, "all targets on one rank", [draw.integer(0, ranks - 1)]),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "loss",
            ranks,
            cases,
            record,
            "loss",
            lambda case, _: case.expected["loss"],
            "The loss of a token is log Σ exp(l) − l of its target, the sum over the whole vocabulary. Subtract "
            "the greatest logit of all ranks first; the target's logit lies on one rank.",
        )
        yield checks.values(
            "gradient",
            ranks,
            cases,
            record,
            "gradient",
            lambda case, rank: case.expected["gradient"][rank],
            "The gradient of a rank's logits is (softmax − 1 where its own word is the target), times the gradient "
            "that comes in. The softmax's sum is that of all ranks.",
        )
        yield _check_bytes(ranks, cases, record)


GRADER = VocabCrossEntropy()


def _case(ranks: int, draw: Draw, name: str, owners: Sequence[int] | range, scale: float = 1.0) -> Case:
    tokens = 3 * ranks + draw.integer(0, 3)
    words = [0] * len(owners) + [PART - 1] * len(owners)  # the first and the last of each part, then any
    words += [draw.integer(0, PART - 1) for _ in range(tokens - len(words))]
    target = torch.tensor([owners[i % len(owners)] * PART + word for i, word in enumerate(words)])
    logits, factors = draw.tensor(tokens, ranks * PART) * scale, draw.tensor(tokens)
    parts = [part.contiguous() for part in logits.chunk(ranks, 1)]
    inputs = [{"logits": part, "target": target, "factors": factors} for part in parts]
    return Case(inputs, _expected(logits, target, factors, parts), name=name)


def _expected(logits: Tensor, target: Tensor, factors: Tensor, parts: Sequence[Tensor]) -> dict[str, Any]:
    ranks, total = len(parts), logits.logsumexp(1)
    picked = logits.gather(1, target[:, None]).squeeze(1)
    hit = one_hot(target, logits.shape[1]).double()
    whole = (logits.softmax(1) - hit) * factors[:, None]
    index = [target - rank * PART for rank in range(ranks)]
    mine = [(each >= 0) & (each < PART) for each in index]
    near = [
        part.gather(1, each.clamp(0, PART - 1)[:, None]).squeeze(1) for part, each in zip(parts, index, strict=True)
    ]
    looped = [part.gather(1, (target % PART)[:, None]).squeeze(1) for part in parts]
    first = [torch.where(is_mine, each, part[:, 0]) for part, each, is_mine in zip(parts, near, mine, strict=True)]
    early = target < PART  # targets that a rank takes for its own if it counts from its own first word
    unshifted = torch.stack([part.gather(1, target.clamp(max=PART - 1)[:, None]).squeeze(1) for part in parts]).sum(0)
    own = [each * is_mine for each, is_mine in zip(near, mine, strict=True)]
    tops, top = [part.amax(1) for part in parts], logits.amax(1)
    shifted = (
        torch.stack([(part - own_top[:, None]).exp().sum(1) for part, own_top in zip(parts, tops, strict=True)])
        .sum(0)
        .log()
    )
    owner_top = torch.stack([own_top * is_mine for own_top, is_mine in zip(tops, mine, strict=True)]).sum(0)
    by_near = [_hit(each.clamp(0, PART - 1)) for each in index]
    return {
        "loss": cross_entropy(logits, target, reduction="none"),
        "gradient": list(whole.chunk(ranks, 1)),
        "mine": mine,
        # what comes out of some mistakes, rank by rank
        "clamped": [total - torch.stack(near).sum(0)] * ranks,
        "looped": [total - torch.stack(looped).sum(0)] * ranks,
        "first": [total - torch.stack(first).sum(0)] * ranks,
        "first below the maximum": [total - torch.stack(first).sum(0) + (ranks - 1) * top] * ranks,
        "clamped below the maximum": [total - torch.stack(near).sum(0) + (ranks - 1) * top] * ranks,
        "looped below the maximum": [total - torch.stack(looped).sum(0) + (ranks - 1) * top] * ranks,
        "unshifted": [total - unshifted * early] * ranks,
        "unshifted below the maximum": [total - top - (unshifted - ranks * top) * early] * ranks,
        "mean": [(total - picked).mean().expand(len(target))] * ranks,
        "local max": [shifted - (picked - owner_top)] * ranks,
        "local max of own": [shifted + own_top - picked for own_top in tops],
        "own part": [part.logsumexp(1) - picked for part in parts],
        "all own": [part.logsumexp(1) - each for part, each in zip(parts, own, strict=True)],
        "all own below its maximum": [
            part.logsumexp(1) - torch.where(is_mine, picked, own_top)
            for part, is_mine, own_top in zip(parts, mine, tops, strict=True)
        ],
        "own target": [total - each for each in own],
        "own target below the maximum": [total - torch.where(is_mine, picked, top) for is_mine in mine],
        "n times": [ranks * each for each in whole.chunk(ranks, 1)],
        "as if one": [each / factors[:, None] for each in whole.chunk(ranks, 1)],
        "softmax": list((logits.softmax(1) * factors[:, None]).chunk(ranks, 1)),
        "own softmax": [
            (part.softmax(1) - each) * factors[:, None] for part, each in zip(parts, hit.chunk(ranks, 1), strict=True)
        ],
        "near subtracted": [
            (each - extra) * factors[:, None]
            for each, extra in zip(logits.softmax(1).chunk(ranks, 1), by_near, strict=True)
        ],
        "looped subtracted": [
            (each - _hit(target % PART)) * factors[:, None] for each in logits.softmax(1).chunk(ranks, 1)
        ],
    }


def _hit(index: Tensor) -> Tensor:
    return one_hot(index, PART).double()


def most_bytes(case: Case, ranks: int) -> int:
    """Four numbers a token from every rank, and four more to be reduced."""
    return 8 * len(case.inputs[0]["target"]) * (4 * ranks + 4)


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    shown = ""
    for index, case in enumerate(cases):
        most, tokens = most_bytes(case, ranks), len(case.inputs[0]["target"])
        expected = f"at most {most:,} bytes for {tokens} tokens: a few numbers a token"
        shown = shown or expected
        for rank in range(ranks):
            seen = checks.traffic(record, index, rank)
            if sum(each.payload_bytes for each in seen.values()) > most:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=f"rank {rank}, {case.name}: {checks.show_traffic(seen)}",
                    meaning="Of each token a rank need tell its greatest logit, its sum of exponentials, and the "
                    "target's logit if it has it. The logits themselves stay where they are.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected=shown, seen="no more, on every rank")


def _is(run: Judged, result: str, *alternatives: str) -> bool:
    """Whether what came out in the first case is one of these, on every rank."""
    found = [(rank, value) for case, rank, value in run.results(result) if case is run.cases[0]]
    expected = run.cases[0].expected
    return run.failed(result) and any(
        all(isinstance(value, Tensor) and checks.differ(value, expected[name][rank]) is None for rank, value in found)
        for name in alternatives
    )


def _reads_foreign(run: Judged) -> bool:
    """A logit at a place that the rank does not have, whether that fails or not."""
    errors = run.record.errors.values()
    if any(each.type == "IndexError" or any(word in each.message for word in _OUTSIDE) for each in errors):
        return True
    return _is(run, "loss", *_FOREIGN) or _is(run, "gradient", "near subtracted", "looped subtracted")


def _is_one_number(run: Judged) -> bool:
    return _is(run, "loss", "mean") or (
        run.failed("loss")
        and all(not isinstance(value, Tensor) or value.dim() == 0 for _, _, value in run.results("loss"))
    )


def _overflows(run: Judged) -> bool:
    """Right, but where exp() overflows."""
    wrong = {
        case.name
        for name in ("loss", "gradient")
        for case, rank, value in run.results(name)
        if checks.differ(value, case.expected[name] if name == "loss" else case.expected[name][rank]) is not None
    }
    return run.record.finished and wrong == {run.cases[_LARGE].name}


def _loss_alone_is_wrong(run: Judged) -> bool:
    return run.failed("loss") and not run.failed("gradient")


def _has_no_gradient(run: Judged) -> bool:
    return run.failed("gradient") and all(value is None for _, _, value in run.results("gradient"))
