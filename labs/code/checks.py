"""The checks that labs share: values against one process, and the ledger of calls against what is enough.

Each gives a `Check` that says what was expected and what was seen, at the first place where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labs.code.grader import Case, Judged
from labs.code.memory import NOISE_BYTES
from labs.code.record import MESSAGES, Call, Moment, Note, Record
from labs.probes.communication import ring_wire_bytes
from labs.spec.code import Check

# Sums in another order differ by about 1e-15 of a value in fp64, in fp32 by 1e-7; a mistake by a thousandth or more.
RELATIVE = {torch.float64: 1e-9, torch.float32: 1e-5}
_MOST_SHOWN = 4


@dataclass(frozen=True)
class Traffic:
    """What a rank does of one operation: how often, and how many bytes of payload in all."""

    calls: int
    payload_bytes: int

    def __str__(self) -> str:
        times = "once" if self.calls == 1 else f"{self.calls} times"
        return f"{times} with {self.payload_bytes:,} bytes{' in all' if self.calls > 1 else ''}"


def wire_bytes(call: Call) -> int:
    """What the rank sends for a call when the ranks form a ring; a message counts where it is sent."""
    if call.operation in ("recv", "barrier"):
        return 0
    if call.operation in ("reduce", "gather", "scatter"):
        return call.sent_bytes
    return ring_wire_bytes(call.operation, call.payload_bytes, len(call.group))  # type: ignore[arg-type]


def values(
    name: str,
    ranks: int,
    cases: Sequence[Case],
    record: Record,
    result: str,
    expected: Callable[[Case, int], Any],
    meaning: str,
    read: Callable[[Case, Any], Any] = lambda _, value: value,
) -> Check:
    """Whether what each rank hands over as `result` is what `expected` says, to rounding. `read` may take off what may
    be one way or the other."""
    for index, case in enumerate(cases):
        for rank in range(ranks):
            difference = differ(read(case, record.results.get((index, rank, result))), expected(case, rank))
            if difference is not None:
                wanted, seen = difference
                where = f"rank {rank}{f', {case.name}' if case.name else ''}: "
                return Check(name=name, ranks=ranks, passed=False, expected=wanted, seen=where + seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=True, expected="as one process has it", seen="the same on every rank")


Difference = tuple[str, str]  # what was expected, and what was seen


def differ(seen: Any, expected: Any, at: str = "") -> Difference | None:
    """The first difference of two values, as what was expected and what was seen; None where they are alike."""
    if isinstance(expected, Tensor):
        return _differ_tensors(seen, expected, at)
    if isinstance(expected, Mapping | list | tuple):
        return _differ_inside(seen, expected, at)
    if isinstance(expected, float) and isinstance(seen, int | float):
        alike = abs(seen - expected) <= 1e-9 * max(1.0, abs(expected))
        return None if alike else (f"{at}{expected:.6g}", f"{at}{seen:.6g}")
    return None if seen == expected else (f"{at}{_shown(expected)}", f"{at}{_shown(seen)}")


def _differ_inside(seen: Any, expected: Any, at: str) -> Difference | None:
    if isinstance(expected, Mapping):
        if not isinstance(seen, Mapping) or set(seen) != set(expected):
            return f"{at}{', '.join(sorted(map(str, expected)))}", f"{at}{_shown_keys(seen)}"
        found = [differ(seen[key], expected[key], f"{at}{key}: ") for key in expected]
    else:
        if not isinstance(seen, list | tuple) or len(seen) != len(expected):
            return f"{at}{_shown(expected)}", f"{at}{_shown(seen)}"
        pairs = enumerate(zip(seen, expected, strict=True))
        found = [differ(one, other, f"{at}[{index}] ") for index, (one, other) in pairs]
    return next((each for each in found if each is not None), None)


def _differ_tensors(seen: Any, expected: Tensor, at: str) -> Difference | None:
    if not isinstance(seen, Tensor):
        return f"{at}a tensor of {list(expected.shape)}", f"{at}{_shown(seen)}"
    if seen.shape != expected.shape:
        return f"{at}a tensor of {list(expected.shape)}", f"{at}a tensor of {list(seen.shape)}"
    if seen.is_floating_point() != expected.is_floating_point():
        return f"{at}a tensor of {expected.dtype}", f"{at}a tensor of {seen.dtype}"
    one, other = seen.double().reshape(-1), expected.double().reshape(-1)
    scale = float(other.abs().max()) if len(other) else 0.0
    wrong = ~torch.isclose(one, other, rtol=RELATIVE.get(seen.dtype, 1e-2), atol=RELATIVE.get(seen.dtype, 1e-2) * scale)
    if not bool(wrong.any()):
        return None
    first, count = int(wrong.nonzero()[0]), int(wrong.sum())
    if len(other) == 1:
        return f"{at}{float(other[0]):.6g}", f"{at}{float(one[0]):.6g}"
    of = f"{count} of {len(other)} values differ, the first at {first}: "
    return f"{at}{float(other[first]):.6g} at {first}", f"{at}{of}{float(one[first]):.6g}"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _shown_keys(value: Any) -> str:
    return ", ".join(sorted(map(str, value))) or "nothing" if isinstance(value, Mapping) else _shown(value)


def traffic(record: Record, case: int, rank: int) -> dict[str, Traffic]:
    """What a rank did in a case, by operation; a message counts where it is sent."""
    found: dict[str, list[int]] = {}
    for call in record.of(case, rank):
        if call.operation != "recv":
            found.setdefault(call.operation, []).append(call.payload_bytes)
    return {operation: Traffic(len(each), sum(each)) for operation, each in sorted(found.items())}


def ledger(
    name: str,
    ranks: int,
    cases: Sequence[Case],
    record: Record,
    expected: Callable[[Case, int], Mapping[str, Traffic]],
    meaning: Callable[[Mapping[str, Traffic], Mapping[str, Traffic]], str],
) -> Check:
    """Whether each rank makes exactly the calls that `expected` says, to the byte. `meaning` is asked with what was
    expected and what was seen."""
    shown = ""
    for index, case in enumerate(cases):
        for rank in range(ranks):
            wanted, seen = dict(sorted(expected(case, rank).items())), traffic(record, index, rank)
            shown = shown or show_traffic(wanted)
            if wanted != seen:
                where = f"rank {rank}{f', {case.name}' if case.name else ''}: "
                return Check(
                    name=name,
                    ranks=ranks,
                    passed=False,
                    expected=show_traffic(wanted),
                    seen=where + show_traffic(seen),
                    meaning=meaning(wanted, seen),
                )
    return Check(name=name, ranks=ranks, passed=True, expected=shown, seen="exactly that, on every rank")


def show_traffic(traffic: Mapping[str, Traffic]) -> str:
    return (
        ", ".join(f"{operation} {each}" for operation, each in list(traffic.items())[:_MOST_SHOWN]) or "no call at all"
    )


def sums(calls: Iterable[Call]) -> tuple[int, int]:
    """Messages and bytes sent."""
    sent = [call.sent_bytes for call in calls if call.operation == "send"]
    return len(sent), sum(sent)


def only_messages(record: Record) -> bool:
    """Whether nothing but messages was used."""
    return all(call.operation in MESSAGES for call in record.calls)


def memory(
    name: str,
    ranks: int,
    cases: Sequence[Case],
    record: Record,
    note: str,
    most_bytes: Callable[[Case, int], int],
    meaning: str,
    at_peak: bool = False,
    since: str | None = None,
) -> Check:
    """Whether a rank holds at most `most_bytes` more at `note` than at the note `since`, the case's first where none is
    named, or `at_peak` held at most so many more at any time between `note` and the note before it. By the kernel's
    count."""
    shown = ""
    for index, case in enumerate(cases):
        for rank in range(ranks):
            last = _noted(record, index, rank, note)
            if last is None:
                continue
            most = most_bytes(case, rank)
            held = held_bytes(record, index, rank, note, since, at_peak)
            if held is None:
                return Check(name=name, ranks=ranks, passed=True, expected=shown, seen="not measured on this system")
            expected = f"at most {most / 2**20:.1f} MiB more than before"
            shown = shown or expected
            if held > most + NOISE_BYTES:
                seen = (
                    f"rank {rank}{f', {case.name}' if case.name else ''}: {held / 2**20:.1f} MiB more{_held_for(last)}"
                )
                return Check(name=name, ranks=ranks, passed=False, expected=expected, seen=seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=bool(shown), expected=shown, seen="no more, on every rank")


def never_waits(run: Judged, result: str, *operations: str) -> bool:
    """Whether `result` is wrong, and a call of these operations was never waited for."""
    return run.failed(result) and any(call.waited_at is None for _, call in run.calls(*operations))


def held_bytes(
    record: Record, case: int, rank: int, note: str, since: str | None = None, at_peak: bool = False
) -> int | None:
    """How much more a rank held at `note` than at `since`, the case's first where none is named; None where the case
    has no such note or the system no count."""
    last = _noted(record, case, rank, note)
    if last is None:
        return None
    notes = [each for each in record.notes if (each.case, each.rank) == (case, rank)]
    first = next((each for each in notes if each.name == since), notes[0])
    found = last.peak_bytes if at_peak else last.bytes
    return None if found is None or first.bytes is None else found - first.bytes


def _noted(record: Record, case: int, rank: int, name: str) -> Note | None:
    """A rank's last note of this name in a case."""
    found = [each for each in record.notes if (each.case, each.rank, each.name) == (case, rank, name)]
    return found[-1] if found else None


def one_rank_holds_it(record: Record, ranks: int, note: str, share_bytes: int, since: str | None = None) -> bool:
    """Whether, where a rank holds too much at `note`, another holds less than half of `share_bytes`, an even share: not
    everybody has all of it, but somebody the others' part."""
    cases = {each.case for each in record.notes}
    held = [held_bytes(record, case, rank, note, since) for case in cases for rank in range(ranks)]
    return any(each is not None and each < share_bytes / 2 for each in held)


def _held_for(note: Note) -> str:
    """What the rank says that it holds for what, whenever it came."""
    parts = [f"{component} {held / 2**20:.1f}" for component, held in note.components.items() if held]
    return f" (in all it holds {', '.join(parts)} MiB)" if parts else ""


def overlap(
    name: str,
    ranks: int,
    cases: Sequence[Case],
    record: Record,
    least: int,
    meaning: str,
    passes: Callable[[Case], Sequence[str]] | None = None,
) -> Check:
    """Whether each rank made at least `least` calls between its first and its last gate of a backward pass: before the
    gradients of the first layer can be known. Gates of a pass are called `pass/...`; without `passes` the case is one.
    """
    shown = f"at least {least} {'call' if least == 1 else 'calls'} under way before backward comes to the first layer"
    for index, case in enumerate(cases):
        for rank in range(ranks) if case.gates else ():
            asked = [each for each in record.gates if (each.case, each.rank) == (index, rank)]
            for place in passes(case) if passes else [""]:
                gates = [each for each in asked if not place or each.name.startswith(f"{place}/")]
                before = calls_between(gates)
                if not gates or before < least:
                    seen = f"rank {rank}{f', {case.name}' if case.name else ''}: {before or 'none'}"
                    return Check(name=name, ranks=ranks, passed=False, expected=shown, seen=seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=True, expected=shown, seen="so it was, on every rank")


def calls_between(gates: Sequence[Moment]) -> int:
    """How many calls a rank made between its first and its last gate of a case."""
    return gates[-1].after - gates[0].after if gates else 0
