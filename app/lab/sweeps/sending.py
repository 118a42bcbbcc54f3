"""What sending adds to the steps of a sweep: whether it grows along the axis, and the least time of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.lab.link import Link, Sent
from app.lab.models import Run
from app.lab.pace import about
from app.units import value_text
from app.words import counted, listed


def said_of_sending(
    runs: Sequence[Run], series: Mapping[int, str], link: Link | None, waiting: Mapping[str, float] | None
) -> str:
    """Of sums that are the same in every step of a series: they are an offset, and no part of the factor. `waiting` are
    the seconds of it in the offsets that were taken apart, by series; None where no step was. Nothing where the sums
    grow along the axis, and where nothing is sent."""
    by_series: dict[str, set[Sent]] = {}
    for run in runs:
        if run.id in series:
            by_series.setdefault(series[run.id], set()).add(Sent.of_theory(run.theory))
    if any(len(sums) > 1 for sums in by_series.values()):
        return ""
    sent = {name: next(iter(sums)) for name, sums in by_series.items()}
    if not any(each.wire_bytes for each in sent.values()):
        return ""
    alike = len(set(sent.values())) == 1
    named = {"": next(iter(sent.values()))} if alike else sent
    said = listed([_said_of_series(name, each, link) for name, each in named.items()])
    by = "" if link is None else f", by the α and B that run {link.run_id} timed between two ranks"
    return (
        f"In every step a rank sends the same, {said}{by}. Unless computing hides it, that is part of the offset by "
        f"theory, and the factor does not depend on it.{_said_of_waiting(sent, link, waiting)}"
    )


def _said_of_series(name: str, sent: Sent, link: Link | None) -> str:
    what = f"{value_text(sent.wire_bytes, 'bytes')}{f' with {name}' if name else ''}"
    if link is None:
        return f"{what} in {counted(sent.messages, 'message')}"
    least = link.least_seconds(sent)
    return f"{what} in {counted(sent.messages, 'message')}, which takes {about(least, least)} or more"


def _said_of_waiting(sent: Mapping[str, Sent], link: Link | None, waiting: Mapping[str, float] | None) -> str:
    """Where it is among the parts: a rank's thread has nothing to do while others carry its bytes, as while it waits
    for another rank or for a core."""
    if waiting is None:
        return ""
    within = " In the parts above, sending is within waiting, as is waiting for the other ranks and for a core"
    apart = [
        f"{value_text(waiting[name] - least, 'seconds')} of {value_text(waiting[name], 'seconds')} with {name}"
        for name, each in sent.items()
        if link is not None and name in waiting and 0 < (least := link.least_seconds(each)) < waiting[name]
    ]
    if not apart:
        return f"{within}."
    return f"{within}. Of the waiting in the offset, {listed(apart)} are more than that least time."
