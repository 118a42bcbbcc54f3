"""CL01: all-reduce around a ring of blocking messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from labs.code import checks
from labs.code.checks import Traffic
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check


class RingAllReduce(Grader):
    lab = "CL01"
    task = "ring_all_reduce"
    checks_named = ("sum", "messages")
    signs = (
        Sign("everyone-sends-first", lambda runs: runs[0].hang == "everyone sends first"),
        Sign("library-call", lambda runs: any(not checks.only_messages(run.record) for run in runs)),
        Sign("chunk-index", lambda runs: _right_on_two(runs) and any(_wrong_chunks(run) for run in runs[1:])),
        Sign("whole-tensor", lambda runs: any(_sends_whole_tensors(run) for run in runs)),
        Sign("mean-for-sum", lambda runs: any(_is_mean(run) for run in runs)),
        Sign("half-way", lambda runs: any(_only_half_the_steps(run) for run in runs)),
        Sign("lost-tail", lambda runs: any(_even_right_uneven_wrong(run) for run in runs)),
        Sign("what-arrives", lambda runs: all(run.failed("sum") and not run.failed("messages") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """A length that the ranks divide, two that they do not, and one shorter than there are ranks."""
        per_rank = draw.integer(3, 9)
        lengths = [ranks * per_rank, ranks * per_rank + 1, ranks * per_rank + ranks - 1, max(1, ranks - 1)]
        return [_case([draw.tensor(length) for _ in range(ranks)]) for length in dict.fromkeys(lengths)]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "sum",
            ranks,
            cases,
            record,
            "sum",
            lambda case, _: case.expected,
            "Follow one chunk around the ring on paper: after n−1 steps each rank holds one finished chunk, and the "
            "second half passes finished chunks on, never adds.",
        )
        yield _check_messages(ranks, cases, record)


GRADER = RingAllReduce()


def _case(own: list[Tensor]) -> Case:
    return Case([{"x": x} for x in own], torch.stack(own).sum(0), name=f"{len(own[0])} values over {len(own)} ranks")


def enough(case: Case, ranks: int) -> Mapping[str, Traffic]:
    """The most that a rank need send, whichever chunks its own order leaves out: 2(n−1) messages of the longest chunk.
    Empty chunks need not be sent."""
    length = len(case.expected)
    most = -(-length // ranks)
    return {"send": Traffic(2 * (ranks - 1), 2 * (ranks - 1) * most * case.expected.element_size())}


def _check_messages(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """All ranks together send every chunk 2(n−1) times, whatever the order; none sends more than 2(n−1) messages."""
    shown = ""
    for index, case in enumerate(cases):
        size = case.expected.numel() * case.expected.element_size()
        wanted, most = 2 * (ranks - 1) * size, 2 * (ranks - 1)
        found = [checks.sums(record.of(index, rank)) for rank in range(ranks)]
        is_even = case.expected.numel() % ranks == 0
        shown = shown or f"{most} messages a rank and 2S(n−1)/n bytes: {wanted // ranks:,} for S = {size:,}"
        alike = all(messages <= most for messages, _ in found) and sum(sent for _, sent in found) == wanted
        alike &= not is_even or all(each == (most, wanted // ranks) for each in found)
        if not alike or not checks.only_messages(record):
            rank, (messages, sent) = max(enumerate(found), key=lambda pair: pair[1][1])
            expected = f"{most} messages a rank, {wanted:,} bytes from all together (2S(n−1), S = {size:,})"
            seen = f"{case.name}: rank {rank} sends {messages} messages of {sent:,} bytes in all, all ranks together "
            seen += f"{sum(each for _, each in found):,} bytes"
            return Check(
                name="messages",
                ranks=ranks,
                passed=False,
                expected=expected,
                seen=seen,
                meaning=_meaning(ranks, size, sent, record),
            )
    return Check(name="messages", ranks=ranks, passed=True, expected=shown, seen="exactly that, on every rank")


def _meaning(ranks: int, size: int, sent: int, record: Record) -> str:
    if not checks.only_messages(record):
        return "A collective of torch.distributed was called: it is what you are to write."
    if sent >= (ranks - 1) * size:
        return "Whole tensors travel: cut the tensor into n chunks, and send one chunk a step."
    if sent < 2 * (ranks - 1) * size // ranks:
        return "A half is missing: reduce-scatter takes n−1 steps, and all-gather as many again."
    return "Each rank sends one chunk a step, for 2(n−1) steps; look for a step too many, or a chunk too long."


def _right_on_two(runs: Sequence[Judged]) -> bool:
    first = runs[0]
    return first.ranks == 2 and first.record.finished and not first.failed("sum") and not first.failed("messages")


def _wrong_chunks(run: Judged) -> bool:
    """Chunks arrive where others belong: wrong sums, or chunks of uneven lengths that meet."""
    return run.failed("sum") or run.hang == "wrong shape"


def _sends_whole_tensors(run: Judged) -> bool:
    for case, call in run.calls("send"):
        if case.expected.numel() >= run.ranks and call.sent_bytes >= case.expected.numel() * 8:
            return True
    return False


def _is_mean(run: Judged) -> bool:
    found = (checks.differ(value, case.expected / run.ranks) for case, _, value in run.results("sum"))
    return run.failed("sum") and all(each is None for each in found)


def _only_half_the_steps(run: Judged) -> bool:
    found = [checks.sums(run.record.of(0, rank))[0] for rank in range(run.ranks)]
    return run.failed("sum") and all(each == run.ranks - 1 for each in found)


def _even_right_uneven_wrong(run: Judged) -> bool:
    wrong = {
        index
        for index, case in enumerate(run.cases)
        for rank in range(run.ranks)
        if checks.differ(run.record.results.get((index, rank, "sum")), case.expected) is not None
    }
    return run.failed("sum") and bool(wrong) and 0 not in wrong
