"""What limits the search of the planner's page: fields of the form, parts of a SearchRequest, and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.core.errors import Violation
from app.planner.fields import ANY, PLAIN, SEARCHED, THIS_PLANS
from app.planner.labels import worded
from app.planner.readers import Memory, Span
from app.theory.planner.asking import USABLE, usable_of
from app.units import bytes_text

REFUSED = "Your limits leave no plan. What each of them could be stands at its field."
SPANS = ("zero", *SEARCHED)
NAMES = {"zero": "ZeRO stage", "micro_batch": "micro-batch", "recompute": "recomputation", "schedule": "schedule"}


def searched_profile(values: Mapping[str, Any]) -> str | None:
    """Whose software a search looks at: the plan's, unless it is to count each as its ZeRO stage suggests."""
    return None if values["search_software"] == ANY else values["profile"]


def limits_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The limits as a SearchRequest has them."""
    axes: dict[str, Any] = {}
    bounds: dict[str, dict[str, int]] = {"at_least": {}, "at_most": {}}
    if values["expert_nodes"]:
        axes["expert_nodes"] = [values["expert_nodes"]]
    if values["schedules"] == THIS_PLANS:
        axes["schedule"] = [values["schedule"]]
    if values["schedules"] == PLAIN:
        axes["schedule"] = [PLAIN]
    if values["search_recompute"]:
        axes["recompute"] = [values["search_recompute"]]
    for axis in SPANS:
        chosen: Span | None = values[f"search_{axis}"]
        if chosen is None:
            continue
        listed = chosen.listed
        if axis == "zero":  # few enough to list, so that they have no least and most
            listed = listed or tuple(range(chosen.least or 0, 4 if chosen.most is None else chosen.most + 1))
        if listed is not None:
            axes[axis] = list(listed)
            continue
        for bound, value in (("at_least", chosen.least), ("at_most", chosen.most)):
            if value is not None:
                bounds[bound][axis] = value
    return {"axes": axes, **bounds, **_memory(values["search_memory"])}


def _memory(chosen: Memory | None) -> dict[str, float]:
    said = {"memory_bytes": chosen.bytes, "memory_share": chosen.share} if chosen else {}
    return {name: value for name, value in said.items() if value}


def usable_bytes(values: Mapping[str, Any], capacity_bytes: float) -> float:
    """What a plan may take of a GPU's memory, as a search takes it."""
    chosen: Memory = values["search_memory"] or Memory()
    return usable_of(capacity_bytes, chosen.bytes, chosen.share)


def memory_text(values: Mapping[str, Any]) -> str:
    """The same in words."""
    chosen: Memory = values["search_memory"] or Memory()
    return bytes_text(chosen.bytes) if chosen.bytes else f"{100 * (chosen.share or USABLE):.3g} % of the memory"


def schedules_text(values: Mapping[str, Any]) -> str:
    """The schedules that are looked at, in words."""
    if values["schedules"] == THIS_PLANS:
        return f"{values['schedule']} alone"
    if values["schedules"] == PLAIN:
        return "1F1B alone"
    return "any schedule" if values["schedules"] == "any" else "the schedules that its software runs"


def said_of(values: Mapping[str, Any], typed: Mapping[str, str]) -> tuple[str, ...]:
    """The other limits, in words."""
    said = [f"{NAMES.get(axis, axis)} {typed[f'search_{axis}']}" for axis in SPANS if values[f"search_{axis}"]]
    if values["search_recompute"]:
        said.append(f"recompute {values['search_recompute']}")
    return tuple(said)


def errors_of(violations: list[Violation]) -> Iterator[tuple[str, str]]:
    """(field of the form, what is wrong) of limits that a search refuses."""
    for violation in violations:
        name = field_of(violation.field)
        if name:
            accepted = "as the ZeRO stage suggests" if name == "search_software" else violation.accepted
            yield name, worded(f"{violation.message} Accepted: {accepted}.")


def field_of(path: str) -> str:
    """The form's field that a limit of a SearchRequest stands in; empty for another part of it."""
    part, _, axis = path.partition(".")
    if part in ("memory_bytes", "memory_share"):
        return "search_memory"
    if part == "profile":
        return "search_software"
    if part not in ("axes", "at_least", "at_most"):
        return ""
    if axis == "schedule":
        return "schedules"
    return f"search_{axis}" if axis in (*SPANS, "recompute") else ""
