"""What full recomputation costs: 8 FLOPs a parameter and token where there were 6."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

from app.lab.fitting.law import UNKNOWN, Coefficient, Law, Source, drawn
from app.lab.least_squares import fit
from app.lab.models import Run
from app.theory.lab_runs import Point
from app.units import digits
from labs.spec import Figure

LAW = Law(
    "recomputation",
    "The third that recomputation costs",
    "Forward takes 2 FLOPs a parameter and token, backward 4; one more forward makes 8 of 6. Fitted: the factor "
    "between steps with and without full recomputation.",
    "pairs of finished runs alike but for recompute none and full",
    "/lab/sweeps?like=recomputation",
    "Sweep it over the micro-batch",
)


def fitted(source: Source) -> Law:
    """The factor between the steps of each pair."""
    steps: dict[str, dict[str, tuple[Run, float]]] = {}
    for run, spec in source.of_program("train"):
        seconds = (run.result or {}).get("step_seconds")
        if seconds and spec.training.recompute in ("none", "full"):
            training = spec.training.model_copy(update={"recompute": "none"})
            alike = spec.model_copy(update={"training": training}).model_dump_json()
            steps.setdefault(alike, {}).setdefault(spec.training.recompute, (run, float(seconds)))
    pairs = [each for each in steps.values() if len(each) == 2]
    if not pairs:
        return LAW
    without, with_it = ([each[kind][1] for each in pairs] for kind in ("none", "full"))
    # of the ratios' logarithms: a pair that was slowed on one side weighs as much as one slowed on the other
    found = fit([(1.0,) for _ in pairs], [log(y / x) for x, y in zip(without, with_it, strict=True)])
    if found is None:
        return LAW
    factor = exp(found.coefficients[0])
    found = replace(found, coefficients=(factor,), errors=tuple(e and e * factor for e in found.errors))
    figure = Figure("Steps with full recomputation", "without it", "with it", "s", "s")
    dots = [Point("again", "pair", x, y) for x, y in zip(without, with_it, strict=True)]
    line = [Point("again", "pair", x, 4 / 3 * x) for x in (0.0, max(without))]
    return replace(
        LAW,
        runs=tuple(sorted(run.id for each in pairs for run, _ in each.values())),
        coefficients=(
            Coefficient.of(
                found,
                0,
                "more",
                f"{digits(100 * (found.coefficients[0] - 1), 2)} %",
                "33 % of the FLOPs",
                lambda error: f"{digits(100 * error, 2)} points",
            ),
        ),
        drawing=drawn("again", figure, dots, line, "4/3, what the FLOPs say"),
        residual=_says(found.coefficients[0], found.errors[0]),
    )


def _says(factor: float, error: float | None) -> str:
    """One pair has no error to be held against: two sides of a third then mean little, and it is said."""
    third = 4 / 3
    if error is None:
        return "One pair alone has no error: with a second one can say whether it differs from a third."
    if error > UNKNOWN * (third - 1):
        return (
            f"The pairs differ by more than what is asked about (± {digits(100 * error, 2)} points): nothing can be "
            "said of a third yet. Run them again, with more steps, while the machine does nothing else."
        )
    if abs(factor - third) <= 2 * error:
        return "A third lies within twice the standard error: these runs do not tell it from theory's."
    if factor < third:
        return (
            "Less than a third: the optimizer, the loss and all that is not a layer's arithmetic are not repeated, and "
            "PyTorch stops before each layer's last product."
        )
    return "More than a third: the machine had other work meanwhile, or colder caches. Run the pairs again."
