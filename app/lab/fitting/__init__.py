"""Fit it yourself: laws of this subject, fitted to what own runs measured, beside what theory says.

A law is fitted by least squares, and what is left over is read: a residual that bends is a term the law
does not have, one that scatters is the machine. A module for each law, over one record of what was fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlalchemy.orm import Session

from app.core.errors import DomainError, Violation
from app.lab import queries
from app.lab.fitting import activations, link, recomputation, scaling
from app.lab.fitting.law import Law, Source
from app.lab.folds import Folds

LOOKED_THROUGH = 300  # of the newest runs
_LAWS: dict[str, Callable[[Source], Law]] = {
    "link": link.fitted,
    "activations": activations.fitted,
    "recomputation": recomputation.fitted,
    "scaling": scaling.fitted,
}


def fit_page(session: Session, learner_id: int, folds: Folds, without: Collection[str] = ()) -> list[Law]:
    """Every law, fitted where there are runs for it, to all points but those of `without`, such as `recomputation.3-4`.

    A point that is not there any more is not missed: newer runs may have taken its place. Raises DomainError for what
    can be no point of any law."""
    strange = [each for each in without if each.partition(".")[0] not in _LAWS or not each.partition(".")[2]]
    if strange:
        accepted = f"a law ({', '.join(_LAWS)}), a dot, and one of its points"
        shown = [Violation("without", each[:60], f"{each[:60]!r} is no point of a law.", accepted) for each in strange]
        raise DomainError("Nothing was fitted.", shown)
    source = Source(session, folds, queries.list_measured_here(session, learner_id, LOOKED_THROUGH), frozenset(without))
    return [law(source) for law in _LAWS.values()]
