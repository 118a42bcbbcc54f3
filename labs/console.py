"""Events as a person reads them, for a run that was started by hand. Torch-free."""

from __future__ import annotations

import sys

from labs.spec.events import Event, MeasurementEvent, PhaseEvent, ResultEvent, StepEvent, TrainingSummary


class Console:
    """Writes rank 0's progress to standard output, and any rank's trouble to standard error."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def __call__(self, event: Event) -> None:
        failed = isinstance(event, PhaseEvent) and event.phase == "failed"
        if not failed and event.rank != 0:
            return
        stream = sys.stderr if failed else sys.stdout
        stream.write("".join(f"{line}\n" for line in self._lines(event)))
        stream.flush()

    def _lines(self, event: Event) -> list[str]:
        match event:
            case PhaseEvent():
                return [_phase_line(event)]
            case StepEvent():
                return [self._step_line(event)]
            case MeasurementEvent():
                return _measurement_lines(event)
            case ResultEvent():
                return _result_lines(event)
        return []

    def _step_line(self, event: StepEvent) -> str:
        step = f"step {event.step:>{len(str(self._steps))}}/{self._steps}"
        speed = f"{event.tokens_per_second:>10,.0f} tokens/s"
        return f"{step}   loss {event.loss:7.4f}   {speed}{'   (probed)' if event.probed else ''}"


def _phase_line(event: PhaseEvent) -> str:
    if event.detail is None:
        return f"[{event.t:6.2f} s] {event.phase}{f': {event.doing}' if event.doing else ''}"
    return f"rank {event.rank} failed: {event.detail.cause}: {event.detail.message}"


def _measurement_lines(event: MeasurementEvent) -> list[str]:
    """A point of a program's figure; what a strategy reports of itself is for the page."""
    if event.figure is None:
        return []
    return [f"{event.figure:<14}{event.name:<28}{event.x:>14,.6g}{event.y:>16,.6g} {event.unit}"]


def _result_lines(event: ResultEvent) -> list[str]:
    summary = event.summary
    if not isinstance(summary, TrainingSummary):
        return ["", *(f"{name:<42}{value:>16,.6g}" for name, value in summary.items() if isinstance(value, float))]
    lines = [
        "",
        f"{summary.parameters:,} parameters, {summary.world_size} ranks, {summary.device_name}",
        f"loss {summary.first_loss:.4f} -> {summary.final_loss:.4f}, "
        f"{summary.tokens_per_second:,.0f} tokens/s (median of the steps without probes)",
    ]
    return lines + _memory_table(summary) + _communication_table(summary)


def _memory_table(summary: TrainingSummary) -> list[str]:
    state, peak = summary.model_state_bytes, summary.peak_bytes
    if state is None or peak is None:
        return []
    lines = ["", f"{'memory of rank 0':<16}{'model state':>14}{'at the peak':>14}"]
    for component, size_bytes in peak.items():
        held = mib(state[component]) if component in state else ""
        lines.append(f"{component:<16}{held:>14}{mib(size_bytes):>14}")
    return lines


def _communication_table(summary: TrainingSummary) -> list[str]:
    if summary.collectives is None:
        return []
    head = ("communication", "phase", "calls", "payload", "wire", "time")
    lines = ["", "{:<16}{:<10}{:>6}{:>14}{:>14}{:>12}".format(*head) + "   in one step of rank 0"]
    for each in summary.collectives:
        payload, wire, took = mib(each.payload_bytes), mib(each.wire_bytes), f"{each.seconds * 1e3:.1f} ms"
        lines.append(f"{each.operation:<16}{each.phase:<10}{each.count:>6}{payload:>14}{wire:>14}{took:>12}")
    return lines if summary.collectives else [*lines, "none"]


def mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.3f} MiB"
