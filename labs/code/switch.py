"""The switch: it carries every tensor from rank to rank, and so knows what was sent, by whom and when.

It plays the part of the collective library. Calls of one group are matched in the order in which each rank makes them,
as any such library does; a message is a rendezvous. What can never be completed is found by looking, not by waiting:
`stuck` says so as soon as every rank has ended or waits for what no rank can still bring.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor

from labs.code.inside.frames import DTYPES, BadFrame, Header, check_specs, spec_bytes, unpack_tensors
from labs.code.record import MESSAGES, Call

OPERATIONS = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "scatter",
    "gather",
    "barrier",
    *MESSAGES,
)
MOST_HELD_BYTES = 256 * 2**20  # of a run: sent, and waiting for the others
MOST_CALLS = 20_000  # of one run: a loop that never ends would fill our memory
_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda stacked: stacked.sum(0, dtype=stacked.dtype),
    "avg": lambda stacked: stacked.sum(0, dtype=stacked.dtype) / len(stacked),
    "max": lambda stacked: stacked.amax(0),
    "min": lambda stacked: stacked.amin(0),
    "product": lambda stacked: stacked.prod(0, dtype=stacked.dtype),
}


@dataclass(frozen=True)
class Mismatch:
    """Calls that were made at the same place in the order and do not fit each other."""

    what: str  # "operation", "size", "dtype", "root", "reduce" or "case"
    calls: tuple[Call, ...]


@dataclass
class _Held:
    """A call with the tensors that were sent for it."""

    call: Call
    tensors: list[Tensor]


@dataclass
class Switch:
    """The calls of one run. `deliver(rank, identity, tensors)` sends a result back."""

    ranks: int
    deliver: Callable[[int, int, Sequence[Tensor]], None]
    clock: Callable[[], float]
    calls: list[Call] = field(default_factory=list)
    mismatch: Mismatch | None = None

    def __post_init__(self) -> None:
        self._held_bytes = 0
        self._by_identity: dict[tuple[int, int], Call] = {}
        self._sequences: dict[tuple[object, ...], int] = defaultdict(int)
        self._waiting: dict[tuple[object, ...], dict[int, _Held]] = defaultdict(dict)
        self._messages: dict[tuple[object, ...], deque[_Held]] = defaultdict(deque)

    def post(self, rank: int, case: int, header: Header, payload: bytes) -> None:
        """A rank calls a collective or a message. Raises BadFrame."""
        call = self._call(rank, case, header)
        if len(self.calls) >= MOST_CALLS:
            raise BadFrame(f"more than {MOST_CALLS:,} calls")
        if (rank, call.identity) in self._by_identity:
            raise BadFrame("a call's number was used twice")
        self._held_bytes += len(payload)
        if self._held_bytes > MOST_HELD_BYTES:
            raise BadFrame(f"more than {MOST_HELD_BYTES:,} bytes that nobody takes")
        tensors = unpack_tensors(call.sent, payload)
        self.calls.append(call)
        self._by_identity[rank, call.identity] = call
        (self._match_message if call.operation in MESSAGES else self._match_collective)(_Held(call, tensors))

    def waits(self, rank: int, identity: object) -> Call:
        """A rank waits for a call's result. Raises BadFrame."""
        call = self._by_identity.get((rank, identity)) if type(identity) is int else None
        if call is None:
            raise BadFrame("it waits for a call it never made")
        call.waited_at = self.clock()
        return call

    def _call(self, rank: int, case: int, header: Header) -> Call:
        operation, group = header.get("operation"), header.get("group")
        if operation not in OPERATIONS or type(header.get("id")) is not int:
            raise BadFrame("no operation")
        if not isinstance(group, list) or any(type(each) is not int or not 0 <= each < self.ranks for each in group):
            raise BadFrame("no group of ranks")
        if rank not in group or len(set(group)) != len(group):
            raise BadFrame("a call for a group that the rank is not in")
        members, peer = tuple(group), _optional(header, "peer", self.ranks)
        root = _optional(header, "root", len(members))
        if operation in MESSAGES and (peer is None or peer == rank):
            raise BadFrame("a message to nobody, or to itself")
        key = (rank, operation, peer) if operation in MESSAGES else (rank, members)
        self._sequences[key] += 1
        return Call(
            rank=rank,
            identity=header["id"],
            operation=operation,
            group=members,
            case=case,
            sequence=self._sequences[key],
            sent=check_specs(header.get("sent")),
            expects=check_specs(header.get("expects")),
            reduce=header["reduce"] if header.get("reduce") in _REDUCTIONS else "sum",
            root=None if root is None else members[root],
            peer=peer,
            tag=_optional(header, "tag", 2**31) or 0,
            input_splits=_sizes(header.get("input_splits")),
            output_splits=_sizes(header.get("output_splits")),
            line=_optional(header, "line", 10**6),
            function=str(header.get("function"))[:80] if header.get("function") else None,
            posted_at=self.clock(),
        )

    # --- messages

    def _match_message(self, held: _Held) -> None:
        call = held.call
        ends = (call.rank, call.peer) if call.operation == "send" else (call.peer, call.rank)
        own, others = (*ends, call.tag, call.operation), (*ends, call.tag, _OTHER[call.operation])
        if not self._messages[others]:
            self._messages[own].append(held)
            return
        other = self._messages[others].popleft()
        send, receive = (held, other) if call.operation == "send" else (other, held)
        sent, expected = send.call.sent, receive.call.expects
        if [spec[0] for spec in sent] != [spec[0] for spec in expected]:
            self._disagree("dtype", send.call, receive.call)
        elif sum(map(spec_bytes, sent)) != sum(map(spec_bytes, expected)):
            self._disagree("size", send.call, receive.call)
        elif send.call.case != receive.call.case:
            self._disagree("case", send.call, receive.call)
        else:
            self._finish(send.call, ())
            self._finish(receive.call, send.tensors)

    # --- collectives

    def _match_collective(self, held: _Held) -> None:
        call = held.call
        key = (call.group, call.sequence)
        place = self._waiting[key]
        place[call.rank] = held
        first = next(iter(place.values())).call
        difference = _difference(first, call)
        if difference:
            self._disagree(difference, *(each.call for each in place.values()))
        elif len(place) == len(call.group):
            del self._waiting[key]
            self._complete([place[rank] for rank in call.group])

    def _complete(self, members: list[_Held]) -> None:
        try:
            results = _RESULTS[members[0].call.operation](members)
        except (RuntimeError, ValueError, IndexError):
            self._disagree("size", *(each.call for each in members))
            return
        for held, tensors in zip(members, results, strict=True):
            if sum(_size(each) for each in tensors) != sum(map(spec_bytes, held.call.expects)):
                self._disagree("size", *(each.call for each in members))
                return
        for held, tensors in zip(members, results, strict=True):
            self._finish(held.call, tensors)

    def _disagree(self, what: str, *calls: Call) -> None:
        if self.mismatch is None:
            self.mismatch = Mismatch(what, calls)

    def _finish(self, call: Call, tensors: Sequence[Tensor]) -> None:
        call.done_at = self.clock()
        self._held_bytes -= call.sent_bytes
        self.deliver(call.rank, call.identity, tensors)


_OTHER = {"send": "recv", "recv": "send"}


def _optional(header: Header, name: str, below: int) -> int | None:
    value = header.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < below:
        raise BadFrame(f"no {name}")
    return value


def _sizes(value: object) -> list[int]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > 64 or any(type(each) is not int or each < 0 for each in value):
        raise BadFrame("no sizes")
    return value


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _difference(first: Call, call: Call) -> str | None:
    """What keeps two calls at the same place from being one collective."""
    for what in ("operation", "case", "root", "reduce"):
        if getattr(first, what) != getattr(call, what):
            return what
    kinds = {spec[0] for spec in (*first.sent, *first.expects, *call.sent, *call.expects)}
    if len(kinds) > 1:
        return "dtype"
    if call.operation in ("all_reduce", "reduce", "reduce_scatter") and _bytes(first.sent) != _bytes(call.sent):
        return "size"
    return None


def _bytes(specs: Sequence[Spec]) -> int:
    return sum(map(spec_bytes, specs))


Spec = list[Any]
Results = list[Sequence[Tensor]]


def _flat(held: _Held) -> Tensor:
    """All that a rank sent, in one row."""
    if not held.tensors:
        specs = held.call.expects
        return torch.empty(0, dtype=DTYPES[specs[0][0]] if specs else torch.float32)
    return torch.cat([tensor.reshape(-1) for tensor in held.tensors])


def _reduced(members: list[_Held]) -> Tensor:
    stacked = torch.stack([_flat(each) for each in members])
    return _REDUCTIONS[members[0].call.reduce](stacked).to(stacked.dtype)


def _all_reduce(members: list[_Held]) -> Results:
    result = _reduced(members)
    return [[result] for _ in members]


def _reduce(members: list[_Held]) -> Results:
    result = _reduced(members)
    return [[result] if each.call.rank == each.call.root else [] for each in members]


def _broadcast(members: list[_Held]) -> Results:
    root = next(each for each in members if each.call.rank == each.call.root)
    return [[] if each is root else root.tensors for each in members]


def _all_gather(members: list[_Held]) -> Results:
    whole = [_flat(each) for each in members]
    return [whole for _ in members]


def _gather(members: list[_Held]) -> Results:
    whole = [_flat(each) for each in members]
    return [whole if each.call.rank == each.call.root else [] for each in members]


def _reduce_scatter(members: list[_Held]) -> Results:
    parts = torch.split(_reduced(members), [_numel(each.call.expects) for each in members])
    return [[part] for part in parts]


def _scatter(members: list[_Held]) -> Results:
    root = next(each for each in members if each.call.rank == each.call.root)
    parts = torch.split(_flat(root), [_numel(each.call.expects) for each in members])
    return [[part] for part in parts]


def _all_to_all(members: list[_Held]) -> Results:
    cut = [torch.split(_flat(each), _values_by_rank(each, len(members))) for each in members]
    return [[row[index] for row in cut] for index in range(len(members))]


def _values_by_rank(held: _Held, ranks: int) -> list[int]:
    """How many values go to each rank."""
    call = held.call
    if len(call.sent) == ranks and ranks > 1:
        return [prod(spec[1]) for spec in call.sent]
    rows = call.sent[0][1][0] if call.sent and call.sent[0][1] else 0
    width = _numel(call.sent) // rows if rows else 0
    splits = call.input_splits or [rows // ranks] * ranks
    return [each * width for each in splits]


def _barrier(members: list[_Held]) -> Results:
    return [[] for _ in members]


def _numel(specs: Sequence[Spec]) -> int:
    return sum(prod(spec[1]) for spec in specs)


_RESULTS: dict[str, Callable[[list[_Held]], Results]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "gather": _gather,
    "reduce_scatter": _reduce_scatter,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
    "barrier": _barrier,
}


def open_calls(calls: Sequence[Call]) -> Iterator[Call]:
    """The calls that are not over."""
    return (call for call in calls if call.done_at is None)
