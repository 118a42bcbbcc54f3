"""The training: what every rank does from joining the others to the last step, in order."""

from __future__ import annotations

import os
import signal
import statistics
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from labs.command import restart_count, torchrun_restart_count
from labs.data import Batches, load_text
from labs.joining import checkpoint_folder, choose_device, circumstances, join, joining
from labs.parallel.mesh import Mesh
from labs.parallel.pipeline import layers_here
from labs.parallel.precision import COMPUTE
from labs.parallel.strategy import Strategy
from labs.probes.allocator import recorded
from labs.probes.finite import Watch, spoil_weight, stop_unless_number
from labs.probes.instrument import Instrument
from labs.probes.memory import model_state
from labs.probes.report import Reporter
from labs.probes.throughput import model_flops_per_token, peak_of_all_ranks
from labs.probes.watched import spread_watched, watched_step
from labs.recovery import Checkpoints
from labs.spec import RunSpec
from labs.spec.events import MeasurementEvent, ResultEvent, Split, StepEvent, TrainingSummary, killed_on_purpose


@dataclass(frozen=True)
class Step:
    """What one step came to. `loss` is the mean over the global batch, in nats per token. `waited` are those of its
    seconds in which the rank's own thread had no core: it waited for other ranks, or for its turn."""

    loss: float
    seconds: float
    probed: bool
    waited: float = 0.0


def train(spec: RunSpec, reporter: Reporter) -> None:
    """Train as `spec` says, together with the other ranks, and report. Raises whatever goes wrong."""
    device = choose_device(spec)
    reporter.phase("starting", joining(spec.parallel.world_size))
    join(device)
    with recorded(reporter) if "allocator" in spec.probes else nullcontext():
        _train(spec, reporter, device)
    dist.barrier()  # no rank leaves while another may still need it
    reporter.phase("finished")


def _train(spec: RunSpec, reporter: Reporter, device: torch.device) -> None:
    reporter.phase("starting", "building the model")
    mesh = Mesh(spec.parallel, device.type)
    instrument = Instrument(spec.probes, spec.training.steps, device, mesh)
    strategy, parameters = spread_watched(spec, mesh, device, instrument)
    watch = Watch(strategy.modules, layers_here(spec, mesh.pipeline.index), spec.training.loss_scaling)
    batches = Batches(load_text(), spec.training, mesh.data_rank, mesh.data_ranks, device)
    reporter.phase("ready")

    checkpoints, losses = None, list[float]()
    if spec.training.checkpoint_every is not None:
        checkpoints = Checkpoints(spec, checkpoint_folder(), mesh, strategy, reporter)
        done = checkpoints.resume(lambda: watched_step(instrument, 0, strategy, batches.of_step))
        if not torchrun_restart_count():  # what was reported of them is another start's
            for number, (loss, seconds) in enumerate(done, 1):
                _report_step(reporter, spec, number, Step(loss, seconds, instrument.watches(number)))
        losses, instrument.steps_before = [loss for loss, _ in done], len(done)
    steps: list[Step] = []
    reporter.phase("running", "computing the first step")
    for number in range(len(losses) + 1, spec.training.steps + 1):
        _inject_faults(spec, reporter, number, strategy)
        watch.begin()
        started, worked = time.perf_counter(), time.thread_time()
        loss = _mean_over_ranks(watched_step(instrument, number, strategy, batches.of_step), mesh)
        stop_unless_number(loss, number, watch, reporter.rank)
        losses.append(loss)
        took, worked = time.perf_counter() - started, time.thread_time() - worked
        steps.append(Step(loss, took, instrument.watches(number), took - worked))
        _report_step(reporter, spec, number, steps[-1], instrument.split() if steps[-1].probed else None)
        instrument.report(reporter, number)
        for name, (value, unit) in (strategy.measure() if strategy.measure is not None else {}).items():
            reporter.emit(MeasurementEvent, name, number, value, unit)
        if checkpoints is not None:
            checkpoints.after_step(number, loss, steps[-1].seconds)
    if checkpoints is not None:
        checkpoints.finish()

    reached = _model_flops_per_second(spec, steps)
    peak = peak_of_all_ranks(device, COMPUTE.get(spec.training.precision, torch.float32), reached)
    reporter.emit(ResultEvent, _summary(spec, parameters, losses, steps, instrument, device, peak))


def _mean_over_ranks(loss: Tensor, mesh: Mesh) -> float:
    """The mean over the global batch. For display only, hence not in the ledger. Reading the number also waits for
    the GPU, which ends the step's time where the step ends.

    Of a pipeline only the last stage's ranks know a loss; the others bring zero.
    """
    dist.all_reduce(loss)
    return loss.item() * mesh.pipeline.size / dist.get_world_size()


def _inject_faults(spec: RunSpec, reporter: Reporter, step: int, strategy: Strategy) -> None:
    """Each once: ranks that were started again are spared, or the run would never get past it."""
    if restart_count():
        return
    for fault in spec.faults:
        if fault.rank != reporter.rank or fault.step != step:
            continue
        if fault.kind == "nan":
            reporter.log("stderr", f"fault on purpose: a weight of rank {fault.rank} is NaN before step {step}")
            spoil_weight(strategy.modules)
        else:
            reporter.log("stderr", killed_on_purpose(fault.rank, step))
            os.kill(os.getpid(), signal.SIGKILL)


def _report_step(reporter: Reporter, spec: RunSpec, number: int, step: Step, split: Split | None = None) -> None:
    if reporter.rank != 0:
        return
    tokens = spec.tokens_per_step
    reporter.emit(
        StepEvent,
        step=number,
        loss=step.loss,
        tokens=tokens,
        seconds=step.seconds,
        tokens_per_second=tokens / step.seconds,
        probed=step.probed,
        split=split,
    )


def _summary(
    spec: RunSpec,
    parameters: int,
    losses: list[float],  # of all steps, those before a restart included
    steps: list[Step],
    instrument: Instrument,
    device: torch.device,
    peak_flops_per_second: float | None,
) -> TrainingSummary:
    """This rank's result. Memory and communication are null where their probe was off."""
    held, kept = instrument.moments.get("step_end"), instrument.moments.get("activation_peak")
    collectives = instrument.collectives
    used = _model_flops_per_second(spec, steps)
    return TrainingSummary(
        steps=len(losses),
        first_loss=losses[0],
        final_loss=losses[-1],
        tokens_per_second=spec.tokens_per_step / _typical_seconds(steps),
        model_flops_per_second=used,
        # The matrix products all ranks do together at best, measured after the last step.
        peak_flops_per_second=peak_flops_per_second,
        mfu=None if peak_flops_per_second is None else used / peak_flops_per_second,
        parameters=parameters,
        **asdict(circumstances(device)),
        state_layout=spec.training.state_layout,
        model_state_bytes=None if held is None else model_state(held),
        peak_bytes=instrument.largest_peak,
        # At their own largest, which is not always when the total was.
        activation_bytes=None if kept is None else kept["activations"],
        payload_bytes_per_step=None if collectives is None else sum(e.payload_bytes for e in collectives),
        wire_bytes_per_step=None if collectives is None else sum(e.wire_bytes for e in collectives),
        collectives=collectives,
        device_peak_bytes=instrument.allocator_peak_bytes,
        operations=instrument.operations,
        waiting_seconds=_waiting_seconds(steps) if device.type == "cpu" else None,  # a GPU is waited for as well
    )


def _model_flops_per_second(spec: RunSpec, steps: list[Step]) -> float:
    per_token = model_flops_per_token(spec.model, spec.training.sequence)
    return spec.tokens_per_step / _typical_seconds(steps) * per_token


def _typical_seconds(steps: list[Step]) -> float:
    return statistics.median(step.seconds for step in _typical(steps))


def _waiting_seconds(steps: list[Step]) -> float:
    return max(0.0, statistics.median(step.waited for step in _typical(steps)))


def _typical(steps: list[Step]) -> list[Step]:
    """The steps without probes after the first, which is slower; of a short run, what there is."""
    return [step for step in steps[1:] if not step.probed] or steps[1:] or steps
