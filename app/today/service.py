"""What today offers: cards due, one problem, one experiment, and a first step for somebody who has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.content.problem_schemas import Problem
from app.content.schemas import Experiment
from app.core.moment import Moment
from app.first import service as first
from app.interview import service as interview
from app.lab import service as lab
from app.progress import evidence
from app.progress.checkpoints import Stand
from app.progress.mistakes import mistakes_of
from app.study import api as study
from app.theory.lab_runs import rank_theory, world
from app.theory.transformer import parameter_count
from app.today.day import Bar, Item, Lane, Offer, done_today, due_bars, standing_lanes
from app.today.offers import asked_for, checkpoints_of, concept_titles, offers_from
from app.units import bytes_text
from labs.spec import parse_run_spec

FIRST_EXPERIMENT = "L10"
DAYS_AHEAD = 12
INTERVIEW_RESTS = timedelta(days=7)


@dataclass(frozen=True)
class Today:
    """Everything the front page shows."""

    is_new: bool  # has answered no card yet
    is_first_look: bool  # nothing is known of them: neither an answer to the first question nor anything they did
    due: int
    minutes: int
    missed: Sequence[tuple[Offer[Card], int]]  # cards on what was done wrong last, with their minutes
    problem: Offer[Problem] | None
    experiment: Offer[Experiment] | None
    active_runs: list[Any]
    open_sitting: object
    study: study.Desk
    interview: Interview | None
    was_interviewed: bool  # in any sitting: else the next one would be the first evidence of what is said aloud
    interview_day: date | None
    days_left: int
    minutes_a_day: int | None  # that the plan has for cards
    checkpoints: Sequence[Stand]
    done: list[tuple[str, int]]
    standings: list[Lane]
    coming: list[Bar]


def today(session: Session, learner_id: int, content: Catalogue, moment: Moment) -> Today:
    """The learner's day."""
    desk = study.study(session, learner_id, content, moment)
    plan, date_ = study.find_plan(session, learner_id), date.fromordinal(study.today(moment))
    is_planned = plan is not None and plan.day >= date_
    checkpoints = checkpoints_of(session, learner_id, content, moment)
    every, since = evidence.gather(session, learner_id), study.day_start(study.today(moment), moment.zone)
    mistakes = mistakes_of(session, learner_id, content, moment.now)
    offered = offers_from(content, every, mistakes, checkpoints, since, moment)
    cards, problem, experiment = (
        offered.cards,
        next(iter(offered.problems), None),
        next(iter(offered.experiments), None),
    )
    problem = _once(problem, " ".join(each.why for each in cards))
    experiment = _once(experiment, " ".join(each.why for each in (*cards, problem) if each))
    minutes = desk.progress.minutes_left if desk.progress.left else 0
    minutes += (problem.item.minutes if problem else 0) + (experiment.item.minutes if experiment else 0)
    missed = [(each, max(1, round(each.item.kind.seconds / 60))) for each in cards]
    minutes += sum(each for _, each in missed)
    has_studied = study.has_studied(session, learner_id)
    sat_at = _sat_at(session, learner_id)
    counts = study.count_due_by_day(session, learner_id, study.today(moment), DAYS_AHEAD, moment.zone)
    guess = first.find_guess(session, learner_id)
    return Today(
        not has_studied,
        not has_studied and not every and (guess is None or guess.guess_bytes is None),
        desk.progress.left,
        minutes,
        missed,
        problem,
        experiment,
        lab.list_under_way(session, learner_id),
        interview.find_running(session, learner_id, moment.now),
        desk,
        asked_for(checkpoints, "interview", content.interview) or next_interview(content, sat_at, moment.now),
        bool(sat_at),
        plan.day if plan and is_planned else None,
        (plan.day - date_).days if plan else 0,
        plan.minutes_per_day if plan and is_planned else None,
        checkpoints,
        done_today(desk.progress.done, every, since),
        standing_lanes(evidence.standings_of(every, content, moment.now), concept_titles(content)),
        due_bars(counts, date_, desk.progress.new) if has_studied else [],
    )


def _once(offer: Offer[Item] | None, said: str) -> Offer[Item] | None:
    """The offer, with another reason where its own was `said` on the page already, be it with the idea's name before
    it."""
    if offer is None:
        return None
    _, _, told = offer.why.partition(": ")
    return replace(offer, why=offer.again) if (told or offer.why).casefold() in said.casefold() else offer


def is_first_minute(session: Session, learner_id: int) -> bool:
    """Whether nothing is known of the learner yet: neither an answer to the first question nor anything else."""
    return (
        first.find_guess(session, learner_id) is None
        and not study.has_studied(session, learner_id)
        and study.find_plan(session, learner_id) is None
        and next(evidence.log_records(session, learner_id), None) is None
    )


def run_first(session: Session, learner_id: int, content: Catalogue, now: datetime) -> int:
    """Queue the first question in small: two ranks that each hold everything. The guess is predicted: without what it
    left out, where that has a name, so that the run names the same; else by the parameter.

    Returns the run's id.
    """
    experiment = content.experiments[FIRST_EXPERIMENT]
    spec = {**experiment.spec, "parallel": {"data": 2, "zero": 0}}
    guess = first.find_guess(session, learner_id)
    prediction = None
    if guess is not None and guess.guess_bytes is not None:
        small = parse_run_spec(spec)
        share = parameter_count(small.model, small.training.sequence) / first.PARAMETERS
        lacks, held = first.lacking(guess.guess_bytes), rank_theory(small, next(world(small))).model_state_bytes
        counted = sum(size for part, size in held.items() if part not in lacks)
        prediction = {"model_state_bytes": {"value": bytes_text(counted if lacks else guess.guess_bytes * share, 4)}}
    return lab.submit_run(session, learner_id, spec, prediction, now, experiment.id).id


def next_interview(content: Catalogue, sat_at: Mapping[str, datetime], now: datetime) -> Interview | None:
    """The shortest that was not sat of late; rounds, which ask for all of a subject at once, after all others."""
    sat = {identity for identity, at in sat_at.items() if at > now - INTERVIEW_RESTS}
    left = [each for each in content.interviews.values() if each.id not in sat]
    return min(left, key=lambda each: (each.is_round, each.minutes), default=None)


def _sat_at(session: Session, learner_id: int) -> dict[str, datetime]:
    """When each interview was sat last, whatever was answered in it."""
    results = interview.list_results(session, learner_id).items()
    return {identity: each.closed_at for identity, sat in results for each in sat if each.closed_at}
