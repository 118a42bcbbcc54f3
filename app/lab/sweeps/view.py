"""A sweep's page: theory's curve, what its runs measured, and what is left between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.content.diagrams.drawing import Drawing
from app.core.errors import DomainError, Violation
from app.core.moment import Moment
from app.lab import plots, queries
from app.lab.forms import called, get, value_called
from app.lab.link import link_here
from app.lab.listing import MOST_COMPARED
from app.lab.models import ENDED, WAITING, Run, Sweep
from app.lab.naming import describe, title
from app.lab.peak import timed_here
from app.lab.quantities import quantities_of
from app.lab.residuals import pattern
from app.lab.sweeps.at_peak import at_peak
from app.lab.sweeps.knobs import DATA, STRATEGY, Knob, is_number
from app.lab.sweeps.lines import Line, lines_of
from app.lab.sweeps.parts import (
    PARTS,
    LineParts,
    StepParts,
    parts_of,
    parts_of_lines,
    rows_of,
    said_of_parts,
    why_not_apart,
)
from app.lab.sweeps.saying import SEEN, apart_from, finding_of, of_nothing
from app.lab.sweeps.sending import said_of_sending
from app.lab.sweeps.submitting import find_sweep
from app.theory.lab_runs import Point
from app.units import digits, value_text
from labs.spec import Figure, Quantity, RunSpec

_LOG_FROM = 40.0  # axes of values that lie further apart are of factors, both: a law that is a power is a line then
_FEW = "Too few points to tell."
_FITTED = "line of"
_EXACT = frozenset({"bytes", "flop"})  # dimensions of what is counted, not timed
_UNITS = {"bytes": "B", "seconds": "s", "flop_per_second": "FLOP/s", "bytes_per_second": "B/s"}


@dataclass(frozen=True)
class SweepRow:
    """One run of a sweep: its settings, and measurement beside theory. `residual` is relative to theory, of times how
    many times theory's it is; `from_line` is what is left of a time over its series' line."""

    run: Run
    settings: tuple[str, ...]
    said: str
    theory: str
    measured: str
    residual: str
    from_line: str = ""


@dataclass(frozen=True)
class SweepLine:
    """A series: what its residuals do along the axis, and the line through its points where there is one."""

    series: str
    offset: str
    factor: str
    pattern: str


@dataclass(frozen=True)
class SweepPage:
    """A sweep as it stands. `name` is the quantity's, `knobs` what the form calls the fields that were turned;
    `smallest` are the runs at the smallest step of each series, where there are several; `finding` is what the
    residuals say in words. `parts` has the time of each run's step by what its operations took, under the heads of
    `part_names`."""

    sweep: Sweep
    title: str
    summary: str
    ranks_say: str
    knobs: tuple[str, ...]
    rows: tuple[SweepRow, ...]
    name: str
    quantity: Quantity
    quantities: Mapping[str, Quantity]
    curve: Drawing | None
    residuals: Drawing | None
    finding: str
    lines: tuple[SweepLine, ...]
    part_names: tuple[str, ...]
    parts: tuple[tuple[SweepRow, str, tuple[str, ...]], ...]
    is_of_lines: bool
    parts_say: str
    sending_says: str
    smallest: tuple[int, ...]
    under_way: int
    ended: int


def sweep_page(session: Session, learner_id: int, sweep_id: int, asked: str | None, moment: Moment) -> SweepPage:
    """Raises NotFound, and DomainError for a quantity that its runs do not have."""
    sweep = find_sweep(session, learner_id, sweep_id)
    runs, knobs = queries.list_runs_of_sweep(session, sweep.id), tuple(map(Knob.from_json, sweep.knobs))
    spec = RunSpec.model_validate(runs[0].spec)
    known = quantities_of(spec)
    name = asked or _most_telling(runs, known)
    if name not in known:
        shown = name[:40]
        wrong = Violation("quantity", shown, f"{shown!r} is nothing its runs measure.", ", ".join(known))
        raise DomainError("There is no such quantity.", [wrong])
    settings = {run.id: _settings(run, knobs) for run in runs}
    peak = at_peak(runs, timed_here(session, learner_id), sweep.created_at) if name == "step_seconds" else None
    expected: Mapping[int, float | None] = peak.seconds if peak else {run.id: run.theory.get(name) for run in runs}
    theory = [point for run in runs if (point := _point(settings[run.id], expected.get(run.id), knobs))]
    measured = [point for run in runs if (point := _point(settings[run.id], (run.result or {}).get(name), knobs))]
    lines = lines_of(measured, theory)
    series = {run.id: point.name for run in runs if (point := _point(settings[run.id], 0.0, knobs))}
    parts = _parts(runs, expected, series) if name == "step_seconds" else []
    by_line = parts_of_lines(parts, lines)
    untold = why_not_apart(parts, is_peak_sure=not (peak and peak.of_steps))
    rows = tuple(
        _row(
            run,
            settings[run.id],
            name,
            known[name],
            expected.get(run.id),
            knobs,
            _from_line(lines, settings[run.id], series.get(run.id)),
        )
        for run in runs
    )
    return SweepPage(
        sweep=sweep,
        title=sweep.name or f"{title(spec)} over {' and '.join(called(knob.field) for knob in knobs)}",
        summary=describe(spec),
        ranks_say=_said_of_ranks(spec, knobs),
        knobs=tuple(called(knob.field) for knob in knobs),
        rows=rows,
        name=name,
        quantity=known[name],
        quantities=known,
        curve=_curve(known[name], knobs, measured, theory, lines, peak.said(moment) if peak else ""),
        residuals=_residuals(knobs, _left(known[name], lines, measured, theory), known[name]),
        finding=finding_of(
            known[name], knobs, measured, theory, lines, _how_final(runs), peak.of_steps if peak else ()
        ),
        lines=(
            *_lines(known[name], knobs, lines, _left(known[name], lines, measured, theory)),
            *_lines_of_nothing(known[name], measured, theory),
        ),
        part_names=tuple(PARTS.values()),
        parts=tuple(
            (next(row for row in rows if row.run.id == each.run_id), f"{digits(each.ratio, 3)} ×", texts)
            for each, texts in rows_of(parts)
        ),
        sending_says=said_of_sending(runs, series, link_here(session, learner_id), _waiting(by_line) if parts else None)
        if peak
        else "",
        smallest=_smallest(runs, settings, series) if peak else (),
        is_of_lines=bool(by_line) and not untold,
        parts_say=untold or said_of_parts(parts, lines),
        under_way=sum(run.status not in ENDED for run in runs),
        ended=sum(run.status in ENDED for run in runs),
    )


def _waiting(by_line: Sequence[LineParts]) -> Mapping[str, float]:
    """Seconds of it in the offset, by series."""
    return {each.line.series: each.offsets["waiting"] for each in by_line}


def _smallest(runs: Sequence[Run], settings: Mapping[int, Sequence[Any]], series: Mapping[int, str]) -> tuple[int, ...]:
    """Of each series the run at the smallest value that all have measured; none where there is one series only."""
    measured = [run.id for run in runs if (run.result or {}).get("step_seconds") and run.id in series]
    at: dict[float, dict[str, int]] = {}
    for run_id in measured:
        at.setdefault(float(settings[run_id][0]), {})[series[run_id]] = run_id
    names = set(series.values())
    whole = [value for value, by_series in at.items() if set(by_series) == names]
    if not whole or not 1 < len(names) <= MOST_COMPARED:
        return ()
    return tuple(sorted(at[min(whole)].values()))


def _how_final(runs: Sequence[Run]) -> str:
    """That more is to come, for behind the quantity's name; nothing once all have ended."""
    ended = sum(run.status in ENDED for run in runs)
    return f", not final after {ended} of {len(runs)} runs" if ended < len(runs) else ""


def _said_of_ranks(spec: RunSpec, knobs: Sequence[Knob]) -> str:
    """On how many data ranks strategies are held against each other; nothing where that is turned, or none are."""
    turned = {knob.field for knob in knobs}
    if STRATEGY not in turned or DATA in turned:
        return ""
    if spec.parallel.data == 1:
        return "All on 1 data rank, where what is sent goes to nobody."
    return f"All on {spec.parallel.data} data ranks: with 1, no strategy would have anyone to send to."


def _most_telling(runs: Sequence[Run], known: Mapping[str, Quantity]) -> str:
    """The first quantity of which theory says something else for other settings; else the first."""
    for name in known:
        if len({run.theory.get(name) for run in runs}) > 1:
            return name
    return next(iter(known))


def _settings(run: Run, knobs: Sequence[Knob]) -> tuple[Any, ...]:
    return tuple(get(run.spec, knob.field, None) for knob in knobs)


def _point(settings: Sequence[Any], value: float | None, knobs: Sequence[Knob]) -> Point | None:
    if value is None or not is_number(settings[0]):
        return None
    series = called(knobs[0].field)
    if len(knobs) > 1:
        choice = value_called(knobs[1].field, settings[1])
        series = choice if choice != str(settings[1]) else f"{called(knobs[1].field)} {choice}"
    return Point("sweep", series, float(settings[0]), float(value))


def _row(
    run: Run,
    settings: Sequence[Any],
    name: str,
    quantity: Quantity,
    theory: float | None,
    knobs: Sequence[Knob],
    from_line: str,
) -> SweepRow:
    measured = (run.result or {}).get(name)
    return SweepRow(
        run,
        tuple(value_called(knob.field, each) for knob, each in zip(knobs, settings, strict=True)),
        "Queued" if run.status == WAITING else run.status.capitalize(),
        "–" if theory is None else value_text(theory, quantity.dimension),
        "–" if measured is None else value_text(measured, quantity.dimension),
        "–" if not theory or measured is None else _residual(measured, theory, quantity),
        from_line if quantity.dimension == "seconds" else "",
    )


def _from_line(lines: Sequence[Line], settings: Sequence[Any], series: str | None) -> str:
    """Of a point that a line was drawn through."""
    at = {(line.series, x): left for line in lines if line.is_known for x, left in line.left}
    left = at.get((series or "", float(settings[0]))) if is_number(settings[0]) else None
    return "–" if left is None else f"{'−' if left < 0 else '+'}{digits(100 * abs(left), 2)} %"


def _figure(knobs: Sequence[Knob], what: str, unit: str) -> Figure:
    numbers = [float(value) for value in knobs[0].values if isinstance(value, int | float)]
    is_log = min(numbers) > 0 and max(numbers) >= _LOG_FROM * min(numbers)
    return Figure(what, called(knobs[0].field), what, "", unit, x_log=is_log, y_log=is_log and unit != "%")


def _curve(
    quantity: Quantity,
    knobs: Sequence[Knob],
    measured: Sequence[Point],
    theory: Sequence[Point],
    lines: Sequence[Line],
    peak: str,
) -> Drawing | None:
    figure = replace(_figure(knobs, quantity.title, _UNITS.get(quantity.dimension, "")), fitted=(_FITTED,))
    drawn = _drawn_lines(theory, lines) if quantity.dimension == "seconds" else []
    drawing = plots.draw_figure("sweep", figure, [*measured, *drawn], theory, plots.LAW)
    says = "Dots are measured, dashes are theory." if theory else "Dots are measured; theory has no figure for it."
    if theory and quantity.dimension == "seconds":
        through = " The lines through them are offset + factor × arithmetic." if drawn else ""
        says = f"Dots are measured.{through} {peak}"
    return None if drawing is None else replace(drawing, finding=says)


def _drawn_lines(theory: Sequence[Point], lines: Sequence[Line]) -> list[Point]:
    """Offset + factor × theory of every series that has a line, at its points."""
    known = {line.series: line for line in lines if line.is_known}
    return [
        replace(point, name=f"{_FITTED} {point.name}", y=known[point.name].offset + known[point.name].factor * point.y)
        for point in theory
        if point.name in known
    ]


def _residual(measured: float, theory: float, quantity: Quantity) -> str:
    """Relative to theory, a time as a multiple of it; what would be a row of noughts, in the quantity's unit."""
    if quantity.dimension == "seconds":
        return f"{digits(measured / theory, 3)} ×"
    apart = measured / theory - 1
    if 0 < abs(apart) < SEEN:
        return ("+" if apart > 0 else "−") + value_text(abs(measured - theory), quantity.dimension)
    return f"{100 * apart:+.2f} %".replace("-", "−")


def _left(
    quantity: Quantity, lines: Sequence[Line], measured: Sequence[Point], theory: Sequence[Point]
) -> list[tuple[str, float, float]]:
    """Series, x and residual: of times, which are a multiple of theory's, against their own lines."""
    if quantity.dimension == "seconds":
        return [(line.series, x, left) for line in lines for x, left in line.left]
    return apart_from(measured, theory)


def _residuals(knobs: Sequence[Knob], left: Sequence[tuple[str, float, float]], quantity: Quantity) -> Drawing | None:
    """What is left over in per cent; none where nothing would be seen of it."""
    apart = [Point("residual", name, x, 100 * each) for name, x, each in left]
    if all(abs(point.y) < 100 * SEEN for point in apart):
        return None
    law = _law_of(quantity)
    figure = _figure(knobs, f"Measured less {law}", "%")
    drawing = plots.draw_figure("residual", figure, apart, (), plots.RESIDUALS)
    return None if drawing is None else replace(drawing, finding=f"In per cent of {law}, from 0.")


def _law_of(quantity: Quantity) -> str:
    """What its residuals are left of, in words."""
    return "the line" if quantity.dimension == "seconds" else "theory"


def _lines(
    quantity: Quantity, knobs: Sequence[Knob], lines: Sequence[Line], left: Sequence[tuple[str, float, float]]
) -> tuple[SweepLine, ...]:
    by_series: dict[str, list[tuple[float, float]]] = {}
    for name, x, each in left:
        by_series.setdefault(name, []).append((x, each))
    known = {line.series: line for line in lines}
    axis, is_exact = called(knobs[0].field), quantity.dimension in _EXACT
    return tuple(
        SweepLine(
            name,
            known[name].offset_text(quantity.dimension) if name in known else "–",
            known[name].factor_text if name in known else "–",
            _pattern(axis, places, is_exact, _law_of(quantity)) if is_exact or _tells(known, name) else _FEW,
        )
        for name, places in by_series.items()
    )


def _tells(lines: Mapping[str, Line], series: str) -> bool:
    return series in lines and lines[series].tells


def _lines_of_nothing(quantity: Quantity, measured: Sequence[Point], theory: Sequence[Point]) -> Iterator[SweepLine]:
    """Series of which theory has nothing but zeros: they have no share of it, and no line."""
    some, none = {name for name, _, _ in apart_from(measured, theory)}, of_nothing(measured, theory)
    for name in dict.fromkeys(point.name for point in none):
        if name not in some:
            most = value_text(max(point.y for point in none if point.name == name), quantity.dimension)
            yield SweepLine(name, "–", "–", f"{most}, theory {value_text(0.0, quantity.dimension)}.")


def _pattern(axis: str, places: Sequence[tuple[float, float]], is_exact: bool, law: str) -> str:
    if all(abs(each) < SEEN for _, each in places):
        return f"As {law} has it, to {digits(100 * SEEN, 1)} %."
    return pattern(axis, places, is_exact, law)


def _parts(runs: Sequence[Run], expected: Mapping[int, float | None], series: Mapping[int, str]) -> list[StepParts]:
    found = (parts_of(run.id, run.result or {}, expected.get(run.id), series.get(run.id, "")) for run in runs)
    return [each for each in found if each is not None]
