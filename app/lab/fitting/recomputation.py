"""What full recomputation costs: 8 FLOPs a parameter and token where there were 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import exp, log
from statistics import mean

from app.lab.fitting.law import Coefficient, Law, Sample, Source
from app.lab.forms import called
from app.lab.least_squares import Fitted, fit, too_few
from app.lab.models import Run
from app.lab.residuals import percent_apart
from app.lab.view import RunView
from app.theory.compute import PASSES
from app.units import digits, value_text
from labs.spec import Figure, RunSpec

_THIRD = PASSES["forward"] / PASSES["all"]
_LOOKED_AT = 8  # pairs whose watched steps are read
LAW = Law(
    "recomputation",
    "The third that recomputation costs",
    "Forward takes 2 FLOPs a parameter and token, backward 4; one more forward makes 8 of 6. Fitted: the factor "
    "between steps with and without full recomputation.",
    "pairs of finished runs alike but for recompute none and full",
    "/lab/sweeps?like=recomputation",
    "Sweep it over the micro-batch",
    heads=(called("training.micro_batch"), "Without it", "With it", "More"),
)
_FIGURE = Figure("Steps with full recomputation", "without it", "with it", "s", "s")


def fitted(source: Source) -> Law:
    """The factor between the steps of each pair: of each spec the newest run with and the newest without."""
    steps: dict[str, dict[str, tuple[Run, RunSpec, float]]] = {}
    for run, spec in source.of_program("train"):
        seconds = (run.result or {}).get("step_seconds")
        if seconds and spec.training.recompute in ("none", "full"):
            training = spec.training.model_copy(update={"recompute": "none"})
            alike = spec.model_copy(update={"training": training}).model_dump_json()
            steps.setdefault(alike, {}).setdefault(spec.training.recompute, (run, spec, float(seconds)))
    pairs = [pair for pair in steps.values() if len(pair) == 2]
    fitting = source.fitting(LAW, [_sample(pair) for pair in pairs])
    found = fitting.fitted
    if found is None:
        return fitting.unfitted() if fitting.out else LAW
    factor = exp(found.coefficients[0])
    more = replace(found, coefficients=(factor - 1,), errors=tuple(e and e * factor for e in found.errors))
    beside = fit([(1.0, each.x) for each in fitting.kept], [each.y for each in fitting.kept], relative=True)
    plain = {pair["none"][0].id: pair["none"][0] for pair in pairs}
    views = [source.view(plain[each.runs[0]]) for each in fitting.kept[-_LOOKED_AT:]]
    return fitting.law_with(
        _FIGURE,
        lambda sample: factor * sample.x,
        [
            (series, x, scale * x)
            for series, scale in (("pairs", factor), ("by FLOPs", 1 + _THIRD))
            for x in (0.0, fitting.samples[-1].x)
        ],
        "the fitted factor and 4/3, what the FLOPs say",
        [
            Coefficient.of(more, 0, "more", _per_cent(factor - 1), f"{_per_cent(_THIRD)} of the FLOPs", _points),
            *_with_fixed_part(beside),
        ],
        _says(more) + _said_of_fixed_part(beside) + _forwards(views),
    )


def _per_cent(share: float) -> str:
    return f"{digits(100 * share, 2)} %"


def _points(share: float) -> str:
    return f"{digits(100 * share, 2)} points"


def _with_fixed_part(line: Fitted | None) -> list[Coefficient]:
    """The same pairs by a fixed part and a share: what every checkpoint costs however small the step is."""
    if line is None or not line.tells:
        return []
    fixed, more = line.coefficients[0], replace(line, coefficients=(line.coefficients[0], line.coefficients[1] - 1))
    return [
        Coefficient.of(more, 0, "or: a fixed part", _signed(fixed), "none", partial(value_text, dimension="seconds")),
        Coefficient.of(more, 1, "and more beside it", _per_cent(more.coefficients[1]), _per_cent(_THIRD), _points),
    ]


def _signed(seconds: float) -> str:
    return f"{'−' if seconds < 0 else ''}{value_text(abs(seconds), 'seconds')}"


def _said_of_fixed_part(line: Fitted | None) -> str:
    """Whether small steps pay more than their share, where the pairs tell."""
    if line is None or not line.tells or line.is_unknown(0) or line.coefficients[0] < 0:
        return ""
    return (
        f" A part of it does not grow with the step, {_signed(line.coefficients[0])}: each checkpointed layer stores, "
        "restores and runs anew whatever it holds, so the small steps pay the larger share."
    )


def _sample(pair: Mapping[str, tuple[Run, RunSpec, float]]) -> Sample:
    """Of the ratio's logarithm: a pair that was slowed on one side weighs as much as one slowed on the other."""
    (plain, spec, without), (again, _, with_it) = pair["none"], pair["full"]
    training = spec.training
    cells = (
        f"{training.micro_batch}, sequence {training.sequence}",
        value_text(without, "seconds"),
        value_text(with_it, "seconds"),
        percent_apart(with_it, without),
    )
    key, runs = f"{plain.id}-{again.id}", (plain.id, again.id)
    return Sample(key, runs, cells, "pairs", without, with_it, (1.0,), log(with_it / without))


def _says(line: Fitted) -> str:
    """What the pairs show of a third, where there are enough of them to show anything."""
    more, margin = line.coefficients[0], line.margins[0]
    if margin is None or not line.tells:
        return f"Too few pairs to tell it from a third: {too_few(len(line.residuals), 1)}."
    if margin > _THIRD:
        return (
            f"The pairs differ by more than what is asked about (± {digits(100 * margin, 2)} points): nothing can be "
            "said of a third yet. Leave out a pair that was disturbed, or run them again, with more steps, while the "
            "machine does nothing else."
        )
    if abs(more - _THIRD) <= margin:
        return "A third lies within the interval: these runs do not tell it from theory's."
    if more < _THIRD:
        return (
            "Less than a third: the optimizer, the loss and all that is not a layer's arithmetic are not repeated, and "
            "PyTorch stops before each layer's last product."
        )
    return (
        f"More than a third, in {len(line.residuals)} pairs: in these runs "
        f"a FLOP that is done again takes {digits(more / _THIRD, 3)} times what one of the plain step takes on average."
    )


def _forwards(views: Sequence[RunView]) -> str:
    """How much of the plain steps was forward, where they were watched: that is what is done again."""
    splits = [view.split for view in views if view.split is not None]
    shares = [each.forward / (each.forward + each.backward + each.optimizer) for each in splits if each.forward]
    if not shares:
        return ""
    return (
        f" Forward took {digits(100 * mean(shares), 2)} % of the watched plain steps; by FLOPs it is "
        f"{digits(100 * _THIRD, 2)} %."
    )
