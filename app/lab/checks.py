"""Experiments with every knob in every position: the spec is one that runs, theory has its quantities, texts render."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render
from app.lab.forms import Choice, spec_of_experiment
from app.lab.predict import theory_record
from app.lab.run_page import explanation_values
from labs.spec import SpecError, parse_run_spec


def check_experiments(catalogue: Catalogue) -> Iterator[Finding]:
    """Each experiment's first finding."""
    for experiment in catalogue.experiments.values():
        for values in product(*(knob.values for knob in experiment.knobs)):
            choices = [Choice(knob, value) for knob, value in zip(experiment.knobs, values, strict=True)]
            try:
                spec = parse_run_spec(spec_of_experiment(experiment, choices))
                theory = theory_record(spec)
                for quantity in experiment.quantities:
                    render(quantity.explanation, Expressions(explanation_values(spec, theory)))
                    assert theory[quantity.id] is not None
            except (SpecError, ExpressionError) as error:
                yield (
                    experiment.id,
                    ("knobs",),
                    f"{dict(zip([k.field for k in experiment.knobs], values, strict=True))}: {error}",
                )
                break
