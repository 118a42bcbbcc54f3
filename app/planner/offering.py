"""What two plans can be compared without typing an address: one plan with others near it, and pairs that are ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlencode, urlsplit

from app.planner import finding, service
from app.planner.comparing import Comparison, comparison
from app.planner.fields import ANY, DEFAULTS, query_text
from app.planner.finding import memory_said, time_said
from app.planner.made import Plan
from app.words import capital

# A question that many ask, and the two plans that answer it: alike in all but what is asked.
_LARGE = "model=gpt-3-175b&ranks=256&global_batch=256&recompute=full"
_DEEP = (
    "model=llama-3-70b&ranks=128&global_batch=32&tensor=8&sequence_parallel=on&pipeline=8&zero=1&recompute=selective"
    "&profile=megatron-core"
)
READY = (
    (
        "175B on 256 H100: ZeRO-3 alone, or tensor and pipeline ranks?",
        f"{_LARGE}&zero=3",
        f"{_LARGE}&tensor=8&sequence_parallel=on&pipeline=8&zero=1&profile=megatron-core",
    ),
    (
        "70B on eight stages with 16 micro-batches: 1F1B, or interleaved?",
        _DEEP,
        f"{_DEEP}&schedule=interleaved&virtual_stages=2",
    ),
)


@dataclass(frozen=True)
class Offered:
    """A comparison that is one click away: what it is, and its address."""

    title: str
    said: str
    address: str


@dataclass(frozen=True)
class Offers:
    """A plan, the address that says it and what it can be compared with; `whose` says what it is where nobody gave it.
    `pairs` of other plans are offered where none was given."""

    plan: Plan
    whose: str
    query: str
    beside: tuple[Offered, ...]
    pairs: tuple[Offered, ...]


def offers(shown: Comparison, last: str) -> Offers | None:
    """What to compare where not two plans were given: with the one that was, else with that of the address looked at
    last, else with the planner's own first. None where two are compared."""
    if shown.compared:
        return None
    if shown.plans:
        return _offers(shown.plans[0], "", ())
    seen = comparison({"a": last}).plans if last else ()
    if seen:
        return _offers(seen[0], "the plan you looked at last", ready_pairs())
    return _offers(service.plan(DEFAULTS), "the plan that the planner opens with", ready_pairs())


def _offers(made: Plan, whose: str, pairs: tuple[Offered, ...]) -> Offers:
    return Offers(made, whose, query_text(made.typed), tuple(_beside(made)), pairs)


@cache
def ready_pairs() -> tuple[Offered, ...]:
    """Each with what the comparison finds."""
    found = ((question, comparison({"a": one, "b": other}), one, other) for question, one, other in READY)
    return tuple(Offered(question, each.title, _address(one, other)) for question, each, one, other in found)


def fastest_beside(query: Mapping[str, str]) -> str:
    """The address where a plan is compared with the fastest that a search finds. Raises SpecError."""
    made = service.plan(query)
    best = finding.choose(made, made.form.values["profile"] or ANY).options
    mine = query_text(made.typed)
    return _address(mine, urlsplit(best[0].address).query if best else mine)


def _address(one: str, other: str) -> str:
    return "/planner/compare?" + urlencode({"a": one, "b": other})


def _beside(made: Plan) -> Iterator[Offered]:
    """What a plan can be compared with: the fastest there is, what one change does, and other ZeRO stages."""
    mine, now_seconds = query_text(made.typed), made.estimate.time.step_seconds or 0.0
    yield Offered("The fastest that fits", "found by a search", "/planner/compare/fastest?" + mine)
    advised = finding.advice(made, finding.steps_from(made), "")
    for each in advised:
        yield Offered(each.title, each.said, _address(mine, urlsplit(each.address).query))
    stages = {int(each.step.value) for each in advised if each.step.axis == "zero"} | {made.form.values["zero"]}
    for stage in made.stages:
        if stage.zero not in stages:
            title, now = (each.label if each.zero else "no sharding" for each in (stage, made.stage))
            other = query_text({**made.typed, "zero": str(stage.zero)})
            longer = (stage.step_seconds or 0.0) - now_seconds
            said = f"{time_said(longer, now_seconds)}, and {memory_said(stage.total - made.stage.total)}"
            said += "" if stage.fits else ", which is too much"
            yield Offered(capital(f"{title} instead of {now}"), said, _address(mine, other))
