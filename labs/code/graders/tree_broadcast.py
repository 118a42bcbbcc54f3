"""CL02: broadcast down a tree of blocking messages, in as few rounds as can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from labs.code import checks
from labs.code.grader import Case, Draw, Grader, Judged, Sign
from labs.code.inside.frames import spec_bytes
from labs.code.record import Call, Record
from labs.spec.code import Check


class TreeBroadcast(Grader):
    lab = "CL02"
    task = "tree_broadcast"
    checks_named = ("value", "messages", "rounds")
    signs = (
        Sign("library-call", lambda runs: any(not checks.only_messages(run.record) for run in runs)),
        Sign("powers-of-two-alone", lambda runs: [_is_right(run) for run in runs] == [True, False, True]),
        Sign("root-ignored", lambda runs: any(_right_from_zero_alone(run) for run in runs)),
        Sign(
            "nothing-sent",
            lambda runs: any(run.failed("value") for run in runs) and not any(run.record.calls for run in runs),
        ),
        Sign("passed-on-too-early", lambda runs: any(_sends_before_it_has(run) for run in runs)),
        Sign("received-twice", lambda runs: any(_receives_too_often(run) for run in runs)),
        Sign("kept-its-own", lambda runs: any(_throws_away(run) for run in runs)),
        Sign(
            "root-sends-all",
            lambda runs: any(run.failed("rounds") and _most_sent(run) == run.ranks - 1 for run in runs),
        ),
        Sign("passed-along", lambda runs: any(run.failed("rounds") and _most_sent(run) == 1 for run in runs)),
        Sign("leaf-first", lambda runs: any(run.failed("rounds") for run in runs)),
    )

    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """Every rank is the root once, rank 0 first."""
        return [_case(ranks, draw, root) for root in range(ranks)]

    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        yield checks.values(
            "value",
            ranks,
            cases,
            record,
            "x",
            lambda case, _: case.expected["x"],
            "Every rank must end with the root's tensor. Number the ranks from the root on, (rank − root) modulo n, "
            "and go back to real numbers only where a message is sent or received.",
        )
        yield _check_messages(ranks, cases, record)
        yield _check_rounds(ranks, cases, record)


GRADER = TreeBroadcast()


def _case(ranks: int, draw: Draw, root: int) -> Case:
    length = draw.integer(3, 40)
    own = [draw.tensor(length) for _ in range(ranks)]
    inputs = [{"x": x, "root": root} for x in own]
    return Case(inputs, {"x": own[root], "own": own, "root": root}, name=f"root {root} of {ranks}")


def fewest_rounds(ranks: int) -> int:
    """⌈log₂ n⌉: in a round, whoever has it can hand it to one more."""
    return (ranks - 1).bit_length()


def rounds(messages: Sequence[Call]) -> int:
    """The longest row of messages that had to wait for one another: a rank is in one message at a time."""
    busy: Counter[int] = Counter()
    for call in sorted(messages, key=lambda each: each.done_at or 0.0):
        if call.operation == "send" and call.peer is not None:
            busy[call.rank] = busy[call.peer] = max(busy[call.rank], busy[call.peer]) + 1
    return max(busy.values(), default=0)


def _check_messages(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    expected = f"{ranks - 1} messages in all: each rank but the root receives the tensor once, whole"
    for index, case in enumerate(cases):
        size = case.expected["x"].numel() * 8
        for rank in range(ranks):
            got = list(record.of(index, rank, ("recv",)))
            held = [sum(map(spec_bytes, call.expects)) for call in got]
            if held != ([] if rank == case.expected["root"] else [size]):
                seen = f"rank {rank}, {case.name}: {len(got)} received, {sum(held):,} bytes in all of {size:,}"
                return Check(
                    name="messages",
                    ranks=ranks,
                    passed=False,
                    expected=expected,
                    seen=seen,
                    meaning="Each rank has one parent in the tree and hears from it once; the root has none.",
                )
    return Check(name="messages", ranks=ranks, passed=True, expected=expected, seen="exactly that")


def _check_rounds(ranks: int, cases: Sequence[Case], record: Record) -> Check:
    fewest = fewest_rounds(ranks)
    expected = f"{fewest} {'round' if fewest == 1 else 'rounds'} for {ranks} ranks"
    for index, case in enumerate(cases):
        found = rounds(list(record.of(index)))
        if found > fewest:
            return Check(
                name="rounds",
                ranks=ranks,
                passed=False,
                expected=expected,
                seen=f"{case.name}: {found} messages one after another",
                meaning="In every round each rank that has the tensor hands it to one that has not, so the number "
                "of those who have it doubles. Send first to who has the most still to serve.",
            )
    return Check(name="rounds", ranks=ranks, passed=True, expected=expected, seen="no more, from any root")


def _is_right(run: Judged) -> bool:
    return run.record.finished and all(check.passed for check in run.checks)


def _stopped_at(run: Judged) -> int | None:
    """The case in which the run broke off; None where it ended."""
    if run.record.finished:
        return None
    done = [
        index for index in range(len(run.cases)) if all((index, r, "x") in run.record.results for r in range(run.ranks))
    ]
    return len(done)


def _right_from_zero_alone(run: Judged) -> bool:
    """Everything right where rank 0 is the root, and not from another."""
    stopped = _stopped_at(run)
    if stopped is not None:
        return stopped > 0 and _wrong_roots(run, stopped) == set()
    wrong = _wrong_roots(run, len(run.cases))
    return bool(wrong) and 0 not in wrong


def _wrong_roots(run: Judged, before: int) -> set[int]:
    return {
        case.expected["root"]
        for case, _, value in run.results("x")
        if case.expected["root"] < before and checks.differ(value, case.expected["x"]) is not None
    }


def _messages_of(run: Judged) -> Iterator[tuple[int, int, list[Call]]]:
    """Each root, each rank, and its messages in order."""
    for index in range(len(run.cases)):
        for rank in range(run.ranks):
            yield index, rank, list(run.record.of(index, rank))


def _sends_before_it_has(run: Judged) -> bool:
    return any(
        rank != root
        and bool(calls)
        and calls[0].operation == "send"
        and any(each.operation == "recv" for each in calls)
        for root, rank, calls in _messages_of(run)
        if run.failed("value")
    )


def _receives_too_often(run: Judged) -> bool:
    return run.failed("messages") and any(
        sum(each.operation == "recv" for each in calls) > (rank != root) for root, rank, calls in _messages_of(run)
    )


def _throws_away(run: Judged) -> bool:
    """It has received what it should, and holds what it had."""
    return (
        run.failed("value")
        and not run.failed("messages")
        and any(
            rank != case.expected["root"] and checks.differ(value, case.expected["own"][rank]) is None
            for case, rank, value in run.results("x")
        )
    )


def _most_sent(run: Judged) -> int:
    return max(sum(each.operation == "send" for each in calls) for _, _, calls in _messages_of(run))
