"""α and β of a link: a message of S bytes takes α + S/B."""

from __future__ import annotations

from functools import partial

from app.lab.fitting.law import Coefficient, Fitting, Law, Sample, Source, between, residual
from app.lab.least_squares import Fitted
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
    heads=("Message", "Time"),
    beside="Read off one end alone",
)
_FIGURE = Figure("One message between two ranks", "size", "time", "B", "s", x_log=True, y_log=True)


def fitted(source: Source) -> Law:
    """α and B of the newest run whose ping-pong is a line."""
    for run, _ in source.of_program("collectives"):
        points = source.points(run, "ping_pong")
        samples = [
            Sample(
                f"{run.id}-{point.x:.0f}",
                (run.id,),
                (value_text(point.x, "bytes"), value_text(point.y, "seconds")),
                "a message",
                point.x,
                point.y,
                (1.0, point.x),
                point.y,
            )
            for point in points
            if point.name == points[0].name
        ]
        fitting = source.fitting(LAW, samples, relative=True)
        found = fitting.fitted
        if found is not None and found.coefficients[1] > 0:
            return _law_of(fitting, found)
        if fitting.out:
            return fitting.unfitted()
    return LAW


def _law_of(fitting: Fitting, line: Fitted) -> Law:
    alpha, beta = line.coefficients
    small, large = fitting.kept[0], fitting.kept[-1]
    return fitting.law_with(
        _FIGURE,
        lambda sample: alpha + beta * sample.x,
        [("a message", x, alpha + beta * x) for x in between(fitting.samples[0].x, fitting.samples[-1].x)],
        "α + S/B",
        (
            Coefficient.of(
                line,
                0,
                "α",
                value_text(max(alpha, 0.0), "seconds"),
                f"{value_text(small.y, 'seconds')} for {value_text(small.x, 'bytes')}",
                lambda error: value_text(error, "seconds"),
            ),
            Coefficient.of(
                line,
                1,
                "B = 1/β",
                value_text(1 / beta, "bytes_per_second"),
                f"{value_text(large.x / large.y, 'bytes_per_second')} for {value_text(large.x, 'bytes')}",
                partial(_percent_of, beta),
            ),
            Coefficient.of(
                line,
                1,
                "β",
                f"{digits(beta / _NANO, 3)} ns a byte",
                f"{digits(large.y / large.x / _NANO, 3)} ns a byte for {value_text(large.x, 'bytes')}",
                lambda error: f"{digits(error / _NANO, 2)} ns",
            ),
        ),
        residual(
            line,
            [sample.y / (alpha + beta * sample.x) - 1 for sample in fitting.kept],
            "the line misses sizes at one end: a copy through a buffer, or another path for large messages, "
            "which α and B do not have",
        ),
    )


def _percent_of(value: float, error: float) -> str:
    return f"{digits(100 * error / value, 2)} %"
