"""A run of one's own before it is submitted: what the form can offer, and what theory says of its bytes and its time at
this machine's pace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import DomainError, SpecError, Violation
from app.lab import forms, presence, queries, takers
from app.lab.link import Link, Sent, link_here
from app.lab.models import Run
from app.lab.naming import describe, title
from app.lab.pace import LOOKED_AT, about, pace_of
from app.lab.predict import theory_record, unreadable
from app.lab.quantities import quantities_of
from app.units import value_text
from app.words import counted
from labs.spec import RunSpec


@dataclass(frozen=True)
class Expected:
    """Quantities with their values; or what keeps it from running."""

    title: str = ""
    summary: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    pace: str = ""
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Offer:
    """Of the form as it is filled in: by field the values that cannot work beside the others, with why; those that work
    once other fields follow, with what these are then; what is wrong with the fields as they are; the fields that do
    nothing beside the others, with why; and the run in words and written out, where it can be run."""

    refused: Mapping[str, Mapping[str, str]]
    follows: Mapping[str, Mapping[str, Mapping[str, str]]]
    wrong: Mapping[str, str]
    idle: Mapping[str, str]
    words: str = ""
    written: str = ""


_STAGES = ("2", "1")  # a rank, one of which suits any schedule


def offer(session: Session, learner_id: int, typed: Mapping[str, str], now: datetime) -> Offer:
    """Each choice is tried beside what else is typed. One is refused for what it makes wrong, not for what is wrong
    already; a device, for what the workers that are there do not have."""
    there = takers.here(session, now)
    as_it_is, now_wrong = _read(typed, there)
    known = {str(each) for each in now_wrong}
    names = {field.path: field.name for field in (*forms.FREE_FORM, *forms.SAID_FIRST)}
    refused: dict[str, dict[str, str]] = {}
    follows: dict[str, dict[str, Mapping[str, str]]] = {}
    for field in forms.FREE_FORM:
        for value, _ in field.choices:
            if value == typed.get(field.name, field.text):
                continue
            turned = {**typed, field.name: value}
            spec, violations = _read(turned, there)
            new = [each for each in violations if str(each) not in known]
            if new and field.name == "schedule" and (then := _taken_along(turned, there, known)):
                follows.setdefault(field.name, {})[value] = then
                continue
            why = forms.said(new[0]) if new else None
            if spec is not None and field.name == "device":
                why = _why_not_here(session, spec, now)
            if why:
                refused.setdefault(field.name, {})[value] = why
    every = [*now_wrong, *unreadable(forms.prediction_of_form(typed))]
    at = {forms.field_of(each): forms.said(each) for each in reversed(every)}
    wrong = {name: at[path] for path, name in names.items() if path in at}
    idle = _idle(typed, refused)
    if as_it_is is None:
        return Offer(refused, follows, wrong, idle)
    written = json.dumps(forms.spec_of_form(typed), indent=2)
    return Offer(refused, follows, wrong, idle, in_words(session, learner_id, as_it_is, now), written)


def _idle(typed: Mapping[str, str], refused: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Fields as the form has them that can be nothing else, with why: each other choice is refused; stages a rank
    without a pipeline go with the schedule."""
    idle = {
        field.name: why
        for field in forms.FREE_FORM
        if field.choices and typed.get(field.name, field.text) == field.text
        if len(reasons := refused.get(field.name, {})) == len(field.choices) - 1
        for why in sorted({each.partition(" Accepted: ")[0] for each in reasons.values()})[:1]
    }
    stages = next(field for field in forms.FREE_FORM if field.name == "virtual_stages")
    if "schedule" in idle and typed.get(stages.name, stages.text).strip() == stages.text:
        idle[stages.name] = idle["schedule"]
    return idle


def words_of_form(session: Session, learner_id: int, typed: Mapping[str, str], now: datetime) -> str:
    """The run that a form asks for in words; nothing where it asks for none that can be."""
    spec, _ = _read(typed, takers.here(session, now))
    return "" if spec is None else in_words(session, learner_id, spec, now)


def in_words(session: Session, learner_id: int, spec: RunSpec, now: datetime) -> str:
    """What the form asks for, how long it takes and what it waits for: none of theory's numbers, so that they can still
    be predicted."""
    said = [f"{title(spec)}: {describe(spec)}"]
    why = _why_not_here(session, spec, now)
    if why:
        return f"{said[0]} {why}"
    pace = pace_of(spec, theory_record(spec), queries.list_measured_here(session, learner_id, LOOKED_AT))
    if pace is not None:
        whole = about(spec.training.steps * pace.least, spec.training.steps * pace.most)
        said.append(f"About {whole}, starting up not counted, at the pace of trainings here that are most like it.")
    waiting = len(queries.list_queue(session))
    said.append(f"{counted(waiting, 'run')} {'waits' if waiting == 1 else 'wait'} before it." if waiting else "")
    if nobody := takers.why_nobody_takes(session, spec, now):
        said.append(f"Nobody takes it now. {nobody}")
    return " ".join(filter(None, said))


def _taken_along(typed: Mapping[str, str], there: takers.Here, known: Set[str]) -> Mapping[str, str]:
    """The stages a rank and micro-steps with which this schedule runs, the fewest changes; nothing where something else
    is in its way."""
    pipeline = typed.get("pipeline", "1")
    for stages in (None, *_STAGES):
        for steps in (None, pipeline):
            changed = {"virtual_stages": stages, "micro_batches": steps}
            then = {name: value for name, value in changed.items() if value is not None}
            _, violations = _read({**typed, **then}, there)
            if then and all(str(each) in known for each in violations):
                return then
    return {}


def _read(typed: Mapping[str, str], there: takers.Here) -> tuple[RunSpec | None, list[Violation]]:
    """The run that is asked for, or what is wrong with it."""
    try:
        return there.read(forms.spec_of_form(typed)), []
    except SpecError as error:
        return None, error.violations


def _why_not_here(session: Session, spec: RunSpec, now: datetime) -> str | None:
    """Nothing where no worker answers: whatever is chosen waits then."""
    return takers.why_nobody_takes(session, spec, now) if presence.workers_taking_runs(session, now) else None


def expect(session: Session, learner_id: int, typed: Mapping[str, str], now: datetime) -> Expected:
    """Of the form as it is filled in."""
    try:
        asked = forms.spec_of_text(typed["spec"]) if "spec" in typed else forms.spec_of_form(typed)
        spec = takers.here(session, now).read(asked)
    except (DomainError, SpecError) as error:
        return Expected(refused=tuple([forms.said(each) for each in error.violations] or [str(error)]))
    theory = theory_record(spec)
    rows = tuple(
        (quantity.title, value_text(theory[name], quantity.dimension))
        for name, quantity in quantities_of(spec).items()
        if theory.get(name) is not None
    )
    finished = queries.list_measured_here(session, learner_id, LOOKED_AT)
    said = filter(None, (_pace(spec, theory, finished), _sending(theory, link_here(session, learner_id))))
    return Expected(title(spec), describe(spec), rows, " ".join(said))


def _sending(theory: Mapping[str, Any], link: Link | None) -> str:
    """The time of what a rank sends, by the link that was timed here; nothing where it sends nothing."""
    sent = Sent.of_theory(theory)
    if not sent.wire_bytes or link is None:
        return ""
    least = link.least_seconds(sent)
    return (
        f"Of it, sending {value_text(sent.wire_bytes, 'bytes')} in {counted(sent.messages, 'message')} takes "
        f"{about(least, least)} or more at the {value_text(link.latency_seconds, 'seconds')} a message and "
        f"{value_text(link.bytes_per_second, 'bytes_per_second')} that run {link.run_id} timed between two ranks, "
        "unless computing hides it."
    )


def _pace(spec: RunSpec, theory: Mapping[str, Any], finished: Sequence[Run]) -> str:
    """Its time, at the FLOPs a second that earlier trainings reached; what is not arithmetic is in that pace."""
    if spec.options is not None:
        return ""
    pace = pace_of(spec, theory, finished)
    if pace is None:
        return "How long it takes nobody knows yet: no training of yours has been timed on this machine."
    steps = spec.training.steps
    by_rate = (
        f"A step takes about {about(pace.least, pace.most)}, {counted(steps, 'step')} about "
        f"{about(steps * pace.least, steps * pace.most)}, starting up not counted, at the "
        f"{value_text(pace.flops_per_second, 'flop_per_second')} that those of your last trainings here reached that "
        "are most like it in arithmetic, ranks and bytes sent."
    )
    if about(pace.least, pace.most) == about(pace.least, pace.least):
        return by_rate
    return f"{by_rate} It is smaller than theirs, and what a step costs besides its arithmetic does not shrink with it."
