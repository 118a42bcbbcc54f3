"""A search's plans as comma-separated values: a row each, quantities in SI base units."""

from __future__ import annotations

import csv
from io import StringIO

from app.theory.planner import Candidate, SearchResult

AXES = (
    "data",
    "tensor",
    "pipeline",
    "virtual_stages",
    "schedule",
    "context",
    "expert",
    "zero",
    "shard",
    "reshard_after_forward",
)
CHOICES = ("micro_batch", "recompute", "precision")
FIGURES = ("step_seconds", "step_seconds_low", "step_seconds_high", "memory_bytes", "tokens_per_second", "mfu", "hfu")


def search_csv(result: SearchResult) -> str:
    """A header and a line for each plan, the best first."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("rank", "profile", *AXES, *CHOICES, *FIGURES))
    for rank, each in enumerate(result.best, 1):
        parallel, training = each.parallel, each.training
        axes = ("" if getattr(parallel, name) is None else getattr(parallel, name) for name in AXES)
        writer.writerow(
            (rank, each.request.profile, *axes, *(getattr(training, name) for name in CHOICES), *_figures(each))
        )
    return text.getvalue()


def _figures(candidate: Candidate) -> tuple[float | None, ...]:
    made = candidate.estimate
    low, high = made.interval.step_seconds or (None, None)
    return candidate.step_seconds, low, high, candidate.memory_bytes, made.time.tokens_per_second, made.mfu, made.hfu
