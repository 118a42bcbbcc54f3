"""What a run leads to: one change of its spec, and what theory expects that to do to a number of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.content.schemas import Experiment
from app.core.errors import DomainError
from app.lab import forms
from app.lab.knobs import offer, read_settings, settings_of_run, spec_with
from app.lab.models import Run
from app.lab.predict import theory_record
from app.lab.records import RunFailure
from app.reveal.meter import Meter, finding
from app.words import counted
from labs.spec import RunSpec, SpecError, parse_run_spec

_SEEN = 1.02  # the factor from which on a number is said to change
RESTARTING = "restarts:from-checkpoint"  # the change of a run that is told so in an address
_AS_MUCH = 0.02  # of a left-out term: a change this near to it takes away exactly that


@dataclass(frozen=True)
class Change:
    """A field, what it is and what it would be, where that is set up, and what follows in a sentence or two."""

    label: str
    before: str
    after: str
    href: str
    says: str


@dataclass(frozen=True)
class _Turn:
    label: str
    before: str
    after: str
    href: str
    spec: RunSpec


def next_change(run: Run, item: Experiment | None, meters: Sequence[Meter]) -> Change | None:
    """The change that says most about the number that was furthest off: one that takes away what was left out of it,
    else the first that moves it. None where no single change moves a number that theory knows."""
    known = [meter for meter in meters if meter.row.theory]
    if not known:
        return None
    worst = finding(known) or known[0]
    turns = list(_of_experiment(run, item) if item else _of_own(run))
    moved = [(turn, now) for turn in turns if (now := _theory(turn.spec, worst)) and _factor(worst, now) >= _SEEN]
    if not moved:
        return None
    lacking = sum(term.value for term in worst.gap.missing) if worst.gap else 0.0
    exact = next((each for each in moved if lacking and _is_as_much(worst, each[1], lacking)), None)
    turn, now = exact or moved[0]
    others = [meter for meter in known if meter is not worst]
    return Change(turn.label, turn.before, turn.after, turn.href, _says(worst, now, exact is not None, others))


def restart_change(run: Run, failure: RunFailure) -> Change | None:
    """Of a run of one's own whose rank was killed: the same with checkpoints, started again from the last of them."""
    changed = restarting(run.spec, run.steps_done)
    if failure.cause != "killed" or failure.rank is None or changed is None:
        return None
    every = changed["training"]["checkpoint_every"]
    kept = run.steps_done // every * every
    says = f"From its checkpoint of step {kept} all ranks would start again"
    again = run.steps_done - kept
    lost = f", and do {counted(again, 'step')} once more." if again else ", and no step is lost."
    href = f"/lab?{urlencode({'again': run.id, 'change': RESTARTING})}#ff"
    after = "after every step" if every == 1 else f"every {every} steps"
    return Change(f"Write a checkpoint {after}, restart once", "", "", href, says + lost)


def restarting(spec: Mapping[str, Any], steps_done: int) -> dict[str, Any] | None:
    """A run that failed after `steps_done`, with a checkpoint before that and one restart; None where it had both, or
    nothing can be kept of it."""
    if spec["training"].get("checkpoint_every") or spec.get("restarts") or not steps_done:
        return None
    every = max(1, steps_done // 2)
    changed = {**spec, "training": {**spec["training"], "checkpoint_every": every}, "restarts": 1}
    try:
        parse_run_spec(changed)
    except SpecError:
        return None
    return changed


def _of_experiment(run: Run, item: Experiment) -> Iterator[_Turn]:
    chosen = settings_of_run(item, run.spec)
    try:
        settings = read_settings(item, chosen)
    except (DomainError, SpecError):
        return
    for choice in offer(item, settings):
        for each in reversed(choice.offers):  # from the far end: what differs most
            if each.chosen or each.refused:
                continue
            turned = {**chosen, choice.knob.field: each.text}
            spec = parse_run_spec(spec_with(item, read_settings(item, turned)))
            before = choice.knob.label_of(choice.value)
            href = f"/lab/experiments/{item.slug}?{urlencode(turned)}"
            yield _Turn(choice.knob.label, before, each.label, href, spec)


def _of_own(run: Run) -> Iterator[_Turn]:
    """Changes of the form of own runs that move its numbers, where it can be filled in as the run was."""
    typed = forms.settings_of_run(run.spec)
    if "spec" in typed:
        return
    fields = {field.name: field for field in forms.FREE_FORM}
    for name, value in (
        ("zero", "0" if typed["zero"] == "3" else "3"),
        ("micro_batches", str(2 * int(typed["micro_batches"]))),
        ("data", str(2 * int(typed["data"]))),
    ):
        try:
            spec = parse_run_spec(forms.spec_of_form({**typed, name: value}))
        except SpecError:
            continue
        field = fields[name]
        before, after = (forms.choice_called(field.path, each) or each for each in (typed[name], value))
        query = urlencode({"again": run.id, "change": f"{name}:{value}"})
        yield _Turn(field.label, before, after, f"/lab?{query}#ff", spec)


def _theory(spec: RunSpec, meter: Meter) -> float | None:
    record: Mapping[str, Any] = theory_record(spec)
    value = record.get(meter.row.name)
    return float(value) if isinstance(value, int | float) else None


def _factor(meter: Meter, now: float) -> float:
    before = meter.row.theory or 0.0
    return max(before / now, now / before) if before and now else 1.0


def _is_as_much(meter: Meter, now: float, lacking: float) -> bool:
    return abs((meter.row.theory or 0.0) - now - lacking) <= _AS_MUCH * lacking


def _says(meter: Meter, now: float, is_exact: bool, others: Sequence[Meter]) -> str:
    row = meter.row
    before = row.theory or 0.0
    way = "fall" if now < before else "rise"
    if is_exact:
        said = f"{row.title} should fall by {row.said(before - now)}: exactly what you left out."
    elif others:
        said = f"{row.title} should {way} from {row.said(before)} to {row.said(now)}."
    else:
        return f"{row.title} is {row.said(before)} now. How far does it {way}? Predict it first."
    if not others:
        return f"{said} Predict it first."
    title = others[0].row.title
    return f"{said} What does {title[:1].lower()}{title[1:]} do? Predict it first."
