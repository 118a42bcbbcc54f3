"""Sweeps: one spec with one or two fields turned through some values, submitted and cancelled as one.

Each of its runs is an ordinary run of the queue: taken, ended and taken again like any other.
"""

from app.lab.sweeps.form import SweepForm, base_of, form_like, read_form
from app.lab.sweeps.knobs import MOST_RUNS, Knob, Value
from app.lab.sweeps.submitting import cancel_sweep, submit_sweep
from app.lab.sweeps.view import sweep_page

__all__ = [
    "MOST_RUNS",
    "Knob",
    "SweepForm",
    "Value",
    "base_of",
    "cancel_sweep",
    "form_like",
    "read_form",
    "submit_sweep",
    "sweep_page",
]
