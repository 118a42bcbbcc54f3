"""Puts the probes around a training step, and takes them off again.

Looking costs time: with the probes a step takes noticeably longer. So only some steps are watched, one of them in time
as well, and the throughput is taken from the others. Watching changes no result: the probes see what passes by and
compute nothing with it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.module import register_module_forward_pre_hook

from labs.parallel.mesh import Mesh
from labs.parallel.strategy import Strategy
from labs.probes.allocator import count_peak_from_now, peak_bytes
from labs.probes.communication import Ledger
from labs.probes.dispatch import Watch
from labs.probes.history import History
from labs.probes.memory import COMPONENTS, MemoryTracker, SavedTensor
from labs.probes.operations import Operations
from labs.probes.report import Reporter
from labs.probes.timeline import Timeline, What, report_spans
from labs.spec.events import (
    Bytes,
    Collectives,
    CommunicationEvent,
    DetailEvent,
    LayerPass,
    MemoryEvent,
    Moment,
    OperationSeconds,
    Pass,
    Split,
    StepPhase,
)

_EVERY_STEPS = 20
_LET_GO_SECONDS = 2.0
_FIRST_TYPICAL_STEP = 3
MOST_WAITS = 800  # as many as fit a line of events


def is_probed(step: int, steps: int) -> bool:
    """Step 2, in which DDP regroups its buckets, so that the memory they take is known; step 3, the first typical one;
    then every twentieth. A run of a single step is probed in that."""
    return step == min(2, steps) or (step >= _FIRST_TYPICAL_STEP and (step - _FIRST_TYPICAL_STEP) % _EVERY_STEPS == 0)


def is_timed(step: int, steps: int) -> bool:
    """The first typical step, which is a probed one; of a shorter run the last probed one."""
    return step == min(_FIRST_TYPICAL_STEP, steps)


class Instrument:
    """All probes of one rank. What it has found of the last probed step is in its public attributes."""

    def __init__(
        self,
        probes: Iterable[str],
        steps: int,
        device: torch.device,
        mesh: Mesh,
        timed: bool = True,
        every_step: bool = False,
    ) -> None:
        self._steps, self._device = steps, device
        self._every_step = every_step
        self.steps_before = 0  # done by an earlier start of the ranks: of those that follow, the same are probed
        self._memory = MemoryTracker(device) if "memory" in probes else None
        self._ledger = Ledger(device, mesh, timed) if "communication" in probes else None
        self._timeline = Timeline(device) if "timeline" in probes else None
        self._parameters: list[nn.Parameter] = []
        self._strategy: Strategy | None = None
        self._phase: StepPhase | None = None  # None outside of probed steps
        self._is_timed = False  # the probed step is one that is looked at in time
        self._history, self._waits = History(), list[tuple[float, float]]()
        self.moments: dict[Moment, Bytes] = {}
        self.peak_during = ""
        self.largest_peak: Bytes | None = None
        self.allocator_peak_bytes: int | None = None  # the same by the GPU allocator's count
        self.collectives: list[Collectives] | None = None
        self._operations = Operations(device)
        self.operations: OperationSeconds | None = None

    def watches(self, step: int) -> bool:
        off = self._memory is None and self._ledger is None and self._timeline is None
        return (is_probed(*self._of_own(step)) or self._every_step) and not off

    def _of_own(self, step: int) -> tuple[int, int]:
        """Which step it is of those that are not done yet, and how many these are."""
        return step - self.steps_before, self._steps - self.steps_before

    @contextmanager
    def watching_construction(self) -> Iterator[None]:
        """While the strategy is applied: what DDP allocates then, and keeps, are its buckets for gradients."""
        with ExitStack() as stack:
            if self._memory is not None:
                stack.enter_context(Watch(self._memory, None))
                self._memory.new_blocks_belong_to = "gradients"
            yield
        if self._memory is not None:
            self._memory.new_blocks_belong_to = None

    def _wait_until_buckets_are_alone(self, memory: MemoryTracker) -> None:
        """A thread of gloo may still hold what DDP sent round when it was set up: a copy of the parameters that is no
        bucket. It lets go within moments, unless the machine is busy."""
        buckets = sum(each.numel() * each.element_size() for each in self._parameters if each.requires_grad)
        until = time.monotonic() + _LET_GO_SECONDS
        while memory.now()["gradients"] > buckets and time.monotonic() < until:
            time.sleep(0.001)

    def attach(self, strategy: Strategy) -> None:
        """Tell the probes what they are going to look at. Collective where there are buckets."""
        self._parameters = strategy.parameters()
        self._strategy = strategy
        if self._timeline is not None and len(strategy.modules) == 1 and strategy.passes is None:
            self._timeline.layers.attach(strategy.modules)
        memory = self._memory
        if memory is None:
            return
        if not strategy.has_buckets:
            memory.disown()  # what was allocated then was no bucket
        memory.assign(self._parameters, "parameters")
        if strategy.recomputation is not None:
            strategy.recomputation.watch = memory.keeping
        for parameter in self._parameters:
            parameter.register_post_accumulate_grad_hook(self._gradient_is_there)  # type: ignore[no-untyped-call]
        if strategy.has_buckets:
            self._wait_until_buckets_are_alone(memory)
            # Before DDP hands over to the plain model it may regroup its buckets: they are gradients, too.
            for replica in strategy.modules:
                replica.register_forward_pre_hook(self._new_blocks_belong_to_gradients)
                replica.get_submodule("module").register_forward_pre_hook(self._new_blocks_belong_to_nobody)

    @contextmanager
    def step(self, step: int) -> Iterator[None]:
        """Around everything a training step does; not around what is done only to show it."""
        if not self.watches(step):
            yield
            return
        self._is_timed = self._timeline is not None and is_timed(*self._of_own(step))
        with ExitStack() as stack:
            self._start(stack)
            yield
            self._phase = None
        self._finish()

    def _start(self, stack: ExitStack) -> None:
        self.moments = {}
        self._history, self._waits = History(), []
        gc.collect()
        count_peak_from_now(self._device)
        self._phase = "forward"
        if self._memory is not None:
            self._claim_model_state(self._memory)
            self._memory.phase = self._phase
            self._memory.start()
            stack.enter_context(_storage_resizes_reported_to(self._memory))
            stack.enter_context(saved_tensors_hooks(self._memory.save, _unpack))
            stack.callback(register_module_forward_pre_hook(self._module_is_called).remove)
        if self._ledger is not None:
            self._ledger.start()
            self._ledger.phase = self._phase
        if self._timeline is not None and self._is_timed:
            stack.enter_context(self._timeline.watching())
            if self._memory is not None:
                stack.enter_context(self._memory.writing(self._history))
        if self._memory is not None or self._ledger is not None:
            self._operations.start()
            self._operations.phase = self._phase
            watch = Watch(self._memory, self._ledger, self._operations)
            self._waits = watch.gloo.waits
            stack.enter_context(watch.gloo.noticing_its_work())
            stack.enter_context(watch)

    def _finish(self) -> None:
        counted = peak_bytes(self._device)
        if counted is not None:
            self.allocator_peak_bytes = max(self.allocator_peak_bytes or 0, counted)
        if self._memory is not None:
            self.moments["activation_peak"] = self._memory.activation_peak
            self.moments["peak"] = self._memory.peak
            self.peak_during = self._memory.peak_phase
            if self.largest_peak is None or self._memory.peak["total"] > self.largest_peak["total"]:
                self.largest_peak = self._memory.peak
        if self._ledger is not None:
            self.collectives = self._ledger.entries()
        if self._memory is not None or self._ledger is not None:
            self.operations = self._operations.seconds()

    def enter(self, phase: StepPhase) -> None:
        """The step goes over to `phase`."""
        if self._phase is None:
            return
        self._phase = phase
        if self._memory is not None:
            self._memory.phase = phase
        if self._ledger is not None:
            self._ledger.phase = phase
        self._operations.phase = phase
        if self._timeline is not None:
            self._timeline.layers.enter(phase == "backward")
        if phase == "forward" and "forward_start" not in self.moments:
            self.note("forward_start")
        elif phase == "backward":
            self.note("backward_start")  # with several micro-batches the last one's remains
        elif phase == "optimizer":
            self.note("backward_end")

    @contextmanager
    def passing(self, what: Pass, stage: int, micro_batch: int) -> Iterator[None]:
        """One pass of one micro-batch through one stage."""
        self.enter("forward" if what == "F" else "backward")
        with self._span(what, stage, micro_batch):
            yield

    def sending(self, phase: StepPhase, messages: Iterable[Tensor]) -> None:
        """These tensors are about to be sent."""
        if self._phase is not None and self._ledger is not None:
            self._ledger.messages_of(phase, messages)

    @contextmanager
    def waiting(self, stage: int) -> Iterator[None]:
        """The rank waits for a message."""
        with self._span("idle", stage):
            yield
        if self._phase is not None and self._ledger is not None:
            self._ledger.messages_may_have_arrived()

    @contextmanager
    def updating(self) -> Iterator[None]:
        """The optimizer's update."""
        self.enter("optimizer")
        with self._span("optimizer", 0):
            yield

    def _span(self, what: What, stage: int, micro_batch: int | None = None) -> AbstractContextManager[None]:
        if self._timeline is None or self._phase is None or not self._is_timed:
            return nullcontext()
        return self._timeline.span(what, stage, micro_batch)

    def split(self) -> Split | None:
        """Seconds of the step just probed by what the rank did; None where it was not looked at in time."""
        if self._timeline is None or not self._is_timed:
            return None
        seconds = self._timeline.seconds_of
        return Split(
            forward=seconds("F"),
            backward=seconds("B") + seconds("W"),
            optimizer=seconds("optimizer"),
            idle=seconds("idle"),
            communication=0.0 if self._ledger is None else self._ledger.seconds_under_way(),
        )

    def note(self, moment: Moment) -> None:
        """Remember where the memory is now, under this name."""
        if self._memory is None or self._phase is None:
            return
        self._claim_model_state(self._memory)
        self.moments[moment] = self._memory.now()

    def report(self, reporter: Reporter, step: int) -> None:
        """Emit what was found, if `step` was a probed one."""
        if not self.watches(step):
            return
        for at, found in self.moments.items():
            reporter.emit(MemoryEvent, step, at, found, self.peak_during if at == "peak" else None)
        for entry in self.collectives or []:
            reporter.emit(CommunicationEvent, step=step, **asdict(entry))
        if self._timeline is None or not self._is_timed:
            return
        report_spans(reporter, step, self._timeline.spans)
        if self._ledger is not None:
            self._ledger.report_spans(reporter, step)
        self._report_detail(reporter, step, self._timeline)

    def _report_detail(self, reporter: Reporter, step: int, timeline: Timeline) -> None:
        since, thinned = reporter.started_at_seconds, self._history.thinned()
        reporter.emit(
            DetailEvent,
            step=step,
            start=round(timeline.started_at - since, 6),
            end=round(timeline.ended_at - since, 6),
            layers=[
                LayerPass(each.layer, each.what, round(each.start - since, 6), round(each.end - since, 6))
                for each in timeline.layers.passes
            ],
            waits=[[round(start - since, 6), round(end - since, 6)] for start, end in self._waits[:MOST_WAITS]],
            at=[round(each - since, 6) for each in thinned.at],
            memory={name: [held[index] for held in thinned.held] for index, name in enumerate(COMPONENTS)},
            finest_bytes=thinned.finest_bytes,
        )

    # --- what the memory tracker cannot see in the operations alone

    def _claim_model_state(self, memory: MemoryTracker) -> None:
        memory.assign(self._parameters, "parameters")
        if self._strategy is not None:
            memory.assign(self._strategy.gradients(), "gradients")
            memory.assign(self._strategy.optimizer.tensors(), "optimizer")

    def _gradient_is_there(self, parameter: Tensor) -> None:
        if self._phase is not None and self._memory is not None and parameter.grad is not None:
            self._memory.assign([parameter.grad], "gradients")

    def _module_is_called(self, module: nn.Module, args: tuple[object, ...]) -> None:
        if self._memory is not None:
            self._memory.note_gathered(module.parameters(recurse=False))
            self._memory.note_gathered(each for each in args if isinstance(each, nn.Parameter))  # lent for the call

    def _new_blocks_belong_to_gradients(self, _module: nn.Module, _args: object) -> None:
        if self._memory is not None:
            self._memory.new_blocks_belong_to = "gradients"

    def _new_blocks_belong_to_nobody(self, _module: nn.Module, _args: object) -> None:
        if self._memory is not None:
            self._memory.new_blocks_belong_to = None


def _unpack(saved: SavedTensor) -> Tensor:
    return saved.tensor


@contextmanager
def _storage_resizes_reported_to(memory: MemoryTracker) -> Iterator[None]:
    """FSDP resizes storages directly, which is no operation: watch that one method as well."""
    original = torch.UntypedStorage.resize_

    def resize(storage: Any, size: int) -> Any:
        result = original(storage, size)
        memory.resized(storage)
        return result

    torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.UntypedStorage.resize_ = original  # type: ignore[method-assign]
