"""Submitting a sweep, every run or none, and cancelling it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from itertools import product
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import DomainError, NotFound, SpecError, Violation
from app.lab import queries
from app.lab.forms import get, put
from app.lab.models import ENDED, Sweep
from app.lab.submitting import cancel_run, submit_run
from app.lab.sweeps.knobs import Knob, Value, is_number
from app.lab.takers import sizes_here
from labs.spec import RunSpec, parse_run_spec

MOST_RUNS = 16
MOST_NAME = 80


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
    sizes = sizes_here(session, now)
    every = list(product(*(knob.values for knob in knobs)))
    specs = [_turned(spec, knobs, settings) for settings in every]
    for settings, each in zip(every, specs, strict=True):
        try:
            parse_run_spec(each, sizes=sizes)
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
    if knobs and not all(is_number(value) for value in knobs[0].values):
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
