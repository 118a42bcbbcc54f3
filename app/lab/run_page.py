"""What a run's page shows: where it stands, what it measured beside theory and prediction, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import structlog
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.diagrams.drawing import Drawing
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render
from app.content.schemas import Experiment, Related
from app.content.schemas import Quantity as Asked
from app.core.zone import learner_zone
from app.lab import gantt, plots, results, service
from app.lab.comparison import Comparison, compare
from app.lab.explaining import explanation_values
from app.lab.folding import fold
from app.lab.knobs import settings_of_run
from app.lab.models import ENDED, Run
from app.lab.naming import describe, title
from app.lab.quantities import quantities_of
from app.lab.view import RunView
from app.theory.lab_runs import Point
from labs.command import plain_command
from labs.spec import Quantity, RunSpec

log = structlog.get_logger()

NO_FAILURE: dict[str, Any] = {"cause": "", "message": "", "rank": None, "step": None, "lines": [], "lines_rank": None}


def show(
    session: Session, learner_id: int, content: Catalogue, run_id: int, now: datetime, drawn: bool = True
) -> dict[str, Any]:
    """Everything a run's page shows now; the live part is the same, asked for again, without what is `drawn`."""
    found = service.find_run(session, learner_id, run_id)
    spec = RunSpec.model_validate(found.spec)
    view = fold(results.every_event(session, found.id), found.theory)
    item = content.experiments.get(found.experiment_id or "")
    rows, others = compared(found, item)
    return {
        "run": found,
        "spec": spec,
        "view": view,
        "title": title(spec),
        "summary": describe(spec),
        "figures": _figures(spec, view, found.theory) if drawn else [],
        "measured_spans": gantt.draw_spans(view.spans) if drawn else None,
        "ideal_spans": gantt.draw_ideal(spec) if drawn and view.spans and spec.parallel.pipeline > 1 else None,
        "experiment": item,
        "ended": found.status in ENDED,
        "position": service.queue_position(session, found),
        "workers": service.workers_present(session, now),
        "comparison": rows,
        "others": others,
        "failure": NO_FAILURE | (found.failure or {}),
        "headline": headline(found, rows),
        "explanations": _explanations(item, found) if found.status == "finished" else [],
        "line": render(item.interview_line) if item else None,
        "counts_for": named(content.concepts, item.concepts) if item and found.status == "finished" else [],
        "missed": _missed(content, item, rows),
        "next_steps": content.related_links(item.related) if item else [],
        "command": command(found),
        "elapsed": _elapsed(found, now),
        "zone": learner_zone(),
        "again": _again(item, found),
        "cancelling": found.cancel_requested_at is not None and found.status not in ENDED,
    }


def compared(found: Run, item: Experiment | None) -> tuple[list[Comparison], list[Comparison]]:
    """Prediction, theory and measurement of what an experiment asks for, in its order and words; and of what the run
    found besides. A run of one's own was asked for everything."""
    known = quantities_of(RunSpec.model_validate(found.spec))
    asked = _asked(item, known) if item else known
    others = {name: quantity for name, quantity in known.items() if name not in asked}
    return (
        compare(asked, found.prediction, found.theory, found.result),
        compare(others, found.prediction, found.theory, found.result),
    )


def _asked(item: Experiment, known: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {each.id: replace(known[each.id], title=each.title) for each in item.quantities if each.id in known}


def _missed(content: Catalogue, item: Experiment | None, rows: list[Comparison]) -> list[dict[str, str]]:
    """The cards that answer what was predicted wrong."""
    titles = {row.title for row in rows if row.missed}
    cures = dict.fromkeys(each.cure for each in item.quantities if each.title in titles) if item else {}
    return content.related_links(Related(cards=tuple(cures)))


def _figures(spec: RunSpec, view: RunView, theory: Mapping[str, Any]) -> list[Drawing]:
    """What a program has measured so far, a drawing each."""
    if spec.options is None:
        return []
    expected = [Point(**point) for point in theory.get("points", ())]
    drawn = (
        plots.draw_figure(
            name, figure, *([p for p in points if p.figure == name] for points in (view.points, expected))
        )
        for name, figure in spec.options.figures.items()
    )
    return [drawing for drawing in drawn if drawing is not None]


def _again(item: Experiment | None, found: Run) -> str:
    """The experiment's page with its knobs as this run had them, or the form of own runs filled in as it was."""
    if item is None:
        return f"/lab?again={found.id}#ff"
    return f"/lab/experiments/{item.slug}?{urlencode(settings_of_run(item, found.spec))}"


def headline(found: Run, rows: list[Any]) -> str:
    """What the result says, in a sentence: titles carry the finding."""
    if found.status == "failed":
        return str((found.failure or {}).get("message", "The run failed"))
    if found.status == "cancelled":
        return f"Cancelled after {found.steps_done} steps" if found.steps_done else "Cancelled before it started"
    predicted = [row for row in rows if row.off_by is not None]
    if not predicted:
        return (
            "Theory and measurement, without a prediction of yours"
            if rows
            else title(RunSpec.model_validate(found.spec))
        )
    worst = max(predicted, key=lambda row: row.off_by)
    if worst.off_by < 1.02:
        return "Your prediction holds" if len(predicted) == len(rows) else f"{worst.title}: you had it"
    direction = "low" if worst.predicted < worst.measured else "high"
    return f"{worst.title}: your number was {worst.off_by:.2f} times too {direction}"


def _explanations(item: Experiment | None, found: Run) -> list[dict[str, Any]]:
    if item is None:
        return []
    values = explanation_values(RunSpec.model_validate(found.spec), found.theory, found.result or {})
    return [{"title": each.title, "html": _explained(each, values)} for each in item.quantities]


def _explained(quantity: Asked, values: Mapping[str, Any]) -> Markup:
    """The content check renders every text for every setting; what a run measured it cannot know."""
    try:
        return render(quantity.explanation, Expressions(values))
    except ExpressionError as error:
        log.warning("an explanation cannot be computed", quantity=quantity.id, error=str(error))
        return Markup("<p>For what this run measured no explanation can be computed.</p>")


def command(found: Run) -> str:
    """The line that does this run without us, on the kind of device it ran on."""
    spec = RunSpec.model_validate(found.spec)
    if found.device:
        spec = spec.model_copy(update={"device": "cpu" if found.device.startswith("CPU") else "cuda"})
    return plain_command(spec)


def run_json(session: Session, found: Run) -> dict[str, Any]:
    def time(at: datetime | None) -> str | None:
        return at.isoformat() if at else None

    return {
        "id": found.id,
        "status": found.status,
        "phase": found.phase,
        "experiment": found.experiment_id,
        "queue_position": service.queue_position(session, found),
        "spec": found.spec,
        "prediction": found.prediction,
        "theory": found.theory,
        "result": found.result,
        "failure": found.failure,
        "steps_done": found.steps_done,
        "chunks": found.chunks,
        "device": found.device,
        "worker": found.worker,
        "created_at": time(found.created_at),
        "started_at": time(found.started_at),
        "ended_at": time(found.ended_at),
        "cancel_requested": found.cancel_requested_at is not None,
    }


def _elapsed(found: Run, now: datetime) -> float | None:
    if found.started_at is None:
        return None
    return ((found.ended_at or now) - found.started_at).total_seconds()
