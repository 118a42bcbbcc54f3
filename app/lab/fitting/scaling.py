"""A small scaling law: loss over parameters, a power."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

from app.lab.fitting.law import Coefficient, Law, Source, drawn, plainly, residual
from app.lab.least_squares import fit
from app.theory.lab_runs import Point
from app.theory.scaling_laws import KAPLAN_LAWS
from labs.spec import Figure

LAW = Law(
    "scaling",
    "A small scaling law",
    "Loss ∝ N to the power −α, at the most tokens: a straight line between logarithms. Kaplan et al. 2020 found 0.076.",
    "one finished run of the program scaling",
    "/lab/experiments/small-scaling-law",
    "Run L16, a scaling law in small",
    published="Kaplan et al. 2020, large models",
)


def fitted(source: Source) -> Law:
    """α of the newest run whose points give one."""
    for run, _ in source.of_program("scaling"):
        every = [point for point in source.points(run, "loss_by_parameters") if point.name != "power law"]
        budgets: dict[str, list[Point]] = {}
        for point in every:
            budgets.setdefault(point.name, []).append(point)
        if not budgets:
            continue
        name = max(budgets, key=lambda each: float(each.partition(" ")[0].replace(",", "")))
        points = sorted(budgets[name], key=lambda point: point.x)
        found = fit([(1.0, log(point.x)) for point in points], [log(point.y) for point in points])
        if found is None:
            continue
        scale, slope = found.coefficients
        figure = Figure("Loss by parameters", "parameters", "loss", "", "nats", x_log=True, y_log=True)
        line = [Point("law", "these models", point.x, exp(scale + slope * log(point.x))) for point in points]
        first = points[0]
        published = KAPLAN_LAWS["parameters"].exponent
        theirs = [Point("law", f"α = {published}", p.x, first.y * (p.x / first.x) ** -published) for p in points]
        return replace(
            LAW,
            runs=(run.id,),
            coefficients=(
                replace(Coefficient.of(found, 1, "α", f"{-slope:.3f}", "–", plainly), published=f"{published}"),
            ),
            drawing=drawn("law", figure, [Point("law", "these models", p.x, p.y) for p in points], [*line, *theirs]),
            residual=residual(
                found,
                [1.0] * len(points),
                "no single power holds over the range: tokens run short for the larger models, and a text has an "
                "entropy that no loss falls below",
            ),
        )
    return LAW
