"""One run: n ranks from n sandboxes, followed from outside until it ends or must be ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor

from labs.code.autopsy import perform
from labs.code.inside import frames
from labs.code.inside.frames import BadFrame, FrameReader, Header, clean
from labs.code.memory import Pages, forget_peak, peak_since, read_pages
from labs.code.record import STRANGE, Moment, Note, RankError, Record
from labs.code.sandbox import NoSandbox, Sandbox
from labs.code.switch import MOST_HELD_BYTES, Switch
from labs.spec.code import Autopsy

MOST_OUTPUT_BYTES = 64 * 1024  # of a rank; the rest is read and thrown away
MOST_RESULT_BYTES = 64 * 2**20
_END_SECONDS = 3.0
_BEGIN_SECONDS = 60.0  # for the ranks to be forked, with all that is ours loaded in them
_STUCK_SECONDS = 0.1  # of silence while all ranks wait: another thread of one may be about to speak
_ASKED_SECONDS = 0.4  # for a rank that computes to print where it is
_FORKED, _SEALED, _LOADED = range(3)  # stages of a rank: before, while and after it loads the learner's file
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class Job:
    """What the ranks of a run are to do. `cases` has the inputs of each rank, case by case."""

    task: str
    source: str
    ranks: int
    cases: Sequence[Sequence[Mapping[str, Any]]]
    gates: Sequence[Mapping[str, Sequence[Any]]] = ()  # of each case: by name, what each rank is given there
    seed: int = 0
    deadline_seconds: float = 10.0  # for the learner's file to load, and again from when all ranks have loaded it
    with_optimizers: bool = False  # what they need is loaded before the ranks begin


@dataclass
class Outcome:
    """What a run came to, and why it did not end by itself."""

    record: Record
    autopsy: Autopsy | None = None
    forged: str | None = None  # what arrived that no rank of ours would send


@dataclass
class _Rank:
    """A rank as the judge sees it."""

    number: int
    socket: socket.socket
    output: int
    reader: FrameReader = field(default_factory=FrameReader)
    outgoing: bytearray = field(default_factory=bytearray)
    pid: int | None = None  # as the kernel says whose bytes these are
    process: int | None = None  # a descriptor of it
    pages: Pages | None = None  # at its note before, where its peak could not be forgotten
    case: int = -1
    calls: int = 0
    stage: int = _FORKED
    waits_for: int | None = None  # a call's identity
    asked_next: int | None = None
    ended: bool = False  # it said that it is done, or what went wrong, or is gone
    printed: bytearray = field(default_factory=bytearray)
    result_bytes: int = 0


class Running:
    """Follows one run; `follow` is all there is to call."""

    def __init__(self, job: Job, sandboxes: Sequence[Sandbox], said: Callable[[int, str], None] | None = None) -> None:
        self._job, self._sandboxes, self._said = job, sandboxes, said
        self._started = time.monotonic()
        self._stage = _FORKED  # that every rank has come to
        self._record = Record(job.ranks)
        self._switch = Switch(job.ranks, self._deliver, self._now)
        self._record.calls = self._switch.calls
        self._selector = selectors.DefaultSelector()
        self._ranks: list[_Rank] = []

    def _now(self) -> float:
        return time.monotonic() - self._started

    def follow(self) -> Outcome:
        """Until the run has ended, one way or the other; nothing of it is left then. Raises NoSandbox."""
        forged, autopsy = None, None
        try:
            self._start()
            try:
                autopsy = self._loop()
            except BadFrame as error:
                forged = str(error)
        finally:
            self._end()
        for rank in self._ranks:
            self._record.output[rank.number] = clean(rank.printed.decode(errors="replace"), MOST_OUTPUT_BYTES)
        self._record.finished = autopsy is None and forged is None and not self._record.errors
        return Outcome(self._record, autopsy, forged)

    def _start(self) -> None:
        for number, sandbox in enumerate(self._sandboxes[: self._job.ranks]):
            ours, theirs = socket.socketpair()
            reading, writing = os.pipe()
            if hasattr(socket, "SO_PASSCRED"):  # Linux: whose bytes these are, as the kernel says it
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            rank = _Rank(number, ours, reading)
            self._ranks.append(rank)
            with theirs:
                try:
                    sandbox.become_rank(theirs, writing, self._job.with_optimizers)
                except OSError as error:
                    raise NoSandbox(f"a sandbox was gone: {error}") from None
                finally:
                    os.close(writing)
            ours.setblocking(False)
            os.set_blocking(reading, False)
            self._selector.register(ours, selectors.EVENT_READ, partial(self._hear, rank))
            self._selector.register(reading, selectors.EVENT_READ, partial(self._print, rank))
        self._started = time.monotonic()

    def _loop(self) -> Autopsy | None:
        while not all(rank.ended for rank in self._ranks):
            self._look_at_stage()
            left = (_BEGIN_SECONDS if self._stage == _FORKED else self._job.deadline_seconds) - self._now()
            if left <= 0 and self._stage == _FORKED:
                raise NoSandbox(f"the ranks did not begin in {_BEGIN_SECONDS:g} s")
            if left <= 0:
                return self._autopsy(at_deadline=True)
            heard = self._selector.select(min(left, _STUCK_SECONDS) if self._is_stuck() else left)
            for key, _ in heard:
                key.data()
            if self._switch.mismatch is not None or (not heard and self._is_stuck()):
                return self._autopsy(at_deadline=False)
        return None

    def _look_at_stage(self) -> None:
        """The clock starts again when the last rank comes to a stage: what the machine needs until then is not the
        learner's time. A rank comes to each once, so nobody can put the clock back."""
        reached = min((rank.stage for rank in self._ranks if not rank.ended), default=_LOADED)
        if reached > self._stage:
            self._stage, self._started = reached, time.monotonic()

    def _is_stuck(self) -> bool:
        """Whether every rank has ended or waits for what no rank can still bring."""
        if all(rank.ended for rank in self._ranks):
            return False
        return all(rank.ended or self._is_waiting(rank) for rank in self._ranks)

    def _is_waiting(self, rank: _Rank) -> bool:
        return rank.asked_next is not None or (rank.waits_for is not None and not self._is_over(rank))

    def _is_over(self, rank: _Rank) -> bool:
        return any(
            call.done_at is not None
            for call in reversed(self._switch.calls)
            if call.rank == rank.number and call.identity == rank.waits_for
        )

    def _autopsy(self, at_deadline: bool) -> Autopsy:
        computing = [rank for rank in self._ranks if not rank.ended and not self._is_waiting(rank)]
        lines = {rank.number: self._where(rank) for rank in computing} if at_deadline else {}
        waits = {rank.number: rank.waits_for for rank in self._ranks if not rank.ended and rank.asked_next is None}
        returned = {rank.number for rank in self._ranks if rank.asked_next is not None or rank.ended}
        return perform(self._record, self._switch.mismatch, waits, returned, lines, self._now(), at_deadline)

    def _where(self, rank: _Rank) -> int | None:
        """The learner's line that a rank computes at: it prints its stack when asked."""
        if rank.pid is None:
            return None
        before = len(rank.printed)
        self._signal(rank, signal.SIGUSR1)
        until = time.monotonic() + _ASKED_SECONDS
        while time.monotonic() < until:
            self._print(rank)
            for line in rank.printed[before:].decode(errors="replace").splitlines():
                if 'File "solution.py", line ' in line:
                    del rank.printed[before:]
                    return int(line.split("line ")[1].split(" ")[0])
            time.sleep(0.01)
        return None

    # --- what arrives

    def _print(self, rank: _Rank) -> None:
        try:
            data = os.read(rank.output, 65536)
        except (BlockingIOError, OSError):
            return
        if not data:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(rank.output)
            return
        fresh = data[: max(0, MOST_OUTPUT_BYTES - len(rank.printed))]
        rank.printed += fresh
        if fresh and self._said is not None:
            self._said(rank.number, clean(fresh.decode(errors="replace"), MOST_OUTPUT_BYTES))

    def _hear(self, rank: _Rank) -> None:
        self._write(rank)
        try:
            data, ancillary, _, _ = rank.socket.recvmsg(2**18, socket.CMSG_SPACE(_CREDENTIALS.size))
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == getattr(socket, "SCM_CREDENTIALS", None):
                self._meet(rank, _CREDENTIALS.unpack(value[: _CREDENTIALS.size])[0])
        if not data:
            self._gone(rank)
            return
        for header, payload in rank.reader.feed(data):
            try:
                self._handle(rank, header, payload)
            except STRANGE as error:
                raise BadFrame(f"a frame {_text(header['kind'], 40)!r} that cannot be read") from error

    def _meet(self, rank: _Rank, pid: int) -> None:
        """Hold on to the process itself: its number may be another's once it is gone."""
        if rank.pid is None and pid:
            with contextlib.suppress(OSError):
                rank.process, rank.pid = os.pidfd_open(pid), pid

    def _signal(self, rank: _Rank, number: signal.Signals) -> None:
        if rank.process is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(rank.process, number)

    def _gone(self, rank: _Rank) -> None:
        self._selector.unregister(rank.socket)
        if not rank.ended:
            rank.ended = True
            self._record.errors[rank.number] = RankError(
                "Gone", "the process ended without a word", None, None, None, False, ()
            )

    def _handle(self, rank: _Rank, header: Header, payload: bytes) -> None:
        """A frame of a rank. Raises BadFrame."""
        if rank.ended:
            raise BadFrame("a frame after the end")
        handle = getattr(self, f"_on_{header['kind']}", None)
        if handle is None:
            raise BadFrame(f"no frame is called {header['kind'][:40]!r}")
        if header["kind"] not in ("wait", "mark") and rank.waits_for is not None:
            rank.waits_for = None
        handle(rank, header, payload)

    def _comes_to(self, rank: _Rank, stage: int) -> None:
        if rank.stage != stage - 1:
            raise BadFrame("it begins a second time")
        rank.stage = stage

    def _on_hello(self, rank: _Rank, header: Header, payload: bytes) -> None:
        self._comes_to(rank, _SEALED)
        job = {"rank": rank.number, "ranks": self._job.ranks, "task": self._job.task, "source": self._job.source}
        self._answer(rank, header, {**job, "seed": self._job.seed})

    def _on_loaded(self, rank: _Rank, header: Header, payload: bytes) -> None:
        self._comes_to(rank, _LOADED)

    def _on_next(self, rank: _Rank, header: Header, payload: bytes) -> None:
        rank.asked_next = _number(header)
        if any(each.asked_next is None for each in self._ranks):
            return
        for each in self._ranks:
            each.case += 1
            asked, each.asked_next = each.asked_next, None
            cases = self._job.cases
            inputs = cases[each.case][each.number] if each.case < len(cases) else None
            self._answer(each, {"id": asked}, inputs)

    def _on_call(self, rank: _Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        rank.calls += 1
        self._switch.post(rank.number, rank.case, header, payload)

    def _on_wait(self, rank: _Rank, header: Header, payload: bytes) -> None:
        call = self._switch.waits(rank.number, header.get("id"))
        rank.waits_for = None if call.done_at is not None else call.identity

    def _on_mark(self, rank: _Rank, header: Header, payload: bytes) -> None:
        self._note(rank, header, self._record.marks)

    def _on_gate(self, rank: _Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        self._note(rank, header, self._record.gates)
        kept = self._job.gates[rank.case] if rank.case < len(self._job.gates) else {}
        name = str(header.get("name"))
        if name not in kept:
            raise BadFrame("there is no such gate")
        self._answer(rank, header, kept[name][rank.number])

    def _on_note(self, rank: _Rank, header: Header, payload: bytes) -> None:
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

    def _on_result(self, rank: _Rank, header: Header, payload: bytes) -> None:
        self._check_case(rank)
        rank.result_bytes += len(payload)
        if rank.result_bytes > MOST_RESULT_BYTES:
            raise BadFrame("more results than there may be")
        tensors = frames.unpack_tensors(frames.check_specs(header.get("sent")), payload)
        value = frames.unflatten(header.get("value"), tensors)
        self._record.results[rank.case, rank.number, _text(header.get("name"), 60)] = value

    def _on_error(self, rank: _Rank, header: Header, payload: bytes) -> None:
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

    def _on_done(self, rank: _Rank, header: Header, payload: bytes) -> None:
        if rank.case < len(self._job.cases):
            raise BadFrame("it said that it was done before the last case")
        rank.ended = True

    def _check_case(self, rank: _Rank) -> None:
        if not 0 <= rank.case < len(self._job.cases):
            raise BadFrame("it did something outside of every case")

    def _note(self, rank: _Rank, header: Header, moments: list[Moment]) -> None:
        if len(moments) > 10_000:
            raise BadFrame("more marks than there may be")
        name = _text(header.get("name"), 60)
        moments.append(Moment(rank.number, rank.case, name, self._now(), rank.calls))

    # --- what goes back

    def _answer(self, rank: _Rank, header: Header, value: object) -> None:
        tensors: list[Tensor] = []
        flat = frames.flatten(value, tensors)
        answer = {"kind": "answer", "id": header["id"], "value": flat, "tensors": [frames.spec_of(t) for t in tensors]}
        self._send(rank, answer, tensors)

    def _deliver(self, number: int, identity: int, tensors: Sequence[Tensor]) -> None:
        rank = self._ranks[number]
        if rank.waits_for == identity:
            rank.waits_for = None
        self._send(rank, {"kind": "result", "id": identity}, [tensor.contiguous() for tensor in tensors])

    def _send(self, rank: _Rank, header: Header, tensors: Sequence[Tensor]) -> None:
        for part in frames.pack(header, tensors):
            rank.outgoing += part
        self._write(rank)
        if len(rank.outgoing) > MOST_HELD_BYTES:
            raise BadFrame("it takes nothing of what it is sent")

    def _write(self, rank: _Rank) -> None:
        """As much as fits; the rest when there is room again."""
        with contextlib.suppress(BlockingIOError, OSError):
            while rank.outgoing:
                del rank.outgoing[: rank.socket.send(rank.outgoing)]
        with contextlib.suppress(KeyError, ValueError):
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if rank.outgoing else 0)
            self._selector.modify(rank.socket, wanted, partial(self._hear, rank))

    def _end(self) -> None:
        for rank, sandbox in zip(self._ranks, self._sandboxes, strict=False):
            self._signal(rank, signal.SIGKILL)
            if rank.process is not None:
                os.close(rank.process)
            rank.socket.close()
            if not sandbox.rank_ended(_END_SECONDS):
                sandbox.end()
            for _ in range(MOST_OUTPUT_BYTES // 4096):
                before = len(rank.printed)
                self._print(rank)
                if len(rank.printed) == before:
                    break
            os.close(rank.output)
        self._selector.close()


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
