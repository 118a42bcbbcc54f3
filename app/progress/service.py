"""Progress: what the log says, in one look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.charts import Tick
from app.core.moment import Moment
from app.lab.predictions import Guess, Predicted, list_predicted
from app.progress import figures, guesses
from app.study import api as study
from app.study.api import policy_for
from app.words import lowered

FORECAST_DAYS = 14


@dataclass(frozen=True)
class Progress:
    """The page's charts. `title` carries the finding."""

    has_reviews: bool
    title: str
    charts: dict[str, object]
    fits: study.FitStanding
    predicted: list[Predicted]

    @property
    def guessed(self) -> list[Guess]:
        """Every quantity that was predicted."""
        return [guess for run in self.predicted for guess in run.guesses]

    @property
    def ranges(self) -> tuple[int, int]:
        """How often the measurement lay inside a range that the learner gave, and how many were given."""
        return guesses.ranges(self.guessed)

    @property
    def guess_lanes(self) -> list[guesses.GuessLane]:
        return guesses.lanes(self.guessed)

    @property
    def guess_ticks(self) -> tuple[Tick, ...]:
        """The axis they stand on."""
        return guesses.ticks_of(self.guessed)


def progress(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment) -> Progress:
    """Everything the progress page shows."""
    zone, today = moment.zone, study.today(moment)
    day = date.fromordinal(today)
    counts = study.count_by_day(session, learner_id, today - day.weekday() - 7 * (figures.MOST_WEEKS - 1), today, zone)
    decay = policy_for(session, learner_id, moment).parameters[20]
    answers = study.newest_answers(session, learner_id, zone)
    memories = study.memories(session, learner_id, moment.now, zone)
    recall = figures.recalls(memories, decay)
    times, seconds = figures.time_lanes(answers, study.all_cards(session, learner_id, catalogue))
    due = study.count_due_by_day(session, learner_id, today, FORECAST_DAYS, zone)
    charts = figures.as_context(
        heat=figures.heat_map(figures.since_begun(counts), day),
        due=figures.due_columns(due, day),
        due_total=sum(due),
        retention=figures.retention_lanes(study.retention(answers, decay)),
        stability=figures.histogram([each.stability for each in memories], *figures.STABILITY),
        difficulty=figures.histogram([each.difficulty for each in memories], *figures.DIFFICULTY),
        recall=figures.histogram(list(recall.values()), *figures.RECALL),
        times=times,
        seconds=seconds,
        calibration=figures.calibration_lanes(study.calibration(answers)),
        concepts=figures.concept_lanes(recall, answers, catalogue),
        cards_met=len(memories),
        fewest_spread=figures.FEWEST_SPREAD,
        is_first_day=all(each.elapsed_days == 0 for each in memories),
        recall_now=sum(recall.values()) / len(recall) if recall else 0.0,
        is_capped=len(answers) == study.NEWEST,
        newest=study.NEWEST,
    )
    fits, predicted = study.fit_standing(session, learner_id), list_predicted(session, learner_id, catalogue)
    standing = Progress(bool(answers), _title(charts), charts, fits, predicted)
    return standing if answers or not predicted else replace(standing, title=_title_of_predictions(standing))


def _title(charts: dict[str, Any]) -> str:
    """The weakest concept, where there are some to tell apart."""
    concepts = charts["concepts"]
    if not charts["cards_met"]:
        return "Nothing to show yet"
    if charts["is_first_day"]:
        met = charts["cards_met"]
        return f"{met} {'card' if met == 1 else 'cards'} met today; what stays shows from tomorrow on"
    if len(concepts) < 4 or concepts[0].value == concepts[-1].value:
        return f"{charts['cards_met']} cards met, {100 * charts['recall_now']:.0f} % of them remembered today"
    weakest = concepts[0]
    share = weakest.value.replace(" ", "\N{NO-BREAK SPACE}")  # a title breaks between words, not before a %
    return f"Weakest today: {weakest.label}, {share} remembered"


def _title_of_predictions(standing: Progress) -> str:
    """Where nothing but predictions is there to tell of."""
    runs = len(standing.predicted)
    said = f"{runs} {'run' if runs == 1 else 'runs'} predicted"
    if standing.predicted[0].cures:
        return f"{said}: {lowered(standing.predicted[0].title)}"
    inside, given = standing.ranges
    return f"{said}, {inside} of {given} inside your range" if given else said
