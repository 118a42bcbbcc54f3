"""The ledger: every collective of a step with its bytes and its seconds.

Two byte counts, which are easily confused:

  payload  the tensor handed to the collective: what is reduced (all-reduce), the whole gathered output
           (all-gather), the whole input that is reduced and scattered (reduce-scatter), what is sent to all
           (broadcast), what one rank has for all others and itself (all-to-all), the message (send)
  wire     what one rank of n sends for it when the ranks form a ring: for payload S, an all-reduce
           2(n−1)/n × S, an all-gather, a reduce-scatter or a balanced all-to-all (n−1)/n × S, a message S,
           and a broadcast S, from each but the last rank. This is computed from the
           payload, not measured, and a library may choose another algorithm (gloo builds its
           reduce-scatter from all-reduces).

`seconds` is from the call until the result is there, added up over collectives. It contains waiting: for
ranks that come later, and for the collectives before. It is *not* what the step is slowed down by: DDP's
all-reduces run while backward computes, and several may be under way at once. On CUDA it is the time on the
GPU between the start and the end of the collective's kernel, and 0 for messages that NCCL kept no time of.

Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labs.parallel.mesh import Mesh
from labs.probes.history import Life
from labs.probes.report import Reporter
from labs.spec.events import Collectives, Component, Held, Operation, SpanEvent, StepPhase

# Collectives as the dispatcher's `c10d` library has them: what each one is, and which of its arguments is the
# payload. A message is entered where it is sent, not where it is received, so that it counts once.
_C10D: dict[str, tuple[Operation, int]] = {
    "allreduce_": ("all_reduce", 0),
    "allreduce_coalesced_": ("all_reduce", 0),
    "_allgather_base_": ("all_gather", 0),
    "allgather_": ("all_gather", 0),
    "allgather_into_tensor_coalesced_": ("all_gather", 0),
    "_reduce_scatter_base_": ("reduce_scatter", 1),
    "reduce_scatter_": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", 1),
    "broadcast_": ("broadcast", 0),
    "alltoall_base_": ("all_to_all", 1),
    "alltoall_": ("all_to_all", 1),
    "send": ("send", 0),
}


@dataclass
class Collective:
    """One collective, as a rank took part in it."""

    operation: Operation
    phase: StepPhase
    group: str
    group_size: int
    payload_bytes: int
    started_at: float = 0.0
    seconds: float = 0.0
    lives: list[Life] = field(default_factory=list)  # of the memory it filled or sent from, where that is followed

    @property
    def wire_bytes(self) -> int:
        return ring_wire_bytes(self.operation, self.payload_bytes, self.group_size)


def ring_wire_bytes(operation: Operation, payload_bytes: int, group_size: int) -> int:
    """Bytes one rank sends, when the ranks form a ring, for one collective over `payload_bytes`."""
    rounds = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
    if operation in ("broadcast", "send"):
        return payload_bytes if group_size > 1 else 0
    return round(rounds[operation] * payload_bytes * (group_size - 1) / group_size)


class Ledger:
    """Records the collectives of one step. `call` makes the collective on behalf of the dispatcher."""

    def __init__(self, device: torch.device, mesh: Mesh, timed: bool = True) -> None:
        self._mesh = mesh
        self._timed = timed  # nothing takes any time among fake ranks
        self._on_cuda = device.type == "cuda"
        self.phase: StepPhase = "forward"
        self._unix_offset = 0.0  # from this process's clock to the one that all ranks of a machine share
        self._collectives: list[Collective] = []
        self._finish: list[Callable[[], object]] = []
        self._messages: list[tuple[Collective, dist.Work]] = []  # under way
        self._phase_of_message: dict[int, StepPhase] = {}  # by the storage that is sent

    def start(self) -> None:
        self._unix_offset = time.time() - time.perf_counter()
        self._collectives, self._finish, self._messages = [], [], []

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the collective `func` and enter it, if it is one that moves data."""
        name = func._opname
        if name not in _C10D:
            return func(*args, **kwargs)
        self.messages_may_have_arrived()  # those of a ring, on whose account nobody says that it waited
        operation, payload_at = _C10D[name]
        group = _group(args)
        label, size = self._mesh.label_of(group), group.size()
        phase = self._phase_of_message.pop(_address(args[0][0]), self.phase) if operation == "send" else self.phase
        collective = Collective(operation, phase, label, size, _tensor_bytes(args[payload_at]))
        collective.started_at = time.perf_counter()
        result = func(*args, **kwargs)
        self._collectives.append(collective)
        if self._timed:
            self._time(collective, _work_of(result))
        return result

    def payload_of(self, func: Any, args: tuple[Any, ...]) -> list[Tensor]:
        """The tensors that make up the payload of `func`; none where it is no collective that moves data."""
        return list(_tensors(args[_C10D[func._opname][1]])) if func._opname in _C10D else []

    @property
    def newest(self) -> Collective:
        """The collective that was called last."""
        return self._collectives[-1]

    def messages_of(self, phase: StepPhase, messages: Iterable[Tensor]) -> None:
        """Have what is sent next entered under `phase`: a schedule may send a result when it runs something else."""
        self._phase_of_message |= {_address(message): phase for message in messages}

    def messages_may_have_arrived(self) -> None:
        """A rank has waited for something. gloo's messages offer nothing to be told by, only to be asked then."""
        now = time.perf_counter()
        for message, work in self._messages:
            if work.is_completed():
                message.seconds = now - message.started_at
        self._messages = [(message, work) for message, work in self._messages if not work.is_completed()]

    def seconds_under_way(self) -> float:
        """How long at least one collective or message of the step was under way."""
        total, until = 0.0, float("-inf")
        for item in sorted(self._collectives, key=lambda each: each.started_at):
            end = item.started_at + item.seconds
            total += max(0.0, end - max(until, item.started_at))
            until = max(until, end)
        return total

    def _time(self, collective: Collective, work: dist.Work) -> None:
        """Have `collective.seconds` filled in: when its work completes, or at the end of the step."""

        def completed(_future: object = None) -> None:
            collective.seconds = time.perf_counter() - collective.started_at

        def read_gpu_clock() -> None:  # NCCL's own events, if TORCH_NCCL_ENABLE_TIMING was set
            try:
                collective.seconds = work._get_duration() / 1e3  # type: ignore[attr-defined]
            except RuntimeError:
                if collective.operation != "send":  # messages that go in a batch may have no events of their own
                    raise

        if self._on_cuda:
            self._finish.append(read_gpu_clock)
            return
        if collective.operation == "send":
            self._messages.append((collective, work))
            return
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's reduce-scatter offers none. FSDP waits for it right after the call
            work.wait()  # anyway, so waiting here already changes nothing.
            completed()
        else:
            self._finish.append(future.then(completed).wait)

    def entries(self) -> list[Collectives]:
        """The step's collectives added up by operation, phase and group, in the order of first appearance."""
        if self._on_cuda:
            torch.cuda.synchronize()
        for finish in self._finish:
            finish()
        self._finish = []
        self.messages_may_have_arrived()
        alike: dict[tuple[Operation, StepPhase, str], list[Collective]] = {}
        for item in self._collectives:
            alike.setdefault((item.operation, item.phase, item.group), []).append(item)
        return [_added_up(items) for items in alike.values()]

    def report_spans(self, reporter: Reporter, step: int) -> None:
        """Emit each collective of the step as a span; it starts when it was called."""
        since = self._unix_offset - reporter.started_at_seconds
        for each in self._collectives:
            reporter.emit(
                SpanEvent,
                step=step,
                what="communication",
                stage=None,
                micro_batch=None,
                start=round(each.started_at + since, 6),
                end=round(each.started_at + each.seconds + since, 6),
                operation=each.operation,
                group=each.group,
                payload_bytes=each.payload_bytes,
                phase=each.phase,
                group_size=each.group_size,
                wire_bytes=each.wire_bytes,
                held=_held(each.lives, reporter.started_at_seconds) or None,
            )


def _held(lives: Iterable[Life], since: float) -> list[Held]:
    """Lives of one component that begin and end together (within a millisecond) as one; what was there before the step
    began is no doing of a collective's."""
    found: dict[tuple[Component, int, int | None], Held] = {}
    for life in lives:
        if not life.start or not life.bytes:
            continue
        start, end = life.start - since, None if life.end is None else life.end - since
        key = (life.component, round(1e3 * start), None if end is None else round(1e3 * end))
        before = found.get(key)
        size = life.bytes + (before.bytes if before else 0)
        found[key] = Held(life.component, size, round(start, 6), None if end is None else round(end, 6))
    return list(found.values())


def _added_up(alike: list[Collective]) -> Collectives:
    first = alike[0]
    return Collectives(
        operation=first.operation,
        phase=first.phase,
        group=first.group,
        group_size=first.group_size,
        count=len(alike),
        payload_bytes=sum(each.payload_bytes for each in alike),
        wire_bytes=sum(each.wire_bytes for each in alike),
        seconds=round(sum(each.seconds for each in alike), 9),
    )


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata  # type: ignore[no-any-return]


def _tensor_bytes(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    return sum(_tensor_bytes(item) for item in value)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
        return
    for item in value:
        yield from _tensors(item)


def _script_objects(values: Any) -> Iterator[Any]:
    return (value for value in values if isinstance(value, torch.ScriptObject))


def _group(args: tuple[object, ...]) -> dist.ProcessGroup:
    """The process group is the first of c10d's arguments that is no tensor."""
    return dist.ProcessGroup.unbox(next(_script_objects(args)))


def _work_of(result: object) -> dist.Work:
    """c10d returns the handle to wait for last, after its output tensors, or alone."""
    results = result if isinstance(result, list | tuple) else [result]
    return dist.Work.unbox(next(_script_objects(results)))
