"""Two plans side by side, each pasted as an address; what is wrong with one is said at its place, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from app.planner import beside, saying, service
from app.planner.fields import FIELDS
from app.planner.made import Plan, StageBar
from app.theory.planner import Term, is_tie, terms, tie_share

NAMES = (("a", "First"), ("b", "Second"))
_LOOKS_LIKE = "an address of the planner, or what stands behind its question mark"


@dataclass(frozen=True)
class Given:
    """One of the two: what was typed, the plan in it if there is one, why there is none, and what of the address is
    shown otherwise than it says."""

    field: str
    name: str
    typed: str
    query: str
    plan: Plan | None
    error: str
    remarks: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The plan in a sentence."""
        return saying.finding(self.plan) if self.plan else ""


@dataclass(frozen=True)
class Compared:
    """How two plans differ by the time a token takes. `faster` is empty where they take exactly as long. Where they
    train different batches a step, the parts of the second's are counted for the batch of the first."""

    has_one_batch: bool
    faster: str
    times: float
    is_tie: bool
    tie_share: float
    terms: tuple[Term, ...]
    apart: beside.Differences
    held: tuple[StageBar, ...]


@dataclass(frozen=True)
class Comparison:
    """The page: the two as given, and where both are plans, how they differ."""

    given: tuple[Given, ...]
    compared: Compared | None

    @property
    def is_wrong(self) -> bool:
        """Whether something was given that is no plan."""
        return any(each.error for each in self.given)


def comparison(typed: dict[str, str]) -> Comparison:
    """The page of two addresses, by "a" and "b"; with neither, an empty form."""
    is_empty = not any(typed.values())
    given = tuple(_given(field, name, typed.get(field, "").strip(), is_empty) for field, name in NAMES)
    plans = [each.plan for each in given if each.plan is not None and not each.error]
    return Comparison(given, _compared(*plans) if len(plans) == len(NAMES) else None)


def query_of(text: str) -> str:
    """What of a pasted address says the plan: all behind its question mark, without a place on the page."""
    return text.rpartition("?")[2].partition("#")[0]


def _given(field: str, name: str, typed: str, is_empty: bool) -> Given:
    query = query_of(typed)
    form = dict(parse_qsl(query, keep_blank_values=True))
    if not typed:
        return Given(field, name, typed, query, None, "" if is_empty else f"Empty. Accepted: {_LOOKS_LIKE}.")
    if not form.keys() & FIELDS.keys():
        return Given(field, name, typed, query, None, f"There is no plan in it. Accepted: {_LOOKS_LIKE}.")
    made = service.plan(form)
    error = ""
    if made.form.is_own:
        error = "A plan of which only the size is known takes no known time. Accepted: a plan with a shape."
    return Given(field, name, typed, query, made, error, tuple(_remarks(made)))


def _remarks(made: Plan) -> Iterator[str]:
    """What is shown otherwise than the address says."""
    for name, text in made.errors.items():
        yield f"{name}: {text}"
    for part in made.form.unread:
        near = f" Did it mean {part.near}?" if part.near else ""
        yield f"{part.name}={part.text[:40]}: no field of the planner, left out.{near}"


def _compared(one: Plan, other: Plan) -> Compared:
    first, second = one.estimate.time.step_seconds or 0.0, other.estimate.time.step_seconds or 0.0
    for_same_batch = one.batch_tokens / other.batch_tokens
    second *= for_same_batch
    return Compared(
        one.batch_tokens == other.batch_tokens,
        "" if first == second else "first" if first < second else "second",
        max(first, second) / min(first, second),
        is_tie(first, second),
        tie_share(),
        terms(one.estimate, other.estimate, (1.0, for_same_batch)),
        beside.between(other.estimate, one.estimate, counted=(for_same_batch, 1.0)),
        tuple(replace(made.stage, label=name) for made, (_, name) in zip((one, other), NAMES, strict=True)),
    )
