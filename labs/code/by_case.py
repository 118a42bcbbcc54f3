"""In which share of a run's cases a check held that did not hold in all of them.

A case that ends a run, by an error or because its ranks wait for each other, says nothing of the others: each then runs
by itself. A lab's first check, its result, holds in a share of the cases. What else is looked at is how the result was
made: it holds in all cases that ended, or not at all, for there are cases in which every way costs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from labs.code.grader import Case, Grader
from labs.code.record import STRANGE, Record
from labs.spec.code import Check


def held_by_case(
    grader: Grader,
    cases: Sequence[Case],
    checks: Sequence[Check],
    record: Record,
    alone: Callable[[Case], Record],
) -> list[Check]:
    """`checks` of a run with the share of cases in which each of the grader's own held. `alone` runs one case."""
    result = next(each for each in checks if each.name == grader.checks_named[0])
    if result.passed:
        return list(checks)
    records = [of_case(record, index) if record.finished else alone(case) for index, case in enumerate(cases)]
    ended = sum(each.finished for each in records)
    held = [set(_held(grader, case, own)) for case, own in zip(cases, records, strict=True)]
    shares = {name: sum(name in each for each in held) for name in grader.checks_named}
    for name in grader.checks_named[1:]:
        shares[name] = ended if shares[name] == ended else 0
    return [_with_share(each, shares.get(each.name, 0), len(cases)) for each in checks]


def _with_share(check: Check, held: int, cases: int) -> Check:
    if check.passed:
        return check
    seen = check.seen
    if held and not check.expected:  # it was not looked at in the whole run
        alone = "itself" if held == 1 else "themselves"
        seen = f"not looked at together, for the run did not end; by {alone}, {held} of {cases} cases hold"
    return check.model_copy(update={"held": round(held / cases, 4), "seen": seen})


def of_case(record: Record, case: int) -> Record:
    """What a run did in one case, as if it had been its only one."""
    return replace(
        record,
        calls=[replace(each, case=0) for each in record.of(case)],
        marks=[replace(each, case=0) for each in record.marks if each.case == case],
        gates=[replace(each, case=0) for each in record.gates if each.case == case],
        notes=[replace(each, case=0) for each in record.notes if each.case == case],
        results={(0, rank, name): value for (of, rank, name), value in record.results.items() if of == case},
    )


def _held(grader: Grader, case: Case, record: Record) -> Iterator[str]:
    """The checks that hold in a case by itself."""
    if not record.finished:
        return
    looked_at = iter(grader.check(record.ranks, [case], record))
    for name in grader.checks_named:
        try:
            check = next(looked_at)
        except (*STRANGE, StopIteration):
            return
        if check.passed:
            yield name
