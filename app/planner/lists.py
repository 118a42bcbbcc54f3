"""What the lists of the planner's forms offer, by field."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from app.core.options import Options
from app.planner.fields import ANY, FIELDS, OWN, PLAIN, SIZED, THIS_PLANS
from app.theory.hardware import GPUS
from app.theory.presets import PRESETS
from app.theory.reliability import FAILURE_RATES
from app.theory.state import LAYOUTS
from labs.spec import StateLayout


def _grouped(choices: Iterable[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    """(heading, name, title) of a long list, each under its heading in the order they came."""
    groups = defaultdict(list)
    for heading, name, title in choices:
        groups[heading].append((name, title))
    return dict(groups)


def _layouts() -> Iterator[tuple[str, str]]:
    for name in get_args(StateLayout):
        yield name, f"{name}: {LAYOUTS[name].bytes_each} bytes"


_FAMILIES = _grouped((preset.family, preset.name, preset.title) for preset in PRESETS.values())
_OWN = {"Your own": ((SIZED, "By its size, with a derived shape"), (OWN, "By its size, model state alone"))}
_TITLED = {
    "model": Options({**_FAMILIES, **_OWN}),
    "layout": Options({"": _layouts()}),
    "schedules": Options(
        {
            "": (
                ("software", "those its software runs"),
                ("any", "any, run or not"),
                (THIS_PLANS, "only this plan's"),
                (PLAIN, "1F1B alone"),
            )
        }
    ),
    "search_software": Options({"": ((ANY, "as the ZeRO stage suggests"),)}),
    "search_recompute": Options({"": (("none", "nothing"), ("selective", "selective"), ("full", "everything"))}),
    "failures": Options({"": ((rate.name, f"{rate.title}: {rate.said}") for rate in FAILURE_RATES.values())}),
    "gpu": Options(_grouped((gpu.maker, gpu.name, gpu.title) for gpu in GPUS.values())),
}
LISTS: Mapping[str, Options] = {
    name: _TITLED.get(name) or Options({"": zip(field.known, field.known, strict=True)})
    for name, field in FIELDS.items()
    if field.known
}
# Of the path of decisions, where a size alone has nothing to divide.
DECIDED: Mapping[str, Options] = {
    **LISTS,
    "model": Options({**_FAMILIES, "": [(SIZED, "Your own, by its size")]}),
}
