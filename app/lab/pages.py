"""What the lab's templates are handed: finished dicts, so that templates only lay out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.markdown import render
from app.content.schemas import Experiment
from app.core.errors import DomainError, NotFound, SpecError, Violation
from app.lab import forms, queries, service
from app.lab.models import WAITING, Run
from app.lab.naming import describe, title
from app.lab.run_page import comparison_of
from app.theory.transformer import parameter_count, tensors
from app.theory.units import bytes_text
from labs.spec import RunSpec, parse_run_spec

RECENT_RUNS = 8

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
    rows = comparison_of(found)
    off = [row.off_by for row in rows if row.off_by is not None]
    said = {
        WAITING: "Queued",
        "starting": "Starting",
        "running": f"Step {found.steps_done} of {spec.training.steps}" if spec.program == "train" else "Measuring",
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
    off = [r.off_by for r in comparison_of(found) if r.off_by]
    if not off:
        return "no prediction"
    return "exact" if max(off) < 1.005 else f"{max(off):.2f} × off"
