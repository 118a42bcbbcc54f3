"""Experiments with every knob in every position: the spec is one that runs, the run predicts what is asked for, the
sliders give nothing away, texts render."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.content.schemas import Experiment, Quantity
from app.lab.explaining import explanation_values, run_values
from app.lab.knobs import Settings, own_settings, reachable_settings, spec_with, written
from app.lab.predict import theory_record
from app.lab.quantities import quantities_of
from app.lab.sliders import Slider, make_slider
from app.units import SCALES
from labs.spec import RunSpec, SpecError, parse_run_spec

Expected = tuple[RunSpec, Mapping[str, Any]]  # a run, and what theory says of it

_GIVEN_AWAY = 0.02  # as near to the answer no mark of a slider may be
_MEASURED = (1.0, 0.5, 2.0)  # times what theory says: explanations must hold for a run that came out otherwise
# What is measured where theory knows nothing, in base units.
_TYPICAL = {
    "bytes": 1e6,
    "seconds": 1e-3,
    "fraction": 0.3,
    "count": 3.0,
    "flop": 1e12,
    "bytes_per_second": 1e9,
    "flop_per_second": 1e11,
}


def check_experiments(catalogue: Catalogue) -> Iterator[Finding]:
    """Each experiment's first finding."""
    for experiment in catalogue.experiments.values():
        finding = next(_findings(experiment, catalogue), None)
        if finding is not None:
            yield (experiment.id, *finding)


def _findings(experiment: Experiment, catalogue: Catalogue) -> Iterator[tuple[tuple[int | str, ...], str]]:
    every = sorted(reachable_settings(experiment), key=str)
    yield from _check_knobs(experiment, every)
    for index, quantity in enumerate(experiment.quantities):
        if quantity.cure not in catalogue.cards:
            yield ("quantities", index, "cure"), f"there is no card {quantity.cure}"
    for title, card in experiment.cures.items():
        if card not in catalogue.cards:
            yield ("cures", title), f"there is no card {card}"
    expected: list[Expected] = []
    for settings in every:
        spec = parse_run_spec(spec_with(experiment, settings))
        expected.append((spec, theory_record(spec)))
        for location, reason in _check_settings(experiment, *expected[-1]):
            shown = ", ".join(f"{knob.field} {value}" for knob, value in zip(experiment.knobs, settings, strict=True))
            yield location, f"{reason} (with {shown})"
    yield from _check_ends(experiment, expected)


def _check_ends(experiment: Experiment, expected: list[Expected]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """A slider that always ends at so many times the answer tells it to whoever turns a knob."""
    sent = {each["title"] for _, theory in expected for each in theory.get("transfers", ())}
    for field, title in (
        *(("names", each) for each in experiment.names),
        *(("cures", each) for each in experiment.cures),
    ):
        if title not in sent:
            yield (
                (field, title),
                f"no run of it has a transfer of this title, but {', '.join(sorted(sent)) or 'none'}",
            )
    for index, quantity in enumerate(experiment.quantities):
        known = [
            (Expressions(run_values(spec, theory)).number(quantity.most), theory[quantity.id])
            for spec, theory in expected
            if theory.get(quantity.id)
        ]
        ratios = [most / answer for most, answer in known]
        if len({answer for _, answer in known}) > 1 and max(ratios) <= (1 + _GIVEN_AWAY) * min(ratios):
            yield ("quantities", index, "most"), f"the slider always ends at {ratios[0]:.3g} times the answer"


def _check_knobs(experiment: Experiment, reachable: list[Settings]) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """The experiment's own settings are on offer and can run, and every value can be reached from there."""
    try:
        parse_run_spec(spec_with(experiment, own_settings(experiment)))
    except SpecError as error:
        yield ("spec",), f"a run refuses it: {error}"
        return
    for at, knob in enumerate(experiment.knobs):
        own = written(knob, experiment.spec)
        if knob.text_of(own) not in map(knob.text_of, knob.values):
            yield ("knobs", at, "values"), f"the spec has {own!r}, which is not offered"
        for value in knob.values:
            if not any(settings[at] == value for settings in reachable):
                yield ("knobs", at, "values"), f"no run accepts {value!r} beside what the other knobs offer"


def _check_settings(
    experiment: Experiment, spec: RunSpec, theory: Mapping[str, Any]
) -> Iterator[tuple[tuple[Any, ...], str]]:
    known = quantities_of(spec)
    values = run_values(spec, theory)
    for name, text in (("asks", experiment.asks), ("note", experiment.note)):
        try:
            render_inline(text or "", Expressions(values))
        except ExpressionError as error:
            yield (name,), str(error)
    sliders: dict[str, Slider] = {}
    for index, quantity in enumerate(experiment.quantities):
        at = ("quantities", index)
        if quantity.id not in known:
            yield (*at, "id"), f"the run predicts no {quantity.id!r}, but {', '.join(known) or 'nothing'}"
            return
        dimension = known[quantity.id].dimension
        if SCALES[quantity.unit][0] != dimension:
            yield (*at, "unit"), f"{quantity.id} is {dimension}; {quantity.unit!r} is {SCALES[quantity.unit][0]}"
            return
        try:
            sliders[quantity.id] = make_slider(quantity, dimension, values)
        except ExpressionError as error:
            yield (*at, "most"), str(error)
            return
        answer, whole = theory.get(quantity.id), dimension == "fraction"
        yield from ((at, reason) for reason in _check_slider(sliders[quantity.id], answer, whole))
    for factor in _MEASURED:
        measured = {name: factor * (theory.get(name) or _TYPICAL[each.dimension]) for name, each in known.items()}
        for index, quantity in enumerate(experiment.quantities):
            yield from (
                (("quantities", index, "explanation"), each) for each in _render(quantity, spec, theory, measured)
            )


def _check_slider(slider: Slider, answer: float | None, is_share: bool) -> Iterator[str]:
    """The range holds the answer and the anchor, and neither its end nor its anchor is the answer. That all of a share
    is 100 % gives nothing away."""
    if not 0 < slider.anchor < slider.maximum:
        yield f"the anchor, {slider.anchor:g}, is not between 0 and the end of the slider, {slider.maximum:g}"
    if answer is None:
        return
    if not 0 <= answer <= slider.maximum:
        yield f"the slider ends at {slider.maximum:g}; theory says {answer:g}"
    marks = {"anchor": slider.anchor} | ({} if is_share and slider.maximum == 1 else {"end": slider.maximum})
    for name, mark in marks.items():
        if answer and abs(mark / answer - 1) <= _GIVEN_AWAY:
            yield f"the {name} of the slider is the answer, {answer:g}"


def _render(
    quantity: Quantity, spec: RunSpec, theory: Mapping[str, object], measured: Mapping[str, float]
) -> Iterator[str]:
    try:
        html = render(quantity.explanation, Expressions(explanation_values(spec, theory, measured)))
    except (ExpressionError, SpecError) as error:
        yield str(error)
        return
    if not html.strip():
        yield "it says nothing"
