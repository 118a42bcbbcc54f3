"""A layout: the degrees of the axes and their order over a cluster's GPUs, judged by the theory library.

An answer names the axes with their degrees from the innermost on: "tensor 8, context 1, data 32, pipeline 2".
Neighbours on the first have neighbouring ranks, and so share a node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, Literal

from app.grading.grade import Grade, invalid
from app.grading.questions.configuration import (
    BY_TERM,
    COUNT_GPUS,
    FILL_LAST,
    SHORT,
    Judged,
    bytes_by_component,
    deciding_term,
    what_decides,
)
from app.theory.mesh import AXES, Axis, Mesh
from app.theory.planner import Estimate, estimate, parse_estimate_request, parse_search_request, search
from app.theory.planner.asking import USABLE
from app.theory.planner.groups import LaidAxis, LaidCluster, laid_axes, lay
from app.units import bytes_text, digits, scaled
from app.words import listed
from labs.spec import SpecError

STEEPNESS = 3  # credit falls with this power of how many times as long as the best a step takes
# What is asked is which axis lies where and whether it fits: who misses that has little, whatever else is in order.
CROSSING_CREDIT = 0.2  # at most, of one whose blocking groups leave the node and that is slower for it
TOO_BIG_CREDIT = 0.1  # of one that does not fit
MOST_DEGREE = 100_000
LOOKED_AT = 10  # layouts of a search that are tried with the question's plan
WITHIN_A_NODE: tuple[Axis, ...] = ("tensor", "context")  # compute waits for them in every layer

Mistake = Literal["gpus", "divides", "memory", "crossing", "bubble", "communication", "slower"]
# What a layout can be wrong in, the first that holds of it: what it is called, by what content calls it.
MISTAKES: Mapping[Mistake, str] = {
    "gpus": "a layout for other GPUs than there are",
    "divides": "a layout that does not divide",
    "memory": "a layout that does not fit",
    "crossing": "a blocking group over the network",
    "bubble": "a layout with too much bubble",
    "communication": "a layout with too much exposed communication",
    "slower": "a layout that is slower than need be",
}

_LEARN: Mapping[Mistake, str] = {
    "gpus": COUNT_GPUS,
    "divides": COUNT_GPUS,
    "memory": FILL_LAST,
    "crossing": "Keep tensor parallelism on NVLink, inside the node",
    "bubble": "Leave each pipeline enough micro-batches to fill it",
    "communication": "Look for what a step waits for on the network",
}

_PAIR = re.compile(r"([a-z]+)[\s,=:×-]*(\d+)")


@dataclass(frozen=True)
class Layout:
    """Degrees by axis, from the innermost on."""

    degrees: tuple[tuple[Axis, int], ...]

    @property
    def order(self) -> tuple[Axis, ...]:
        return tuple(axis for axis, _ in self.degrees)

    @property
    def gpus(self) -> int:
        return prod(degree for _, degree in self.degrees)

    @property
    def mesh(self) -> Mesh:
        return Mesh(**dict(self.degrees), order=self.order)

    @property
    def text(self) -> str:
        """As it is stored."""
        return ", ".join(f"{axis} {degree}" for axis, degree in self.degrees)

    @property
    def said(self) -> str:
        """As a person reads it: what is split at all."""
        split = [f"{axis} {degree:,}" for axis, degree in self.degrees if degree > 1]
        return ", then ".join(split) or "one GPU"


@dataclass(frozen=True)
class Reason:
    """Something that a layout keeps to or breaks, with its figure."""

    text: str
    held: bool


@dataclass(frozen=True)
class JudgedLayout:
    """A layout that can be run, with what it takes."""

    layout: Layout
    estimate: Estimate
    cluster: LaidCluster
    usable_bytes: float

    @property
    def seconds(self) -> float:
        seconds = self.estimate.time.step_seconds
        assert seconds is not None, "a layout's plan names a GPU"
        return seconds

    @property
    def held_bytes(self) -> float:
        return self.estimate.memory.per_rank_bytes.total

    @property
    def fits(self) -> bool:
        return self.held_bytes <= self.usable_bytes

    @property
    def crossing(self) -> tuple[LaidAxis, ...]:
        """The axes that compute waits for in every layer and that reach over nodes."""
        return tuple(each for each in self.cluster.axes if each.name in WITHIN_A_NODE and not each.is_inside)

    @property
    def in_a_layer(self) -> float:
        """For how many layers and micro-batches of a step a rank waits."""
        layers = max(stage.layers for stage in self.estimate.memory.by_stage)
        return layers * float(self.estimate.pipeline.micro_batches or 1)


@dataclass(frozen=True)
class LayoutQuestion:
    """A request without degrees, on a cluster of full nodes: `within` of the best step counts as right. `cures` has the
    card to read for each of `MISTAKES`."""

    plan: Mapping[str, Any]
    within: float
    cures: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        return int(self.plan["cluster"]["nodes"]) * self.per_node

    @property
    def per_node(self) -> int:
        return int(self.plan["cluster"]["gpus_per_node"])

    @property
    def key(self) -> dict[str, int]:
        """The degrees of the best, in their order."""
        return dict(self.best().layout.degrees)

    @property
    def key_text(self) -> str:
        """What is best, as a person reads it."""
        best = self.best()
        return f"{best.layout.said}: {scaled(best.seconds, 's', 3)} a step, {bytes_text(best.held_bytes)} on a GPU"

    @property
    def answer_text(self) -> str:
        """What is best, as it would be answered."""
        return self.best().layout.text

    @property
    def example(self) -> str:
        """Some layout, right or not: how it may be written."""
        return ", ".join(f"{axis} {degree}" for axis, degree in zip(AXES, (2, 1, self.gpus // 4, 2), strict=True))

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        read = self.read(text)
        return text if isinstance(read, str) else read.said

    def read(self, text: str) -> Layout | str:
        """The layout in `text`: axes with their degrees, the innermost first; one that is not named is not split, and
        stands last. A text says what is wrong instead."""
        found: dict[Axis, int] = {}
        for name, degree in _PAIR.findall(text.lower()):
            axis = next((each for each in AXES if each == SHORT.get(name, name)), None)
            if axis is None:
                return f"{name[:40]} is no axis. Accepted: {', '.join(AXES)}."
            if axis in found:
                return f"{axis} has two places."
            if not 1 <= int(degree[:9]) <= MOST_DEGREE:
                return f"{axis} {degree[:9]}: a degree is 1 to {MOST_DEGREE:,}."
            found[axis] = int(degree[:9])
        if not found:
            return f"No axis has a degree yet. Write it as {self.example}."
        return Layout((*found.items(), *((axis, 1) for axis in AXES if axis not in found)))

    def filled(self, text: str) -> Layout | None:
        """The layout of a form: None where nothing was placed yet, or it cannot be read."""
        read = self.read(text)
        return None if isinstance(read, str) else read

    def drawn(self, layout: Layout | None) -> LaidCluster:
        """The cluster with where a layout's groups lie, before anything of it is judged."""
        mesh = layout.mesh if layout else Mesh()
        return lay(self.gpus, self.per_node, laid_axes(mesh, self.per_node, None))

    def figured(self, layout: Layout) -> LaidCluster:
        """The cluster with what each axis of a layout takes; of one that breaks a rule only where it lies."""
        return self.drawn(layout) if self._broken(layout) else self.judged(layout).cluster

    def judged(self, layout: Layout) -> JudgedLayout:
        """Raises SpecError naming every violated field."""
        return _judged(self._described, layout)

    @property
    def _described(self) -> str:
        """What its figures depend on, to keep them by."""
        return json.dumps({"plan": self.plan, "within": self.within}, sort_keys=True)

    def estimated(self, layout: Layout) -> JudgedLayout:
        """As `judged`, computed anew."""
        made = estimate(parse_estimate_request(self._request(layout)))
        capacity = made.memory.capacity_bytes
        assert capacity is not None, "a layout's plan names a GPU"
        cluster = lay(self.gpus, self.per_node, laid_axes(layout.mesh, self.per_node, made))
        return JudgedLayout(layout, made, cluster, USABLE * capacity)

    def _request(self, layout: Layout) -> dict[str, Any]:
        parallel = {**self.plan.get("parallel", {}), **dict(layout.degrees), "order": list(layout.order)}
        parallel["sequence_parallel"] = parallel["tensor"] > 1
        if parallel["pipeline"] == 1:
            parallel.pop("schedule", None)
        return {**self.plan, "parallel": parallel}

    def best(self) -> JudgedLayout:
        """The fastest that the search finds for the cluster. Raises ValueError where nothing fits."""
        return _best(self._described)

    def values(self, text: str) -> dict[str, int] | None:
        """What expressions see of an answer as `layout`: degrees, their product, and over how many nodes the groups of
        an axis reach with how many GPUs on each. None where it is none."""
        layout = self.filled(text)
        if layout is None:
            return None
        found: dict[str, int] = dict(layout.degrees)
        found |= {"gpus": layout.gpus, "zero": int(self.plan.get("parallel", {}).get("zero", 0))}
        for each in laid_axes(layout.mesh, self.per_node, None):
            found |= {f"{each.name}_nodes": each.nodes, f"{each.name}_per_node": each.size // each.nodes}
        return found

    def grade(self, text: str) -> Grade:
        """What a layout is worth: nothing where it breaks a rule, little where it does not fit or where what every
        layer waits for crosses nodes, else the less the longer a step takes than the best one."""
        layout = self.read(text)
        if isinstance(layout, str):
            return invalid(layout)
        broken = self._broken(layout)
        if broken:
            name, message = broken
            return self._wrong(name, 0.0, message)
        mine, best = self.judged(layout), self.best()
        if not mine.fits:
            return self._wrong("memory", TOO_BIG_CREDIT, f"{_memory(mine)} {_largest(mine)} {_best_in_words(best)}")
        ratio = mine.seconds / best.seconds
        if ratio <= 1 + self.within:
            return Grade("correct", 1.0, self._compared(mine, best))
        why, credit = self._why_slower(mine, best), ratio**-STEEPNESS
        credit = round(min(credit, CROSSING_CREDIT) if why == "crossing" else credit, 2)
        return self._wrong(why, credit, self._compared(mine, best))

    def _wrong(self, name: Mistake, credit: float, message: str) -> Grade:
        what = MISTAKES[name]
        return Grade(
            "wrong",
            credit,
            message,
            misconception=name,
            title=what,
            cure=self.cures.get(name),
            did=f"chose {what}",
            learn=_LEARN.get(name, ""),
        )

    def _broken(self, layout: Layout) -> tuple[Mistake, str] | None:
        """(mistake, what it is) of a layout that cannot be run."""
        if layout.gpus != self.gpus:
            return "gpus", self._product(layout)
        try:
            self.judged(layout)
        except SpecError as error:
            return "divides", " ".join(each.message for each in error.violations)
        return None

    def _product(self, layout: Layout) -> str:
        return f"{_factors(layout)} = {layout.gpus:,} GPUs, and there are {self.gpus:,}."

    def _compared(self, mine: JudgedLayout, best: JudgedLayout) -> str:
        ratio, said = mine.seconds / best.seconds, f"A step takes {scaled(mine.seconds, 's', 3)}"
        if ratio <= 1 + 1e-9:
            return f"{said}: nothing the search found is faster."
        more = digits(100 * (ratio - 1), 2)
        told = f"{said}, {more} % longer than {best.layout.said} at {scaled(best.seconds, 's', 3)}"
        return f"{told}. {what_decides(_as_plan(mine), _as_plan(best))}"

    def _why_slower(self, mine: JudgedLayout, best: JudgedLayout) -> Mistake:
        if mine.crossing:
            return "crossing"
        return BY_TERM.get(deciding_term(_as_plan(mine), _as_plan(best)), "slower")

    def reasons(self, text: str) -> tuple[Reason, ...]:
        """What an answer keeps to and what it breaks, each with its figure."""
        layout = self.filled(text)
        if layout is None:
            return ()
        fills = layout.gpus == self.gpus
        found = [Reason(self._product(layout) if not fills else f"{_factors(layout)} = all {self.gpus:,} GPUs.", fills)]
        broken = self._broken(layout)
        if broken:
            return (*found, *([Reason(broken[1], False)] if broken[0] == "divides" else []))
        mine, best = self.judged(layout), self.best()
        found.append(Reason("Layers, heads, sequence and batch share out evenly.", True))
        found.append(Reason(_memory(mine), mine.fits))
        found += [_crossing(mine, axis) for axis in mine.cluster.axes if axis.size > 1]
        if not mine.fits:
            return tuple(found)
        return (*found, Reason(self._compared(mine, best), mine.seconds <= (1 + self.within) * best.seconds))


def _factors(layout: Layout) -> str:
    return " × ".join(f"{axis} {degree:,}" for axis, degree in layout.degrees if degree > 1) or "1"


def _memory(judged: JudgedLayout) -> str:
    held, usable = bytes_text(judged.held_bytes), bytes_text(judged.usable_bytes)
    return f"The fullest GPU holds {held} of the {usable} that a plan may take, nine tenths of its memory."


def _largest(judged: JudgedLayout) -> str:
    held = bytes_by_component(judged.estimate)
    largest = max(held, key=held.__getitem__)
    return f"The most of it, {bytes_text(held[largest])}, are {largest}."


def _best_in_words(best: JudgedLayout) -> str:
    return f"The search finds {best.layout.said}, with {bytes_text(best.held_bytes)}."


def _crossing(judged: JudgedLayout, axis: LaidAxis) -> Reason:
    """Where an axis lies and what it costs: of one that every layer waits for, for a layer as well."""
    where = "within a node" if axis.is_inside else f"over {axis.nodes:,} nodes"
    said = f"{axis.name.capitalize()} {axis.size:,} {where}: {scaled(axis.seconds, 's', 3)} of collectives in a step"
    if axis.name in WITHIN_A_NODE:
        said += f", about {scaled(axis.seconds / judged.in_a_layer, 'ms', 3)} for each layer and micro-batch"
    return Reason(f"{said}, {scaled(axis.exposed_seconds, 's', 3)} not hidden.", axis not in judged.crossing)


def _as_plan(judged: JudgedLayout) -> Judged:
    return Judged(dict(judged.layout.degrees), judged.estimate)


@lru_cache(maxsize=512)  # an answer is judged when it is given, graded and shown
def _judged(described: str, layout: Layout) -> JudgedLayout:
    return LayoutQuestion(**json.loads(described)).estimated(layout)


@lru_cache(maxsize=256)  # a cluster is searched once, not for every answer
def _best(described: str) -> JudgedLayout:
    question = LayoutQuestion(**json.loads(described))
    training, parallel = dict(question.plan["training"]), question.plan.get("parallel", {})
    axes = {
        "micro_batch": [training.pop("micro_batch", 1)],
        "recompute": [training.pop("recompute", "none")],
        "zero": [parallel.get("zero", 0)],
        "schedule": [parallel.get("schedule", "1f1b")],
        "virtual_stages": [1],
        "expert": [1],
    }
    asked = {**question.plan, "training": training, "axes": axes, "distinct": "layout", "limit": LOOKED_AT}
    asked.pop("parallel", None)
    found = [question.judged(_layout(each.parallel)) for each in search(parse_search_request(asked)).best]
    fitting = [each for each in found if each.fits]
    if not fitting:
        raise ValueError(f"no layout of {listed(AXES)} fits these GPUs")
    return min(fitting, key=lambda each: each.seconds)


def _layout(parallel: Any) -> Layout:
    return Layout(tuple((axis, getattr(parallel, axis)) for axis in AXES))
