"""CL18: a sharded checkpoint that other numbers of ranks can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.tasks.resharded import OVERWRITTEN
from labs.code.record import Record
from labs.spec.code import Check

SHARDED = ("shard", "exp_avg", "exp_avg_sq")
_SPARE_BYTES = 8192  # of a file beside its shards: the generator's state takes 5 kB
# By how many ranks a run has: how many write, and how many read.
_PAIRS = {2: ((2, 1), (1, 2), (2, 2)), 3: ((3, 2), (2, 3), (3, 1)), 4: ((4, 2), (2, 4), (4, 3))}


class Resharded(Grader):
    lab = "CL18"
    task = "resharded"
    checks_named = ("shards", "step", "generator", "files")
    signs = (
        Sign("ranks-talk", lambda runs: any(run.hang and any(call.line for call in run.record.calls) for run in runs)),
        Sign("one-writes-all", lambda runs: any(_one_writes_all(run) for run in runs)),
        Sign("everyone-writes-all", lambda runs: any(run.failed("files") for run in runs)),
        Sign("not-a-copy", lambda runs: any(_is_overwritten(run) for run in runs)),
        Sign("old-shards", lambda runs: any(_are_old_shards(run) for run in runs)),
        Sign("padding-inside", lambda runs: any(_has_padding_inside(run) for run in runs)),
        Sign("not-filled-up", lambda runs: any(_ends_short(run) for run in runs)),
        Sign("rounded", lambda runs: any(_is_rounded(run) for run in runs)),
        Sign("moments-lost", lambda runs: any(_moments_alone_wrong(run) for run in runs)),
        Sign("step-lost", lambda runs: any(run.failed("step") for run in runs)),
        Sign("generator-lost", lambda runs: any(run.failed("generator") for run in runs)),
        Sign("other-shards", lambda runs: any(run.failed("shards") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Fewer read than wrote, more, and as many; of a length that neither divides."""
        return [_case(draw, ranks, *pair) for pair in _PAIRS[ranks]]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield _check_state(
            "shards",
            ranks,
            cases,
            record,
            SHARDED,
            "Put the writers' shards together, take off what they were filled up with, and cut anew for the readers.",
        )
        yield _check_state(
            "step",
            ranks,
            cases,
            record,
            ("step", "length"),
            "Adam's bias correction goes by the step: it goes on, too.",
        )
        yield _check_state(
            "generator",
            ranks,
            cases,
            record,
            ("generator",),
            "Dropout of the next step comes from the generator's state; without it the next loss is another one.",
        )
        yield _check_files(ranks, cases, record)


GRADER = Resharded()


def cut(whole: Tensor, rank: int, ranks: int) -> Tensor:
    """A rank's shard: equal lengths, the last ones filled up with zeros."""
    per = -(-len(whole) // ranks)
    return torch.cat([whole, whole.new_zeros(per * ranks - len(whole))])[rank * per : (rank + 1) * per]


def _case(draw: Draw, ranks: int, writers: int, readers: int) -> Case:
    length = writers * readers * draw.integer(300, 400) + 1  # neither divides it
    whole = {name: draw.tensor(length) for name in SHARDED}
    step, seed = draw.integer(100, 900), draw.integer(0, 2**31)
    generator = torch.Generator().manual_seed(seed).get_state()
    other = {"step": step, "length": length, "generator": generator}
    states = [{**{name: cut(each, rank, writers) for name, each in whole.items()}, **other} for rank in range(writers)]
    inputs = [
        {"state": states[rank] if rank < writers else {}, "writers": writers, "readers": readers}
        for rank in range(ranks)
    ]
    after = [{**{name: cut(each, rank, readers) for name, each in whole.items()}, **other} for rank in range(readers)]
    expected = {"after": after, "before": states, "writers": writers, "readers": readers}
    return Case(inputs, expected, name=f"written by {writers}, read by {readers}")


def _read(record: Record, index: int, case: Case) -> Iterator[tuple[int, Any]]:
    """What each reader has."""
    for rank in range(case.expected["readers"]):
        yield rank, record.results.get((index, rank, "state"))


def _check_state(
    name: str, ranks: int, cases: Sequence[Case], record: Record, parts: Sequence[str], meaning: str
) -> Check:
    for index, case in enumerate(cases):
        for rank, state in _read(record, index, case):
            for part in parts:
                value = state.get(part) if isinstance(state, Mapping) else None
                difference = checks.differ(value, case.expected["after"][rank][part])
                if difference is not None:
                    wanted, seen = difference
                    where = f"rank {rank}, {case.name}, {part}: "
                    return Check(
                        name=name, ranks=ranks, passed=False, expected=wanted, seen=where + seen, meaning=meaning
                    )
    return Check(name=name, ranks=ranks, passed=True, expected="as it was written", seen="the same on every reader")


def _share(case: Case) -> int:
    """Bytes of what one writer holds."""
    return sum(case.expected["before"][0][name].numel() * 8 for name in SHARDED)


def _check_files(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    """By what is carried when the files are handed out, which takes as much from every rank as the largest needs."""
    expected = "a file of each writer with its own shards"
    for index, case in enumerate(cases):
        share = _share(case)
        for rank in range(case.expected["writers"]):
            carried = sum(call.sent_bytes for call in record.of(index, rank, ("all_gather",)))
            if carried > share + _SPARE_BYTES:
                seen = f"rank {rank}, {case.name}: {carried:,} bytes, where its shards have {share:,}"
                meaning = "All write at once, each what it holds: a checkpoint takes an n-th of the time, and fits."
                return Check(name="files", ranks=ranks, passed=False, expected=expected, seen=seen, meaning=meaning)
    return Check(name="files", ranks=ranks, passed=True, expected=expected, seen="no more, of every writer")


def _one_writes_all(run: Judged) -> bool:
    """Whether the first writer's file is too large and another's has next to nothing."""
    return run.failed("files") and any(
        isinstance(written := run.record.results.get((index, rank, "bytes")), int) and written < _share(case) / 2
        for index, case in enumerate(run.cases)
        for rank in range(1, case.expected["writers"])
    )


def _states(run: Judged) -> Iterator[tuple[Case, int, Mapping[str, Any]]]:
    for index, case in enumerate(run.cases):
        for rank, state in _read(run.record, index, case):
            if isinstance(state, Mapping):
                yield case, rank, state


def _is_overwritten(run: Judged) -> bool:
    """Whether what came after saving stands in what was loaded."""
    return run.failed("shards") and any(
        isinstance(shard := state.get("shard"), Tensor) and bool((shard == OVERWRITTEN).any())
        for _, _, state in _states(run)
    )


def _are_old_shards(run: Judged) -> bool:
    """Whether a reader has what the writer of its number had."""
    return run.failed("shards") and any(
        case.expected["writers"] != case.expected["readers"]
        and rank < case.expected["writers"]
        and checks.differ(state.get("shard"), case.expected["before"][rank]["shard"]) is None
        for case, rank, state in _states(run)
    )


def _has_padding_inside(run: Judged) -> bool:
    """Whether the writers' shards were joined with what fills them up."""
    for case, rank, state in _states(run):
        joined = torch.cat([each["shard"] for each in case.expected["before"]])
        if len(joined) == case.expected["before"][0]["length"]:
            continue  # nothing was filled up
        readers, found = case.expected["readers"], state.get("shard")
        wrong = checks.differ(found, case.expected["after"][rank]["shard"]) is not None
        if wrong and any(
            checks.differ(found, each) is None for each in (cut(joined, rank, readers), *_chunk(joined, rank, readers))
        ):
            return run.failed("shards")
    return False


def _chunk(whole: Tensor, rank: int, ranks: int) -> list[Tensor]:
    chunks = whole.chunk(ranks)
    return [chunks[rank]] if rank < len(chunks) else []


def _ends_short(run: Judged) -> bool:
    """Whether a shard is right as far as it goes, and what is missing are the zeros at its end."""
    return run.failed("shards") and any(
        isinstance(found := state.get("shard"), Tensor)
        and found.dim() == 1
        and len(found) < len(wanted := case.expected["after"][rank]["shard"])
        and checks.differ(found, wanted[: len(found)]) is None
        and not bool(wanted[len(found) :].any())
        for case, rank, state in _states(run)
    )


def _is_rounded(run: Judged) -> bool:
    """Whether a wrong shard is the right one in half of the precision or less."""
    for case, rank, state in _states(run):
        found, wanted = state.get("shard"), case.expected["after"][rank]["shard"]
        if isinstance(found, Tensor) and found.shape == wanted.shape and found.is_floating_point():
            off = float((found.double() - wanted).abs().max())
            if 0 < off < 0.02 * float(wanted.abs().max()) or found.dtype != wanted.dtype:
                return True
    return False


def _moments_alone_wrong(run: Judged) -> bool:
    wrong = [
        (part, checks.differ(state.get(part), case.expected["after"][rank][part]) is not None)
        for case, rank, state in _states(run)
        for part in SHARDED
    ]
    return run.failed("shards") and bool(wrong) and not any(is_wrong for part, is_wrong in wrong if part == "shard")
