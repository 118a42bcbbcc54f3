"""Why a run never ended, from what each rank called: who waits where, and for whom.

It is what torch's flight recorder shows of a hang, kept outside of the ranks: the operation, its number, its shape and
the learner's line of every call, and whether it was ever completed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labs.code.record import MESSAGES, Call, Record
from labs.code.switch import Mismatch
from labs.spec.code import Autopsy, RankState


def perform(
    record: Record,
    mismatch: Mismatch | None,
    waits: Mapping[int, int | None],
    returned: set[int],
    lines: Mapping[int, int | None],
    now: float,
    at_deadline: bool,
) -> Autopsy:
    """`waits`: the call each rank waits for; `returned`: ranks whose call of the learner's function is over; `lines`:
    where ranks compute."""
    waiting = {
        rank: call
        for rank, identity in waits.items()
        if identity is not None and (call := _find(record, rank, identity)) is not None
    }
    states = tuple(_state(rank, record, waiting, returned, lines, now) for rank in range(record.ranks))
    kind, says = _name(record, mismatch, waiting, returned, lines, now, at_deadline)
    return Autopsy(kind=kind, says=says, ranks=states, on=record.ranks)


def _find(record: Record, rank: int, identity: int) -> Call | None:
    return next((call for call in record.calls if (call.rank, call.identity) == (rank, identity)), None)


def _state(
    rank: int,
    record: Record,
    waiting: Mapping[int, Call],
    returned: set[int],
    lines: Mapping[int, int | None],
    now: float,
) -> RankState:
    if rank in record.errors:
        return RankState(rank=rank, state="failed", line=record.errors[rank].line)
    if rank in waiting:
        call = waiting[rank]
        seconds = round(now - (call.waited_at or call.posted_at), 1)
        return RankState(
            rank=rank, state="waits", operation=call.operation, sequence=call.sequence, line=call.line, seconds=seconds
        )
    return RankState(rank=rank, state="returned" if rank in returned else "computes", line=lines.get(rank))


def _name(
    record: Record,
    mismatch: Mismatch | None,
    waiting: Mapping[int, Call],
    returned: set[int],
    lines: Mapping[int, int | None],
    now: float,
    at_deadline: bool,
) -> tuple[str, str]:
    if record.errors:
        return _exception(record, waiting)
    if mismatch is not None:
        return _mismatch(mismatch)
    computing = [rank for rank in range(record.ranks) if rank not in waiting and rank not in returned]
    if computing:
        return _computes(computing, lines, now)
    missing = _missing_call(record, waiting, returned, now)
    if missing is not None:
        return missing
    return _messages(record, waiting, returned)


def _exception(record: Record, waiting: Mapping[int, Call]) -> tuple[str, str]:
    rank, error = min(record.errors.items())
    where = f" at your line {error.line}" if error.line else ""
    says = f"{_ranks([rank])} raised {error.type}{where}: {error.message}"
    if len(record.errors) == record.ranks:
        return "exception", says.replace(_ranks([rank]), "every rank", 1)
    if waiting:
        says += f". {_ranks(sorted(waiting)).capitalize()} {_verb(waiting, 'wait', 'waits')} for it"
    return "exception on one rank", says


def _mismatch(mismatch: Mismatch) -> tuple[str, str]:
    calls = mismatch.calls
    first, last = calls[0], calls[-1]
    if mismatch.what == "operation":
        return (
            "wrong order",
            f"at the same place in the order {_calls(first)}, but {_calls(last)}: "
            "every rank must make the calls of a group in the same order",
        )
    if mismatch.what == "case":
        early, late = sorted((first, last), key=lambda call: call.case)
        return "missing call", f"{_ranks([late.rank])} never made the call for which {_calls(early)}"
    apart = _splits_apart(calls) if mismatch.what == "size" else None
    if apart is not None:
        return "wrong shape", apart
    what = {"dtype": "wrong dtype", "size": "wrong shape", "root": "wrong root", "reduce": "wrong reduction"}
    return what[mismatch.what], f"{_calls(first)} with {_shape(first)}, but {_calls(last)} with {_shape(last)}"


def _splits_apart(calls: Sequence[Call]) -> str | None:
    """In an uneven all-to-all: a rank that sends another more or fewer rows than that one expects of it."""
    split = [call for call in calls if len(call.input_splits) == len(call.output_splits) == len(call.group)]
    for giver in split:
        for taker in split:
            given = giver.input_splits[giver.group.index(taker.rank)]
            taken = taker.output_splits[taker.group.index(giver.rank)]
            if given != taken:
                return (
                    f"in {giver.name} rank {giver.rank}{_line(giver)} sends {given:,} rows to rank {taker.rank}, which "
                    f"expects {taken:,} from it{_line(taker)}"
                )
    return None


def _computes(computing: Sequence[int], lines: Mapping[int, int | None], now: float) -> tuple[str, str]:
    rank = computing[0]
    where = f" at your line {lines[rank]}" if lines.get(rank) else ""
    verb = _verb(computing, "were", "was")
    says = f"{_ranks(computing)} {verb} still computing{where} after {now:.1f} s: a loop that never ends?"
    return "still computing", says


def _missing_call(
    record: Record, waiting: Mapping[int, Call], returned: set[int], now: float
) -> tuple[str, str] | None:
    """A collective for which somebody never came."""
    collective = {rank: call for rank, call in waiting.items() if call.operation not in MESSAGES}
    if not collective:
        return None
    call = min(collective.values(), key=lambda each: each.posted_at)
    there = {
        each.rank
        for each in record.calls
        if each.operation not in MESSAGES and (each.group, each.sequence) == (call.group, call.sequence)
    }
    absent = [rank for rank in call.group if rank not in there]
    if not absent:
        return None
    since = min(now - (each.waited_at or each.posted_at) for each in collective.values())
    who = _ranks(sorted(there))
    says = (
        f"{_ranks(absent)} never called {call.name}{_line(call)}; {who} {_verb(there, 'wait', 'waits')} there "
        f"since {since:.1f} s"
    )
    where = [rank for rank in absent if rank in waiting]
    if where:
        other = waiting[where[0]]
        says += f", while {_ranks([where[0]])} waits in {_message_name(other)}{_line(other)}"
        return "wrong order", says
    if all(rank in returned for rank in absent):
        says += f", while {_ranks(absent)} {_verb(absent, 'have', 'has')} returned"
    return "missing call", says


def _messages(record: Record, waiting: Mapping[int, Call], returned: set[int]) -> tuple[str, str]:
    """Messages that wait for each other."""
    sends = [call for call in waiting.values() if call.operation == "send"]
    receives = [call for call in waiting.values() if call.operation == "recv"]
    if sends and not receives and len(sends) == len(waiting) and len(sends) > 1:
        return (
            "everyone sends first",
            f"{_ranks(sorted(waiting))} all wait in send ({_lines(sends)}): a send is over when its receive was "
            "called, and nobody has come to receive",
        )
    if receives and not sends and len(receives) > 1:
        if (behind := _behind(record, receives)) is not None:
            return "missing message", behind
        return (
            "everyone receives first",
            f"{_ranks(sorted(waiting))} all wait in recv ({_lines(receives)}): nobody has come to send",
        )
    call = min(waiting.values(), key=lambda each: each.posted_at)
    other, want = call.peer, "receive from" if call.operation == "send" else "send to"
    says = f"{_ranks([call.rank])} waits in {_message_name(call)}{_line(call)}, but rank {other} "
    if other is not None and other in waiting:
        their = waiting[other]
        says += f"waits in {_message_name(their)}{_line(their)}"
        return "messages that do not meet", says
    verb = "has returned" if other in returned else "has ended"
    return "missing message", f"{says}{verb} and does not {want} it"


def _behind(record: Record, receives: Sequence[Call]) -> str | None:
    """Where all wait to receive and not all have sent alike: who sent least, and who waits for it. None where they did,
    for then no rank is to be told from the others."""
    sent = {
        call.rank: sum(
            (each.rank, each.case, each.operation) == (call.rank, call.case, "send") for each in record.calls
        )
        for call in receives
    }
    least, most = min(sent.values()), max(sent.values())
    late = [call for call in receives if call.peer in sent and sent[call.peer] == least]
    if least == most or not late:
        return None
    call, ahead = late[0], [rank for rank, count in sent.items() if count == most]
    return (
        f"{_ranks([call.rank])} waits in {_message_name(call)}{_line(call)}, which waits in recv itself and has sent "
        f"{_messages_counted(least)}, where {_ranks(ahead)} sent {_messages_counted(most)}: its send is missing, or "
        "comes too late"
    )


def _messages_counted(count: int) -> str:
    return "nothing yet" if not count else f"{count} {'message' if count == 1 else 'messages'}"


def _calls(call: Call) -> str:
    return f"{_ranks([call.rank])} calls {_message_name(call)}{_line(call)}"


def _message_name(call: Call) -> str:
    if call.operation in MESSAGES:
        to = "to" if call.operation == "send" else "from"
        return f"{call.operation} {to} rank {call.peer}"
    return call.name


def _shape(call: Call) -> str:
    specs = call.sent or call.expects
    return " and ".join(f"{spec[0]}{list(spec[1])}" for spec in specs[:3]) or "nothing"


def _line(call: Call) -> str:
    return f" (your line {call.line})" if call.line else ""


def _lines(calls: Sequence[Call]) -> str:
    lines = sorted({call.line for call in calls if call.line})
    return ", ".join(f"your line {line}" for line in lines) or "somewhere"


def _ranks(ranks: Sequence[int] | set[int]) -> str:
    listed = [str(each) for each in sorted(ranks)]
    if len(listed) == 1:
        return f"rank {listed[0]}"
    return f"ranks {', '.join(listed[:-1])} and {listed[-1]}"


def _verb(ranks: Sequence[int] | set[int] | Mapping[int, object], many: str, one: str) -> str:
    return one if len(ranks) == 1 else many
