"""What other rooms may use of study, and nothing else: the day, the interview date, figures, the fit, transfer."""

from __future__ import annotations

from app.content.preparation_schemas import FEWEST_MINUTES, FURTHEST_DAYS, MOST_MINUTES
from app.core.days import day_number, day_start, today
from app.study.exam.preparation import (
    Forecast,
    drop_plan,
    forecast,
    list_unplanned,
    plan_day,
    set_plan,
)
from app.study.exam.preparation import draft as draft_plan
from app.study.exam.preparation import find as find_plan
from app.study.fsrs.losses import compare, review_logs, split_day
from app.study.fsrs.parameters import DEFAULT as DEFAULT_PARAMETERS
from app.study.log.statistics import (
    NEWEST,
    Answer,
    Memory,
    Retention,
    calibration,
    count_by_day,
    count_due_by_day,
    memories,
    newest_answers,
    retention,
    seconds_of,
)
from app.study.log.transfer import Answer as GivenAnswer
from app.study.log.transfer import Remembered, list_answers, list_remembered, take_over
from app.study.personal import FEWEST as FEWEST_REVIEWS_TO_FIT
from app.study.personal import Standing as FitStanding
from app.study.personal import ask as ask_for_fit
from app.study.personal import ask_where_due as ask_for_fits_where_due
from app.study.personal import claim_next as claim_fit
from app.study.personal import fail as fail_fit
from app.study.personal import finish as finish_fit
from app.study.personal import give_up_on_stale as give_up_on_stale_fits
from app.study.personal import read_histories
from app.study.personal import standing as fit_standing
from app.study.policy import policy_for
from app.study.queries import all_cards
from app.study.service import Desk, count_due, has_studied, list_evidence, list_records, study

__all__ = [
    "DEFAULT_PARAMETERS",
    "FEWEST_MINUTES",
    "FEWEST_REVIEWS_TO_FIT",
    "FURTHEST_DAYS",
    "MOST_MINUTES",
    "NEWEST",
    "Answer",
    "Desk",
    "FitStanding",
    "Forecast",
    "GivenAnswer",
    "Memory",
    "Remembered",
    "Retention",
    "all_cards",
    "ask_for_fit",
    "ask_for_fits_where_due",
    "calibration",
    "claim_fit",
    "compare",
    "count_by_day",
    "count_due",
    "count_due_by_day",
    "day_number",
    "day_start",
    "draft_plan",
    "drop_plan",
    "fail_fit",
    "find_plan",
    "finish_fit",
    "fit_standing",
    "forecast",
    "give_up_on_stale_fits",
    "has_studied",
    "list_answers",
    "list_evidence",
    "list_records",
    "list_remembered",
    "list_unplanned",
    "memories",
    "newest_answers",
    "plan_day",
    "policy_for",
    "read_histories",
    "retention",
    "review_logs",
    "seconds_of",
    "set_plan",
    "split_day",
    "study",
    "take_over",
    "today",
]
