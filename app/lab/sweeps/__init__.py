"""Sweeps: one spec with one or two fields turned through some values, submitted and cancelled as one.

Each of its runs is an ordinary run of the queue: taken, ended and taken again like any other.
"""

from app.lab.sweeps.form import READY, SweepForm, base_of, form_like, form_of, turned_again
from app.lab.sweeps.knobs import MOST_RUNS, Knob, Value
from app.lab.sweeps.offering import by_field, check_form, offer_sweep
from app.lab.sweeps.submitting import cancel_sweep, find_sweep, submit_sweep
from app.lab.sweeps.view import sweep_page

__all__ = [
    "MOST_RUNS",
    "READY",
    "Knob",
    "SweepForm",
    "Value",
    "base_of",
    "by_field",
    "cancel_sweep",
    "check_form",
    "find_sweep",
    "form_like",
    "form_of",
    "offer_sweep",
    "submit_sweep",
    "sweep_page",
    "turned_again",
]
