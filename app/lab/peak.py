"""What this machine's arithmetic can do at most: the fastest that ranks together did here, in any run.

Plain products are timed for a moment after a run's last step. Others' work on the machine makes that moment's rate
lower, never higher, so the highest of all runs is nearest to the peak; where a run's own steps were faster than any of
these, the peak is no less than they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.core import times
from app.core.moment import Moment
from app.lab import queries
from app.lab.models import Run
from app.theory.compute import hardware_flops_utilisation
from app.units import scaled, value_text

LOOKED_THROUGH = 300  # of the newest runs
_SOME = 0.1  # an utilisation to compare by

Machine = tuple[object, ...]  # what runs must have alike for one peak


@dataclass(frozen=True)
class Peak:
    """FLOP/s of all ranks together, and the run that saw it, at its end: in plain products, or in its own steps."""

    flops_per_second: float
    run_id: int
    ended_at: datetime | None
    is_of_steps: bool

    def said_of_when(self, moment: Moment) -> str:
        """The run, and its end as it is said at `moment`."""
        return f"run {self.run_id}" + (f", {times.when(self.ended_at, moment)}" if self.ended_at else "")


@dataclass(frozen=True)
class Timed:
    """A training's end as peaks need it: its machine, and FLOPs done in a step, those of recomputation among them."""

    run_id: int
    machine: Machine
    step_flops: float
    step_seconds: float
    plain: float
    ended_at: datetime | None

    @classmethod
    def of(
        cls, run_id: int, spec: Mapping[str, Any], result: Mapping[str, Any], ended_at: datetime | None
    ) -> Timed | None:
        """None for what timed no steps or no products."""
        peak, mfu, seconds = (result.get(name) for name in ("peak_flops_per_second", "mfu", "step_seconds"))
        if not peak or not mfu or not seconds:
            return None
        training = spec.get("training") or {}
        is_cpu = result.get("device", "cpu") == "cpu"
        machine = (
            result.get("device"),
            result.get("device_name"),
            result.get("world_size"),
            spec.get("hosts"),
            None if is_cpu else training.get("precision"),  # a GPU's products are timed in the type of the run
        )
        more = hardware_flops_utilisation(_SOME, training.get("recompute") or "none") / _SOME
        return cls(run_id, machine, more * mfu * peak * seconds, seconds, peak, ended_at)

    def seen(self) -> Iterable[Peak]:
        yield Peak(self.plain, self.run_id, self.ended_at, is_of_steps=False)
        yield Peak(self.step_flops / self.step_seconds, self.run_id, self.ended_at, is_of_steps=True)


def timed_of(run: Run) -> Timed | None:
    """Of one run."""
    return Timed.of(run.id, run.spec, run.result or {}, run.ended_at)


def timed_here(session: Session, learner_id: int) -> list[Timed]:
    """Of the newest trainings that this install carried out."""
    rows = queries.list_results_here(session, learner_id, LOOKED_THROUGH)
    return [each for row in rows if (each := Timed.of(row.id, row.spec, row.result or {}, row.ended_at)) is not None]


def highest(every: Iterable[Timed], machine: Machine) -> Peak | None:
    """The fastest that was seen on such a machine; of two that are alike, in plain products."""
    seen = [peak for each in every if each.machine == machine for peak in each.seen()]
    return max(seen, key=lambda peak: (peak.flops_per_second, not peak.is_of_steps), default=None)


def said_of_rate(session: Session, run: Run, moment: Moment) -> str:
    """Tokens a second, and their arithmetic beside the fastest that ranks together did on this machine; empty where
    that was not timed."""
    timed = timed_of(run) if run.status == "finished" else None
    if timed is None or run.result is None:
        return ""
    known = [timed] if run.opened_from else [timed, *timed_here(session, run.learner_id)]
    peak, tokens = highest(known, timed.machine), f"{run.result['tokens_per_second']:,.0f} tokens/s"
    if peak is None:
        return tokens
    reached = value_text(timed.step_flops / timed.step_seconds, "flop_per_second")
    if peak.is_of_steps and peak.run_id == run.id:
        plain = value_text(max(each.plain for each in known if each.machine == timed.machine), "flop_per_second")
        return (
            f"{tokens}, {reached}: faster than any plain matrix product that was timed here, {plain} at the most, when "
            "the machine had other work. So its share of the peak is not known."
        )
    most = value_text(peak.flops_per_second, "flop_per_second")
    share = scaled(timed.step_flops / timed.step_seconds / peak.flops_per_second, "%", 2)
    what = "the steps of that run, faster than any plain product" if peak.is_of_steps else "plain matrix products"
    return (
        f"{tokens}, {reached}: {share} of {most}, the fastest that all ranks together did here, "
        f"in {what} ({peak.said_of_when(moment)})."
    )
