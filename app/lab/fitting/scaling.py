"""A small scaling law: loss over parameters, a power."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

from app.lab.fitting.law import Coefficient, Fitting, Law, Sample, Source, plainly, residual
from app.lab.least_squares import Fitted
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
    heads=("Parameters", "Loss"),
    published="Kaplan et al. 2020, large models",
)


_FIGURE = Figure("Loss by parameters", "parameters", "loss", "", "nats", x_log=True, y_log=True)


def fitted(source: Source) -> Law:
    """α of the newest run whose points give one."""
    for run, _ in source.of_program("scaling"):
        measured = [point for point in source.points(run, "loss_by_parameters") if point.name != "power law"]
        budgets: dict[str, list[Point]] = {}
        for point in measured:
            budgets.setdefault(point.name, []).append(point)
        if not budgets:
            continue
        name = max(budgets, key=lambda budget: float(budget.partition(" ")[0].replace(",", "")))
        samples = [
            Sample(
                f"{run.id}-{point.x:.0f}",
                (run.id,),
                (f"{point.x:,.0f}", f"{point.y:.4g} nats"),
                "these models",
                point.x,
                point.y,
                (1.0, log(point.x)),
                log(point.y),
            )
            for point in budgets[name]
        ]
        fitting = source.fitting(LAW, samples)
        if fitting.fitted is not None:
            return _law_of(fitting, fitting.fitted)
        if fitting.out:
            return fitting.unfitted()
    return LAW


def _law_of(fitting: Fitting, line: Fitted) -> Law:
    scale, slope = line.coefficients

    def at(sample: Sample) -> float:
        return exp(scale + slope * log(sample.x))

    published, first = KAPLAN_LAWS["parameters"].exponent, fitting.kept[0]
    theirs = [(f"α = {published}", each.x, first.y * (each.x / first.x) ** -published) for each in fitting.samples]
    return fitting.law_with(
        _FIGURE,
        at,
        [*(("these models", each.x, at(each)) for each in fitting.samples), *theirs],
        "the law",
        [replace(Coefficient.of(line, 1, "α", f"{-slope:.3f}", "–", plainly), published=f"{published}")],
        residual(
            fitting,
            line,
            [sample.y / at(sample) - 1 for sample in fitting.kept],
            "no single power holds over the range: tokens run short for the larger models, and a text has an "
            "entropy that no loss falls below",
        ),
    )
