"""Why a search found no plan, where its limits are why: which of them, and values of theirs that a plan has that fits.

Memory, software and degrees count alike as limits here. A limit is named where to change it alone would do; where no
single one would, as few as are needed, and values that go together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from app.theory.planner.asking import SearchRequest, usable_bytes
from app.theory.planner.candidates import Candidate
from app.theory.planner.search import search
from app.units import bytes_text
from labs.spec import Violation

MEMORY = ("memory_bytes", "memory_share")
PROFILE = "profile"
LIMIT = 20  # of the plans whose values are named
BOUNDLESS_BYTES = 1e18  # memory in which every plan fits
STEP_BYTES = 1e8  # in which memory is named


def unmet(request: SearchRequest) -> tuple[Violation, ...]:
    """For a request of which no plan fits: the limits to blame, each with what would be accepted. None where there are
    none, or where without any of them nothing would fit either."""
    fields = limits_of(request)
    if not fields or not _fits(_without(request, fields)):
        return ()
    alone = tuple(filter(None, (_changed(request, field) for field in fields)))
    return alone or tuple(_together(request, fields))


def limits_of(request: SearchRequest) -> tuple[str, ...]:
    """What limits a search, by field: degrees and choices, the software, the memory."""
    parts = {"axes": request.axes, "at_least": request.at_least, "at_most": request.at_most}
    listed = [f"{name}.{axis}" for name, part in parts.items() for axis in part.model_dump(exclude_none=True)]
    return (*listed, *(name for name in (PROFILE, *MEMORY) if getattr(request, name) is not None))


def _changed(request: SearchRequest, field: str) -> Violation | None:
    """The violation of a limit if to change it alone would do."""
    freed = _without(request, [field])
    if field in MEMORY:
        found = leanest(request)
        held = found.memory_bytes if found else None
        if held is None or held > usable_bytes(freed):
            return None
        message = f"The leanest plan within the other limits holds {bytes_text(held)}."
        return Violation(field, getattr(request, field), message, _room(request, field, held))
    plans = _plans(freed)
    if not plans:
        return None
    message = "Within the other limits no plan fits; with another value here one does."
    return Violation(field, _given(request, field), message, _accepted(field, plans))


def _together(request: SearchRequest, fields: Sequence[str]) -> Iterator[Violation]:
    """As few limits as have to change, of those that come later rather than earlier, with the values of one plan."""
    kept: list[str] = []
    for field in fields:
        if _fits(_without(request, [each for each in fields if each not in (*kept, field)])):
            kept.append(field)
    changed = [each for each in fields if each not in kept]
    freed = _without(request, changed)
    plans = search(_asked(freed, limit=1, objective="memory")).best
    for field in changed:
        accepted = _room(request, field, plans[0].memory_bytes) if field in MEMORY else _accepted(field, plans)
        message = "No one limit is to blame alone; these values go together."
        yield Violation(field, _given(request, field), message, accepted)


def _room(request: SearchRequest, field: str, held: float) -> str:
    """The least room, in memory as it is named, that takes what a plan holds."""
    if field == "memory_bytes":
        return f"{bytes_text(ceil(held / STEP_BYTES) * STEP_BYTES)} or more"
    whole = usable_bytes(request) / (request.memory_share or 1.0)
    return f"{ceil(100 * held / whole) / 100:g} or more"


def _accepted(field: str, plans: Sequence[Candidate]) -> str:
    """What the plans have: the least or the most of them for a bound."""
    if field == PROFILE:
        return "null, which counts each plan as its ZeRO stage suggests"
    part, _, axis = field.partition(".")
    values = [_value(axis, each) for each in plans]
    if part == "at_most":
        return f"{min(values):,} or more"
    if part == "at_least":
        return f"up to {max(values):,}"
    return ", ".join(f"{each:,}" if isinstance(each, int) else str(each) for each in sorted(set(values)))


def _value(axis: str, plan: Candidate) -> Any:
    """What a plan has on an axis, as a limit of it is written."""
    parallel, training = plan.parallel, plan.training
    if axis == "recompute_modules":
        return "+".join(training.recompute_modules or ())
    if axis == "shard":
        return parallel.shard or parallel.data * parallel.context
    found = getattr(parallel if hasattr(parallel, axis) else training, axis)
    return str(found).lower() if isinstance(found, bool) else found if isinstance(found, int) else str(found)


def _given(request: SearchRequest, field: str) -> object:
    part, _, axis = field.partition(".")
    value = getattr(getattr(request, part), axis) if axis else getattr(request, part)
    return list(value) if isinstance(value, tuple) else value


def _without(request: SearchRequest, fields: Sequence[str]) -> SearchRequest:
    """The request without some of its limits."""
    changed: dict[str, Any] = {}
    for field in fields:
        part, _, axis = field.partition(".")
        if not axis:
            changed[part] = None
            continue
        now = changed.get(part, getattr(request, part))
        changed[part] = now.model_copy(update={axis: None})
    return request.model_copy(update=changed)


def _fits(request: SearchRequest) -> bool:
    return bool(search(_asked(request, limit=1)).best)


def _plans(request: SearchRequest) -> tuple[Candidate, ...]:
    """The fastest that fit."""
    return search(_asked(request, limit=LIMIT, distinct="layout")).best


def leanest(request: SearchRequest) -> Candidate | None:
    """The plan that holds least within the limits but for memory, whether or not it fits."""
    roomy = request.cluster.model_copy(update={"memory_bytes": BOUNDLESS_BYTES})
    asked = _asked(_without(request, MEMORY), limit=1, objective="memory", cluster=roomy)
    return next(iter(search(asked).best), None)


def _asked(request: SearchRequest, **changed: Any) -> SearchRequest:
    fixed: Mapping[str, Any] = {"objective": "step_seconds", "distinct": "plan"}
    return request.model_copy(update={**fixed, **changed})
