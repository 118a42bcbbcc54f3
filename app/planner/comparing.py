"""Two plans side by side, each pasted as an address; what is wrong with one is said at its place, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from app.planner import beside, finding, saying, service
from app.planner.fields import FIELDS
from app.planner.made import Plan, StageBar
from app.theory.planner import Term, is_tie, terms, tie_share
from app.units import bytes_text, count_text
from app.words import capital

NAMES = (("a", "First"), ("b", "Second"))
MOST_NAMED = 3  # fields that name two plans by what differs; where more do, how they divide the GPUs names them
NAMED_BY_DIVISION = {"tensor", "pipeline", "context", "expert", "zero"}
NOTABLE = 0.01  # of what the fullest GPU holds: worth a word
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
    """The page: the two as given, and where both are plans, how they differ. `is_same` where they are shown as one
    plan."""

    given: tuple[Given, ...]
    compared: Compared | None
    is_same: bool

    @property
    def is_wrong(self) -> bool:
        """Whether something was given that is no plan."""
        return any(each.error for each in self.given)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What of the two can be compared."""
        return tuple(each.plan for each in self.given if each.plan is not None and not each.error)

    @property
    def title(self) -> str:
        """The finding: which is faster, and by how much."""
        if self.compared is not None:
            return _title(self.compared, *self._by_speed(self.compared))
        if self.is_same:
            return f"{self._not_whole} could not be read whole" if self.remarks else "These two are the same plan"
        return "Compare this plan with another" if self.plans else "Compare two plans"

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What of either address is shown otherwise than it says, each with the place of the plan."""
        return tuple((each.place, remark) for each in self.given for remark in each.remarks)

    @property
    def _not_whole(self) -> str:
        places = [each.place for each in self.given if each.remarks]
        return "Neither plan" if len(places) == len(NAMES) else f"The {places[0].lower()} plan"

    @property
    def said(self) -> str:
        """What makes the difference, and what it costs in memory. Empty where nothing is compared."""
        if self.compared is None:
            return ""
        fast, _ = self._by_speed(self.compared)
        slow = self.plans[1] if self.plans[0] is fast.plan else self.plans[0]
        assert fast.plan is not None, "both are plans"
        more = fast.plan.stage.total - slow.stage.total
        held = f"holds {bytes_text(abs(more))} {'more' if more > 0 else 'less'}"
        is_notable = abs(more) > NOTABLE * fast.plan.stage.total
        return " ".join(_sentences(self.compared, self.plans, held if is_notable else ""))

    @property
    def too_large(self) -> str:
        """Which of the two does not fit, in a sentence; empty where both do."""
        named = [each for each in self.given if each.plan and not each.plan.stage.fits]
        if self.compared is None or not named:
            return ""
        return "Neither fits." if len(named) == len(NAMES) else f"{named[0].title} does not fit."

    def _by_speed(self, compared: Compared) -> tuple[Given, Given]:
        first, second = self.given
        return (second, first) if compared.faster == 1 else (first, second)


def comparison(typed: Mapping[str, str]) -> Comparison:
    """The page of two addresses, by "a" and "b"; one that was sent empty is asked for."""
    given = tuple(_given(field, place, typed.get(field)) for field, place in NAMES)
    plans = Comparison(given, None, False).plans
    both = plans if len(plans) == len(NAMES) else ()
    is_same = bool(both) and both[0].request == both[1].request
    if not both or is_same:
        return Comparison(given, None, is_same)
    named = zip(given, names_of(both[0], both[1]), strict=True)
    given = tuple(replace(each, name=name) for each, name in named)
    return Comparison(given, _compared(both[0], both[1], [each.title for each in given]), False)


def _title(compared: Compared, fast: Given, slow: Given) -> str:
    if compared.is_tie:
        return f"{fast.title} and {slow.name} are a tie"
    percent, times = f"{100 * (compared.times - 1):.0f}\N{NO-BREAK SPACE}%", f"{compared.times:.1f}\N{NO-BREAK SPACE}×"
    is_little = compared.times < beside.TWICE
    if not compared.has_one_batch:
        how_many = f"{percent} more" if is_little else f"{times} as many"
        return f"{fast.title} trains {how_many} tokens a second than {slow.name}"
    return f"{fast.title} is {f'{percent} faster than' if is_little else f'{times} as fast as'} {slow.name}"


def _sentences(compared: Compared, plans: tuple[Plan, ...], held: str) -> Iterator[str]:
    if not compared.has_one_batch:
        first, second = (count_text(each.batch_tokens) for each in plans)
        yield f"A step of the first trains {first} tokens, one of the second {second}."
        yield "Their batches differ, so compare tokens a second."
    if compared.is_tie:
        what = "steps" if compared.has_one_batch else "times for a token"
        yield (
            f"Their {what} differ by {100 * (compared.times - 1):.1f} %, and half of the pairs of published plans are"
            f" off by {100 * compared.tie_share:.1f} % between them: take what leaves more memory, what is simpler, or"
            " what you run already."
        )
        if held:
            yield f"The first named {held}."
    elif compared.largest:
        share = f"{100 * compared.share:.0f} %" if compared.share <= 1 else "more than all"
        so = f", and the faster plan's fullest GPU {held}" if held else ""
        yield f"{capital(compared.largest.name)} makes {share} of the difference{so}."
    elif held:
        yield f"The faster plan's fullest GPU {held}."


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
        text = field.absent if value is None else made.typed[name] if name not in made.errors else value
        said.append(finding.named(name.replace("_", " "), str(text)))
    return ", ".join(said)


def query_of(text: str) -> str:
    """What of a pasted address says the plan: all behind its question mark, without a place on the page."""
    return text.rpartition("?")[2].partition("#")[0]


def _given(field: str, place: str, sent: str | None) -> Given:
    typed = (sent or "").strip()
    query = query_of(typed)
    form = dict(parse_qsl(query, keep_blank_values=True))
    if not typed:
        missing = "" if sent is None else f"There is nothing in it. Accepted: {_LOOKS_LIKE}."
        return Given(field, place, typed, query, None, missing)
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
