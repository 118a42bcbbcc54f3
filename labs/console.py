"""Events as a person reads them, for a run that was started by hand. Torch-free."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from labs.probes.report import Event


class Console:
    """Writes rank 0's progress to standard output, and any rank's trouble to standard error."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._lines: dict[str, Callable[[Event], list[str]]] = {
            "phase": _phase_lines,
            "step": self._step_lines,
            "measurement": _measurement_lines,
            "result": _result_lines,
        }

    def __call__(self, event: Event) -> None:
        failed = event["kind"] == "phase" and event["phase"] == "failed"
        if not failed and event["rank"] != 0:
            return
        lines = self._lines.get(event["kind"], _no_lines)(event)
        stream = sys.stderr if failed else sys.stdout
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()

    def _step_lines(self, event: Event) -> list[str]:
        step = f"step {event['step']:>{len(str(self._steps))}}/{self._steps}"
        speed = f"{event['tokens_per_second']:>10,.0f} tokens/s"
        return [f"{step}   loss {event['loss']:7.4f}   {speed}{'   (probed)' if event['probed'] else ''}"]


def _no_lines(_event: Event) -> list[str]:
    return []


def _phase_lines(event: Event) -> list[str]:
    if event["phase"] != "failed":
        return [f"[{event['t']:6.2f} s] {event['phase']}"]
    detail = event["detail"]
    return [f"rank {event['rank']} failed: {detail['cause']}: {detail['message']}"]


def _measurement_lines(event: Event) -> list[str]:
    """A point of a program's figure; what a strategy reports of itself is for the page."""
    if "figure" not in event:
        return []
    return [f"{event['figure']:<14}{event['name']:<28}{event['x']:>14,.6g}{event['y']:>16,.6g} {event['unit']}"]


def _result_lines(event: Event) -> list[str]:
    summary = event["summary"]
    if "program" in summary:
        return ["", *(f"{name:<42}{value:>16,.6g}" for name, value in summary.items() if isinstance(value, float))]
    lines = [
        "",
        f"{summary['parameters']:,} parameters, {summary['world_size']} ranks, {summary['device_name']}",
        f"loss {summary['first_loss']:.4f} -> {summary['final_loss']:.4f}, "
        f"{summary['tokens_per_second']:,.0f} tokens/s (median of the steps without probes)",
    ]
    return lines + _memory_table(summary) + _communication_table(summary)


def _memory_table(summary: dict[str, Any]) -> list[str]:
    state, peak = summary["model_state_bytes"], summary["peak_bytes"]
    if state is None or peak is None:
        return []
    lines = ["", f"{'memory of rank 0':<16}{'model state':>14}{'at the peak':>14}"]
    for component, size_bytes in peak.items():
        held = mib(state[component]) if component in state else ""
        lines.append(f"{component:<16}{held:>14}{mib(size_bytes):>14}")
    return lines


def _communication_table(summary: dict[str, Any]) -> list[str]:
    if summary["collectives"] is None:
        return []
    head = ("communication", "phase", "calls", "payload", "wire", "time")
    lines = ["", "{:<16}{:<10}{:>6}{:>14}{:>14}{:>12}".format(*head) + "   in one step of rank 0"]
    for entry in summary["collectives"]:
        payload, wire = mib(entry["payload_bytes"]), mib(entry["wire_bytes"])
        milliseconds = f"{entry['seconds'] * 1e3:.1f} ms"
        name, phase, count = entry["operation"], entry["phase"], entry["count"]
        lines.append(f"{name:<16}{phase:<10}{count:>6}{payload:>14}{wire:>14}{milliseconds:>12}")
    return lines if summary["collectives"] else [*lines, "none"]


def mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.3f} MiB"
