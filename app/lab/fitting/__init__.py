"""Fit it yourself: laws of this subject, fitted to what own runs measured, beside what theory says.

A law is fitted by least squares, and what is left over is read: a residual that bends is a term the law
does not have, one that scatters is the machine. A module for each law, over one record of what was fitted.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.fitting import activations, link, recomputation, scaling
from app.lab.fitting.law import Law, Source
from app.lab.folds import Folds

LOOKED_THROUGH = 300  # of the newest runs
_LAWS: tuple[Callable[[Source], Law], ...] = (link.fitted, activations.fitted, recomputation.fitted, scaling.fitted)


def fit_page(session: Session, learner_id: int, folds: Folds) -> list[Law]:
    """Every law, fitted where there are runs for it."""
    source = Source(session, folds, queries.list_measured_here(session, learner_id, LOOKED_THROUGH))
    return [law(source) for law in _LAWS]
