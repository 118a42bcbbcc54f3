"""Sweeps: one spec with one or two fields turned through some values, submitted and cancelled as one.

Each of its runs is an ordinary run of the queue: taken, ended and taken again like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any

from sqlalchemy.orm import Session

from app.content.diagrams.drawing import Drawing
from app.core.errors import DomainError, NotFound, SpecError, Violation
from app.lab import plots, queries
from app.lab.forms import get, put
from app.lab.models import ENDED, WAITING, Run, Sweep
from app.lab.naming import describe, title
from app.lab.quantities import quantities_of
from app.lab.submitting import cancel_run, submit_run
from app.theory.lab_runs import Point
from app.units import value_text
from labs.spec import Figure, Quantity, RunSpec, parse_run_spec

MOST_RUNS = 16
MOST_NAME = 80
_LOG_FROM = 4.0  # an axis whose values lie further apart than that is one of factors
_UNITS = {"bytes": "B", "seconds": "s", "flop_per_second": "FLOP/s", "bytes_per_second": "B/s"}
EXAMPLE = {
    "model": "gpt-mini",
    "training": {"sequence": 128, "micro_batch": 2, "steps": 6},
    "parallel": {"data": 1},
    "device": "cpu",
}

Value = int | float | str | bool | list[Any]


@dataclass(frozen=True)
class Knob:
    """A field of the spec, and what it is turned to."""

    field: str
    values: tuple[Value, ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Knob:
        return cls(record["field"], tuple(record["values"]))


@dataclass(frozen=True)
class SweepForm:
    """What was typed, with what is wrong by field."""

    name: str = ""
    spec: str = ""
    field_1: str = ""
    values_1: str = ""
    field_2: str = ""
    values_2: str = ""

    @classmethod
    def of(cls, typed: Mapping[str, str]) -> SweepForm:
        return cls(**{name: typed.get(name, "") for name in cls.__dataclass_fields__})


def form_like(like: str | None) -> SweepForm:
    """A form filled in: with a sweep that gives a law of `app.lab.fitting` its points, else with the example."""
    spec = json.dumps(EXAMPLE, indent=2)
    if like == "activations":
        sequences = "64, 128, 256"
        return SweepForm(
            "What grows with the square", spec, "training.sequence", sequences, "training.attention", "flash, full"
        )
    if like == "recomputation":
        return SweepForm(
            "What recomputation costs", spec, "training.micro_batch", "2, 4, 8", "training.recompute", "none, full"
        )
    return SweepForm(spec=spec, field_1="training.micro_batch", values_1="1, 2, 4")


# --- submitting


def read_form(form: SweepForm) -> tuple[object, list[Knob]]:
    """The spec and the knobs that were typed. Raises DomainError with every mistake, by field."""
    wrong: list[Violation] = []
    try:
        spec: object = json.loads(form.spec)
    except (ValueError, RecursionError) as error:
        spec = None
        wrong.append(Violation("spec", form.spec[:80], f"This is not JSON: {error}.", "a RunSpec as JSON"))
    knobs = []
    for number, (field, values) in enumerate(((form.field_1, form.values_1), (form.field_2, form.values_2)), start=1):
        if number == 2 and not field.strip() and not values.strip():
            continue
        if not field.strip():
            wrong.append(Violation(f"field_{number}", "", "A knob turns a field.", "such as training.micro_batch"))
        elif not values.strip():
            wrong.append(Violation(f"values_{number}", "", "A knob turns to some values.", "such as 1, 2, 4"))
        else:
            knobs.append(Knob(field.strip(), tuple(_values(values))))
    if wrong:
        raise DomainError("Nothing was started.", wrong)
    return spec, knobs


def _values(text: str) -> Iterator[Value]:
    """JSON between commas; what is no JSON is a word."""
    try:
        found = json.loads(f"[{text}]")
        if isinstance(found, list):
            yield from found
            return
    except (ValueError, RecursionError):
        pass
    for part in text.split(","):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            yield part.strip()


def submit_sweep(
    session: Session, learner_id: int, name: str, spec: object, knobs: Sequence[Knob], now: datetime
) -> Sweep:
    """Queue a run for every setting. Raises DomainError and queues nothing then: all specs are read before the first
    run is queued."""
    wrong = [*_check_knobs(spec, knobs)]
    if len(name) > MOST_NAME:
        wrong.append(Violation("name", f"{name[:40]}…", "The name is too long.", f"up to {MOST_NAME} characters"))
    if wrong:
        raise DomainError("Nothing was started.", wrong)
    specs = [_turned(spec, knobs, settings) for settings in product(*(knob.values for knob in knobs))]
    for settings, each in zip(product(*(knob.values for knob in knobs)), specs, strict=True):
        try:
            parse_run_spec(each)
        except SpecError as error:
            where = " and ".join(f"{knob.field} {value}" for knob, value in zip(knobs, settings, strict=True))
            said = [
                Violation(violation.field, violation.value, f"With {where}: {violation.message}", violation.accepted)
                for violation in error.violations
            ]
            raise DomainError("Nothing was started: not every setting can be run.", said) from None
    sweep = Sweep(
        learner_id=learner_id,
        name=" ".join(name.split()),
        knobs=[{"field": knob.field, "values": list(knob.values)} for knob in knobs],
        created_at=now,
    )
    session.add(sweep)
    session.flush()
    for each in specs:
        submit_run(session, learner_id, each, None, now).sweep_id = sweep.id
    session.flush()
    return sweep


def _check_knobs(spec: object, knobs: Sequence[Knob]) -> Iterator[Violation]:
    if not isinstance(spec, Mapping):
        yield Violation("spec", str(spec)[:80], "A RunSpec is an object.", '{"model": "gpt-mini", …}')
        return
    for number, knob in enumerate(knobs, start=1):
        if not _is_field(spec, knob.field):
            message = f"{knob.field[:60]!r} is no field of a run."
            yield Violation(
                f"field_{number}", knob.field[:60], message, "such as training.micro_batch or parallel.data"
            )
        if len({json.dumps(value) for value in knob.values}) < len(knob.values):
            yield Violation(f"values_{number}", list(knob.values), "A value is there twice.", "each value once")
    if len(knobs) == 2 and knobs[0].field == knobs[1].field:
        yield Violation("field_2", knobs[1].field, "Both knobs turn the same field.", "another field, or none")
    if knobs and not all(_is_number(value) for value in knobs[0].values):
        message = "The first knob goes along the axis, so its values are numbers."
        yield Violation("values_1", list(knobs[0].values), message, "such as 1, 2, 4; words for the second knob")
    if not 1 <= len(knobs) <= 2:
        yield Violation("field_1", len(knobs), "A sweep turns one or two fields.", "1 or 2 knobs")
    runs = 1
    for knob in knobs:
        runs *= len(knob.values)
    if not 2 <= runs <= MOST_RUNS:
        message = f"{runs} run{'s' if runs != 1 else ''} would be made."
        yield Violation("values_1", runs, message, f"2 to {MOST_RUNS} runs in all")


def _is_field(spec: Mapping[str, Any], field: str) -> bool:
    """Whether a run has such a field: known of any training, or of this program's options."""
    program = spec.get("program", "train")
    try:
        blank = RunSpec.model_validate({"program": program, "model": _SHAPE}).model_dump()
    except ValueError:
        return True  # the program itself is refused, by its name
    return get(blank, field, _MISSING) is not _MISSING and not isinstance(get(blank, field, None), Mapping)


_MISSING = object()
_SHAPE = {"layers": 1, "hidden": 8, "heads": 1, "vocab": 256}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _turned(spec: object, knobs: Sequence[Knob], settings: Sequence[Value]) -> dict[str, Any]:
    """The spec with its knobs so. A model that is named is written out where a knob turns a part of it."""
    assert isinstance(spec, Mapping)
    turned: dict[str, Any] = deepcopy(dict(spec))
    if isinstance(turned.get("model"), str) and any(knob.field.startswith("model.") for knob in knobs):
        turned["model"] = parse_run_spec({"model": turned["model"]}).model.model_dump(mode="json")
    for knob, value in zip(knobs, settings, strict=True):
        head = knob.field.partition(".")[0]
        if "." in knob.field and not isinstance(turned.get(head) or {}, Mapping):
            continue  # refused by its own field
        turned[head] = turned.get(head) or {} if "." in knob.field else value
        put(turned, knob.field, value)
    return turned


def cancel_sweep(session: Session, learner_id: int, sweep_id: int, now: datetime) -> Sweep:
    """Ask for the end of every run of it that has not ended. Raises NotFound."""
    sweep = find_sweep(session, learner_id, sweep_id)
    for run in queries.list_runs_of_sweep(session, sweep.id):
        if run.status not in ENDED:
            cancel_run(session, learner_id, run.id, now)
    return sweep


def find_sweep(session: Session, learner_id: int, sweep_id: int) -> Sweep:
    """Raises NotFound."""
    found = queries.find_sweep(session, learner_id, sweep_id)
    if found is None:
        raise NotFound(f"There is no sweep {sweep_id}.")
    return found


# --- its page


@dataclass(frozen=True)
class SweepRow:
    """One run of a sweep: its settings, and measurement beside theory. `residual` is relative to theory."""

    run: Run
    settings: tuple[str, ...]
    said: str
    theory: str
    measured: str
    residual: str


@dataclass(frozen=True)
class SweepPage:
    """A sweep as it stands. `name` is the quantity's; `finding` what the residuals say in words."""

    sweep: Sweep
    title: str
    summary: str
    knobs: tuple[Knob, ...]
    rows: tuple[SweepRow, ...]
    name: str
    quantity: Quantity
    quantities: Mapping[str, Quantity]
    curve: Drawing | None
    residuals: Drawing | None
    finding: str
    under_way: int
    ended: int


def sweep_page(session: Session, learner_id: int, sweep_id: int, asked: str | None) -> SweepPage:
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
    theory = [point for run in runs if (point := _point(settings[run.id], run.theory.get(name), knobs))]
    measured = [point for run in runs if (point := _point(settings[run.id], (run.result or {}).get(name), knobs))]
    return SweepPage(
        sweep=sweep,
        title=sweep.name or f"{title(spec)} over {' and '.join(knob.field for knob in knobs)}",
        summary=describe(spec),
        knobs=knobs,
        rows=tuple(_row(run, settings[run.id], name, known[name]) for run in runs),
        name=name,
        quantity=known[name],
        quantities=known,
        curve=_curve(known[name], knobs, measured, theory),
        residuals=_residuals(knobs, measured, theory),
        finding=_finding(known[name], measured, theory),
        under_way=sum(run.status not in ENDED for run in runs),
        ended=sum(run.status in ENDED for run in runs),
    )


def _most_telling(runs: Sequence[Run], known: Mapping[str, Quantity]) -> str:
    """The first quantity of which theory says something else for other settings; else the first."""
    for name in known:
        if len({run.theory.get(name) for run in runs}) > 1:
            return name
    return next(iter(known))


def _settings(run: Run, knobs: Sequence[Knob]) -> tuple[Any, ...]:
    return tuple(get(run.spec, knob.field, None) for knob in knobs)


def _point(settings: Sequence[Any], value: float | None, knobs: Sequence[Knob]) -> Point | None:
    if value is None or not _is_number(settings[0]):
        return None
    series = f"{knobs[1].field} {settings[1]}" if len(knobs) > 1 else knobs[0].field
    return Point("sweep", series, float(settings[0]), float(value))


def _row(run: Run, settings: Sequence[Any], name: str, quantity: Quantity) -> SweepRow:
    theory, measured = run.theory.get(name), (run.result or {}).get(name)
    return SweepRow(
        run,
        tuple(str(each) for each in settings),
        "Queued" if run.status == WAITING else run.status.capitalize(),
        "–" if theory is None else value_text(theory, quantity.dimension),
        "–" if measured is None else value_text(measured, quantity.dimension),
        "–" if not theory or measured is None else f"{100 * (measured / theory - 1):+.2f} %".replace("-", "−"),
    )


def _figure(knobs: Sequence[Knob], what: str, unit: str) -> Figure:
    numbers = [float(value) for value in knobs[0].values if isinstance(value, int | float)]
    is_log = min(numbers) > 0 and max(numbers) >= _LOG_FROM * min(numbers)
    return Figure(what, knobs[0].field, what, "", unit, x_log=is_log)


def _curve(
    quantity: Quantity, knobs: Sequence[Knob], measured: Sequence[Point], theory: Sequence[Point]
) -> Drawing | None:
    figure = _figure(knobs, quantity.title, _UNITS.get(quantity.dimension, ""))
    drawing = plots.draw_figure("sweep", figure, measured, theory)
    says = "Dashes are theory, dots are measured." if theory else "Theory has no figure for it on an unknown machine."
    return None if drawing is None else replace(drawing, finding=says)


def _residuals(knobs: Sequence[Knob], measured: Sequence[Point], theory: Sequence[Point]) -> Drawing | None:
    """Measured over theory, less one, in per cent."""
    apart = [Point("residual", name, x, 100 * each) for name, x, each in _apart(measured, theory)]
    drawing = plots.draw_figure("residual", _figure(knobs, "Measured less theory", "%"), apart, ())
    return None if drawing is None else replace(drawing, finding="In per cent of theory.")


def _apart(measured: Sequence[Point], theory: Sequence[Point]) -> list[tuple[str, float, float]]:
    known = {(point.name, point.x): point.y for point in theory}
    return [
        (point.name, point.x, point.y / known[point.name, point.x] - 1)
        for point in measured
        if known.get((point.name, point.x))
    ]


def _finding(quantity: Quantity, measured: Sequence[Point], theory: Sequence[Point]) -> str:
    """What the residuals say, in a sentence."""
    if not measured:
        return "Nothing has been measured yet."
    apart = _apart(measured, theory)
    if not apart:
        return f"{quantity.title}: measured only. Theory says nothing of it without knowing the machine."
    worst = max(apart, key=lambda each: abs(each[2]))
    if abs(worst[2]) < 1e-9:
        return f"{quantity.title}: theory to the last digit, at all {len(apart)} points."
    signs = {each[2] > 0 for each in apart if abs(each[2]) > 1e-9}
    where = f"at most {100 * abs(worst[2]):.2g} % off, at {worst[1]:g}"
    if len(signs) == 1:
        more = "more" if signs == {True} else "less"
        return f"{quantity.title}: always {more} than theory, {where}. What is always on one side is a term, not noise."
    return f"{quantity.title}: {where}, sometimes above theory and sometimes below, as noise is."
