"""What the lab's templates are handed: finished dicts, so that templates only lay out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.live import Expressions
from app.content.markdown import render
from app.content.schemas import Experiment
from app.core.errors import DomainError, NotFound, SpecError, Violation
from app.core.zone import learner_zone
from app.lab import forms, gantt, queries, results, service
from app.lab.models import ENDED, WAITING, Run
from app.lab.view import compare, fold
from app.theory.transformer import parameter_count, tensors
from app.theory.units import bytes_text, count_text
from labs.command import plain_command
from labs.spec import RunSpec, parse_run_spec

RECENT_RUNS = 8
NO_FAILURE: dict[str, Any] = {"cause": "", "message": "", "rank": None, "step": None, "lines": [], "lines_rank": None}
QUANTITY_TITLES = {
    "model_state_bytes": "Model state per rank",
    "payload_bytes_per_step": "Payload per rank and step",
}


_EXAMPLE = """{
  "model": "gpt-small",
  "training": {"sequence": 128, "micro_batches": 4, "steps": 20},
  "parallel": {"pipeline": 2, "schedule": "1f1b"},
  "probes": ["memory", "communication", "timeline"]
}"""


def find_experiment(content: Catalogue, key: str) -> Experiment:
    """Raises NotFound."""
    found = content.experiment(key)
    if found is None:
        raise NotFound(f"There is no experiment {key!r}. Accepted: {', '.join(content.experiments)}.")
    return found


def index(
    session: Session, learner_id: int, content: Catalogue, now: datetime,
    typed: Mapping[str, str] | None = None, error: DomainError | SpecError | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The lab's front page: experiments, devices, the queue, one's runs and the free form."""
    violations = error.violations if error else []
    written = (typed or {}).get("spec", "")
    elsewhere = forms.violations_elsewhere(violations)
    message = error.message if isinstance(error, DomainError) and not error.violations else ""
    return {
        "experiments": [
            {"item": each, "last": _last(session, learner_id, each, content)} for each in content.experiments.values()
        ],
        **_devices(session, learner_id, now),
        "runs": [_row(run, content, now) for run in queries.list_runs(session, learner_id, RECENT_RUNS)],
        "fields": forms.form_after({} if written else typed or {}, [] if written else violations),
        "errors": [str(each) for each in (violations if written else elsewhere)] + ([message] if message else []),
        "key": secrets.token_hex(8),
        "written": written,
        "example": _EXAMPLE,
    }


def experiment(
    session: Session, learner_id: int, content: Catalogue, found: Experiment, typed: Mapping[str, str], now: datetime,
    error: DomainError | SpecError | None = None,
) -> dict[str, Any]:  # fmt: skip
    """An experiment with its knobs as chosen and the quantities to predict; after `error`, with what was typed."""
    choices = forms.choose(found, typed)
    spec = parse_run_spec(forms.spec_of_experiment(found, choices))
    violations = error.violations if error else []
    at_quantity, elsewhere = {}, []
    for violation in violations:
        if violation.field.startswith("prediction."):
            at_quantity[violation.field.split(".")[1]] = violation
        else:
            elsewhere.append(str(violation))
    if error is not None and not violations:
        elsewhere.append(str(error))
    return {
        "experiment": found,
        "errors": elsewhere,
        "why": render(found.why),
        "choices": choices,
        "summary": describe(spec),
        "title": title(spec),
        "quantities": [_quantity(each.id, spec, typed, at_quantity) | {"item": each} for each in found.quantities],
        "last": _last(session, learner_id, found, content),
        **_devices(session, learner_id, now),
        "key": secrets.token_hex(8),
    }


def _quantity(name: str, spec: RunSpec, typed: Mapping[str, str], errors: Mapping[str, Violation]) -> dict[str, Any]:
    """A slider for bytes whose range and anchor give nothing away: they are the answer of no strategy."""
    weights = 4.0 * parameter_count(spec.model, spec.training.sequence)
    maximum = _round_up(5 * weights if name == "model_state_bytes" else 4 * weights * spec.training.micro_batches)
    layer = 4.0 * sum(each.size for each in tensors(spec.model, spec.training.sequence) if each.layer == 0)
    error = errors.get(name)
    return {
        "id": name,
        "maximum": maximum,
        "anchor_fraction": layer / maximum,
        "anchor_text": f"one layer's weights, {bytes_text(layer)}",
        "text": typed.get(f"value.{name}", ""),
        "within": typed.get(f"within.{name}", ""),
        "error": f"{error.message}" if error else None,
    }


def _round_up(value: float) -> float:
    """The next 1, 1.5, 2, 3, 5 or 8 times a power of ten."""
    power = 10.0 ** (len(str(int(value))) - 1)
    return next(m * power for m in (1, 1.5, 2, 3, 5, 8, 10) if m * power >= value)


def typed_prediction(found: Experiment, typed: Mapping[str, str]) -> dict[str, Any]:
    """The prediction in a sent form, as the API takes it."""
    prediction: dict[str, Any] = {}
    for quantity in found.quantities:
        within = typed.get(f"within.{quantity.id}", "")
        prediction[quantity.id] = {
            "value": typed.get(f"value.{quantity.id}", ""),
            "within": float(within) if within in ("1.1", "1.5", "3") else None,
        }
    return prediction


def run(
    session: Session, learner_id: int, content: Catalogue, run_id: int, now: datetime, drawn: bool = True
) -> dict[str, Any]:
    """Everything a run's page shows now; the live part is the same, asked for again, without what is `drawn`."""
    found = service.find_run(session, learner_id, run_id)
    spec = RunSpec.model_validate(found.spec)
    view = fold(results.every_event(session, found.id), found.theory)
    item = content.experiments.get(found.experiment_id or "")
    rows = compare(QUANTITY_TITLES, found.prediction, found.theory, found.result)
    return {
        "run": found,
        "spec": spec,
        "view": view,
        "title": title(spec),
        "summary": describe(spec),
        "measured_spans": gantt.draw_spans(view.spans) if drawn else None,
        "ideal_spans": gantt.draw_ideal(spec) if drawn and view.spans and spec.parallel.pipeline > 1 else None,
        "experiment": item,
        "ended": found.status in ENDED,
        "position": service.queue_position(session, found),
        "workers": service.workers_present(session, now),
        "comparison": rows,
        "failure": NO_FAILURE | (found.failure or {}),
        "headline": headline(found, rows),
        "explanations": _explanations(item, found) if found.status == "finished" else [],
        "line": render(item.interview_line) if item else None,
        "counts_for": named(content.concepts, item.concepts) if item and found.status == "finished" else [],
        "next_steps": content.related_links(item.related) if item else [],
        "command": command(found),
        "elapsed": _elapsed(found, now),
        "zone": learner_zone(),
        "again": _again(item, found),
        "cancelling": found.cancel_requested_at is not None and found.status not in ENDED,
    }


def _again(item: Experiment | None, found: Run) -> str | None:
    """The experiment's page with its knobs as this run had them."""
    if item is None:
        return None
    knobs = {knob.field: forms.get(found.spec, knob.field, knob.values[0]) for knob in item.knobs}
    return f"/lab/experiments/{item.slug}?{urlencode(knobs)}"


def headline(found: Run, rows: list[Any]) -> str:
    """What the result says, in a sentence: titles carry the finding."""
    if found.status == "failed":
        return str((found.failure or {}).get("message", "The run failed"))
    if found.status == "cancelled":
        return f"Cancelled after {found.steps_done} steps" if found.steps_done else "Cancelled before it started"
    predicted = [row for row in rows if row.off_by is not None]
    if not predicted:
        return "Theory and measurement, without a prediction of yours"
    worst = max(predicted, key=lambda row: row.off_by)
    if worst.off_by < 1.02:
        return "Your prediction holds" if len(predicted) == len(rows) else f"{worst.title}: you had it"
    direction = "low" if worst.predicted < worst.measured else "high"
    return f"{worst.title}: your number was {worst.off_by:.2f} times too {direction}"


def _explanations(item: Experiment | None, found: Run) -> list[dict[str, Any]]:
    if item is None:
        return []
    spec = RunSpec.model_validate(found.spec)
    values = explanation_values(spec, found.theory)
    return [{"title": each.title, "html": render(each.explanation, Expressions(values))} for each in item.quantities]


def explanation_values(spec: RunSpec, theory: Mapping[str, Any]) -> dict[str, Any]:
    """What an experiment's explanations may name."""
    return {
        "parameters": float(theory["parameters"]),
        "ranks": spec.parallel.data,
        "stage": spec.parallel.zero,
        "layout": theory["state_layout"],
        "accumulation": spec.training.micro_batches,
        "layers": spec.model.layers,
        "weights_bytes": 4.0 * theory["parameters"],
    }


def command(found: Run) -> str:
    """The line that does this run without us, on the kind of device it ran on."""
    spec = RunSpec.model_validate(found.spec)
    if found.device:
        spec = spec.model_copy(update={"device": "cpu" if found.device.startswith("CPU") else "cuda"})
    return plain_command(spec)


def title(spec: RunSpec) -> str:
    """What is done on how many ranks: `FSDP on 2 ranks`, `Pipeline of 2 × DDP of 2 on 4 ranks`."""
    parallel, ranks = spec.parallel, spec.parallel.world_size
    over_data = ("DDP", "ZeRO-1", "ZeRO-2", "FSDP")[parallel.zero]
    if parallel.shard not in (None, parallel.data):
        over_data = "HSDP"
    degrees = {
        "tensor": parallel.tensor, "context": parallel.context, "pipeline": parallel.pipeline,
        "experts": parallel.expert, over_data: parallel.data,
    }  # fmt: skip
    wide = {name: size for name, size in degrees.items() if size > 1}
    sizes = len(wide) > 1
    what = " × ".join(f"{name} of {size}" if sizes else name for name, size in wide.items()) or over_data
    return f"{what[0].upper()}{what[1:]} on {ranks} rank{'s' if ranks > 1 else ''}"


def describe(spec: RunSpec) -> str:
    """A spec in one line."""
    model, training = spec.model, spec.training
    parameters = count_text(parameter_count(spec.model, spec.training.sequence))
    accumulate = f" in {training.micro_batches} micro-steps" if training.micro_batches > 1 else ""
    return (
        f"{parameters} parameters, {model.layers} layers of width {model.hidden}, sequence {training.sequence}, "
        f"{spec.global_batch} sequences a step{accumulate}, {training.steps} steps, {training.precision}."
    )


def run_json(session: Session, found: Run) -> dict[str, Any]:
    def time(at: datetime | None) -> str | None:
        return at.isoformat() if at else None

    return {
        "id": found.id, "status": found.status, "phase": found.phase, "experiment": found.experiment_id,
        "queue_position": service.queue_position(session, found), "spec": found.spec, "prediction": found.prediction,
        "theory": found.theory, "result": found.result, "failure": found.failure, "steps_done": found.steps_done,
        "chunks": found.chunks, "device": found.device, "worker": found.worker, "created_at": time(found.created_at),
        "started_at": time(found.started_at), "ended_at": time(found.ended_at),
        "cancel_requested": found.cancel_requested_at is not None,
    }  # fmt: skip


def _devices(session: Session, learner_id: int, now: datetime) -> dict[str, Any]:
    workers = [worker for worker in service.workers_present(session, now) if worker.kind == "device"]
    active = {run.id: run for run in queries.list_active(session)}
    waiting = queries.list_queue(session)
    return {
        "devices": [{"worker": worker, "run": active.get(worker.run_id or 0)} for worker in workers],
        "waiting": len(waiting),
        "waiting_mine": sum(run.learner_id == learner_id for run in waiting),
    }


def _row(found: Run, content: Catalogue, now: datetime) -> dict[str, Any]:
    spec = RunSpec.model_validate(found.spec)
    item = content.experiments.get(found.experiment_id or "")
    rows = compare(QUANTITY_TITLES, found.prediction, found.theory, found.result)
    off = [row.off_by for row in rows if row.off_by is not None]
    said = {
        WAITING: "Queued",
        "starting": "Starting",
        "running": f"Step {found.steps_done} of {spec.training.steps}",
        "finished": ("exact" if max(off) < 1.005 else f"{max(off):.2f} × off") if off else "Finished",
        "failed": str((found.failure or {}).get("cause", "failed")).capitalize(),
        "cancelled": "Cancelled",
    }[found.status]
    name = f"{item.id}, {title(spec)}" if item else title(spec)
    return {"run": found, "name": name, "said": said, "steps": spec.training.steps}


def _last(session: Session, learner_id: int, item: Experiment, content: Catalogue) -> str | None:
    found = queries.find_last_finished(session, learner_id, item.id)
    if found is None:
        return None
    off = [r.off_by for r in compare(QUANTITY_TITLES, found.prediction, found.theory, found.result) if r.off_by]
    if not off:
        return "no prediction"
    return "exact" if max(off) < 1.005 else f"{max(off):.2f} × off"


def _elapsed(found: Run, now: datetime) -> float | None:
    if found.started_at is None:
        return None
    return ((found.ended_at or now) - found.started_at).total_seconds()
