"""α and β of a link: a message of S bytes takes α + S/B."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import hypot

from app.lab.fitting.law import Coefficient, Fitting, Law, Sample, Source, between, residual
from app.lab.least_squares import TELLING, Fitted, fit, student_t
from app.lab.models import Run
from app.units import digits, value_text
from labs.spec import Figure, RunSpec

_NANO = 1e-9
_FAR = 0.1  # of the law: further away on one side than sizes of a run in order scatter
_NAMED = 2  # of the newest runs have a tone of their own, beside earlier ones and points left out
_EXACT = 1e-6  # of a coefficient: a smaller difference is the computer's
_LINE = "α + S/B"
LAW = Law(
    "link",
    "α and β of this machine's link",
    "A message of S bytes takes t = α + S/B: a start, and the bytes. Two numbers, fitted to every ping-pong of two "
    "ranks here. A run with other work beside it shows as points away from the others.",
    "finished runs of the program collectives",
    "/lab/experiments/ring-by-the-byte",
    "Run L07, the ring by the byte",
    heads=("Message", "Time"),
    beside="Read off one end alone",
)
_FIGURE = Figure("One message between two ranks", "size", "time", "B", "s", x_log=True, y_log=True, fitted=(_LINE,))


def fitted(source: Source) -> Law:
    """α and B of every ping-pong here over the link that the newest one went over."""
    every = ((run, spec, source.points(run, "ping_pong")) for run, spec in source.of_program("collectives"))
    measured = [each for each in every if each[2]]
    alike = [(run, points) for run, spec, points in measured if _link(run, spec) == _link(*measured[0][:2])]
    samples = [
        Sample(
            f"{run.id}-{point.x:.0f}",
            (run.id,),
            (value_text(point.x, "bytes"), value_text(point.y, "seconds")),
            "a message" if len(alike) == 1 else f"run {run.id}" if at < _NAMED else "earlier runs",
            point.x,
            point.y,
            (1.0, point.x),
            point.y,
        )
        for at, (run, points) in enumerate(alike)
        for point in points
        if point.name == points[0].name
    ]
    fitting = source.fitting(LAW, samples, relative=True)
    found = fitting.fitted
    if found is not None and found.coefficients[1] > 0:
        return _law_of(fitting, found)
    return fitting.unfitted() if fitting.out else LAW


def _link(run: Run, spec: RunSpec) -> tuple[object, ...]:
    """By what the ranks say that they ran on: `auto` is the CPU where there is nothing else."""
    return (run.result or {}).get("device", spec.device), spec.hosts, spec.link


def _of_runs(samples: Sequence[Sample]) -> dict[int, Fitted]:
    """Each run's own line, where its points give one with an error."""
    by_run: dict[int, list[Sample]] = {}
    for sample in samples:
        by_run.setdefault(sample.runs[0], []).append(sample)
    lines = {run: fit([each.row for each in own], [each.aim for each in own], True) for run, own in by_run.items()}
    return {run: line for run, line in lines.items() if line is not None and None not in line.errors}


def _said_of_runs(lines: Mapping[int, Fitted]) -> str:
    """Where the runs furthest apart differ by more than the 95 % interval of their difference; else nothing."""
    said = []
    for at, name in enumerate(("α", "β")):
        low, high = (extreme(lines, key=lambda run: lines[run].coefficients[at], default=0) for extreme in (min, max))
        if low == high:
            continue
        ends = lines[low], lines[high]
        apart = ends[1].coefficients[at] - ends[0].coefficients[at]
        spare = ends[0].spare + ends[1].spare
        error = hypot(*(end.errors[at] or 0.0 for end in ends))
        if spare >= TELLING and apart > max(student_t(spare) * error, _EXACT * abs(ends[1].coefficients[at])):
            texts = [_ALPHA_BETA[at](end.coefficients[at]) for end in ends]
            said.append(f"{name} is {texts[0]} in run {low} and {texts[1]} in run {high}")
    if not said:
        return ""
    return (
        f" Runs differ by more than their errors say: {', '.join(said)}. The machine was not equally free, and the "
        "intervals hold for these runs only. Leave out the points of a run that was disturbed."
    )


def said_of_one_side(samples: Sequence[Sample], alpha: float, beta: float) -> str:
    """Of a run of several, that its points of small or of large messages all lie far on one side of the law, even where
    too few are left for a line of its own; else nothing."""
    by_run: dict[int, list[Sample]] = {}
    for sample in samples:
        by_run.setdefault(sample.runs[0], []).append(sample)
    sizes = sorted({sample.x for sample in samples})
    for run, own in by_run.items() if len(by_run) > 1 else ():
        for name, half in (("small", sizes[: len(sizes) // 2]), ("large", sizes[len(sizes) // 2 :])):
            apart = [each.y / (alpha + beta * each.x) - 1 for each in own if each.x in half]
            if len(apart) >= TELLING and (min(apart) > _FAR or max(apart) < -_FAR):
                side, least = ("above", min(apart)) if apart[0] > 0 else ("below", max(apart))
                return (
                    f" All {len(apart)} {name} messages that are kept of run {run} lie {digits(100 * abs(least), 2)} % "
                    f"or more {side} the law: that run was another machine than the rest, and belongs out as a whole."
                )
    return ""


_ALPHA_BETA: tuple[Callable[[float], str], ...] = (
    lambda alpha: f"{'−' if alpha < 0 else ''}{value_text(abs(alpha), 'seconds')}",
    lambda beta: f"{digits(beta / _NANO, 3)} ns a byte",
)


def _law_of(fitting: Fitting, line: Fitted) -> Law:
    alpha, beta = line.coefficients
    (small, of_small), (large, of_large) = (_middle(fitting.kept, at) for at in (0, -1))
    return fitting.law_with(
        _FIGURE,
        lambda sample: alpha + beta * sample.x,
        [(_LINE, x, alpha + beta * x) for x in between(fitting.samples[0].x, fitting.samples[-1].x)],
        f"{_LINE}, fitted to all of them",
        (
            Coefficient.of(
                line,
                0,
                "α",
                value_text(max(alpha, 0.0), "seconds"),
                f"{value_text(small.y, 'seconds')} for {value_text(small.x, 'bytes')}{of_small}",
                lambda error: value_text(error, "seconds"),
            ),
            Coefficient.of(
                line,
                1,
                "B = 1/β",
                value_text(1 / beta, "bytes_per_second"),
                f"{value_text(large.x / large.y, 'bytes_per_second')} for {value_text(large.x, 'bytes')}{of_large}",
                partial(_percent_of, beta),
            ),
            Coefficient.of(
                line,
                1,
                "β",
                f"{digits(beta / _NANO, 3)} ns a byte",
                f"{digits(large.y / large.x / _NANO, 3)} ns a byte for {value_text(large.x, 'bytes')}{of_large}",
                lambda error: f"{digits(error / _NANO, 2)} ns",
            ),
        ),
        residual(
            fitting,
            line,
            [sample.y / (alpha + beta * sample.x) - 1 for sample in fitting.kept],
            "the line misses sizes at one end: a copy through a buffer, or another path for large messages, "
            "which α and B do not have",
        )
        + (_said_of_runs(_of_runs(fitting.kept)) or said_of_one_side(fitting.kept, alpha, beta)),
    )


def _middle(samples: Sequence[Sample], at: int) -> tuple[Sample, str]:
    """Of all runs' times for the smallest or the largest message the middle one, the shorter of two, and in words that
    it is one of several."""
    alike = sorted((each for each in samples if each.x == samples[at].x), key=lambda each: each.y)
    middle = alike[(len(alike) - 1) // 2]
    return middle, f" in run {middle.runs[0]}, the middle of {len(alike)}" if len(alike) > 1 else ""


def _percent_of(value: float, error: float) -> str:
    return f"{digits(100 * error / value, 2)} %"
