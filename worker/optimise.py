"""`python -m worker.optimise FIT`: fit FSRS's parameters to one learner's reviews, judge the result, and write it down.

A process of its own: it imports torch, which neither the web application nor Celery's processes do, and takes minutes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import structlog

from app.core.clock import utc_now
from app.core.db import Database, open_database
from app.core.logs import configure_logs
from app.core.settings import settings
from app.study import api as study

log = structlog.get_logger()


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdecimal():
        sys.stderr.write("usage: python -m worker.optimise FIT\n")
        return 2
    configuration = settings()
    configure_logs(configuration.log_format, configuration.log_level)
    with suppress(OSError):
        os.nice(10)  # nobody waits for this; runs and pages come first
    fit_id, database = int(arguments[0]), open_database(configuration.sqlalchemy_url)
    try:
        fit(database, fit_id)
    except Exception as error:  # whatever went wrong is what the page must say
        log.exception("fit failed", fit=fit_id)
        with database.write() as session:
            study.fail_fit(session, fit_id, f"{type(error).__name__}: {error}", utc_now())
        return 1
    return 0


def fit(database: Database, fit_id: int) -> None:
    """Fit to the earlier reviews, compare on the later ones, keep the outcome."""
    from fsrs import Optimizer  # noqa: PLC0415 - this is what imports torch

    with database.read() as session:
        histories = study.read_histories(session, fit_id)
    from_day = study.split_day(histories)
    earlier = [history for history in (each.until(from_day) for each in histories) if history.days]
    values = Optimizer(study.review_logs(earlier)).compute_optimal_parameters()
    comparison = study.compare(histories, from_day, values)
    with database.write() as session:
        kept = study.finish_fit(session, fit_id, values, comparison, utc_now())
        used = kept.is_used
    log.info("fit finished", fit=fit_id, default=comparison.default, fitted=comparison.fitted, used=used)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
