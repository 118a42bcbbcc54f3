"""A plan beside what a search found: the finding in a few words, and where one step is longer than another. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.planner.columns import Column, bytes_column, seconds_column
from app.planner.finding import Choice, Option
from app.planner.limits import memory_text
from app.planner.made import Plan
from app.theory.planner import Estimate, Step, choices_of, is_tie, terms, tie_pairs, tie_share
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import profile_of
from app.units import bytes_text
from app.words import listed, lowered, number_in_words

ALIKE = 0.005  # of a step's time: not worth a word
TWICE = 2.0  # from here on it is said how many times as long, below it how many per cent longer
_KINDS = {"compute": "forward", "recompute": "weight", "optimizer": "optimizer", "bubble": "idle"}
_MIDDLE = 50.0  # percent: where no difference stands


@dataclass(frozen=True)
class Difference:
    """A part of a step: how much longer it is in one plan than in another, and the place of its bar in percent."""

    name: str
    kind: str
    text: str
    left: str
    width: str


@dataclass(frozen=True)
class Differences:
    """The parts of two steps: they add up to the steps' own difference, which is the last row. `alike` names the parts
    that differ by nothing one could see."""

    rows: tuple[Difference, ...]
    alike: tuple[str, ...]
    unit: str
    other: Option | None  # where it was found by a search

    @property
    def said(self) -> str:
        """All of it in a sentence."""
        return ", ".join(f"{row.name} {row.text}" for row in self.rows)


@dataclass(frozen=True)
class Table:
    """The plan of the form and those found, a row each: seconds, bytes and MFU in one notation a column."""

    step: Column
    held: Column
    mfu: tuple[str, ...]
    times: tuple[str, ...]
    ties: tuple[bool, ...] = ()  # with the first option


def is_fastest(made: Plan, choice: Choice) -> bool:
    """Whether the form's plan is the first that the search found."""
    if not choice.options:
        return False
    best, mine = choice.options[0].candidate.estimate, made.estimate
    return (best.time, best.memory) == (mine.time, mine.memory)


def verdict(made: Plan, choice: Choice) -> str:
    """How the form's plan does beside the fastest that fits."""
    if not choice.options:
        return f"{made.title}: no plan fits"
    if not made.stage.fits:
        return "This plan does not fit"
    room = f"fits in {memory_text(made.form.values)}"
    if is_fastest(made, choice):
        return f"This is the fastest plan that {room}"
    seconds, best = made.estimate.time.step_seconds or 0.0, choice.options[0].candidate.step_seconds
    fastest = "the fastest that fits"
    if made.ranks < made.form.asked_ranks:
        fastest += f" on all {made.form.asked_ranks:,} GPUs"
    if is_tie(seconds, best):
        return f"A tie with {fastest}: {apart(seconds, best)}"
    ratio = seconds / best
    if ratio >= TWICE:
        return f"{ratio:.1f} × as long a step as {fastest}"
    return f"{100 * (ratio - 1):.0f} % slower than {fastest}" if ratio > 1 else f"Faster than any plan that {room}"


def apart(seconds: float, other: float) -> str:
    """How far apart two steps are, in words: "0.3 % slower"."""
    ratio = seconds / other
    if abs(ratio - 1) < 0.0005:
        return "the same step time"
    return f"{100 * abs(ratio - 1):.1f} % {'slower' if ratio > 1 else 'faster'}"


@dataclass(frozen=True)
class Tie:
    """Plans too close in time to say which is fastest, and which of them to take for something else."""

    options: tuple[Option, ...]
    roomiest: Option
    left_bytes: float  # of a GPU's memory, by the roomiest
    simplest: Option  # divides by the fewest axes
    software: tuple[str, ...]

    @property
    def said(self) -> str:
        """Why nobody knows which is fastest, and by what to choose instead, in two sentences."""
        last, first = (self.options[place].candidate.step_seconds for place in (-1, 0))
        apart = f"The first {number_in_words(len(self.options))} lie within {100 * (last / first - 1):.1f} %"
        off = f"in half of {tie_pairs()} pairs of published runs we are off by {100 * tie_share():.1f} % or more"
        roomiest = f"{self.roomiest.axes} leaves the most memory, {bytes_text(self.left_bytes)}"
        is_both = self.simplest is self.roomiest
        simplest = f"{'is also' if is_both else f'{lowered(self.simplest.axes)} is'} the simplest to set up"
        runs_in = f"{'all run' if len(self.software) == 1 else 'they run'} in {listed(self.software, 'or')}"
        unknown = f"{apart}, but {off} between the two, so which is fastest is not known."
        return f"{unknown} {roomiest}, and {simplest}; {runs_in}."


def tie(made: Plan, choice: Choice) -> Tie | None:
    """What is a tie with the fastest that was found; None where nothing is."""
    tied = tuple(each for each in choice.options if each.candidate in choice.result.tied)
    if len(tied) < 2:
        return None
    roomiest = min(tied, key=lambda each: each.candidate.memory_bytes)
    simplest = min(tied, key=lambda each: choices_of(each.candidate.request))
    software = tuple(dict.fromkeys(PROFILES[profile_of(each.candidate.request)].title for each in tied))
    return Tie(tied, roomiest, made.usable_bytes - roomiest.candidate.memory_bytes, simplest, software)


def is_tied(made: Plan, choice: Choice) -> bool:
    """Whether the form's plan is too close to the fastest to say which is faster."""
    seconds = made.estimate.time.step_seconds
    return bool(choice.options) and bool(seconds) and is_tie(seconds or 0.0, choice.options[0].candidate.step_seconds)


def is_behind(made: Plan, choice: Choice) -> bool:
    """Whether there is a fastest plan that is another one than the form's."""
    return bool(choice.options) and not is_fastest(made, choice)


def runner_up(choice: Choice) -> Differences | None:
    """The first plan found beside the second; None where there is no second."""
    if len(choice.options) < 2:
        return None
    return against(choice.options[0].candidate.estimate, choice.options[1])


def against(one: Estimate, other: Option) -> Differences:
    """A plan beside one that was found."""
    return between(one, other.candidate.estimate, other)


def between(
    one: Estimate, other: Estimate, option: Option | None = None, counted: tuple[float, float] = (1.0, 1.0)
) -> Differences:
    """Where a step of one plan is longer than that of another, the largest difference first; `counted`: see `terms`."""
    whole = counted[0] * (one.time.step_seconds or 0.0) - counted[1] * (other.time.step_seconds or 0.0)
    parts = sorted(terms(one, other, counted), key=lambda term: -abs(term.saved))
    most = max(abs(whole), *(abs(term.saved) for term in parts)) or 1.0
    drawn = [term for term in parts if abs(term.saved) >= ALIKE * most]
    seconds = [-term.saved for term in drawn] + [whole]
    column = seconds_column([abs(each) for each in seconds])
    names = [(term.name.capitalize(), _KINDS.get(term.name, "communication")) for term in drawn] + [("Step", "whole")]
    rows = (
        Difference(name, kind, _signed(value, text), *_bar(value / most))
        for (name, kind), value, text in zip(names, seconds, column.texts, strict=True)
    )
    return Differences(tuple(rows), tuple(term.name for term in parts if term not in drawn), column.unit, option)


def _signed(value: float, text: str) -> str:
    return text if text == "0" or text.startswith("<") else f"{'+' if value > 0 else '−'}{text}"


def _bar(share: float) -> tuple[str, str]:
    """Left end and width in percent: to the right of the middle what is longer."""
    width = abs(share) * _MIDDLE
    return f"{_MIDDLE - (width if share < 0 else 0.0):.2f}", f"{width:.2f}"


def steps_table(steps: Sequence[Step]) -> Table:
    """Plans one step away; one that cannot be has zeros, which nobody is shown."""
    seconds, held = (
        [value or 0.0 for value in each]
        for each in ([step.step_seconds for step in steps], [step.memory_bytes for step in steps])
    )
    return Table(seconds_column(seconds), bytes_column(held), (), ())


def table(made: Plan, options: Sequence[Option]) -> Table:
    """The form's plan first, then the options."""
    now = made.estimate.time.step_seconds or 0.0
    seconds = [now, *(option.candidate.step_seconds for option in options)]
    held = [made.stage.total, *(option.candidate.memory_bytes for option in options)]
    shares = [made.estimate.mfu or 0.0, *(option.candidate.estimate.mfu or 0.0 for option in options)]
    return Table(
        seconds_column(seconds),
        bytes_column(held),
        tuple(f"{100 * share:.1f}" for share in shares),
        tuple(f"{each / now:.2f}" for each in seconds) if now else (),
        tuple(is_tie(each, seconds[1]) for each in seconds) if now and options else (),
    )
