"""CL17: tokens to the ranks of their experts, and back into their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.moe_dispatch import apply
from labs.code.record import Record
from labs.spec.code import Check

HIDDEN = 32
LOCAL = 2  # experts of a rank
ROW_BYTES = HIDDEN * 8
# Beside the rows: how many there are, or which expert each wants.
SPARE_BYTES, SPARE_BYTES_PER_TOKEN = 2048, 16
FEW_CALLS, CALLS_PER_OTHER_RANK = 6, 3  # collectives, or messages to each other rank: counts, there, back
_UNEVEN = 0  # the case in which every expert has tokens of every rank


class MoeDispatch(Grader):
    lab = "CL17"
    task = "moe_dispatch"
    checks_named = ("values", "bytes", "calls")
    signs = (
        Sign("rank-dependent-skip", lambda runs: any(run.hang in ("missing call", "wrong order") for run in runs)),
        Sign("one-by-one", lambda runs: any(run.failed("calls") for run in runs)),
        Sign("gathers-everything", lambda runs: any(_gathers(run) for run in runs)),
        Sign("not-brought-back", lambda runs: any(_has_other_rows(run) for run in runs)),
        Sign("not-in-order", lambda runs: any(_is_permuted(run) for run in runs)),
        Sign("left-as-they-came", lambda runs: _any_row(runs, _is_as_it_came)),
        Sign("dropped", lambda runs: _any_row(runs, lambda _case, _rank, _place, row: not bool(row.any()))),
        Sign("another-expert", lambda runs: _any_row(runs, _is_anothers)),
        Sign("padded", lambda runs: any(run.failed("bytes") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """All experts wanted by all; those of one rank by nobody; a rank without tokens; one expert wanted by all."""
        experts = LOCAL * ranks
        lengths = [4 * experts + 3 * rank + draw.integer(0, 2) for rank in range(ranks)]
        idle, silent, only = draw.integer(0, ranks - 1), draw.integer(0, ranks - 1), draw.integer(0, experts - 1)
        others = torch.tensor([each for each in range(experts) if each // LOCAL != idle])
        free = [draw.integers(experts, length) for length in lengths]
        of_all = [torch.cat([torch.arange(experts), each[experts:]])[_order(draw, len(each))] for each in free]
        return [
            _case(draw, ranks, of_all, "tokens for every expert"),
            _case(draw, ranks, [others[each % len(others)] for each in free], f"no token for rank {idle}"),
            _case(
                draw,
                ranks,
                [each[: 0 if r == silent else None] for r, each in enumerate(free)],
                "a rank without tokens",
            ),
            _case(draw, ranks, [torch.full_like(each, only) for each in free], "one expert wanted by all"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "values",
            ranks,
            cases,
            record,
            "tokens",
            lambda case, rank: case.expected["tokens"][rank],
            "Each token must come to the expert it wants, wherever that is, and its row back to where the token stood.",
        )
        yield _check_bytes(ranks, cases, record)
        yield _check_calls(ranks, cases, record)


GRADER = MoeDispatch()


def _order(draw: Draw, length: int) -> Tensor:
    return draw.tensor(length).argsort()


def _case(draw: Draw, ranks: int, wanted: Sequence[Tensor], name: str) -> Case:
    x = [draw.tensor(len(each), HIDDEN) for each in wanted]
    weights = [draw.tensor(HIDDEN, HIDDEN) / HIDDEN**0.5 for _ in range(LOCAL * ranks)]
    # what every expert would make of every token
    every = [torch.stack([apply(weight, each) for weight in weights]) for each in x]
    inputs = [
        {"x": x[rank], "expert": wanted[rank], "weights": weights[rank * LOCAL : (rank + 1) * LOCAL]}
        for rank in range(ranks)
    ]
    tokens = [all_of[which, torch.arange(len(which))] for all_of, which in zip(every, wanted, strict=True)]
    received = [sum(int((each // LOCAL == rank).sum()) for each in wanted) for rank in range(ranks)]
    return Case(inputs, {"tokens": tokens, "others": every, "x": x, "received": received}, name=name)


def _check_bytes(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """The rows there and back, each once, and a little to agree on how many."""
    for index, case in enumerate(cases):
        for rank in range(ranks):
            own, received = len(case.expected["x"][rank]), case.expected["received"][rank]
            most = (own + received) * (ROW_BYTES + SPARE_BYTES_PER_TOKEN) + SPARE_BYTES
            sent = sum(call.payload_bytes for call in record.of(index, rank) if call.operation != "recv")
            if sent > most:
                return Check(
                    name="bytes",
                    ranks=ranks,
                    passed=False,
                    expected=f"{own} rows there and {received} back, {most:,} bytes with their counts",
                    seen=f"rank {rank}, {case.name}: {sent:,} bytes",
                    meaning="A row goes to the rank of its expert and back, and nowhere else; padding stays at home.",
                )
    return Check(name="bytes", ranks=ranks, passed=True, expected="each row there and back once", seen="so it was")


def _check_calls(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    most = FEW_CALLS + CALLS_PER_OTHER_RANK * (ranks - 1)
    expected = f"at most {most} calls on a rank, whatever the number of tokens"
    for index, case in enumerate(cases):
        for rank in range(ranks):
            calls = [call for call in record.of(index, rank) if call.operation not in ("recv", "barrier")]
            if len(calls) > most:
                seen = f"rank {rank}, {case.name}: {len(calls)} calls"
                meaning = (
                    "Every call waits for the network once. Sort the tokens, so that all for one rank lie together."
                )
                return Check(name="calls", ranks=ranks, passed=False, expected=expected, seen=seen, meaning=meaning)
    return Check(name="calls", ranks=ranks, passed=True, expected=expected, seen="no more, on every rank")


def _rows(run: Judged) -> Iterator[tuple[Case, int, Tensor]]:
    """What each rank handed over, where it is rows as wide as tokens."""
    for case, rank, value in run.results("tokens"):
        if isinstance(value, Tensor) and value.dim() == 2 and value.shape[1] == HIDDEN:
            yield case, rank, value.double()


def _gathers(run: Judged) -> bool:
    """Whether a rank was handed the tokens of all."""
    whole = [sum(map(len, case.expected["x"])) * ROW_BYTES for case in run.cases]
    return run.failed("bytes") and any(
        call.operation in ("all_gather", "all_reduce", "broadcast") and call.payload_bytes >= whole[call.case]
        for call in run.record.calls
        if call.case == _UNEVEN
    )


def _has_other_rows(run: Judged) -> bool:
    """Whether a rank has as many rows as came to it, not as it has tokens."""
    return run.failed("values") and any(
        len(rows) == case.expected["received"][rank] != len(case.expected["x"][rank]) for case, rank, rows in _rows(run)
    )


def _is_permuted(run: Judged) -> bool:
    """Whether the rows of every rank are right but for their places."""
    found = [(case.expected["tokens"][rank], rows) for case, rank, rows in _rows(run)]
    return (
        run.failed("values")
        and len(found) == run.ranks * len(run.cases)
        and all(checks.differ(_sorted(rows), _sorted(wanted)) is None for wanted, rows in found)
    )


def _sorted(rows: Tensor) -> Tensor:
    return rows[rows[:, 0].argsort()] if len(rows) else rows


def _any_row(runs: Sequence[Judged], shows: Callable[[Case, int, int, Tensor], bool]) -> bool:
    """Whether a wrong row shows it: of a case, a rank, its place there, and what came out."""
    return any(
        checks.differ(row, case.expected["tokens"][rank][place]) is not None and shows(case, rank, place, row)
        for run in runs
        if run.failed("values")
        for case, rank, rows in _rows(run)
        if len(rows) == len(case.expected["x"][rank])
        for place, row in enumerate(rows)
    )


def _is_as_it_came(case: Case, rank: int, place: int, row: Tensor) -> bool:
    return checks.differ(row, case.expected["x"][rank][place]) is None


def _is_anothers(case: Case, rank: int, place: int, row: Tensor) -> bool:
    """Whether it is what another expert makes of the token."""
    return any(checks.differ(row, every[place]) is None for every in case.expected["others"][rank])
