"""Fit it yourself: laws of this subject, fitted to what own runs measured, beside what theory says.

A law is fitted by least squares, and what is left over is read: a residual that bends is a term the law
does not have, one that scatters is the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log

from sqlalchemy.orm import Session

from app.content.diagrams.drawing import Drawing
from app.lab import plots, queries
from app.lab.folds import Folds
from app.lab.least_squares import Fitted, fit
from app.lab.models import Run
from app.theory.lab_runs import Point
from app.theory.scaling_laws import KAPLAN_LAWS
from app.units import digits, value_text
from labs.spec import Figure, RunSpec

LOOKED_THROUGH = 300  # of the newest runs
_UNKNOWN = 0.5  # of a coefficient: with a standard error beyond that it is not known
_NOISE = 0.03  # of a relative residual: what a quiet machine does, too


@dataclass(frozen=True)
class Coefficient:
    """What was fitted, how sure it is, and what theory says."""

    name: str
    text: str
    error: str
    theory: str


@dataclass(frozen=True)
class Law:
    """A law, and what came of fitting it. `wanted` says which runs it takes; `start` is where one gets them."""

    key: str
    title: str
    says: str
    wanted: str
    start: str
    start_text: str
    runs: tuple[int, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    drawing: Drawing | None = None
    residual: str = ""


@dataclass(frozen=True)
class _Source:
    """The finished runs to fit, with their events folded."""

    session: Session
    folds: Folds
    runs: Sequence[Run]

    def of_program(self, program: str) -> list[tuple[Run, RunSpec]]:
        """The newest first."""
        specs = [(run, RunSpec.model_validate(run.spec)) for run in self.runs]
        return [(run, spec) for run, spec in specs if spec.program == program]

    def points(self, run: Run, figure: str) -> list[Point]:
        return [point for point in self.folds.view(self.session, run).points if point.figure == figure]


def fit_page(session: Session, learner_id: int, folds: Folds) -> list[Law]:
    """Every law, fitted where there are runs for it."""
    source = _Source(session, folds, queries.list_runs(session, learner_id, LOOKED_THROUGH, ("finished",)))
    makers: tuple[Callable[[_Source], Law], ...] = (_link, _activations, _recomputation, _scaling)
    return [make(source) for make in makers]


# --- α and β


_LINK = Law(
    "link",
    "α and β of this machine's link",
    "A message of S bytes takes t = α + S/B: a start, and the bytes. Two numbers, fitted to a ping-pong of two ranks.",
    "one finished run of the program collectives",
    "/lab/experiments/ring-by-the-byte",
    "Run L07, the ring by the byte",
)


def _link(source: _Source) -> Law:
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
            _LINK,
            runs=(run.id,),
            coefficients=(
                Coefficient(
                    "α", value_text(max(alpha, 0.0), "seconds"), _error(found, 0, "seconds"), "the machine's own"
                ),
                Coefficient("B", value_text(1 / beta, "bytes_per_second"), _share(found, 1), "the machine's own"),
            ),
            drawing=_drawn("link", figure, measured, line),
            residual=_residual(
                found,
                [point.y for point in points],
                "the line misses sizes at one end: a copy through a buffer, or another path for large messages, "
                "which α and B do not have",
            ),
        )
    return _LINK


# --- 34 and 5


_ACTIVATIONS = Law(
    "activations",
    "The two terms of activation memory",
    "A layer keeps k·sbh + c·as²b bytes. The paper's 34 and 5 are of bf16 blocks with dropout; these are of the lab's, "
    "in fp32 and without it, so both differ and the form does not.",
    "finished trainings in fp32 on one rank without recomputation, at two sequences or more, fused and written out",
    "/lab/sweeps?like=activations",
    "Sweep the sequence",
)


def _activations(source: _Source) -> Law:
    used = [
        (run, spec)
        for run, spec in source.of_program("train")
        if (run.result or {}).get("activation_bytes") and run.theory.get("activation_bytes") and _is_plain(spec)
    ]
    if not used:
        return _ACTIVATIONS
    shape = used[0][1].model
    used = [(run, spec) for run, spec in used if spec.model == shape]
    rows = [_terms(spec) for _, spec in used]
    measured = [float((run.result or {})["activation_bytes"]) for run, _ in used]
    found = fit(rows, measured, relative=True)
    expected = fit(rows, [float(run.theory["activation_bytes"]) for run, _ in used], relative=True)
    if found is None or expected is None:
        return replace(_ACTIVATIONS, runs=tuple(run.id for run, _ in used))
    figure = Figure("Activations by what one tensor has", "s × b × h × layers", "kept", "", "B", x_log=True, y_log=True)
    dots = [
        Point("act", spec.training.attention, row[0], y) for (_, spec), row, y in zip(used, rows, measured, strict=True)
    ]
    line = [
        Point("act", spec.training.attention, row[0], sum(a * c for a, c in zip(row, found.coefficients, strict=True)))
        for (_, spec), row in zip(used, rows, strict=True)
    ]
    return replace(
        _ACTIVATIONS,
        runs=tuple(run.id for run, _ in used),
        coefficients=(
            Coefficient("k, bytes for each of s·b·h", *_plain(found, expected, 0)),
            Coefficient("c, bytes for each of a·s²·b", *_plain(found, expected, 1)),
        ),
        drawing=_drawn("act", figure, dots, line),
        residual=_residual(
            found,
            measured,
            "something grows with neither term: the loss keeps its logits, b·s·V, which the law lacks",
        ),
    )


def _is_plain(spec: RunSpec) -> bool:
    training = spec.training
    alone = spec.parallel.world_size == 1 and spec.model.experts == 1
    return alone and training.precision == "fp32" and training.recompute == "none"


def _terms(spec: RunSpec) -> tuple[float, float]:
    """s·b·h and a·s²·b of all layers; the second only where attention is written out."""
    training, model = spec.training, spec.model
    tokens = model.layers * training.micro_batch * training.sequence
    scores = model.heads * training.sequence * tokens if training.attention == "full" else 0
    return float(tokens * model.hidden), float(scores)


# --- the third more of recomputation


_RECOMPUTATION = Law(
    "recomputation",
    "The third that recomputation costs",
    "Forward takes 2 FLOPs a parameter and token, backward 4; one more forward makes 8 of 6. Fitted: the factor "
    "between steps with and without full recomputation.",
    "pairs of finished runs alike but for recompute none and full",
    "/lab/sweeps?like=recomputation",
    "Sweep it over the micro-batch",
)


def _recomputation(source: _Source) -> Law:
    steps: dict[str, dict[str, tuple[Run, float]]] = {}
    for run, spec in source.of_program("train"):
        seconds = (run.result or {}).get("step_seconds")
        if seconds and spec.training.recompute in ("none", "full"):
            training = spec.training.model_copy(update={"recompute": "none"})
            alike = spec.model_copy(update={"training": training}).model_dump_json()
            steps.setdefault(alike, {}).setdefault(spec.training.recompute, (run, float(seconds)))
    pairs = [each for each in steps.values() if len(each) == 2]
    if not pairs:
        return _RECOMPUTATION
    without, with_it = ([each[kind][1] for each in pairs] for kind in ("none", "full"))
    found = fit([(seconds,) for seconds in without], with_it, relative=True)
    if found is None:
        return _RECOMPUTATION
    figure = Figure("Steps with full recomputation", "without it", "with it", "s", "s")
    dots = [Point("again", "pair", x, y) for x, y in zip(without, with_it, strict=True)]
    line = [Point("again", "4/3 of it", x, 4 / 3 * x) for x in without]
    return replace(
        _RECOMPUTATION,
        runs=tuple(sorted(run.id for each in pairs for run, _ in each.values())),
        coefficients=(
            Coefficient(
                "more", f"{digits(100 * (found.coefficients[0] - 1), 2)} %", _points(found, 0), "33 % of the FLOPs"
            ),
        ),
        drawing=_drawn("again", figure, dots, line),
        residual=_recomputation_says(found.coefficients[0], found.errors[0]),
    )


def _recomputation_says(factor: float, error: float | None) -> str:
    """One pair has no error to be held against: two sides of a third then mean little, and it is said."""
    third = 4 / 3
    if error is None:
        return "One pair alone has no error: with a second one can say whether it differs from a third."
    if error > _UNKNOWN * (third - 1):
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


# --- a small scaling law


_SCALING = Law(
    "scaling",
    "A small scaling law",
    "Loss ∝ N to the power −α, at the most tokens: a straight line between logarithms. Kaplan et al. 2020 found 0.076.",
    "one finished run of the program scaling",
    "/lab/experiments/small-scaling-law",
    "Run L16, a scaling law in small",
)


def _scaling(source: _Source) -> Law:
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
            _SCALING,
            runs=(run.id,),
            coefficients=(Coefficient("α", f"{-slope:.3f}", _plain_error(found, 1), f"{published}, of large models"),),
            drawing=_drawn("law", figure, [Point("law", "these models", p.x, p.y) for p in points], [*line, *theirs]),
            residual=_residual(
                found,
                [1.0] * len(points),
                "no single power holds over the range: tokens run short for the larger models, and a text has an "
                "entropy that no loss falls below",
            ),
        )
    return _SCALING


# --- in words


def _drawn(name: str, figure: Figure, dots: Sequence[Point], line: Sequence[Point]) -> Drawing | None:
    drawing = plots.draw_figure(name, figure, dots, line)
    return None if drawing is None else replace(drawing, finding="Dots are measured, dashes are the law.")


def _residual(found: Fitted, measured: Sequence[float], when_it_bends: str) -> str:
    """What is left over, in words; `measured` is in the order of the points along the axis."""
    apart = [left / value for left, value in zip(found.residuals, measured, strict=True)]
    worst = max(map(abs, apart))
    if _is_unknown(found):
        return (
            "The standard error is as large as what was fitted: these points scatter too much to know it. Run it again "
            "while the machine does nothing else."
        )
    if all(error is None for error in found.errors):
        return "As many points as unknowns: the line goes through them whatever they are, and says nothing of itself."
    said = f"At most {100 * worst:.2g} % is left over"
    signs = [each > 0 for each in apart]
    changes = sum(a != b for a, b in pairwise(signs))
    if worst < _NOISE:
        return f"{said}: the law holds as far as this machine can tell."
    if len(apart) > 3 and changes <= 2:
        return f"{said}, and it bends: {when_it_bends}."
    return f"{said}, above and below in turn: that is the machine, not the law. Repeat it to see."


def _is_unknown(found: Fitted) -> bool:
    """Whether something that was fitted may as well be nothing."""
    return any(
        error is not None and error > _UNKNOWN * abs(value)
        for value, error in zip(found.coefficients, found.errors, strict=True)
    )


def _error(found: Fitted, at: int, dimension: str) -> str:
    error = found.errors[at]
    return "–" if error is None else f"± {value_text(error, dimension)}"


def _share(found: Fitted, at: int) -> str:
    error = found.errors[at]
    return "–" if error is None else f"± {digits(100 * error / abs(found.coefficients[at]), 2)} %"


def _points(found: Fitted, at: int) -> str:
    error = found.errors[at]
    return "–" if error is None else f"± {digits(100 * error, 2)} points"


def _plain_error(found: Fitted, at: int) -> str:
    error = found.errors[at]
    return "–" if error is None else f"± {error:.2g}"


def _plain(found: Fitted, expected: Fitted, at: int) -> tuple[str, str, str]:
    return f"{found.coefficients[at]:.4g}", _plain_error(found, at), f"{expected.coefficients[at]:.4g}"
