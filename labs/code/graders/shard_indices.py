"""CL03: which samples a rank reads in an epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

EPOCHS = 3
Shards = list[list[int]]  # of one epoch, by rank


class ShardIndices(Grader):
    lab = "CL03"
    task = "shard_indices"
    checks_named = ("cover", "balance", "shuffle", "silent")
    signs = (
        Sign("asks-others", lambda runs: any(run.record.calls for run in runs)),
        Sign("not-repeatable", lambda runs: _any(runs, lambda run, case: not _repeats(run, case))),
        Sign("ranks-disagree", lambda runs: _any(runs, _misses_and_doubles)),
        Sign("lost-tail", lambda runs: _any(runs, lambda run, case: bool(_missing(run, case)))),
        Sign("doubled-tail", lambda runs: _any(runs, lambda run, case: bool(_doubled(run, case)))),
        Sign("not-shuffled", lambda runs: _any(runs, lambda run, case: _is_sorted(run, case, 1))),
        Sign("same-every-epoch", lambda runs: _any(runs, _is_the_same)),
        Sign("shards-fixed", lambda runs: _any(runs, _shards_stay)),
        Sign("uneven", lambda runs: any(run.failed("balance") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """A length that the ranks divide, two that they do not, and one sample more than there are ranks."""
        many = draw.integer(20, 40)
        lengths = [many * ranks, many * ranks + 1, many * ranks + ranks - 1]
        first = draw.integer(0, 50)
        epochs = list(range(first, first + EPOCHS))
        return [
            Case([{"length": length, "epochs": epochs}] * ranks, {"length": length}, name=f"{length} samples")
            for length in dict.fromkeys(lengths)
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        looked = [(case, _epochs(record, index, ranks)) for index, case in enumerate(cases)]
        yield _first(
            "cover",
            ranks,
            ((case, epoch, _cover(case, shards)) for case, epochs in looked for epoch, shards in enumerate(epochs)),
            "every sample on one rank, once an epoch",
            "All ranks must cut the same permutation, at the same places, and leave nothing over.",
        )
        yield _first(
            "balance",
            ranks,
            ((case, epoch, _balance(shards)) for case, epochs in looked for epoch, shards in enumerate(epochs)),
            "shards whose lengths differ by one at most",
            "The rank with the longest shard is waited for by all others, in every epoch.",
        )
        yield _first(
            "shuffle",
            ranks,
            ((case, 0, _shuffle(epochs)) for case, epochs in looked),
            "another order and other shards in each epoch, the same when asked again",
            "Seed a generator of its own by the epoch, and permute all samples before they are dealt to the ranks.",
        )
        talked = sorted({call.operation for call in record.calls})
        yield Check(
            name="silent",
            ranks=ranks,
            passed=not talked,
            expected="no call at all",
            seen=f"{', '.join(talked)} was called" if talked else "none",
            meaning="" if not talked else "Length, epoch, rank and n say it all: every rank can work it out alone.",
        )


GRADER = ShardIndices()


def _epochs(record: Record, case: int, ranks: int) -> list[Shards]:
    """The shards of each epoch asked for; the last is the first once more."""
    own = [record.results.get((case, rank, "indices")) or [] for rank in range(ranks)]
    return [[list(each[epoch]) if epoch < len(each) else [] for each in own] for epoch in range(EPOCHS + 1)]


def _first(
    name: str, ranks: int, answers: Iterator[tuple[Case, int, str | None]], expected: str, meaning: str
) -> Check:
    """A check that fails at the first of `answers` that says something."""
    for case, epoch, says in answers:
        if says is not None:
            seen = f"{case.name}, epoch no. {epoch + 1} asked for: {says}"
            return Check(name=name, ranks=ranks, passed=False, expected=expected, seen=seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=True, expected=expected, seen="so it was")


def _cover(case: Case, shards: Shards) -> str | None:
    counts = Counter(index for shard in shards for index in shard)
    missing = [index for index in range(case.expected["length"]) if not counts[index]]
    doubled = [index for index, count in counts.items() if count > 1]
    strange = [index for index in counts if not 0 <= index < case.expected["length"]]
    if strange:
        return f"index {strange[0]}, which there is not"
    if missing or doubled:
        return f"{len(missing)} samples on no rank, {len(doubled)} more than once"
    return None


def _balance(shards: Shards) -> str | None:
    lengths = [len(shard) for shard in shards]
    return f"lengths {lengths}" if max(lengths) - min(lengths) > 1 else None


def _shuffle(epochs: list[Shards]) -> str | None:
    if epochs[0] != epochs[-1]:
        return "the same epoch gives other indices when it is asked for again"
    if any(shard == sorted(shard) for shard in epochs[1]):
        return "the samples come in their own order"
    if epochs[0] == epochs[1]:
        return "two epochs have the same order"
    if [sorted(shard) for shard in epochs[0]] == [sorted(shard) for shard in epochs[1]]:
        return "each rank has the same samples in every epoch"
    return None


def _any(runs: Sequence[Judged], shows: Callable[[Judged, int], bool]) -> bool:
    return any(shows(run, case) for run in runs if run.record.finished for case in range(len(run.cases)))


def _counts(run: Judged, case: int) -> Counter[int]:
    return Counter(index for shard in _epochs(run.record, case, run.ranks)[1] for index in shard)


def _missing(run: Judged, case: int) -> list[int]:
    counts = _counts(run, case)
    return [index for index in range(run.cases[case].expected["length"]) if not counts[index]]


def _doubled(run: Judged, case: int) -> list[int]:
    return [index for index, count in _counts(run, case).items() if count > 1]


def _misses_and_doubles(run: Judged, case: int) -> bool:
    return bool(_missing(run, case)) and bool(_doubled(run, case))


def _repeats(run: Judged, case: int) -> bool:
    epochs = _epochs(run.record, case, run.ranks)
    return epochs[0] == epochs[-1]


def _is_sorted(run: Judged, case: int, epoch: int) -> bool:
    return any(shard == sorted(shard) for shard in _epochs(run.record, case, run.ranks)[epoch])


def _is_the_same(run: Judged, case: int) -> bool:
    epochs = _epochs(run.record, case, run.ranks)
    return epochs[0] == epochs[1]


def _shards_stay(run: Judged, case: int) -> bool:
    epochs = _epochs(run.record, case, run.ranks)
    return [sorted(shard) for shard in epochs[0]] == [sorted(shard) for shard in epochs[1]]
