"""Preparing for a date: recall on the day and answers asked, beside plain FSRS at 90 % within the same minutes.

Simulated learners whose true memory differs from what the scheduler believes (tests/support/learners.py says how they
are drawn). Both ways of studying believe FSRS's default parameters throughout and never see the true ones; each answer
is right with the true probability of recall, learning steps count as answers. Recall on the day is the true one, over
all cards, 0 for those never met. The strategy is chosen once, before the first answer, from the belief alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from app.study.exam.forecast import Course, live_through
from app.study.exam.search import PLAIN_NEW_PER_DAY, choose_strategy, plain_pace, rule_of
from app.study.exam.strategy import plain
from app.study.fsrs import memory_model as model
from app.study.fsrs.parameters import DEFAULT
from tests.support.learners import draw_parameters, new_cards

LEARNERS = 1000
CARDS = 134
SECONDS_PER_ANSWER = 25
SCENARIOS = ((7, 30), (14, 25), (21, 20), (21, 40), (42, 20), (60, 15), (90, 15))  # days, minutes a day
SEED = 7


def measure(_data: Path) -> dict[str, Any]:
    """Every scenario: the distribution over learners of recall and answers, planned against plain."""
    found = [_scenario(days, minutes) for days, minutes in SCENARIOS]
    lines = [f"{LEARNERS} learners, {CARDS} cards, {SECONDS_PER_ANSWER} s an answer; planned against FSRS at 90 %"]
    return {"scenarios": found, "lines": [*lines, *map(_line, found)]}


def _scenario(days: int, minutes: int) -> dict[str, Any]:
    answers = minutes * 60 / SECONDS_PER_ANSWER
    believed = model.parameters(DEFAULT)
    true = model.parameters(draw_parameters(LEARNERS, np.random.default_rng(SEED)))
    cards = new_cards(LEARNERS, CARDS)
    choice = choose_strategy(believed, new_cards(1, CARDS), days, answers)
    paces = {"usual": PLAIN_NEW_PER_DAY, "in_time": plain_pace(cards, days)}
    rules = {"planned": rule_of(choice.strategy, cards, days), **{name: plain(pace) for name, pace in paces.items()}}
    courses = {
        name: live_through(rule, cards, days, answers, believed, true, np.random.default_rng(SEED + 1 + index))
        for index, (name, rule) in enumerate(rules.items())
    }
    base = max(("in_time", "usual"), key=lambda name: courses[name].recall.mean())
    return {
        "days": days,
        "minutes_per_day": minutes,
        "strategy": choice.strategy and asdict(choice.strategy),
        "plain_new_per_day": paces[base],
        "planned": _summary(courses["planned"]),
        "plain": _summary(courses[base]),
        **_comparison(courses["planned"], courses[base]),
    }


def _summary(course: Course) -> dict[str, Any]:
    return {
        "recall_mean": float(course.recall.mean()),
        "recall_quantiles": [float(each) for each in np.quantile(course.recall, (0.05, 0.25, 0.5, 0.75, 0.95))],
        "answers_mean": float(course.answers.sum(axis=1).mean()),
        "met_mean": float(course.met.mean()),
    }


def _comparison(ours: Course, base: Course) -> dict[str, Any]:
    gain = ours.recall - base.recall
    ratio = ours.answers.sum(axis=1) / base.answers.sum(axis=1)
    return {
        "gain_mean": float(gain.mean()),
        "gain_standard_error": float(gain.std(ddof=1) / np.sqrt(len(gain))),
        "gain_quantiles": [float(each) for each in np.quantile(gain, (0.05, 0.25, 0.5, 0.75, 0.95))],
        "learners_at_least_equal": float((gain >= 0).mean()),
        "answers_ratio_of_means": float(ours.answers.sum() / base.answers.sum()),
        "answers_ratio_quantiles": [float(each) for each in np.quantile(ratio, (0.05, 0.25, 0.5, 0.75, 0.95))],
        "learners_with_no_more_answers": float((ratio <= 1).mean()),
    }


def _line(found: dict[str, Any]) -> str:
    ours, base, gain = found["planned"], found["plain"], found["gain_quantiles"]
    return (
        f"{found['days']} days, {found['minutes_per_day']} min: recall {ours['recall_mean']:.3f} against "
        f"{base['recall_mean']:.3f} (gain {gain[0]:+.3f} / {gain[2]:+.3f} / {gain[4]:+.3f} at 5 / 50 / 95 %, at least "
        f"equal for {found['learners_at_least_equal']:.0%}), answers {found['answers_ratio_of_means']:.2f} × "
        f"(no more for {found['learners_with_no_more_answers']:.0%})"
    )


if __name__ == "__main__":
    print(json.dumps(measure(Path()), indent=2))  # noqa: T201
