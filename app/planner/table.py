"""An Estimate as plain text, for a terminal: what a rank holds, what a step takes, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from app.planner.columns import communication_table
from app.theory.planner import Estimate
from app.units import bytes_text, count_text, digits, seconds_text

_UNKNOWN = "not estimated"


def estimate_table(estimate: Estimate) -> str:
    """Sections of aligned lines, in the order of the Estimate's JSON; numbers rounded to be read."""
    sections = (
        ("Parameters", _parameters(estimate)),
        ("Memory of the fullest rank", _memory(estimate)),
        ("One step", _step(estimate)),
    )
    texts = [_section(title, list(lines)) for title, lines in sections]
    if estimate.communication:
        texts.append(_communication(estimate))
    texts += [
        "\n".join([title, *(f"  {line}" for line in lines)])
        for title, lines in (("Assumptions", estimate.assumptions), ("Warnings", estimate.warnings))
        if lines
    ]
    return "\n\n".join(texts)


def _parameters(estimate: Estimate) -> Iterator[tuple[str, str]]:
    for name, count in asdict(estimate.parameters).items():
        yield name.replace("_", " "), count_text(count)


def _memory(estimate: Estimate) -> Iterator[tuple[str, str]]:
    memory = estimate.memory
    for component, size in asdict(memory.per_rank_bytes).items():
        yield component, _UNKNOWN if size is None else bytes_text(size)
    if memory.host_bytes:
        yield "in the host's memory", bytes_text(memory.host_bytes)
    if estimate.interval.memory_bytes is not None:
        yield "four of five", " to ".join(bytes_text(size) for size in estimate.interval.memory_bytes)
    own = memory.software_default
    if own is not None:
        yield "more as its software keeps state", f"{bytes_text(own.more_bytes)}, {own.state_layout}"
    if memory.capacity_bytes is not None:
        yield "capacity", f"{bytes_text(memory.capacity_bytes)}, {'fits' if memory.fits else 'does not fit'}"


def _step(estimate: Estimate) -> Iterator[tuple[str, str]]:
    time = asdict(estimate.time)
    rate = time.pop("tokens_per_second")
    for name, seconds in time.items():
        label = name.removesuffix("_seconds").replace("_", " ")
        yield label, _UNKNOWN if seconds is None else seconds_text(seconds)
        if name == "step_seconds" and estimate.interval.step_seconds is not None:
            yield "four of five", " to ".join(seconds_text(each) for each in estimate.interval.step_seconds)
    for label, fraction in (
        ("bubble, mean of all stages", estimate.pipeline.bubble_fraction),
        ("MFU", estimate.mfu),
        ("HFU", estimate.hfu),
    ):
        yield label, _UNKNOWN if fraction is None else f"{100 * fraction:.1f} %"
    yield "tokens per second", _UNKNOWN if rate is None else digits(float(f"{rate:.3g}"))


def _communication(estimate: Estimate) -> str:
    table = communication_table(estimate.communication)
    head = ["what", "operation", "group", "link", "calls", f"wire {table.wire.unit}"]
    rows = [
        [row.name, row.operation, f"{row.group} of {row.group_size}", row.link, digits(row.count_per_step), wire]
        for row, wire in zip(table.rows, table.wire.texts, strict=True)
    ]
    if estimate.time.step_seconds is not None:
        head += [f"time {table.time.unit}", f"exposed {table.exposed.unit}"]
        rows = [[*row, *times] for row, *times in zip(rows, table.time.texts, table.exposed.texts, strict=True)]
    return "\n".join(["Communication of a rank and step", *_aligned([head, *rows], texts=4)])


def _section(title: str, lines: Sequence[tuple[str, str]]) -> str:
    return "\n".join([title, *_aligned([list(line) for line in lines], texts=2)])


def _aligned(rows: Sequence[Sequence[str]], texts: int) -> Iterator[str]:
    """Columns as wide as their widest cell: the first `texts` flush left, numbers flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if index < texts else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()
