"""What a run's page shows: where it stands, what it measured beside theory and prediction, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import structlog
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.diagrams.drawing import Drawing
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render
from app.content.players.player import Player
from app.content.schemas import Concept, Experiment, Related
from app.content.schemas import Quantity as Asked
from app.core.moment import Moment
from app.lab import findings, plots, reading, takers
from app.lab.comparison import compare
from app.lab.cures import find_cures, list_alike
from app.lab.ending import Ending, ending_of
from app.lab.explaining import explanation_values
from app.lab.film import Film, film_of
from app.lab.knobs import settings_of_run
from app.lab.made_of import sentences
from app.lab.models import ENDED, WAITING, Run
from app.lab.naming import command_line, describe, title
from app.lab.next_change import Change, next_change, restart_change
from app.lab.peak import said_of_rate
from app.lab.playing import figure_of
from app.lab.quantities import quantities_of
from app.lab.records import RunFailure
from app.lab.view import RunView, Wait
from app.lab.waiting import Planned, expected_waits, plan_of, waits_of
from app.reveal.comparison import Comparison
from app.reveal.meter import Meter
from app.theory.lab_runs import Point
from labs.spec import Quantity, RunSpec, said_of_hosts

log = structlog.get_logger()
MOST_ALIKE = 3  # experiments that a run of one's own leads to


@dataclass(frozen=True)
class Standing:
    """Where a run stands in its queue and in time, and what it is called there.

    `asks` is the question it answers, `headline` what it found, `reason` what that rests on.
    """

    title: str
    asks: Markup
    headline: str
    reason: str
    summary: str
    ended: bool
    cancelling: bool
    position: int | None
    elapsed_seconds: float | None
    nobody_takes_it: str | None  # why, while it waits
    to_resume: str | None  # the drained worker that could take it
    expected_wait_seconds: float | None  # from what others took


@dataclass(frozen=True)
class Explanation:
    """Why a quantity came out as it did."""

    title: str
    html: Markup


@dataclass(frozen=True)
class Lesson:
    """What a finished run teaches, and where to go from there; `missed` are the cards on what was predicted wrong, and
    `is_named` says whether the first is on what a number lacks by name. One of no experiment explains nothing."""

    missed: list[dict[str, str]]
    next_steps: list[dict[str, str]]
    is_named: bool = False
    explanations: tuple[Explanation, ...] = ()
    interview_line: Markup = Markup("")  # noqa: RUF009 - it never changes
    counts_for: Sequence[Concept] = ()
    figure: Player | None = None
    change: Change | None = None
    minutes: Mapping[str, int] = field(default_factory=dict)  # of a card or a problem, by its address

    @property
    def problem(self) -> dict[str, str] | None:
        """The problem to work next."""
        return next((each for each in self.next_steps if each["href"].startswith("/practice/")), None)

    @property
    def others(self) -> list[dict[str, str]]:
        """Where to go besides."""
        return [each for each in self.next_steps if each not in self.missed and each != self.problem]


@dataclass(frozen=True)
class Pictures:
    """What is drawn of a run: a program's figures, and the film of its watched step."""

    figures: tuple[Drawing, ...] = ()
    film: Film | None = None


@dataclass(frozen=True)
class RunPage:
    """Everything a run's page shows. `meters` is what the learner was asked for, `others` what it measured besides.

    While a run that was predicted is under way, nothing of theory and nothing measured is in it.
    """

    run: Run
    spec: RunSpec
    experiment: Experiment | None
    view: RunView
    standing: Standing
    meters: list[Meter]
    others: list[Comparison]
    pace: str
    waits: tuple[Wait, ...]
    plan: tuple[Planned, ...]
    over_hosts: str  # in words, of a run over several
    failure: RunFailure | None
    ending: Ending | None
    lesson: Lesson | None
    pictures: Pictures
    command: str
    again: str
    zone: ZoneInfo


def show(
    session: Session, run: Run, content: Catalogue, view: RunView, moment: Moment, *, is_drawn: bool = True
) -> RunPage:
    """What the page of `run` shows now, its events folded to `view`; without pictures unless `is_drawn`."""
    spec = RunSpec.model_validate(run.spec)
    item = content.experiments.get(run.experiment_id or "")
    asked, others = compared(run, item)
    if findings.is_hidden(run):
        view, is_drawn = findings.without_numbers(view), False
    meters = findings.meters_of(run, spec, item, view, asked)
    failure = findings.failure_of(run)
    return RunPage(
        run=run,
        spec=spec,
        experiment=item,
        view=view,
        standing=_standing(session, run, spec, item, findings.headings(run, meters), moment.now),
        meters=meters,
        others=others,
        pace=said_of_rate(session, run, moment),
        waits=waits_of(run, view),
        plan=plan_of(session, run, spec, view),
        over_hosts=said_of_hosts(spec),
        failure=failure,
        ending=ending_of(spec, view, failure),
        lesson=_with_change(_lesson(content, item, run, spec, meters, failure), content, run, item, meters, failure),
        pictures=_pictures(spec, view, run.theory) if is_drawn else Pictures(),
        command=command(run),
        again=_again(item, run),
        zone=moment.zone,
    )


def _standing(
    session: Session, run: Run, spec: RunSpec, item: Experiment | None, said: tuple[str, str], now: datetime
) -> Standing:
    ended = run.status in ENDED
    return Standing(
        title=title(spec),
        asks=findings.question(item, spec, run.theory),
        headline=said[0],
        reason=said[1],
        summary=describe(spec),
        ended=ended,
        cancelling=run.cancel_requested_at is not None and not ended,
        position=reading.queue_position(session, run),
        elapsed_seconds=_elapsed_seconds(run, now),
        nobody_takes_it=takers.why_nobody_takes(session, spec, now) if run.status == WAITING else None,
        to_resume=takers.worker_to_resume(session, now) if run.status == WAITING else None,
        expected_wait_seconds=expected_waits(session, now).get(run.id) if run.status == WAITING else None,
    )


def _lesson(
    content: Catalogue,
    item: Experiment | None,
    run: Run,
    spec: RunSpec,
    meters: Sequence[Meter],
    failure: RunFailure | None,
) -> Lesson | None:
    if run.status == "failed" and failure is not None:
        return _lesson_of_failure(content, failure)
    if run.status != "finished":
        return None
    cures = find_cures(content, spec, item, meters)
    missed = content.related_links(Related(cards=cures.cards))
    if item is None:
        return _lesson_of_own(content, run, spec, meters, missed, bool(cures.named))
    values = explanation_values(spec, run.theory, run.result or {})
    return Lesson(
        missed=missed,
        is_named=bool(cures.named),
        next_steps=content.related_links(item.related),
        explanations=tuple(Explanation(each.title, _explained(each, values)) for each in item.quantities),
        interview_line=render(item.interview_line),
        counts_for=named(content.concepts, item.concepts),
        figure=figure_of(spec, figure_address(run)),
    )


def _with_change(
    lesson: Lesson | None,
    content: Catalogue,
    run: Run,
    item: Experiment | None,
    meters: Sequence[Meter],
    failure: RunFailure | None,
) -> Lesson | None:
    """A run's lesson with the change that it leads to, and how long cards and problems take."""
    if lesson is None:
        return lesson
    minutes = {f"/practice/{each.slug}": each.minutes for each in content.problems.values()}
    minutes |= {f"/study/cards/{each.id}": max(1, round(each.kind.seconds / 60)) for each in content.cards.values()}
    linked = [each["href"] for each in (*lesson.missed, *lesson.next_steps)]
    return replace(
        lesson,
        change=next_change(run, item, meters)
        if run.status == "finished"
        else restart_change(run, failure)
        if failure is not None and item is None
        else None,
        minutes={href: minutes[href] for href in linked if href in minutes},
    )


def figure_address(run: Run) -> str:
    return f"/lab/runs/{run.id}/figure"


def _lesson_of_own(
    content: Catalogue,
    run: Run,
    spec: RunSpec,
    meters: Sequence[Meter],
    missed: list[dict[str, str]],
    is_named: bool,
) -> Lesson:
    """The cards on what was predicted wrong, and the experiments that ask for the same quantities."""
    predicted = [meter for meter in meters if meter.row.predicted is not None]
    asked = [meter.row.name for meter in predicted]
    told = [(meter.row.title, sentences(meter, spec, run.theory)) for meter in predicted or meters]
    alike = list(list_alike(content, spec, asked))[:MOST_ALIKE]
    return Lesson(
        missed=missed,
        is_named=is_named,
        explanations=tuple(
            Explanation(name, Markup("<p>{}</p>").format(" ".join(said))) for name, said in told if said
        ),
        next_steps=content.related_links(Related(experiments=tuple(each.id for each in alike))),
        figure=figure_of(spec, figure_address(run)),
    )


def _lesson_of_failure(content: Catalogue, failure: RunFailure) -> Lesson:
    """The cards on what to look at when a run has no memory left or hangs, and on what a rank's death costs."""
    concept = "debugging-hangs"
    if "memory" in failure.cause:
        concept = "debugging-memory"
    elif failure.cause == "killed":
        concept = "reliability"
    cards = [card.id for card in content.cards.values() if concept in card.head.concepts]
    return Lesson(missed=[], next_steps=content.related_links(Related(cards=tuple(cards[:MOST_ALIKE]))))


def _pictures(spec: RunSpec, view: RunView, theory: Mapping[str, object]) -> Pictures:
    return Pictures(
        figures=_figures(spec, view, theory),
        film=film_of(spec, view),
    )


def compared(run: Run, item: Experiment | None) -> tuple[list[Comparison], list[Comparison]]:
    """Prediction, theory and measurement of what an experiment asks for, in its order and words; and of what the run
    found besides. A run of one's own was asked for everything."""
    known = quantities_of(RunSpec.model_validate(run.spec))
    asked = _asked(item, known) if item else known
    others = {name: quantity for name, quantity in known.items() if name not in asked}
    return (
        compare(asked, run.prediction, run.theory, run.result),
        compare(others, run.prediction, run.theory, run.result),
    )


def _asked(item: Experiment, known: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {each.id: replace(known[each.id], title=each.title) for each in item.quantities if each.id in known}


def _figures(spec: RunSpec, view: RunView, theory: Mapping[str, Any]) -> tuple[Drawing, ...]:
    """What a program has measured so far, a drawing each."""
    if spec.options is None:
        return ()
    expected = [Point(**point) for point in theory.get("points", ())]
    style = plots.WIDE if len(spec.options.figures) in (1, 2, 4) else plots.LINES  # as lab/parts/figures.html has room
    drawn = (
        plots.draw_figure(
            name,
            figure,
            [point for point in view.points if point.figure == name],
            [point for point in expected if point.figure == name],
            style,
        )
        for name, figure in spec.options.figures.items()
    )
    return tuple(drawing for drawing in drawn if drawing is not None)


def _again(item: Experiment | None, run: Run) -> str:
    """The experiment's page with its knobs as this run had them, or the form of own runs filled in as it was."""
    if item is None:
        return f"/lab?again={run.id}#ff"
    return f"/lab/experiments/{item.slug}?{urlencode(settings_of_run(item, run.spec))}"


def _explained(quantity: Asked, values: Mapping[str, object]) -> Markup:
    """The content check renders every text for every setting; what a run measured it cannot know."""
    try:
        return render(quantity.explanation, Expressions(values))
    except ExpressionError as error:
        log.warning("an explanation cannot be computed", quantity=quantity.id, error=str(error))
        return Markup("<p>For what this run measured no explanation can be computed.</p>")


def command(run: Run) -> str:
    """The line that does this run without us."""
    return command_line(RunSpec.model_validate(run.spec), run.device)


def run_json(session: Session, run: Run) -> dict[str, object]:
    def time(at: datetime | None) -> str | None:
        return at.isoformat() if at else None

    return {
        "id": run.id,
        "status": run.status,
        "phase": run.phase,
        "experiment": run.experiment_id,
        "name": run.name,
        "note": run.note,
        "sweep": run.sweep_id,
        "opened_from": run.opened_from,
        "origin": run.origin,
        "queue_position": reading.queue_position(session, run),
        "spec": run.spec,
        "prediction": run.prediction,
        "theory": None if findings.is_hidden(run) else run.theory,
        "result": run.result,
        "failure": run.failure,
        "steps_done": run.steps_done,
        "chunks": run.chunks,
        "device": run.device,
        "launch": run.launch,
        "attempts": run.attempts,
        "worker": run.worker,
        "created_at": time(run.created_at),
        "started_at": time(run.started_at),
        "ended_at": time(run.ended_at),
        "cancel_requested": run.cancel_requested_at is not None,
    }


def _elapsed_seconds(run: Run, now: datetime) -> float | None:
    if run.started_at is None:
        return None
    return ((run.ended_at or now) - run.started_at).total_seconds()
