"""What can be said of a plan that is not right: how many GPUs it takes, which GPU it fills, what its step is spent on.

Pure. It says what the plan comes to by the theory library, and nothing of a better one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from app.grading.questions.configuration import (
    BY_TERM,
    TERMS,
    ConfigurationQuestion,
    Judged,
    deciding_term,
)
from app.units import bytes_text, scaled
from app.words import listed
from labs.spec import SpecError

PlanMistake = Literal["gpus", "divides", "memory", "bubble", "communication", "slower"]


@dataclass(frozen=True)
class PlanDoubt:
    """What is wrong with a plan, and what it comes to in words."""

    mistake: PlanMistake
    comes_to: str


def doubt(question: ConfigurationQuestion, text: str) -> PlanDoubt | None:
    """None for a plan that counts as right, or is none."""
    chosen = question.read(text)
    if isinstance(chosen, str):
        return None
    try:
        mine = question.judged(chosen)
    except SpecError as error:
        return _broken(question, chosen, error)
    best = question.best()
    if not mine.fits:
        return PlanDoubt("memory", f"The fullest GPU{_in_stage(mine)} holds {bytes_text(mine.memory)}.")
    if question.cost(mine) <= (1 + question.within) * question.cost(best):
        return None
    if question.objective == "memory" or mine.seconds is None:
        return PlanDoubt("memory", f"The fullest GPU{_in_stage(mine)} holds {bytes_text(mine.memory)}.")
    term = deciding_term(mine, best)
    spent = f"of which {TERMS[term]} takes {scaled(getattr(mine.estimate.time, term), 's', 3)}"
    return PlanDoubt(BY_TERM.get(term, "slower"), f"I get {scaled(mine.seconds, 's', 3)} for a step, {spent}.")


def _broken(question: ConfigurationQuestion, chosen: Mapping[str, int | str], error: SpecError) -> PlanDoubt:
    degrees = question.degrees(chosen)
    if question.gpus is not None and prod(degrees.values()) != question.gpus:
        in_order = sorted(degrees, key=[*chosen, *degrees].index)  # as they were said
        factors = " × ".join(f"{name} {degrees[name]:,}" for name in in_order if degrees[name] > 1) or "1"
        return PlanDoubt("gpus", f"{factors} takes {prod(degrees.values()):,} GPUs.")
    first = error.violations[0]
    names = [each.rpartition(".")[2] for each in (first.field, *first.involves)]
    said = [f"{name.replace('_', '-')} {chosen[name]}" for name in names if name in chosen]
    return PlanDoubt("divides", f"Look at {listed(said)}." if said else "")


def _in_stage(mine: Judged) -> str:
    """“, in stage 1 of 4”, of a plan with a pipeline."""
    stages = mine.estimate.memory.by_stage
    fullest = max(stages, key=lambda each: each.bytes.total, default=None)
    return f", in stage {fullest.stage + 1} of {len(stages)}," if fullest and len(stages) > 1 else ""
