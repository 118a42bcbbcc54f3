"""Judging a free configuration by the theory library: is it valid, does it fit, how far from the best, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Literal

from pydantic import BaseModel

from app.grading.grade import Grade, invalid
from app.theory.planner import Estimate, PlanTraining, estimate, parse_estimate_request
from app.units import bytes_text, digits, scaled
from labs.spec import Parallel, SpecError
from labs.violations import Violation

TOO_BIG_CREDIT = 0.1  # a valid plan that does not fit
LEAST_CREDIT = 0.15  # a plan that fits, however slow: one that takes twice the best one's time, or longer
MOST_COMBINATIONS = 20_000

SECTIONS: Mapping[str, type[BaseModel]] = {"parallel": Parallel, "training": PlanTraining}
DEGREES = ("data", "tensor", "pipeline", "context")
# What people write for a field, besides its name.
SHORT = {
    "t": "tensor",
    "tp": "tensor",
    "p": "pipeline",
    "pp": "pipeline",
    "d": "data",
    "dp": "data",
    "z": "zero",
    "b": "micro_batch",
    "mb": "micro_batch",
    "c": "context",
    "cp": "context",
    "ep": "expert",
    "v": "virtual_stages",
    "zero-stage": "zero",
    "stage": "zero",
}
LABELS = {"zero": "ZeRO stage", "micro_batch": "Micro-batch"}
TERMS = {
    "compute_seconds": "computing",
    "recompute_seconds": "recomputing activations",
    "bubble_seconds": "the bubble",
    "exposed_communication_seconds": "exposed communication",
    "optimizer_seconds": "the optimizer's step",
}
# What a step of another plan takes more of, where it is that: what it is called as a mistake.
BY_TERM: Mapping[str, Literal["bubble", "communication"]] = {
    "bubble_seconds": "bubble",
    "exposed_communication_seconds": "communication",
}
# What to learn from a plan, or a layout, that is none.
BROKE_A_RULE = "chose a plan that breaks a rule"
COUNT_GPUS = "Check that the degrees multiply to the GPUs, and divide what they cut"
FILL_LAST = "Check what the fullest GPU holds before you compare times"
COMPONENTS = ("parameters", "gradients", "optimizer", "activations", "temporary")

_PAIR = re.compile(r"([a-z][a-z_-]*)\s*[=:]?\s*([0-9]+|[a-z][a-z0-9-]*)", re.IGNORECASE)
_LIST = re.compile(r"[\[(]?\s*(\w[\w-]*(?:\s*[,;/×]\s*\w[\w-]*)*)\s*[\])]?")


@dataclass(frozen=True)
class Judged:
    """A configuration that is valid, with what it takes."""

    chosen: dict[str, int | str]
    estimate: Estimate

    @property
    def text(self) -> str:
        return ", ".join(f"{name.replace('_', '-')} {value}" for name, value in self.chosen.items())

    @property
    def fits(self) -> bool:
        return self.estimate.memory.fits is not False

    @property
    def memory(self) -> float:
        return self.estimate.memory.per_rank_bytes.total

    @property
    def seconds(self) -> float | None:
        return self.estimate.time.step_seconds


@dataclass(frozen=True)
class ConfigurationQuestion:
    """A plan, and the fields of it that a learner chooses."""

    plan: Mapping[str, Any]
    fields: Mapping[str, tuple[int | str, ...]]
    objective: str
    within: float
    takes_broken: bool = False  # whether a plan that breaks a rule is an answer, a wrong one, or sent back

    @property
    def problem(self) -> str | None:
        """What keeps it from being asked: fields that no plan has, or too many combinations to try."""
        unknown = [name for name in self.fields if _section(name) is None]
        if unknown:
            return f"no field of a plan: {', '.join(unknown)}"
        if prod(map(len, self.fields.values())) > MOST_COMBINATIONS:
            return f"more than {MOST_COMBINATIONS:,} combinations to try"
        return None

    @property
    def key(self) -> dict[str, int | str]:
        return self.best().chosen

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it. Raises ValueError when nothing fits."""
        return self.best().text

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered. Raises ValueError when nothing fits."""
        return self.key_text

    @property
    def labels(self) -> dict[str, str]:
        """What the fields are called on a page, by name."""
        return {name: LABELS.get(name, name.replace("_", " ").capitalize()) for name in self.fields}

    @property
    def written_as(self) -> str:
        """How a plan may be written: its fields, without a value that might be right."""
        return ", ".join(f"{name.replace('_', '-')} …" for name in self.fields)

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        return text

    def read(self, text: str) -> dict[str, int | str] | str:
        """The fields in `text`: "tensor 8, pipeline 2", "tp8·pp2·dp8", or a list in the fields' order. A text says what
        is wrong instead."""
        names = list(self.fields)
        listed = _LIST.fullmatch(text.strip())
        values = re.split(r"\s*[,;/×]\s*", listed.group(1)) if listed else []
        if len(values) == len(names):
            return {name: _value(value) for name, value in zip(names, values, strict=True)}
        if len(values) > 1 and all(value.isdigit() for value in values):
            return f"A list of {len(values)} values was read; {len(names)} are asked for: {', '.join(names)}."
        found: dict[str, int | str] = {}
        for name, value in self._pairs(text):
            if name not in self.fields:
                return f"{name} is not asked for. Give {', '.join(names)}."
            if found.setdefault(name, value) != value:
                return f"There are two values for {name}."
        missing = [name for name in names if name not in found]
        return f"Missing: {', '.join(missing)}." if missing else {name: found[name] for name in names}

    def filled(self, text: str) -> dict[str, str]:
        """As much of it as can be read, for the fields of a form."""
        chosen = self.read(text)
        pairs = self._pairs(text) if isinstance(chosen, str) else list(chosen.items())
        return {name: str(value) for name, value in pairs if name in self.fields}

    def _pairs(self, text: str) -> list[tuple[str, int | str]]:
        """Names and values, a name in full however it was shortened."""
        return [(_name(name.lower()), _value(value)) for name, value in _PAIR.findall(text)]

    def judged(self, chosen: Mapping[str, int | str]) -> Judged:
        """Raises SpecError naming every violated field."""
        return Judged(dict(chosen), estimate(parse_estimate_request(_with(self.plan, chosen))))

    def best(self) -> Judged:
        """The best of all combinations that fits. Raises ValueError when none does."""
        return _best(json.dumps({**self.__dict__, "takes_broken": False}))

    @property
    def gpus(self) -> int | None:
        """How many GPUs there are; None where the plan leaves that open."""
        cluster = self.plan.get("cluster", {})
        return int(cluster["nodes"] * cluster.get("gpus_per_node", 8)) if cluster.get("nodes") else None

    def degrees(self, chosen: Mapping[str, int | str]) -> dict[str, int]:
        """The degrees of every axis in a plan."""
        fixed = {**dict.fromkeys(DEGREES, 1), **self.plan.get("parallel", {}), **chosen}
        return {name: int(fixed[name]) for name in DEGREES}

    def combinations(self) -> Iterator[Judged]:
        """Every valid combination of the values of the fields."""
        for values in product(*self.fields.values()):
            chosen = dict(zip(self.fields, values, strict=True))
            if self.gpus is not None and prod(self.degrees(chosen).values()) != self.gpus:
                continue
            try:
                yield self.judged(chosen)
            except SpecError:
                continue

    def cost(self, judged: Judged) -> float:
        seconds = judged.seconds
        return judged.memory if self.objective == "memory" or seconds is None else seconds

    def invalid(self, text: str) -> str:
        """Why a plan cannot be judged: what cannot be read, or a rule that it breaks; nothing where it can."""
        read = self._mine(text)
        return read if isinstance(read, str) else ""

    def unreadable(self, text: str) -> str:
        """Why a plan cannot be taken even as a wrong one: it, or a value in it, is none. Nothing where it can."""
        chosen = self.read(text)
        if isinstance(chosen, str):
            return chosen
        try:
            self.judged(chosen)
        except SpecError as error:
            return "" if all(map(_is_rule, error.violations)) else self.invalid(text)
        return ""

    def _mine(self, text: str) -> Judged | str:
        """The plan in `text` with what it takes; a text says what is wrong instead."""
        chosen = self.read(text)
        if isinstance(chosen, str):
            return chosen
        try:
            return self.judged(chosen)
        except SpecError as error:
            return "That plan is not valid. " + " ".join(str(each) for each in error.violations)

    def grade(self, text: str) -> Grade:
        """What a learner's configuration is worth; one that breaks a rule is told which, and counts only where such
        plans are taken."""
        mine = self._mine(text)
        if isinstance(mine, str):
            if self.takes_broken and not self.unreadable(text):
                return Grade("wrong", 0.0, mine, misconception="breaks-a-rule", did=BROKE_A_RULE, learn=COUNT_GPUS)
            return invalid(mine)
        best = self.best()
        if not mine.fits:
            return Grade(
                "wrong",
                TOO_BIG_CREDIT,
                too_big(mine, best),
                misconception="does-not-fit",
                title="does not fit",
                did="chose a plan that does not fit",
                learn=FILL_LAST,
            )
        ratio = self.cost(mine) / self.cost(best)
        if ratio <= 1 + self.within:
            return Grade("correct", 1.0, self._verdict(mine, best, ratio))
        credit = round(max(LEAST_CREDIT, 2 - ratio), 2)
        name = "larger than need be" if self.objective == "memory" else "slower than need be"
        verdict, did = self._verdict(mine, best, ratio), f"chose a plan that is {name}"
        return Grade("wrong", credit, verdict, misconception="far-from-best", title=name, did=did)

    def _verdict(self, mine: Judged, best: Judged, ratio: float) -> str:
        said = f"It fits, in {of_capacity(mine)}"
        if mine.seconds is None or best.seconds is None:
            return f"{said}; the least is {bytes_text(best.memory)}, with {best.text}."
        said += f", and takes {scaled(mine.seconds, 's', 3)} a step"
        if ratio <= 1 + 1e-9:
            return f"{said}: nothing tried is better."
        more = digits(100 * (ratio - 1), 2)
        if self.objective == "memory":
            return f"{said}. The least memory, {bytes_text(best.memory)}, takes {best.text}: yours is {more} % larger."
        told = f"{said}, {more} % longer than {best.text} at {scaled(best.seconds, 's', 3)}"
        return f"{told}. {what_decides(mine, best)}"


def _is_rule(violation: Violation) -> bool:
    """Whether values that are fine by themselves do not go together: a degree and what it divides, or the GPUs."""
    return bool(violation.involves) or violation.field in ("cluster.nodes", "parallel.data")


def deciding_term(mine: Judged, best: Judged) -> str:
    """The term of the step's time in which two plans differ most in the best one's favour."""
    ours, theirs = mine.estimate.time, best.estimate.time
    return max(TERMS, key=lambda name: getattr(ours, name) - getattr(theirs, name))


def what_decides(mine: Judged, best: Judged) -> str:
    """That term in words."""
    ours, theirs = mine.estimate.time, best.estimate.time
    term = deciding_term(mine, best)
    values = f"{scaled(getattr(ours, term), 's', 3)} against {scaled(getattr(theirs, term), 's', 3)}"
    return f"What decides is {TERMS[term]}: {values}."


def bytes_by_component(made: Estimate) -> dict[str, float]:
    """What the fullest rank holds; what is not estimated takes no room."""
    parts = made.memory.per_rank_bytes
    return {name: getattr(parts, name) or 0.0 for name in COMPONENTS}


def too_big(mine: Judged, best: Judged) -> str:
    held = bytes_by_component(mine.estimate)
    largest = max(COMPONENTS, key=held.__getitem__)
    said = f"The fullest rank holds {of_capacity(mine)}; the most of it, {bytes_text(held[largest])}, are {largest}."
    return f"It is valid, but does not fit. {said} The best that does takes {best.text}."


def of_capacity(judged: Judged) -> str:
    capacity = judged.estimate.memory.capacity_bytes
    return f"{bytes_text(judged.memory)} of {bytes_text(capacity)}" if capacity else bytes_text(judged.memory)


@lru_cache(maxsize=256)  # a plan is searched once, not for every answer to it
def _best(described: str) -> Judged:
    judge = ConfigurationQuestion(**json.loads(described))
    fitting = [each for each in judge.combinations() if each.fits]
    if not fitting:
        raise ValueError("no combination of the fields' values is valid and fits")
    return min(fitting, key=lambda each: (judge.cost(each), each.text))


def _section(name: str) -> str | None:
    """The part of a request that a field belongs to."""
    return next((section for section, kind in SECTIONS.items() if name in kind.model_fields), None)


def _with(plan: Mapping[str, Any], chosen: Mapping[str, int | str]) -> dict[str, Any]:
    """The request with the chosen fields put where they belong."""
    made: dict[str, Any] = {**plan, **{section: dict(plan.get(section, {})) for section in SECTIONS}}
    for name, value in chosen.items():
        made[_section(name) or "parallel"][name] = value
    return made


def _name(text: str) -> str:
    """A field's name as written before its value: "tp", "micro-batch", or "ZeRO-" of "ZeRO-1"."""
    word = text.rstrip("-_")
    return SHORT.get(word, word.replace("-", "_"))


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() and len(text) <= 9 else text.lower()
