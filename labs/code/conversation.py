"""What the ranks of a run say to the judge, frame by frame, and what they are answered.

What no rank of ours would send is a BadFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from labs.code.inside import frames
from labs.code.inside.frames import BadFrame, Header, clean
from labs.code.memory import forget_peak, peak_since, read_pages
from labs.code.rank import LOADED, SEALED, Job, Rank
from labs.code.record import Moment, Note, RankError, Record
from labs.code.switch import MOST_HELD_BYTES, Switch

MOST_RESULT_BYTES = 64 * 2**20


class Conversation:
    """Of one run. `write` sends what a rank's `outgoing` holds; `now` are seconds since the ranks' stage began."""

    def __init__(
        self,
        job: Job,
        record: Record,
        ranks: Sequence[Rank],
        write: Callable[[Rank], None],
        now: Callable[[], float],
    ) -> None:
        self._job, self._record, self._ranks, self._write, self._now = job, record, ranks, write, now
        self.switch = Switch(job.ranks, self.deliver, now)
        record.calls = self.switch.calls

    def handle(self, rank: Rank, header: Header, payload: bytes) -> None:
        """A frame of a rank. Raises BadFrame."""
        if rank.ended:
            raise BadFrame("a frame after the end")
        handle = getattr(self, f"_on_{header['kind']}", None)
        if handle is None:
            raise BadFrame(f"no frame is called {header['kind'][:40]!r}")
        if header["kind"] not in ("wait", "mark") and rank.waits_for is not None:
            rank.waits_for = None
        handle(rank, header, payload)

    def _comes_to(self, rank: Rank, stage: int) -> None:
        if rank.stage != stage - 1:
            raise BadFrame("it begins a second time")
        rank.stage = stage

    def _on_hello(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._comes_to(rank, SEALED)
        job = {"rank": rank.number, "ranks": self._job.ranks, "task": self._job.task, "source": self._job.source}
        self._answer(rank, header, {**job, "seed": self._job.seed})

    def _on_loaded(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._comes_to(rank, LOADED)

    def _on_next(self, rank: Rank, header: Header, payload: bytes) -> None:
        rank.asked_next = _number(header)
        if any(each.asked_next is None for each in self._ranks):
            return
        for each in self._ranks:
            each.case += 1
            asked, each.asked_next = each.asked_next, None
            cases = self._job.cases
            inputs = cases[each.case][each.number] if each.case < len(cases) else None
            self._answer(each, {"id": asked}, inputs)

    def _on_call(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        rank.calls += 1
        self.switch.post(rank.number, rank.case, header, payload)

    def _on_wait(self, rank: Rank, header: Header, payload: bytes) -> None:
        call = self.switch.waits(rank.number, header.get("id"))
        rank.waits_for = None if call.done_at is not None else call.identity

    def _on_mark(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._note(rank, header, self._record.marks)

    def _on_gate(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        self._note(rank, header, self._record.gates)
        kept = self._job.gates[rank.case] if rank.case < len(self._job.gates) else {}
        name = str(header.get("name"))
        if name not in kept:
            raise BadFrame("there is no such gate")
        self._answer(rank, header, kept[name][rank.number])

    def _on_note(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        pages = read_pages(rank.pid) if rank.pid is not None else None
        if len(self._record.notes) > 10_000:
            raise BadFrame("more notes than there may be")
        components = header.get("held")
        held = components if isinstance(components, dict) and _are_components(components) else {}
        self._record.notes.append(
            Note(
                rank=rank.number,
                case=rank.case,
                name=_text(header.get("name"), 60),
                bytes=pages.held_bytes if pages else None,
                peak_bytes=peak_since(pages, rank.pages) if pages else None,
                components={_text(name, 40): value for name, value in held.items()},
            )
        )
        forgotten = rank.pid is not None and forget_peak(rank.pid)
        rank.pages = None if forgotten else pages
        self._answer(rank, header, None)

    def _on_result(self, rank: Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        rank.result_bytes += len(payload)
        if rank.result_bytes > MOST_RESULT_BYTES:
            raise BadFrame("more results than there may be")
        tensors = frames.unpack_tensors(frames.check_specs(header.get("sent")), payload)
        value = frames.unflatten(header.get("value"), tensors)
        self._record.results[rank.case, rank.number, _text(header.get("name"), 60)] = value

    def _on_error(self, rank: Rank, header: Header, payload: bytes) -> None:
        rank.ended = True
        lines = header.get("traceback")
        self._record.errors[rank.number] = RankError(
            type=_text(header.get("type"), 80),
            message=_text(header.get("message"), 600),
            line=_line(header.get("line")),
            column=_line(header.get("column")),
            text=_text(header["text"], 200) if header.get("text") else None,
            refused=header.get("refused") is True,
            traceback=tuple(_text(each, 300) for each in lines[:16]) if isinstance(lines, list) else (),
        )

    def _on_done(self, rank: Rank, header: Header, payload: bytes) -> None:
        if rank.case < len(self._job.cases):
            raise BadFrame("it said that it was done before the last case")
        rank.ended = True

    def _check_case(self, rank: Rank) -> None:
        if not 0 <= rank.case < len(self._job.cases):
            raise BadFrame("it did something outside of every case")

    def _note(self, rank: Rank, header: Header, moments: list[Moment]) -> None:
        if len(moments) > 10_000:
            raise BadFrame("more marks than there may be")
        name = _text(header.get("name"), 60)
        moments.append(Moment(rank.number, rank.case, name, self._now(), rank.calls))

    # --- what goes back

    def _answer(self, rank: Rank, header: Header, value: object) -> None:
        tensors: list[Tensor] = []
        flat = frames.flatten(value, tensors)
        answer = {"kind": "answer", "id": header["id"], "value": flat, "tensors": [frames.spec_of(t) for t in tensors]}
        self._send(rank, answer, tensors)

    def deliver(self, number: int, identity: int, tensors: Sequence[Tensor]) -> None:
        rank = self._ranks[number]
        if rank.waits_for == identity:
            rank.waits_for = None
        self._send(rank, {"kind": "result", "id": identity}, [tensor.contiguous() for tensor in tensors])

    def _send(self, rank: Rank, header: Header, tensors: Sequence[Tensor]) -> None:
        for part in frames.pack(header, tensors):
            rank.outgoing += part
        self._write(rank)
        if len(rank.outgoing) > MOST_HELD_BYTES:
            raise BadFrame("it takes nothing of what it is sent")


def _are_components(value: Mapping[object, object]) -> bool:
    return len(value) < 20 and all(type(each) is int for each in value.values())


def _number(header: Header) -> int:
    number = header.get("id")
    if type(number) is not int:
        raise BadFrame("a question without a number")
    return number


def _text(value: object, most: int) -> str:
    return clean(str(value), most)


def _line(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 10**6 else None
