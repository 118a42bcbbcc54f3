"""Two plans side by side, each pasted as an address; what is wrong with one is said at its place, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode, urlsplit

from app.planner import beside, finding, saying, service
from app.planner.fields import ANY, FIELDS, query_text
from app.planner.made import Plan, StageBar
from app.theory.planner import Term, is_tie, terms, tie_share
from app.units import bytes_text, seconds_text
from app.words import capital

NAMES = (("a", "First"), ("b", "Second"))
MOST_NAMED = 3  # fields that name two plans by what differs; where more do, how they divide the GPUs names them
NAMED_BY_DIVISION = {"tensor", "pipeline", "context", "expert", "zero"}
_LOOKS_LIKE = "an address of the planner, or what stands behind its question mark"


@dataclass(frozen=True)
class Given:
    """One of the two: what was typed, the plan in it if there is one, why there is none, and what of the address is
    shown otherwise than it says. `name` is what tells it from the other."""

    field: str
    place: str
    typed: str
    query: str
    plan: Plan | None
    error: str
    remarks: tuple[str, ...] = ()
    name: str = ""

    @property
    def title(self) -> str:
        """Its name at the start of a sentence."""
        return capital(self.name)

    @property
    def said(self) -> str:
        """The plan in a sentence."""
        return saying.finding(self.plan) if self.plan else ""


@dataclass(frozen=True)
class Offered:
    """A plan to compare with that is one click away: what it is, and the address of the comparison."""

    title: str
    said: str
    address: str


@dataclass(frozen=True)
class Compared:
    """How two plans differ by the time a token takes. `faster` is the place of one in `given`, none where they take
    exactly as long. Where they train different batches a step, the parts of the second's are counted for the batch of
    the first."""

    has_one_batch: bool
    faster: int | None
    times: float
    is_tie: bool
    tie_share: float
    terms: tuple[Term, ...]
    apart: beside.Differences
    held: tuple[StageBar, ...]
    largest: Term | None
    share: float  # of the whole difference: what the largest of its parts makes


@dataclass(frozen=True)
class Comparison:
    """The page: the two as given, and where both are plans, how they differ. `is_same` where they are one plan."""

    given: tuple[Given, ...]
    compared: Compared | None
    is_same: bool
    offered: tuple[Offered, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether something was given that is no plan."""
        return any(each.error for each in self.given)


def comparison(typed: dict[str, str]) -> Comparison:
    """The page of two addresses, by "a" and "b"; with one alone, what it can be compared with."""
    given = tuple(_given(field, place, typed.get(field, "").strip()) for field, place in NAMES)
    plans = [each.plan for each in given if each.plan is not None and not each.error]
    both = plans if len(plans) == len(NAMES) else []
    is_same = bool(both) and both[0].request == both[1].request
    if both and not is_same:
        named = zip(given, names_of(both[0], both[1]), strict=True)
        given = tuple(replace(each, name=name) for each, name in named)
    compared = _compared(both[0], both[1], [each.title for each in given]) if both and not is_same else None
    alone = plans[0] if plans and not compared else None
    return Comparison(given, compared, is_same, tuple(_offered(alone)) if alone else ())


def fastest_beside(query: Mapping[str, str]) -> str:
    """The address where a plan is compared with the fastest that a search finds. Raises SpecError."""
    made = service.plan(query)
    best = finding.choose(made, made.form.values["profile"] or ANY).options
    mine = query_text(made.typed)
    return _beside(mine, urlsplit(best[0].address).query if best else mine)


def _beside(one: str, other: str) -> str:
    return "/planner/compare?" + urlencode({"a": one, "b": other})


def _offered(made: Plan) -> Iterator[Offered]:
    """What a plan can be compared with: the fastest there is, what one change does, and other ZeRO stages."""
    mine = query_text(made.typed)
    yield Offered("The fastest that fits", "found by a search", "/planner/compare/fastest?" + mine)
    advised = finding.advice(made, finding.steps_from(made), "")
    for each in advised:
        yield Offered(each.title, each.said, _beside(mine, urlsplit(each.address).query))
    stages = {int(each.step.value) for each in advised if each.step.axis == "zero"} | {made.form.values["zero"]}
    for stage in made.stages:
        if stage.zero not in stages:
            title, now = (each.label if each.zero else "no sharding" for each in (stage, made.stage))
            other = query_text({**made.typed, "zero": str(stage.zero)})
            said = f"a step of {seconds_text(stage.step_seconds or 0.0)}, {bytes_text(stage.total)} on the fullest GPU"
            said += "" if stage.fits else ", which is too much"
            yield Offered(capital(f"{title} instead of {now}"), said, _beside(mine, other))


def names_of(one: Plan, other: Plan) -> tuple[str, str]:
    """What tells two plans from each other: the few fields that differ, or else how each divides the GPUs, and before
    that the model or the GPUs where those are others."""
    differ = [name for name in FIELDS if one.form.values[name] != other.form.values[name]]
    if {"model", "parameters", "ranks", "gpu"} & set(differ):
        return f"{one.title}, {saying.division(one)}", f"{other.title}, {saying.division(other)}"
    if len(differ) > MOST_NAMED or set(differ) <= NAMED_BY_DIVISION:
        names = saying.division(one), saying.division(other)
        if names[0] != names[1]:
            return names
    return _named(one, differ[:MOST_NAMED]), _named(other, differ[:MOST_NAMED])


def _named(made: Plan, differ: list[str]) -> str:
    said = []
    for name in differ:
        value, field = made.form.values[name], FIELDS[name]
        text = field.absent if value is None else "on" if value is True else "off" if value is False else value
        said.append(finding.named(name.replace("_", " ") if name != "zero" else name, str(text)))
    return ", ".join(said)


def query_of(text: str) -> str:
    """What of a pasted address says the plan: all behind its question mark, without a place on the page."""
    return text.rpartition("?")[2].partition("#")[0]


def _given(field: str, place: str, typed: str) -> Given:
    query = query_of(typed)
    form = dict(parse_qsl(query, keep_blank_values=True))
    if not typed:
        return Given(field, place, typed, query, None, "")
    if not form.keys() & FIELDS.keys():
        return Given(field, place, typed, query, None, f"There is no plan in it. Accepted: {_LOOKS_LIKE}.")
    made = service.plan(form)
    error = ""
    if made.form.is_own:
        error = "A plan of which only the size is known takes no known time. Accepted: a plan with a shape."
    return Given(field, place, typed, query, made, error, tuple(_remarks(made)))


def _remarks(made: Plan) -> Iterator[str]:
    """What is shown otherwise than the address says."""
    for name, text in made.errors.items():
        yield f"{name}: {text}"
    for part in made.form.unread:
        near = f" Did it mean {part.near}?" if part.near else ""
        yield f"{part.name}={part.text[:40]}: no field of the planner, left out.{near}"


def _compared(one: Plan, other: Plan, names: list[str]) -> Compared:
    first, second = one.estimate.time.step_seconds or 0.0, other.estimate.time.step_seconds or 0.0
    for_same_batch = one.batch_tokens / other.batch_tokens
    second *= for_same_batch
    parts = terms(one.estimate, other.estimate, (1.0, for_same_batch))
    whole = second - first
    largest = max(parts, key=lambda term: term.saved * whole, default=None)
    share = largest.saved / whole if largest and whole else 0.0
    return Compared(
        one.batch_tokens == other.batch_tokens,
        None if first == second else 0 if first < second else 1,
        max(first, second) / min(first, second),
        is_tie(first, second),
        tie_share(),
        parts,
        beside.between(other.estimate, one.estimate, counted=(for_same_batch, 1.0)),
        tuple(replace(made.stage, label=name) for made, name in zip((one, other), names, strict=True)),
        largest,
        share,
    )
