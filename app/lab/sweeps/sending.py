"""What sending adds to the steps of a sweep: whether it grows along the axis, and the least time of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.lab.link import Link
from app.lab.models import Run
from app.lab.pace import about
from app.units import value_text
from app.words import listed


def said_of_sending(runs: Sequence[Run], series: Mapping[int, str], link: Link | None) -> str:
    """Of sums that are the same in every step of a series: they are an offset, and no part of the factor. Nothing where
    they grow along the axis, and where nothing is sent."""
    by_series: dict[str, set[float]] = {}
    for run in runs:
        if run.id in series:
            by_series.setdefault(series[run.id], set()).add(float(run.theory.get("wire_bytes_per_step") or 0))
    if any(len(sums) > 1 for sums in by_series.values()) or not any(map(max, by_series.values())):
        return ""
    sent = {name: next(iter(sums)) for name, sums in by_series.items()}
    if len(set(sent.values())) == 1:
        sent = {"": next(iter(sent.values()))}
    said = listed([_said_of_series(name, size, link) for name, size in sent.items()])
    at = "" if link is None else f" at the bandwidth that run {link.run_id} timed between two ranks"
    return (
        f"In every step a rank sends the same, {said}{at}, unless computing hides it: by theory that is part of the "
        "offset, and the factor does not depend on it."
    )


def _said_of_series(name: str, size: float, link: Link | None) -> str:
    time = "" if link is None else f", which takes {about(*[link.least_seconds(size)] * 2)} or more"
    return f"{value_text(size, 'bytes')}{f' with {name}' if name else ''}{time}"
