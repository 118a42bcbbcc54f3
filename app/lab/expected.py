"""What theory says of a run of one's own before it is submitted: its bytes, and its time at this machine's pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import DomainError, SpecError
from app.lab import forms, queries
from app.lab.models import Run
from app.lab.naming import describe, title
from app.lab.predict import theory_record
from app.lab.quantities import quantities_of
from app.theory.compute import training_flops
from app.units import value_text
from labs.spec import RunSpec, parse_run_spec

_LOOKED_AT = 20  # finished runs, whose median pace is this machine's


@dataclass(frozen=True)
class Expected:
    """Quantities with their values; or what keeps it from running."""

    title: str = ""
    summary: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    pace: str = ""
    refused: tuple[str, ...] = ()


def expect(session: Session, learner_id: int, typed: Mapping[str, str]) -> Expected:
    """Of the form as it is filled in."""
    try:
        spec = parse_run_spec(forms.spec_of_text(typed["spec"]) if "spec" in typed else forms.spec_of_form(typed))
    except (DomainError, SpecError) as error:
        said = [forms.as_labelled(f"{each.message} Accepted: {each.accepted}.") for each in error.violations]
        return Expected(refused=tuple(said or [str(error)]))
    theory = theory_record(spec)
    rows = tuple(
        (quantity.title, value_text(theory[name], quantity.dimension))
        for name, quantity in quantities_of(spec).items()
        if theory.get(name) is not None
    )
    finished = queries.list_runs(session, learner_id, _LOOKED_AT, ("finished",))
    return Expected(title(spec), describe(spec), rows, _pace(spec, theory, finished))


def _pace(spec: RunSpec, theory: Mapping[str, Any], finished: Sequence[Run]) -> str:
    """Its time, at the FLOPs a second that earlier trainings reached; what is not arithmetic is in that pace."""
    if spec.options is not None:
        return ""
    rates = [
        training_flops(run.theory["parameters"], run.result["tokens_per_second"])
        for run in finished
        if run.result and run.result.get("tokens_per_second") and run.theory.get("parameters")
    ]
    if not rates:
        return "How long it takes nobody knows yet: no training of yours has been timed on this machine."
    step = training_flops(theory["parameters"], spec.tokens_per_step) / median(rates)
    whole = value_text(spec.training.steps * step, "seconds")
    return (
        f"A step takes about {value_text(step, 'seconds')}, all of it {whole}, at the "
        f"{value_text(median(rates), 'flop_per_second')} your last trainings reached here. Small steps reach less."
    )
