"""α and β of a link: a message of S bytes takes α + S/B."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from app.lab.fitting.law import Coefficient, Law, Source, drawn, residual
from app.lab.least_squares import fit
from app.theory.lab_runs import Point
from app.units import digits, value_text
from labs.spec import Figure

LAW = Law(
    "link",
    "α and β of this machine's link",
    "A message of S bytes takes t = α + S/B: a start, and the bytes. Two numbers, fitted to a ping-pong of two ranks.",
    "one finished run of the program collectives",
    "/lab/experiments/ring-by-the-byte",
    "Run L07, the ring by the byte",
)


def fitted(source: Source) -> Law:
    """α and B of the newest run whose ping-pong is a line."""
    for run, _ in source.of_program("collectives"):
        points = sorted(source.points(run, "ping_pong"), key=lambda point: point.x)
        points = [point for point in points if point.name == points[0].name]
        found = fit([(1.0, point.x) for point in points], [point.y for point in points], relative=True)
        if found is None or found.coefficients[1] <= 0:
            continue
        alpha, beta = found.coefficients
        figure = Figure("One message between two ranks", "size", "time", "B", "s", x_log=True, y_log=True)
        line = [Point("link", "fitted", point.x, alpha + beta * point.x) for point in points]
        measured = [Point("link", "measured", point.x, point.y) for point in points]
        return replace(
            LAW,
            runs=(run.id,),
            coefficients=(
                Coefficient.of(
                    found,
                    0,
                    "α",
                    value_text(max(alpha, 0.0), "seconds"),
                    "the machine's own",
                    lambda error: value_text(error, "seconds"),
                ),
                Coefficient.of(
                    found,
                    1,
                    "B",
                    value_text(1 / beta, "bytes_per_second"),
                    "the machine's own",
                    partial(_percent_of, beta),
                ),
            ),
            drawing=drawn("link", figure, measured, line),
            residual=residual(
                found,
                [point.y for point in points],
                "the line misses sizes at one end: a copy through a buffer, or another path for large messages, "
                "which α and B do not have",
            ),
        )
    return LAW


def _percent_of(value: float, error: float) -> str:
    return f"{digits(100 * error / value, 2)} %"
