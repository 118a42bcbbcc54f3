"""The two terms of activation memory: k·sbh and c·as²b."""

from __future__ import annotations

from dataclasses import replace

from app.lab.fitting.law import Coefficient, Fitting, Law, Sample, Source, plainly, residual
from app.lab.fitting.tensors import counted, tensor_rows
from app.lab.forms import value_called
from app.lab.least_squares import Fitted, fit
from app.lab.models import Run
from app.units import digits, value_text
from labs.spec import Figure, Model, RunSpec

_EXACT = 1e-4
_COEFFICIENTS = (("k, bytes for each of s·b·h", "34"), ("c, bytes for each of a·s²·b", "5"))
LAW = Law(
    "activations",
    "The two terms of activation memory",
    "A layer keeps k·sbh + c·as²b bytes. The paper's 34 and 5 are of bf16 blocks with dropout; these are of the lab's, "
    "in fp32 and without it, so both differ and the form does not. What is kept once, final norm, head and logits, is "
    "in k, shared out over the layers: with more layers k is smaller.",
    "finished trainings in fp32 on one rank without recomputation, at two sequences or more, fused and written out",
    "/lab/sweeps?like=activations",
    "Sweep the sequence",
    heads=("Sequence × sequences", "Attention", "Kept"),
    published="Korthikanti et al. 2022, bf16",
)
_FIGURE = Figure("Activations by what one tensor has", "s·b·h of all layers, thousands", "kept", "", "B")
_THOUSAND = 1000.0


def fitted(source: Source) -> Law:
    """k and c of the plain trainings of one shape: the newest of which there are enough."""
    plain = [
        (run, spec)
        for run, spec in source.of_program("train")
        if (run.result or {}).get("activation_bytes") and run.theory.get("activation_bytes") and _is_plain(spec)
    ]
    shapes: list[Model] = []
    for _, spec in plain:
        if spec.model not in shapes:
            shapes.append(spec.model)
    for shape in shapes:
        alike = [(run, spec) for run, spec in plain if spec.model == shape]
        fitting = source.fitting(LAW, [_sample(run, spec) for run, spec in alike], relative=True)
        theory = {run.id: float(run.theory["activation_bytes"]) for run, _ in alike}
        expected = fit([each.row for each in fitting.kept], [theory[each.runs[0]] for each in fitting.kept], True)
        if fitting.fitted is not None and expected is not None:
            shape_of = alike[0][1]
            law = _law_of(fitting, fitting.fitted, expected, counted(shape_of))
            return replace(law, tensors=tensor_rows(shape_of))
        if fitting.out:
            return fitting.unfitted()
    return LAW


def _sample(run: Run, spec: RunSpec) -> Sample:
    training, kept, row = spec.training, float((run.result or {})["activation_bytes"]), _terms(spec)
    attention = value_called("training.attention", training.attention)
    cells = (f"{training.sequence} × {training.micro_batch}", attention, value_text(kept, "bytes"))
    return Sample(str(run.id), (run.id,), cells, training.attention, row[0] / _THOUSAND, kept, row, kept)


def _law_of(fitting: Fitting, measured: Fitted, expected: Fitted, count: tuple[float, float]) -> Law:
    def at(sample: Sample) -> float:
        return sum(a * c for a, c in zip(sample.row, measured.coefficients, strict=True))

    return fitting.law_with(
        _FIGURE,
        at,
        [(sample.series, sample.x, at(sample)) for sample in fitting.samples],
        "the law",
        [_coefficient(measured, count, index) for index in range(len(_COEFFICIENTS))],
        _beyond(measured, expected, count)
        + residual(
            fitting,
            measured,
            [sample.y / at(sample) - 1 for sample in fitting.kept],
            "something grows with neither term: the loss keeps its logits, b·s·V, which the law lacks",
        ),
    )


def _fitted_alike(expected: Fitted, count: tuple[float, float]) -> str:
    """What theory's own bytes come to where they are fitted as the measured ones are: not to the count, quite."""
    texts = [f"{each:.4g}" for each in (*expected.coefficients, *count)]
    if texts[:2] == texts[2:]:
        return ""
    return (
        f"Theory's bytes of the same runs, fitted alike, come to {texts[0]} and {texts[1]}, where the count is "
        f"{texts[2]} and {texts[3]}: what only one kind of attention keeps, as the softmax's statistic of a row, falls "
        "on both. "
    )


def _coefficient(measured: Fitted, count: tuple[float, float], at: int) -> Coefficient:
    (name, paper), theory = _COEFFICIENTS[at], f"{count[at]:.4g}"
    coefficient = Coefficient.of(measured, at, name, f"{measured.coefficients[at]:.4g}", theory, plainly)
    return replace(coefficient, published=paper)


def _beyond(of_runs: Fitted, of_theory: Fitted, count: tuple[float, float]) -> str:
    """Where a coefficient is further from theory's than its interval reaches: another line than theory's."""
    said, alike = [], _fitted_alike(of_theory, count)
    if not of_runs.tells:
        return alike
    for at, name in enumerate("kc"):
        margin, apart = of_runs.margins[at], of_runs.coefficients[at] - of_theory.coefficients[at]
        if margin is not None and abs(apart) > margin and abs(apart) > _EXACT * abs(of_theory.coefficients[at]):
            more = "more" if apart > 0 else "less"
            said.append(f"{name} by {digits(100 * abs(apart) / of_theory.coefficients[at], 2)} % {more}")
    if not said:
        return alike
    return (
        f"{alike}Apart from {'that' if alike else 'theory'} by more than scatter, {' and '.join(said)}: some tensor "
        "grows with the term that the count leaves out, as what a norm or a softmax keeps of each row. "
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
