"""Submitting a sweep, every run or none, and cancelling it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from itertools import product
from math import prod

from sqlalchemy.orm import Session

from app.core.errors import DomainError, NotFound, SpecError, Violation
from app.lab import queries
from app.lab.forms import called, put, value_called
from app.lab.models import ENDED, Sweep
from app.lab.submitting import cancel_run, submit_run
from app.lab.sweeps.knobs import Knob, Value, check_knobs, is_field, is_number
from app.lab.takers import Here, here
from app.words import listed
from labs.spec import parse_run_spec

Settings = tuple[Value, ...]  # a value for each knob

MOST_TRIED = 256  # settings, to say what is wrong with them; more are refused for their number
MOST_NAME = 80


def submit_sweep(
    session: Session, learner_id: int, name: str, spec: object, knobs: Sequence[Knob], now: datetime
) -> Sweep:
    """Queue a run for every setting. Raises DomainError and queues nothing then: all specs are read before the first
    run is queued."""
    wrong = check_sweep(session, name, spec, knobs, now)
    if wrong:
        raise DomainError("No run of it was started.", wrong)
    sweep = Sweep(
        learner_id=learner_id,
        name=" ".join(name.split()),
        knobs=[{"field": knob.field, "values": list(knob.values)} for knob in knobs],
        created_at=now,
    )
    session.add(sweep)
    session.flush()
    for each in specs_of(spec, knobs):
        submit_run(session, learner_id, each, None, now).sweep_id = sweep.id
    session.flush()
    return sweep


def check_sweep(session: Session, name: str, spec: object, knobs: Sequence[Knob], now: datetime) -> list[Violation]:
    """All that is wrong with a sweep, its knobs and every run that they come to."""
    wrong = [*check_knobs(spec, knobs), *_check_settings(spec, knobs, here(session, now))]
    if len(name) > MOST_NAME:
        wrong.append(Violation("name", f"{name[:40]}…", "The name is too long.", f"up to {MOST_NAME} characters"))
    return wrong


def specs_of(spec: object, knobs: Sequence[Knob]) -> Iterator[dict[str, object]]:
    """The spec of each run, in the order of the knobs' values."""
    for settings in product(*(knob.values for knob in knobs)):
        yield _turned(spec, knobs, settings)


def _check_settings(spec: object, knobs: Sequence[Knob], there: Here) -> Iterator[Violation]:
    """What is wrong with the runs that the knobs which can be turned come to, each thing once and with the values that
    it is of. What `check_knobs` says of a knob is not said again."""
    if not isinstance(spec, Mapping):
        return
    turned = [
        replace(knob, values=tuple(value for value in knob.values if number or is_number(value)))
        for number, knob in enumerate(knobs)
        if knob.values and is_field(spec, knob.field)
    ]
    if len({knob.field for knob in turned}) < len(turned) or prod(len(knob.values) for knob in turned) > MOST_TRIED:
        return
    every = list(product(*(knob.values for knob in turned)))
    of: dict[tuple[str, str, str], list[tuple[Settings, Violation]]] = {}
    for settings in every:
        try:
            there.read(_turned(spec, turned, settings))
        except SpecError as error:
            for each in error.violations:
                of.setdefault((each.field, each.message, each.accepted), []).append((settings, each))
    for same in of.values():
        violation, where = same[0][1], _where(turned, every, [settings for settings, _ in same])
        yield replace(violation, message=f"{where}{violation.message}")


def _where(knobs: Sequence[Knob], every: Sequence[Settings], wrong: Sequence[Settings]) -> str:
    """The values that the `wrong` ones among `every` setting have alike, as a sentence begins; nothing where all are
    wrong."""
    if len(wrong) == len(every):
        return ""
    for at, knob in enumerate(knobs):
        values = list(dict.fromkeys(settings[at] for settings in wrong))
        if len(wrong) == sum(settings[at] in values for settings in every):
            return f"With {called(knob.field)} {listed([value_called(knob.field, each) for each in values])}: "
    first = zip(knobs, wrong[0], strict=True)
    said = " and ".join(f"{called(knob.field)} {value_called(knob.field, value)}" for knob, value in first)
    more = f", and {len(wrong) - 1} more settings" if len(wrong) > 1 else ""
    return f"With {said}{more}: "


def _turned(spec: object, knobs: Sequence[Knob], settings: Sequence[Value]) -> dict[str, object]:
    """The spec with its knobs so. A model that is named is written out where a knob turns a part of it."""
    assert isinstance(spec, Mapping)
    turned: dict[str, object] = deepcopy(dict(spec))
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
