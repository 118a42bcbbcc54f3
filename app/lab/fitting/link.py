"""α and β of a link: a message of S bytes takes α + S/B."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from app.lab.fitting.law import Coefficient, Law, Source, between, drawn, residual
from app.lab.least_squares import fit
from app.theory.lab_runs import Point
from app.units import digits, value_text
from labs.spec import Figure

_NANO = 1e-9
LAW = Law(
    "link",
    "α and β of this machine's link",
    "A message of S bytes takes t = α + S/B: a start, and the bytes. Two numbers, fitted to a ping-pong of two ranks.",
    "one finished run of the program collectives",
    "/lab/experiments/ring-by-the-byte",
    "Run L07, the ring by the byte",
    beside="Read off one end alone",
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
        line = [Point("link", "a message", x, alpha + beta * x) for x in between(points[0].x, points[-1].x)]
        measured = [Point("link", "a message", point.x, point.y) for point in points]
        small, large = points[0], points[-1]
        return replace(
            LAW,
            runs=(run.id,),
            coefficients=(
                Coefficient.of(
                    found,
                    0,
                    "α",
                    value_text(max(alpha, 0.0), "seconds"),
                    f"{value_text(small.y, 'seconds')} for {value_text(small.x, 'bytes')}",
                    lambda error: value_text(error, "seconds"),
                ),
                Coefficient.of(
                    found,
                    1,
                    "B = 1/β",
                    value_text(1 / beta, "bytes_per_second"),
                    f"{value_text(large.x / large.y, 'bytes_per_second')} for {value_text(large.x, 'bytes')}",
                    partial(_percent_of, beta),
                ),
                Coefficient.of(
                    found,
                    1,
                    "β",
                    f"{digits(beta / _NANO, 3)} ns a byte",
                    f"{digits(large.y / large.x / _NANO, 3)} ns a byte, of those",
                    lambda error: f"{digits(error / _NANO, 2)} ns",
                ),
            ),
            drawing=drawn("link", figure, measured, line, "α + S/B"),
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
