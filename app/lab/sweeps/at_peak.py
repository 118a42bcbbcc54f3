"""Theory's line for the time of a step: its arithmetic at the peak of the machine that it ran on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.moment import Moment
from app.lab.models import ENDED, Run
from app.lab.peak import Machine, Peak, Timed, highest, timed_of
from app.units import value_text
from app.words import listed


@dataclass(frozen=True)
class AtPeak:
    """Seconds of each run's step if all were matrix products at the peak, and the peaks of its machines. While runs are
    under way, peaks `are_pinned` to what was known when the sweep was started."""

    seconds: Mapping[int, float]
    peaks: tuple[Peak, ...]
    are_pinned: bool

    @property
    def of_steps(self) -> tuple[int, ...]:
        """The runs whose own steps are the peak, for want of a product that was as fast."""
        return tuple(peak.run_id for peak in self.peaks if peak.is_of_steps)

    def said(self, moment: Moment) -> str:
        """What the peak is and since when; nothing where no run has timed one."""
        if not self.peaks:
            return ""
        each = [
            f"{value_text(peak.flops_per_second, 'flop_per_second')} in "
            f"{'the steps themselves' if peak.is_of_steps else 'plain products'} ({peak.said_of_when(moment)})"
            for peak in self.peaks
        ]
        until = " It stays that until all runs have ended." if self.are_pinned else ""
        return (
            f"Dashes are its arithmetic at the peak, the fastest that ranks together did here: {listed(each)}.{until}"
        )


def at_peak(runs: Sequence[Run], known: Sequence[Timed], started_at: datetime) -> AtPeak:
    """Of a sweep's `runs`, by the fastest of all trainings `known` here on the same machine. So that no run's theory
    moves while the sweep goes on, those count till then that had ended when it was started; without any, its first."""
    timed = {run.id: each for run in runs if (each := timed_of(run)) is not None}
    known = [*known, *timed.values()]
    is_over = all(run.status in ENDED for run in runs)
    peaks: dict[Machine, Peak] = {}
    for each in timed.values():
        if each.machine in peaks:
            continue
        before = [one for one in known if one.ended_at is not None and one.ended_at < started_at]
        peak = highest(known if is_over else before, each.machine) or highest([each], each.machine)
        if peak is not None:
            peaks[each.machine] = peak
    seconds = {each.run_id: each.step_flops / peaks[each.machine].flops_per_second for each in timed.values()}
    return AtPeak(seconds, tuple(peaks.values()), bool(peaks) and not is_over)
