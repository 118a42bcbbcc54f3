"""What may be said of a run, and when: its question before the end, then what its prediction left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from app.content.live import Expressions
from app.content.markdown import render_inline
from app.content.schemas import Experiment
from app.lab.explaining import run_values
from app.lab.meters import Facts, make_meter
from app.lab.models import ENDED, Run
from app.lab.naming import title
from app.lab.records import RunFailure
from app.lab.view import RunView
from app.reveal.comparison import Comparison, times
from app.reveal.meter import Meter, finding
from app.units import digits
from app.words import counted
from labs.spec import RunSpec

_AS_THEORY_HAS_IT = 0.005  # of it
_TAKEN_FOR = 0.05  # of a number: so near another quantity it was meant as that


def is_hidden(run: Run) -> bool:
    """Whether theory and measurement are kept back: somebody predicted them, and the run has not ended."""
    return bool(run.prediction) and run.status not in ENDED


def without_numbers(view: RunView) -> RunView:
    """The view without anything that may have been predicted."""
    return replace(view, memory=(), state=(), transfers=(), spans=(), details=(), split=None, readings=(), points=())


def meters_of(
    run: Run, spec: RunSpec, item: Experiment | None, view: RunView, asked: Sequence[Comparison]
) -> list[Meter]:
    facts = Facts(
        spec,
        run.theory,
        run.result or {},
        {each.title: each.payload_bytes for each in view.transfers},
        {each.id: each.says for each in item.quantities} if item else {},
        item.names if item else {},
        run.status in ENDED,
    )
    return [make_meter(row, facts) for row in asked]


def headings(run: Run, meters: Sequence[Meter]) -> tuple[str, str]:
    """Title and subtitle of a run: where a term was left out, its name."""
    far = finding(meters)
    failure = failure_of(run)
    if failure is not None:
        said, _, rest = failure.message.partition(". ")
        return said.rstrip("."), rest
    rows = [meter.row for meter in meters]
    taken = _taken_for(rows) if run.status == "finished" else ""
    if run.status != "finished" or far is None or far.gap is None or (taken and not far.gap.finding):
        return headline(run, rows), taken
    row = far.row
    if not far.gap.finding and len(far.terms) > 1 and (row.predicted or 0.0) < far.terms[0].value:
        return (
            f"Your {row.text} is less than {far.terms[0].name} alone",
            f"{row.title}: {row.said(row.measured)} measured, {times(row.off_by or 1.0)} times as much.",
        )
    if not far.gap.finding:
        return headline(run, rows), ""
    if not far.gap.missing:
        return far.gap.finding, f"{row.title}: {row.said(row.measured)} measured, {row.text} predicted."
    size = sum(term.value for term in far.gap.missing)
    return far.gap.finding, f"{row.title}: your {row.text} lacks {row.said(size)}."


def _taken_for(rows: Sequence[Comparison]) -> str:
    """What else the number is that was furthest off, where another measured quantity has it; empty where none has."""
    off = [row for row in rows if row.off_by is not None and row.predicted and not row.is_near]
    if not off:
        return ""
    worst = max(off, key=lambda row: row.off_by or 0.0)
    for row in rows:
        if row is worst or row.dimension != worst.dimension or not row.measured or row.measured == worst.measured:
            continue
        if abs(row.measured / (worst.predicted or 1.0) - 1) < _TAKEN_FOR:
            return f"Your {worst.text} is another quantity: “{row.title}” is {row.said(row.measured)}."
    return ""


def failure_of(run: Run) -> RunFailure | None:
    """Why it failed; None of a run that did not."""
    if run.status not in ("failed", "expired"):
        return None
    return RunFailure.from_json(run.failure or {}).of_run(RunSpec.model_validate(run.spec).faults)


def question(item: Experiment | None, spec: RunSpec, theory: Mapping[str, object]) -> Markup:
    """What the run answers: the experiment's question, or what is run."""
    if item is None:
        return Markup("{}").format(title(spec))
    return render_inline(item.asks, Expressions(run_values(spec, theory)))


def headline(run: Run, rows: list[Comparison]) -> str:
    """What the result says, in a sentence: titles carry the finding."""
    if run.status == "cancelled":
        done = counted(run.steps_done, "step")
        return f"Cancelled after {done}" if run.steps_done else "Cancelled before its first step"
    off = {row: row.off_by for row in rows if row.off_by is not None}
    if not off:
        return _beside_theory(rows) or title(RunSpec.model_validate(run.spec))
    worst = max(off, key=lambda row: off[row])
    if off[worst] < 1.02:
        return "Your prediction holds" if len(off) == len(rows) else f"{worst.title}: you had it"
    direction = "low" if (worst.predicted or 0) < (worst.measured or 0) else "high"
    factor = times(off[worst])
    factor = factor.rstrip("0").rstrip(".") if "." in factor else factor
    if worst.kept_confidence:
        return f"{worst.title}: within your range, {factor} times too {direction}"
    return f"{worst.title}: your number was {factor} times too {direction}"


def _beside_theory(rows: Sequence[Comparison]) -> str:
    """What measurement says of theory where nobody predicted; empty where theory expects nothing."""
    beside = {row: row.measured / row.theory for row in rows if row.measured and row.theory}
    if not beside:
        return ""
    worst = max(beside, key=lambda row: max(beside[row], 1 / beside[row]))
    apart = beside[worst] - 1
    if abs(apart) < _AS_THEORY_HAS_IT:
        is_of_bytes = all(row.dimension == "bytes" for row in beside)  # of time theory says nothing here
        return "Its bytes are as theory has them" if is_of_bytes else "Measured as theory has it"
    return f"{worst.title}: {digits(100 * abs(apart), 2)} % {'more' if apart > 0 else 'less'} than theory has it"
