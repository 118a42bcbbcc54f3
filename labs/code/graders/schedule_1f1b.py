"""CL15: the order in which the stages of a pipeline work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.record import Record
from labs.spec.code import Check

FORWARD_TIME, BACKWARD_TIME = 1, 2
Action = tuple[str, int]  # "F" or "B", and the micro-batch
Orders = list[list[str]]  # by stage, as the learner's words
_ACTION = re.compile(r"([FB])(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class Executed:
    """Orders carried out: when the last action ends, or the first stage that waits for what never comes."""

    ends: int
    stuck: str | None = None


class Schedule(Grader):
    lab = "CL15"
    task = "schedule_1f1b"
    checks_named = ("complete", "runs", "memory", "bubble", "silent")
    signs = (
        Sign("asks-others", lambda runs: any(run.record.calls for run in runs)),
        Sign("unknown-action", lambda runs: _any(runs, lambda case, orders: bool(_strange(case, orders)))),
        Sign("doubled", lambda runs: _any(runs, lambda case, orders: bool(_doubled(orders)))),
        Sign("missing", lambda runs: _any(runs, lambda case, orders: bool(_missing(case, orders)))),
        Sign("backward-first", lambda runs: _any(runs, lambda _, orders: _turned(orders) is not None)),
        Sign("same-on-every-stage", lambda runs: _any(runs, _is_the_same)),
        Sign("waits-for-ever", lambda runs: any(run.failed("runs") for run in runs)),
        Sign("gpipe", lambda runs: _any(runs, _keeps_all)),
        Sign("too-many-alive", lambda runs: any(run.failed("memory") for run in runs)),
        Sign("newest-first", lambda runs: _any(runs, lambda _, orders: any(map(_goes_back_from_the_newest, orders)))),
        Sign("longer-bubble", lambda runs: any(run.failed("bubble") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Many micro-batches, as many as stages, fewer, and one; and a pipeline of more stages than there are ranks."""
        sizes = [
            (ranks, draw.integer(2 * ranks, 3 * ranks + 2)),
            (ranks, ranks),
            (ranks, max(1, ranks - 1)),
            (ranks, 1),
            (2 * ranks, draw.integer(ranks + 1, 2 * ranks - 1)),
            (2 * ranks, draw.integer(4 * ranks, 6 * ranks)),
        ]
        return [
            Case([{"stages": p, "micro_batches": m}] * ranks, {"p": p, "m": m}, name=f"p = {p}, m = {m}")
            for p, m in dict.fromkeys(sizes)
        ]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        looked = [(case, _orders(record, index, case, ranks)) for index, case in enumerate(cases)]
        yield _first(
            "complete",
            ranks,
            ((case, _incomplete(case, orders)) for case, orders in looked),
            "F0 … F(m−1) and B0 … B(m−1) on every stage, each once",
            "A stage runs each micro-batch forward once and backward once, 2m actions.",
        )
        yield _first(
            "runs",
            ranks,
            ((case, _stuck(orders)) for case, orders in looked),
            "every stage comes to the end of its actions",
            "The forward passes that a stage waits for must come before the backward passes that wait for it.",
        )
        yield _first(
            "memory",
            ranks,
            ((case, _too_many_alive(case, orders)) for case, orders in looked),
            "at most min(m, p − rank) micro-batches alive on a stage",
            "What is warmed up beyond that lies in memory and makes nothing faster.",
        )
        yield _first(
            "bubble",
            ranks,
            ((case, _too_late(case, orders)) for case, orders in looked),
            "done after (m + p − 1) · 3 times a forward pass",
            "A stage needs as many micro-batches under way as there are stages until a gradient is back.",
        )
        talked = sorted({call.operation for call in record.calls})
        yield Check(
            name="silent",
            ranks=ranks,
            passed=not talked,
            expected="no call at all",
            seen=f"{', '.join(talked)} was called" if talked else "none",
            meaning="" if not talked else "Rank, p and m say it all.",
        )


GRADER = Schedule()


def _orders(record: Record, index: int, case: Case, ranks: int) -> Orders:
    """What each stage was told to do; nothing where a rank did not say."""
    said = [record.results.get((index, rank, "actions")) or {} for rank in range(ranks)]
    return [list(said[stage % ranks].get(str(stage), [])) for stage in range(case.expected["p"])]


def _first(name: str, ranks: int, answers: Iterator[tuple[Case, str | None]], expected: str, meaning: str) -> Check:
    """A check that fails at the first case of which something is said."""
    for case, says in answers:
        if says is not None:
            seen = f"{case.name}: {says}"
            return Check(name=name, ranks=ranks, passed=False, expected=expected, seen=seen, meaning=meaning)
    return Check(name=name, ranks=ranks, passed=True, expected=expected, seen="so it was")


def _read(word: str) -> Action | None:
    found = _ACTION.fullmatch(word)
    return (found[1], int(found[2])) if found else None


def _strange(case: Case, orders: Orders) -> list[tuple[int, str]]:
    """Words that are no action of one of the micro-batches, with their stage."""
    read = [(stage, word, _read(word)) for stage, order in enumerate(orders) for word in order]
    return [(stage, word) for stage, word, action in read if action is None or action[1] >= case.expected["m"]]


def _doubled(orders: Orders) -> list[tuple[int, str]]:
    return [(stage, word) for stage, order in enumerate(orders) for word, n in Counter(order).items() if n > 1]


def _missing(case: Case, orders: Orders) -> list[tuple[int, str]]:
    wanted = [f"{kind}{number}" for kind in "FB" for number in range(case.expected["m"])]
    return [(stage, word) for stage, order in enumerate(orders) for word in wanted if word not in order]


def _incomplete(case: Case, orders: Orders) -> str | None:
    for found, says in (
        (_strange(case, orders), "is no action of one of the micro-batches"),
        (_doubled(orders), "is done more than once"),
        (_missing(case, orders), "is never done"),
    ):
        if found:
            stage, word = found[0]
            return f"on stage {stage} {word!r} {says}"
    return None


def _turned(orders: Orders) -> str | None:
    """A backward pass that stands before its own forward pass."""
    for stage, order in enumerate(orders):
        places = {word: place for place, word in enumerate(order)}
        for word, place in places.items():
            if word.startswith("B") and place < places.get("F" + word[1:], -1):
                return f"stage {stage} does {word} before its own F{word[1:]}"
    return None


def _stuck(orders: Orders) -> str | None:
    return _turned(orders) or execute(orders).stuck


def execute(orders: Orders) -> Executed:
    """Each stage's actions one after the other, each as soon as what it needs of the neighbouring stage is done."""
    done: dict[tuple[int, str], int] = {}
    next_of, free = [0] * len(orders), [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while next_of[stage] < len(order):
                word = order[next_of[stage]]
                needs = _needs(stage, word, len(orders))
                if needs is not None and needs not in done:
                    break
                starts = max(free[stage], done[needs] if needs else 0)
                free[stage] = done[stage, word] = starts + (FORWARD_TIME if word.startswith("F") else BACKWARD_TIME)
                next_of[stage] += 1
                moved = True
    waiting = [stage for stage, order in enumerate(orders) if next_of[stage] < len(order)]
    if not waiting:
        return Executed(max(free, default=0))
    stage = waiting[0]
    word = orders[stage][next_of[stage]]
    needs = _needs(stage, word, len(orders))
    assert needs is not None, "what needs nothing is done"
    other = needs[0]
    at = orders[other][next_of[other]] if next_of[other] < len(orders[other]) else "nothing more"
    return Executed(0, f"stage {stage} waits with {word} for stage {other}, which is at {at}")


def _needs(stage: int, word: str, stages: int) -> tuple[int, str] | None:
    """What the neighbouring stage must have done before."""
    other = stage - 1 if word.startswith("F") else stage + 1
    return (other, word) if 0 <= other < stages else None


def _most_alive(order: Sequence[str]) -> int:
    alive = most = 0
    for word in order:
        alive += 1 if word.startswith("F") else -1
        most = max(most, alive)
    return most


def _too_many_alive(case: Case, orders: Orders) -> str | None:
    for stage, order in enumerate(orders):
        enough = min(case.expected["m"], case.expected["p"] - stage)
        if (most := _most_alive(order)) > enough:
            return f"{most} alive on stage {stage}, where {enough} are enough"
    return None


def _too_late(case: Case, orders: Orders) -> str | None:
    """Of orders that run; what does not end is another check's."""
    least = (case.expected["m"] + case.expected["p"] - 1) * (FORWARD_TIME + BACKWARD_TIME)
    if _incomplete(case, orders) or _stuck(orders):
        return "not carried out, for the orders do not run"
    ends = execute(orders).ends
    return f"done after {ends} times a forward pass, not {least}" if ends > least else None


def _keeps_all(case: Case, orders: Orders) -> bool:
    """All forward passes before the first backward pass, where fewer would be enough."""
    m = case.expected["m"]
    return m > case.expected["p"] and all(_most_alive(order) == m for order in orders)


def _goes_back_from_the_newest(order: Sequence[str]) -> bool:
    """A backward pass of a micro-batch while one that went forward earlier waits for its own."""
    alive: list[str] = []
    for word in order:
        if word.startswith("F"):
            alive.append(word[1:])
        elif word[1:] in alive:
            if word[1:] != alive[0]:
                return True
            del alive[0]
    return False


def _is_the_same(case: Case, orders: Orders) -> bool:
    """One order for all stages that turns around before all is forward, and is no stage's that goes on alone."""
    return (
        case.expected["m"] > case.expected["p"] > 1
        and all(order == orders[0] for order in orders)
        and 1 < _most_alive(orders[0]) < case.expected["m"]
    )


def _any(runs: Sequence[Judged], shows: Callable[[Case, Orders], bool]) -> bool:
    return any(
        shows(case, _orders(run.record, index, case, run.ranks))
        for run in runs
        if run.record.finished
        for index, case in enumerate(run.cases)
    )
