"""The form of a sweep as it is filled in: how many runs it comes to, how long they take, and what is wrong where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.core.errors import SpecError, Violation
from app.lab import queries
from app.lab.forms import called, path_called, said
from app.lab.naming import alike, title_alike
from app.lab.pace import LOOKED_AT, Pace, about, pace_of
from app.lab.predict import theory_record
from app.lab.sweeps.form import SweepForm, read_form
from app.lab.sweeps.knobs import Knob, check_knobs
from app.lab.sweeps.submitting import check_sweep, specs_of
from app.lab.takers import why_nobody_takes
from app.words import counted
from labs.spec import RunSpec, of_any_size, parse_run_spec

STEPS = "training.steps"


@dataclass(frozen=True)
class SweepOffer:
    """`runs` is 0 where what is typed comes to none yet. `alike` has in words what no knob turns; `wrong` is by field
    of the form, of which `empty` may only not be filled in yet; `elsewhere` is what belongs to none of them."""

    runs: int
    words: str
    alike: str
    wrong: Mapping[str, str]
    empty: Sequence[str] = ()
    elsewhere: Sequence[str] = ()


def offer_sweep(session: Session, learner_id: int, form: SweepForm, now: datetime) -> SweepOffer:
    """Nothing is queued."""
    spec, knobs, violations = check_form(session, form, now)
    wrong, elsewhere = by_field(form, violations)
    if violations:
        empty = [name for name in wrong if not getattr(form, name).strip()]
        return SweepOffer(0, "", _alike(spec, knobs), wrong, empty, elsewhere)
    specs = [parse_run_spec(each, sizes=of_any_size) for each in specs_of(spec, knobs)]
    return SweepOffer(len(specs), _words(session, learner_id, specs, now), _alike(spec, knobs), wrong)


def check_form(session: Session, form: SweepForm, now: datetime) -> tuple[object, list[Knob], list[Violation]]:
    """The spec and the knobs that were typed, and all that is wrong with them."""
    spec, knobs, unread = read_form(form)
    if spec is None:
        return spec, knobs, [*unread, *check_knobs({}, knobs)]
    return spec, knobs, [*unread, *check_sweep(session, form.name, spec, knobs, now)]


def by_field(form: SweepForm, violations: Sequence[Violation]) -> tuple[dict[str, str], list[str]]:
    """What is wrong at each field of the form, what is wrong with a value at the values of its knob; and elsewhere."""
    turned = {path_called(path): name for path, name in ((form.field_2, "values_2"), (form.field_1, "values_1"))}
    at: dict[str, str] = {}
    elsewhere = []
    for each in violations:
        name = turned.get(each.field, "steps" if each.field == STEPS else each.field)
        if name in SweepForm.__dataclass_fields__:
            at[name] = f"{at[name]} {said(each)}" if name in at else said(each)
        else:
            elsewhere.append(f"{called(each.field)}: {said(each)}")
    return at, elsewhere


def _alike(spec: object, knobs: Sequence[Knob]) -> str:
    """What cannot be read is shown as it was typed."""
    try:
        parsed = parse_run_spec(_without_steps(spec), sizes=of_any_size)
    except (ValueError, RecursionError, SpecError):
        return "as it was typed"
    turned: Collection[str] = {STEPS, *(knob.field for knob in knobs)}
    return ", ".join(filter(None, (title_alike(parsed, turned), alike(parsed, turned))))


def _without_steps(spec: object) -> object:
    """They have a field of their own, and what is wrong there is said there."""
    training = spec.get("training") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(training, Mapping):
        return spec
    return {**spec, "training": {name: value for name, value in training.items() if name != "steps"}}


def _words(session: Session, learner_id: int, specs: Sequence[RunSpec], now: datetime) -> str:
    """How long all runs take, one after the other, and what they wait for."""
    why = why_nobody_takes(session, specs[0], now)
    finished = queries.list_measured_here(session, learner_id, LOOKED_AT)
    paces = [pace_of(spec, theory_record(spec), finished) for spec in specs]
    said = [_time(specs, [each for each in paces if each is not None])]
    waiting = len(queries.list_queue(session))
    if waiting:
        said.append(f"{counted(waiting, 'run')} {'waits' if waiting == 1 else 'wait'} before them.")
    return " ".join(filter(None, (*said, why and f"Nobody takes them now: {why}")))


def _time(specs: Sequence[RunSpec], paces: Sequence[Pace]) -> str:
    if len(paces) < len(specs):
        return (
            f"{counted(len(specs), 'run')}, one after the other. How long they take nobody knows yet: "
            "nothing like them has been timed on this machine."
        )
    least, most = (
        sum(spec.training.steps * seconds for spec, seconds in zip(specs, ends, strict=True))
        for ends in ([each.least for each in paces], [each.most for each in paces])
    )
    return (
        f"{counted(len(specs), 'run')}, one after the other: about {about(least, most)}, and the time that each takes "
        "to start, at the pace of the trainings here that are most like them."
    )
