"""One run: n ranks from n sandboxes, followed from outside until it ends or must be ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from labs.code.autopsy import perform
from labs.code.conversation import Conversation
from labs.code.inside.frames import BadFrame, clean
from labs.code.rank import FORKED, LOADED, Job, Rank
from labs.code.record import STRANGE, RankError, Record
from labs.code.sandbox import NoSandbox, Sandbox
from labs.spec.code import Autopsy

MOST_OUTPUT_BYTES = 64 * 1024  # of a rank; the rest is read and thrown away
_END_SECONDS = 3.0
_BEGIN_SECONDS = 60.0  # for the ranks to be forked, with all that is ours loaded in them
_STUCK_SECONDS = 0.1  # of silence while all ranks wait: another thread of one may be about to speak
_ASKED_SECONDS = 0.4  # for a rank that computes to print where it is
_CREDENTIALS = struct.Struct("3i")


@dataclass
class Outcome:
    """What a run came to, and why it did not end by itself."""

    record: Record
    autopsy: Autopsy | None = None
    forged: str | None = None  # what arrived that no rank of ours would send


class Running:
    """Follows one run; `follow` is all there is to call."""

    def __init__(self, job: Job, sandboxes: Sequence[Sandbox], said: Callable[[int, str], None] | None = None) -> None:
        self._job, self._sandboxes, self._said = job, sandboxes, said
        self._started = time.monotonic()
        self._stage = FORKED  # that every rank has come to
        self._record = Record(job.ranks)
        self._selector = selectors.DefaultSelector()
        self._ranks: list[Rank] = []
        self._conversation = Conversation(job, self._record, self._ranks, self._write, self._now)
        self._switch = self._conversation.switch

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
            rank = Rank(number, ours, reading)
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
            left = (_BEGIN_SECONDS if self._stage == FORKED else self._job.deadline_seconds) - self._now()
            if left <= 0 and self._stage == FORKED:
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
        reached = min((rank.stage for rank in self._ranks if not rank.ended), default=LOADED)
        if reached > self._stage:
            self._stage, self._started = reached, time.monotonic()

    def _is_stuck(self) -> bool:
        """Whether every rank has ended or waits for what no rank can still bring."""
        if all(rank.ended for rank in self._ranks):
            return False
        return all(rank.ended or self._is_waiting(rank) for rank in self._ranks)

    def _is_waiting(self, rank: Rank) -> bool:
        return rank.asked_next is not None or (rank.waits_for is not None and not self._is_over(rank))

    def _is_over(self, rank: Rank) -> bool:
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

    def _where(self, rank: Rank) -> int | None:
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

    def _print(self, rank: Rank) -> None:
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

    def _hear(self, rank: Rank) -> None:
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
                self._conversation.handle(rank, header, payload)
            except STRANGE as error:
                raise BadFrame(f"a frame {clean(str(header['kind']), 40)!r} that cannot be read") from error

    def _meet(self, rank: Rank, pid: int) -> None:
        """Hold on to the process itself: its number may be another's once it is gone."""
        if rank.pid is None and pid:
            with contextlib.suppress(OSError):
                rank.process, rank.pid = os.pidfd_open(pid), pid

    def _signal(self, rank: Rank, number: signal.Signals) -> None:
        if rank.process is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(rank.process, number)

    def _gone(self, rank: Rank) -> None:
        self._selector.unregister(rank.socket)
        if not rank.ended:
            rank.ended = True
            self._record.errors[rank.number] = RankError(
                "Gone", "the process ended without a word", None, None, None, False, ()
            )

    # --- what goes back

    def _write(self, rank: Rank) -> None:
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
