"""What the lab's pages show, finished, so that templates only lay out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.live import Expressions
from app.content.markdown import render, render_inline
from app.content.schemas import Concept, Experiment, Quantity
from app.core.errors import DomainError, NotFound, SpecError
from app.lab import forms, listing, queries, reading
from app.lab.beyond import Beyond, beyond_form
from app.lab.devices import DeviceRow, device_rows, has_gpus
from app.lab.expected import words_of_form
from app.lab.explaining import run_values
from app.lab.forms import FormField
from app.lab.knobs import Choice, offer, own_settings, read_settings, spec_with
from app.lab.listing import RunRow
from app.lab.naming import describe
from app.lab.next_change import RESTARTING, restarting
from app.lab.playing import figure_name
from app.lab.predict import CONFIDENCES, theory_record
from app.lab.quantities import quantities_of
from app.lab.sliders import Slider, make_slider
from labs.spec import parse_run_spec

RECENT_RUNS = 8

_EXAMPLE = """{
  "model": "gpt-small",
  "training": {"sequence": 128, "micro_batches": 4, "steps": 20},
  "parallel": {"pipeline": 2, "schedule": "1f1b"}
}"""


def find_experiment(content: Catalogue, key: str) -> Experiment:
    """Raises NotFound."""
    found = content.experiment(key)
    if found is None:
        raise NotFound(f"There is no experiment {key!r}. Accepted: {', '.join(content.experiments)}.")
    return found


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment, how far off the learner's last prediction there was, and the concept it is on first."""

    item: Experiment
    last: str | None
    concept: Concept


@dataclass(frozen=True)
class LabPage:
    """The lab's front page: experiments, devices, the queue, one's runs and the free form.

    `written` is the spec as somebody wrote it down, empty where the fields were filled in; `example` one to start from.
    Of a run that is run again, `beyond` is what the fields cannot say.
    """

    experiments: Sequence[ExperimentRow]
    suggested: Experiment | None
    devices: Sequence[DeviceRow]
    waiting: int
    runs: Sequence[RunRow]
    fields: Sequence[FormField]
    said_first: Sequence[FormField]
    words: str
    errors: Sequence[str]
    key: str
    written: str
    show: str
    beyond: Beyond | None
    example: str = _EXAMPLE


@dataclass(frozen=True)
class AskedQuantity:
    """What is to be predicted, with what was typed, how sure, and what is wrong with it."""

    item: Quantity
    slider: Slider
    text: str
    within: str
    error: str | None


@dataclass(frozen=True)
class ExperimentPage:
    """An experiment with its knobs as chosen and the quantities to predict. `figure` names the one that shows how it
    goes; empty where there is none."""

    experiment: Experiment
    errors: Sequence[str]
    why: Markup
    choices: Sequence[Choice]
    summary: str
    asks: Markup
    note: Markup | str
    quantities: Sequence[AskedQuantity]
    last: str | None
    figure: str
    devices: Sequence[DeviceRow]
    key: str
    confidences: Sequence[str] = tuple(f"{each:g}" for each in CONFIDENCES)


def index(
    session: Session,
    learner_id: int,
    content: Catalogue,
    now: datetime,
    suggested: Experiment | None,
    typed: Mapping[str, str] | None = None,
    error: DomainError | SpecError | None = None,
    show: str = "all",
    again: int | None = None,
) -> LabPage:
    """The lab's front page, with what was `typed` and refused with `error`, or typed for the run `again`; of the
    experiments all, or the `open`. `suggested` is the one to do next."""
    violations = error.violations if error else []
    written = (typed or {}).get("spec", "")
    elsewhere = [forms.as_labelled(str(each)) for each in forms.violations_elsewhere(violations)]
    message = error.message if isinstance(error, DomainError) and not error.violations else ""
    as_written = [str(replace(each, field=each.field or "spec")) for each in violations]
    devices = device_rows(session, now)
    filled = forms.form_after(typed or {}, [] if written else violations, has_gpus(devices))
    said_first = filled[len(forms.FREE_FORM) :]
    return LabPage(
        experiments=[
            ExperimentRow(each, _last(session, learner_id, each), named(content.concepts, each.concepts)[0])
            for each in content.experiments.values()
        ],
        show=show,
        suggested=suggested,
        devices=devices,
        waiting=len(queries.list_queue(session)),
        runs=[listing.row_of(run, content) for run in queries.list_runs(session, learner_id, RECENT_RUNS)],
        fields=[each for each in filled if each not in said_first],
        said_first=said_first,
        words=words_of_form(session, learner_id, typed or {}, now),
        errors=(as_written if written else elsewhere) + ([message] if message else []),
        key=secrets.token_hex(8),
        written=written,
        beyond=None if again is None else beyond_form(again, typed or {}),
    )


def typed_again(session: Session, learner_id: int, run_id: int, change: str = "") -> dict[str, str]:
    """What was typed for a run of one's own, or would have been, to run it again with a change: `field:value`, or
    `faults:none` for none of its faults, or `RESTARTING`. A field changes nothing of a run that is written out."""
    run = reading.find_run(session, learner_id, run_id)
    spec = run.spec
    if change == "faults:none":
        return forms.settings_of_run({**spec, "faults": []})
    if change == RESTARTING:
        return forms.settings_of_run(restarting(spec, run.steps_done) or spec)
    typed = forms.settings_of_run(spec)
    name, _, value = change.partition(":")
    return {**typed, name: value} if name in typed and "spec" not in typed else typed


def experiment(
    session: Session,
    learner_id: int,
    content: Catalogue,
    item: Experiment,
    typed: Mapping[str, str],
    now: datetime,
    error: DomainError | SpecError | None = None,
) -> ExperimentPage:
    """An experiment with its knobs as chosen and the quantities to predict; after `error`, with what was typed.

    Knobs that cannot be turned as asked stay as the experiment has them, and the page says so.
    """
    errors = [error] if error else []
    try:
        settings = read_settings(item, typed)
    except (DomainError, SpecError) as refused:
        settings = own_settings(item)
        errors += [] if error else [refused]
    spec = parse_run_spec(spec_with(item, settings))
    values, known = run_values(spec, theory_record(spec)), quantities_of(spec)
    at_quantity, elsewhere = _sorted(errors)
    return ExperimentPage(
        experiment=item,
        errors=elsewhere,
        why=render(item.why),
        choices=offer(item, settings),
        summary=describe(spec),
        asks=render_inline(item.asks, Expressions(values)),
        note=render_inline(item.note, Expressions(values)) if item.note else "",
        quantities=[
            AskedQuantity(
                quantity,
                make_slider(quantity, known[quantity.id].dimension, values),
                typed.get(f"value.{quantity.id}", ""),
                typed.get(f"within.{quantity.id}", ""),
                at_quantity.get(quantity.id),
            )
            for quantity in item.quantities
        ],
        last=_last(session, learner_id, item),
        figure=figure_name(spec),
        devices=device_rows(session, now),
        key=secrets.token_hex(8),
    )


def _sorted(errors: list[DomainError | SpecError]) -> tuple[dict[str, str], list[str]]:
    """What is wrong with a prediction by quantity, and what is wrong besides."""
    at_quantity: dict[str, str] = {}
    elsewhere: list[str] = []
    for error in errors:
        for violation in error.violations:
            if violation.field.startswith("prediction."):
                at_quantity[violation.field.split(".")[1]] = violation.message
            else:
                elsewhere.append(f"{violation.message} Accepted: {violation.accepted}.")
        if not error.violations:
            elsewhere.append(str(error))
    return at_quantity, elsewhere


def typed_prediction(item: Experiment, typed: Mapping[str, str]) -> dict[str, object]:
    """The prediction in a sent form, as the API takes it."""
    prediction: dict[str, object] = {}
    for quantity in item.quantities:
        within = typed.get(f"within.{quantity.id}", "")
        prediction[quantity.id] = {
            "value": typed.get(f"value.{quantity.id}", ""),
            "within": float(within) if within in ("1.1", "1.5", "3") else None,
        }
    return prediction


def _last(session: Session, learner_id: int, item: Experiment) -> str | None:
    run = queries.find_last_finished(session, learner_id, item.id)
    return None if run is None else listing.off(run, item) or "no prediction"
