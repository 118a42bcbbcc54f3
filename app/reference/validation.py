"""How far the engine is from what others measured: every row, its prediction and its error, for one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from itertools import chain
from math import exp, log
from pathlib import Path

from app.content.published import Table, left_out_constants, published_tables
from app.theory.planner import Comparison, Summary, compare, predict, summarise
from app.theory.planner.engine.constants import FITTED, MEANINGS, Constants
from app.theory.planner.engine.resolve import plan_of
from app.theory.planner.held_out import blind_coverage
from app.theory.planner.intervals import Coverage, Evidence, coverage, features_of, unseen_spread
from app.theory.planner.validation import attention_rate
from app.theory.transformer import parameter_count
from app.units import digits, factor_of

WIDEST = 1.5  # the axis goes from its inverse to this
MOSTLY = 0.6  # of a step
UNITS = {
    "step_seconds": ("s", 1.0),
    "tokens_per_second_per_gpu": ("tokens/s per GPU", 1.0),
    "hardware_flops_per_second_per_gpu": ("TFLOP/s per GPU", factor_of("TFLOP/s")),
    "model_flops_per_second_per_gpu": ("model TFLOP/s per GPU", factor_of("TFLOP/s")),
    "causal_flops_per_second_per_gpu": ("model TFLOP/s per GPU, causal", factor_of("TFLOP/s")),
    "peak_bytes": ("GiB at the peak", factor_of("GiB")),
}
# Korthikanti et al. 2022, table 5: MFU and HFU in per cent, which follow from the time alone.
UTILISATION = {"22B": (41.5, 43.7), "175B": (51.4, 52.8), "530B": (56.0, 57.0), "1T": (56.3, 57.0)}


@dataclass(frozen=True)
class Line:
    """One measured value beside its prediction, as texts; `place` is where it stands on the axis, in per cent.

    `interval` is where four of five should lie, by rows of other publications and constants that never saw this one;
    `holds` whether the measured value does.
    """

    name: str
    unit: str
    measured: str
    predicted: str
    error: str
    place: str
    interval: str
    holds: bool


@dataclass(frozen=True)
class Lane:
    """One published table: its rows, how far off they are, and how far with constants that never saw its source."""

    table: Table
    lines: tuple[Line, ...]
    speed: Summary
    left_out: Summary
    memory: Summary | None
    attention: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Report:
    """Everything the page shows."""

    lanes: tuple[Lane, ...]
    speed: Summary
    unseen: Summary
    held: Coverage
    held_memory: Coverage
    blind: Coverage
    constants: tuple[tuple[str, str, str], ...]
    utilisation: tuple[tuple[str, str, str, str, str], ...]


@lru_cache(maxsize=2)
def report(content: Path) -> Report:
    """The report on the tables under `content`. Raises ContentError."""
    tables, left_out = published_tables(content), left_out_constants(content)  # what was not fitted, nothing saw
    fitted = [list(table.comparisons()) for table in tables]
    unseen = [_times(table.comparisons(left_out.get(table.publication, FITTED))) for table in tables]
    known = evidence_of(content)
    rows = tuple(chain.from_iterable(known.values()))
    return Report(
        tuple(
            _lane(table, found, times, [_interval(each, row, rows) for each, row in zip(found, of_table, strict=True)])
            for table, found, times, of_table in zip(tables, fitted, unseen, known.values(), strict=True)
        ),
        summarise(_times(chain.from_iterable(fitted))),
        summarise(chain.from_iterable(unseen)),
        coverage(rows, True),
        coverage(rows, False),
        blind_coverage(rows),
        _constants(),
        _utilisation(tables),
    )


def evidence_of(content: Path) -> dict[str, list[Evidence]]:
    """By table, how far the engine is from every value by constants that never saw its publication. Raises
    ContentError."""
    left_out = left_out_constants(content)
    return {
        table.slug: list(_evidence(table, left_out.get(table.publication, FITTED)))
        for table in published_tables(content)
    }


def _evidence(table: Table, constants: Constants) -> Iterator[Evidence]:
    for row in table.rows:
        plan = plan_of(row.request)
        assert row.request.cluster is not None
        gpu = row.request.cluster.gpu or ""
        features = features_of(plan, gpu, parameter_count(plan.model, plan.training.sequence))
        for each in compare(table.slug, row.name, row.request, row.measured, constants):
            error = round(_sign(each) * log(each.predicted / each.measured), 4)
            yield Evidence(table.publication, table.slug, each.is_time, features, error)


def _sign(row: Comparison) -> int:
    """A rate predicted too high is a time predicted too short."""
    return 1 if row.quantity in ("step_seconds", "peak_bytes") else -1


def _interval(comparison: Comparison, row: Evidence, rows: tuple[Evidence, ...]) -> tuple[str, bool]:
    """(the interval as text in the row's unit, whether the measured value lies inside)."""
    found, scale = unseen_spread(row, rows), UNITS[comparison.quantity][1]
    if found is None:
        return "", True
    centre = comparison.measured * exp(_sign(comparison) * row.error)
    low, high = found.around(centre)
    return f"{digits(low / scale, 3)} to {digits(high / scale, 3)}", abs(row.error) <= found.width


def _times(rows: Iterable[Comparison]) -> list[Comparison]:
    return [each for each in rows if each.is_time]


def _constants() -> tuple[tuple[str, str, str], ...]:
    """(name, value as text, what it stands for)."""
    values = zip(fields(FITTED), astuple(FITTED), strict=True)
    return tuple(
        (
            field.name.replace("_", " "),
            f"{value * 1e12:.3g} pJ" if "joules" in field.name else digits(value, 3),
            MEANINGS[field.name],
        )
        for field, value in values
    )


def percent(value: float, sign: bool = False) -> str:
    """A fraction as per cent to one decimal, with a real minus: 3.3 %, −4.0 %."""
    text = f"{100 * value:{'+' if sign else ''}.1f}".replace("-", "−")
    return f"{text} %"


def _lane(table: Table, rows: list[Comparison], unseen: list[Comparison], intervals: list[tuple[str, bool]]) -> Lane:
    lines = tuple(_line(each, *interval) for each, interval in zip(rows, intervals, strict=True))
    return Lane(table, lines, summarise(_times(rows)), summarise(unseen), _memory(rows), _attention(table, rows))


def _attention(table: Table, rows: Iterable[Comparison]) -> tuple[tuple[str, str, str], ...]:
    """(run, share of the predicted step, times its published rate) of attention, by run of a table in which it is most
    of some step; none elsewhere."""
    requests = {row.name: row.request for row in table.rows}
    found = []
    for row in _times(rows):
        request = requests[row.row]
        if request.training.attention == "flash":
            ratio = row.measured / row.predicted if row.quantity == "step_seconds" else row.predicted / row.measured
            found.append((row.row, attention_rate(request, predict(request).step_seconds * ratio)))
    if not any(rate.share > MOSTLY for _, rate in found):
        return ()
    return tuple((name, percent(rate.share), f"{rate.times:.2f}") for name, rate in found)


def _memory(rows: Iterable[Comparison]) -> Summary | None:
    sizes = [each for each in rows if not each.is_time]
    return summarise(sizes) if sizes else None


def _line(row: Comparison, interval: str, holds: bool) -> Line:
    unit, scale = UNITS[row.quantity]
    ratio = row.predicted / row.measured
    faster = 1 / ratio if row.quantity == "step_seconds" else ratio
    place = 50 + 50 * log(faster) / log(WIDEST)
    return Line(
        row.row,
        unit,
        digits(row.measured / scale),
        digits(row.predicted / scale),
        percent(row.error, sign=True),
        f"{min(100.0, max(0.0, place)):.2f}",
        interval,
        holds,
    )


def _utilisation(tables: Iterable[Table]) -> tuple[tuple[str, str, str, str, str], ...]:
    """(model, MFU as printed, from the time, HFU as printed, from the time)."""
    rows = {row.name: row for table in tables for row in table.rows}
    found = []
    for model, (mfu, hfu) in UTILISATION.items():
        row = rows[f"{model}, sequence parallel, selective"]
        ours = predict(row.request).at(row.measured["step_seconds"])
        found.append((model, f"{mfu} %", percent(ours[0]), f"{hfu} %", percent(ours[1])))
    return tuple(found)
