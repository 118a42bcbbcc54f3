"""The figure to step through that shows what a run did, at the run's own sizes. Pure."""

from __future__ import annotations

from app.content.players.catalogue import player
from app.content.players.player import Player
from app.core.errors import DomainError
from labs.spec import RunSpec


def figure_of(spec: RunSpec) -> Player | None:
    """The first axis of the run that there is a figure of; None where there is none, or none of that size."""
    for name, settings in _wanted(spec):
        try:
            return player(name, {key: str(value) for key, value in settings.items()})
        except DomainError:  # more ranks or micro-batches than one can look at
            continue
    return None


def _wanted(spec: RunSpec) -> list[tuple[str, dict[str, object]]]:
    """Figures by name with their settings, the one that says most of the run first."""
    parallel, options = spec.parallel, spec.options
    if options is not None:
        if options.program == "schedule":
            asked = {"schedule": options.schedule, "stages": parallel.pipeline}
            chunks = options.virtual_stages if options.schedule == "interleaved" else 1
            return [("pipeline", {**asked, "micro_batches": options.micro_batches[-1], "virtual_stages": chunks})]
        if options.program == "collectives":
            return [("collective", {"algorithm": "ring", "ranks": parallel.data})]
        return []
    found: list[tuple[str, dict[str, object]]] = []
    if parallel.pipeline > 1:
        asked = {"schedule": parallel.schedule, "stages": parallel.pipeline}
        more = {"micro_batches": spec.training.micro_batches, "virtual_stages": parallel.virtual_stages}
        found.append(("pipeline", {**asked, **more}))
    if parallel.tensor > 1:
        found.append(("tensor", {"ranks": parallel.tensor}))
    if parallel.data > 1 and parallel.zero:
        found.append(("zero", {"stage": parallel.zero, "ranks": parallel.data}))
    elif parallel.data > 1:
        found.append(("collective", {"algorithm": "ring", "ranks": parallel.data}))
    return found
