"""CL07: which gradients are reduced together, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.make_buckets import UNKNOWN
from labs.code.record import Record
from labs.spec.code import Check

Buckets = list[list[int]]  # the places of parameters, bucket by bucket
Fault = str | None
_HANGS = ("wrong shape", "wrong dtype", "wrong order", "missing call")


class MakeBuckets(Grader):
    lab = "CL07"
    task = "make_buckets"
    checks_named = ("complete", "same", "dtype", "cap", "order", "full", "silent")
    signs = (
        Sign("asks-others", lambda runs: any(_own_calls(run.record) for run in runs)),
        Sign("differs-by-rank", lambda runs: any(run.hang in _HANGS or run.failed("same") for run in runs)),
        Sign("frozen", lambda runs: _any(runs, lambda case, buckets: bool(_frozen(case, buckets)))),
        Sign("tied-twice", lambda runs: _any(runs, lambda _case, buckets: bool(_doubled(buckets)))),
        Sign("lost", lambda runs: _any(runs, lambda case, buckets: bool(_missing(case, buckets)))),
        Sign("empty-bucket", lambda runs: _any(runs, lambda _case, buckets: not all(buckets))),
        Sign("mixed-dtypes", lambda runs: any(run.failed("dtype") for run in runs)),
        Sign("values-for-bytes", lambda runs: _all(runs, lambda case, buckets: _alike(case, buckets, _by_values))),
        Sign("over-the-cap", lambda runs: any(run.failed("cap") for run in runs)),
        Sign("tied-early", lambda runs: _wrong_only(runs, "order", lambda case: case.expected["tied"])),
        Sign("order-of-forward", lambda runs: any(run.failed("order") for run in runs)),
        Sign("half-empty", lambda runs: any(run.failed("full") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Some frozen; two dtypes; two that fill a bucket; one too large; tied ones; gradients that some ranks lack;
        and nothing to train."""
        sizes = [(draw.integer(1, 4), draw.integer(1, 5)) for _ in range(14)]
        mixed = [_described(shape, bytes_each=draw.choice([2, 4])) for shape in sizes]
        mixed[4:6] = [_described((3, 4), 2), _described((3, 4), 4)]
        frozen = [_described(shape, trains=place not in (2, 7, 13)) for place, shape in enumerate(sizes)]
        large = [_described(shape) for shape in ((2, 3), (1, 2), (9, 9), (2, 2), (4, 1))]
        plain = [_described(shape) for shape in sizes]
        tied = [*range(6), 0]
        return [
            _case(ranks, frozen, 72, "some are frozen"),
            _case(ranks, mixed, 64, "two dtypes"),
            _case(ranks, [_described((2, 4))] * 6, 64, "two fill a bucket"),
            _case(ranks, large, 48, "one is larger than a bucket"),
            _case(ranks, [_described((3, 2))] * 6, 60, "the first and the last are tied", order=tied),
            _case(ranks, plain, 80, "some ranks lack some gradients", lacking={0: {3, 12}, ranks - 1: {0, 5}}),
            _case(ranks, [_described((2, 2), trains=False)] * 3, 64, "nothing to train"),
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        def first(name: str, fault: Callable[[Case, Buckets], Fault], expected: str, meaning: str) -> Check:
            return _first(name, ranks, cases, record, fault, expected, meaning)

        yield first(
            "complete",
            _incomplete,
            "every parameter that trains in one bucket, once",
            "A tied parameter is one tensor with one gradient; a frozen one has none.",
        )
        yield _check_same(ranks, cases, record)
        yield first(
            "dtype",
            lambda case, buckets: next(
                (f"bucket {i} holds several dtypes" for i, each in enumerate(buckets) if len(_dtypes(case, each)) > 1),
                None,
            ),
            "one dtype in a bucket",
            "A bucket is reduced as one flat tensor, which has one dtype.",
        )
        yield first(
            "cap",
            _over,
            "no bucket above the cap, but of a parameter that is so alone",
            "Look at what a bucket would hold before you add to it; sizes are bytes.",
        )
        yield first(
            "order",
            _disordered,
            "the gradients that backward makes first come first",
            "Backward makes the last layer's gradients first. A bucket that waits for an early layer cannot be reduced "
            "while backward computes; a tied gradient is whole when backward has come to its first place.",
        )
        yield first(
            "full",
            _not_full,
            "no bucket begun while there is room in the one before",
            "Each bucket is a collective, and each collective has its latency.",
        )
        talked = _own_calls(record)
        yield Check(
            name="silent",
            ranks=ranks,
            passed=not talked,
            expected="no call at all",
            seen=f"{', '.join(talked)} was called" if talked else "none",
            meaning="" if not talked else "All ranks hold the same parameters in the same order.",
        )


GRADER = MakeBuckets()


def _described(shape: tuple[int, ...], bytes_each: int = 4, trains: bool = True) -> dict[str, Any]:
    return {"shape": list(shape), "bytes_each": bytes_each, "trains": trains, "has_gradient": True}


def _case(
    ranks: int,
    parameters: Sequence[Mapping[str, Any]],
    cap_bytes: int,
    name: str,
    order: Sequence[int] | None = None,
    lacking: Mapping[int, set[int]] | None = None,
) -> Case:
    """`order`: the places of parameters as listed, where one is listed twice. `lacking`: gradients a rank has not."""
    listed = list(order) if order is not None else list(range(len(parameters)))
    inputs = [
        {
            "parameters": [
                {**each, "has_gradient": place not in (lacking or {}).get(rank, ())}
                for place, each in enumerate(parameters)
            ],
            "order": listed,
            "cap_bytes": cap_bytes,
        }
        for rank in range(ranks)
    ]
    return Case(inputs, {"parameters": parameters, "cap": cap_bytes, "tied": order is not None}, name=name)


def _returned(record: Record, index: int, rank: int) -> Buckets:
    return [list(bucket) for bucket in record.results.get((index, rank, "buckets")) or []]


def _own_calls(record: Record) -> list[str]:
    """What the learner's own lines called; the task reduces after them."""
    return sorted({call.operation for call in record.calls if call.line is not None})


def _first(
    name: str,
    ranks: int,
    cases: Sequence[Case],
    record: Record,
    fault: Callable[[Case, Buckets], Fault],
    expected: str,
    meaning: str,
) -> Check:
    """A check that fails at the first case and rank of which something is said."""
    for index, case in enumerate(cases):
        for rank in range(ranks):
            says = fault(case, _returned(record, index, rank))
            if says is not None:
                seen = f"rank {rank}, {case.name}: {says}"
                return Check(name=name, ranks=ranks, passed=False, expected=expected, seen=seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=True, expected=expected, seen="so it was, on every rank")


def _check_same(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    expected = "the same buckets in the same order on every rank"
    for index, case in enumerate(cases):
        own = [_returned(record, index, rank) for rank in range(ranks)]
        rank = next((rank for rank in range(ranks) if own[rank] != own[0]), None)
        if rank is not None:
            return Check(
                name="same",
                ranks=ranks,
                passed=False,
                expected=expected,
                seen=f"{case.name}: rank {rank} has other buckets than rank 0",
                meaning="The n-th collective of one rank meets the n-th of all others, whatever each means by it.",
            )
    return Check(name="same", ranks=ranks, passed=True, expected=expected, seen="so it was")


def _bytes(case: Case, place: int) -> int:
    described = case.expected["parameters"][place]
    return int(prod(described["shape"]) * described["bytes_each"])


def _size(case: Case, bucket: Sequence[int]) -> int:
    return sum(_bytes(case, place) for place in bucket if place != UNKNOWN)


def _dtypes(case: Case, bucket: Sequence[int]) -> set[int]:
    return {case.expected["parameters"][place]["bytes_each"] for place in bucket if place != UNKNOWN}


def _flat(buckets: Buckets) -> list[int]:
    return [place for bucket in buckets for place in bucket]


def _frozen(case: Case, buckets: Buckets) -> list[int]:
    return [place for place in _flat(buckets) if place != UNKNOWN and not case.expected["parameters"][place]["trains"]]


def _doubled(buckets: Buckets) -> list[int]:
    every = _flat(buckets)
    return [place for place in sorted(set(every)) if place != UNKNOWN and every.count(place) > 1]


def _missing(case: Case, buckets: Buckets) -> list[int]:
    wanted = [place for place, each in enumerate(case.expected["parameters"]) if each["trains"]]
    every = _flat(buckets)
    return [place for place in wanted if place not in every]


def _incomplete(case: Case, buckets: Buckets) -> Fault:
    every = _flat(buckets)
    if UNKNOWN in every:
        return "a bucket holds something that is none of the parameters"
    if _frozen(case, buckets):
        return f"parameter {_frozen(case, buckets)[0]} is frozen"
    if _doubled(buckets):
        return f"parameter {_doubled(buckets)[0]} is in twice"
    missing = _missing(case, buckets)
    if missing:
        return f"parameter {missing[0]} is in no bucket"
    return "a bucket is empty" if any(not bucket for bucket in buckets) else None


def _over(case: Case, buckets: Buckets) -> Fault:
    cap = case.expected["cap"]
    for number, bucket in enumerate(buckets):
        if len(bucket) > 1 and _size(case, bucket) > cap:
            return f"bucket {number} has {_size(case, bucket)} bytes, the cap is {cap}"
    return None


def _by_dtype(case: Case, buckets: Buckets) -> Iterator[Buckets]:
    """Buckets of one dtype, in their order; how those of different dtypes follow each other is nobody's business."""
    for bytes_each in (4, 2):
        yield [bucket for bucket in buckets if _dtypes(case, bucket) == {bytes_each}]


def _disordered(case: Case, buckets: Buckets) -> Fault:
    for own in _by_dtype(case, buckets):
        every = _flat([sorted(bucket, reverse=True) for bucket in own])  # within a bucket all come together
        for before, after in pairwise(every):
            if before < after:
                return f"parameter {before} comes before parameter {after}"
    return None


def _not_full(case: Case, buckets: Buckets) -> Fault:
    for own in _by_dtype(case, buckets):
        for before, after in pairwise(own):
            largest_first = max(after)  # what backward makes first of it
            room = case.expected["cap"] - _size(case, before)
            if _bytes(case, largest_first) <= room:
                return f"parameter {largest_first} had room in the bucket before: {room} bytes were left"
    return None


def _by_values(case: Case, place: int) -> int:
    return _bytes(case, place) // int(case.expected["parameters"][place]["bytes_each"])


def _alike(case: Case, buckets: Buckets, size: Callable[[Case, int], int]) -> bool:
    """Whether these are the buckets that come of this measure of size."""
    wanted: list[set[int]] = []
    for bytes_each in (4, 2):
        held = 0
        own: list[set[int]] = []
        for place in reversed(range(len(case.expected["parameters"]))):
            described = case.expected["parameters"][place]
            if not described["trains"] or described["bytes_each"] != bytes_each:
                continue
            if own and held + size(case, place) <= case.expected["cap"]:
                own[-1].add(place)
                held += size(case, place)
            else:
                own.append({place})
                held = size(case, place)
        wanted += own
    return sorted(map(sorted, buckets)) == sorted(map(sorted, wanted))


def _cases(runs: Sequence[Judged]) -> Iterator[tuple[Case, Buckets]]:
    for run in runs:
        for index, case in enumerate(run.cases) if run.record.finished else ():
            for rank in range(run.ranks):
                yield case, _returned(run.record, index, rank)


def _any(runs: Sequence[Judged], shows: Callable[[Case, Buckets], bool]) -> bool:
    return any(shows(case, buckets) for case, buckets in _cases(runs))


def _all(runs: Sequence[Judged], shows: Callable[[Case, Buckets], bool]) -> bool:
    """In every case, and not because nothing is wrong."""
    is_wrong = any(run.failed("cap") or run.failed("full") for run in runs)
    return is_wrong and all(shows(case, buckets) for case, buckets in _cases(runs))


def _wrong_only(runs: Sequence[Judged], name: str, kind: Callable[[Case], bool]) -> bool:
    wrong = [kind(case) for case, buckets in _cases(runs) if _disordered(case, buckets) is not None]
    return any(run.failed(name) for run in runs) and bool(wrong) and all(wrong)
