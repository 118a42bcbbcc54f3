"""A number as a textbook counts it beside the engine's, and what closed formulas take of a plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from markupsafe import Markup

from app.content.live import live_link
from app.core.errors import SpecError
from app.planner.made import Plan
from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import Evaluation, Value, evaluate
from app.theory.mesh import Mesh
from app.theory.planner.software import OPEN_LAYOUT
from app.units import bytes_text, count_text, scaled, seconds_text
from labs.spec import Model

ALIKE = 0.005  # of a number: what nobody explains
_UNIT = {"bytes": "GB", "seconds": "s", "fraction": "%"}


@dataclass(frozen=True)
class Line:
    """A number of the textbook and the engine's beside it, in SI base units, and why they differ. `evaluation` is none
    where the number is read off others; `dimension` is of both; `besides` says more of the textbook's."""

    name: str
    value: float
    dimension: str
    why: str
    engine: float | None = None
    evaluation: Evaluation | None = None
    besides: str = ""

    @property
    def differs(self) -> bool:
        """Whether the engine says otherwise, by more than one would write."""
        return self.engine is None or abs(self.engine - self.value) > ALIKE * abs(self.value)

    @property
    def text(self) -> str:
        """The textbook's number."""
        return _text(self.value, self.dimension)

    @property
    def engine_text(self) -> str:
        """The engine's number; empty where it has none that is alike."""
        return "" if self.engine is None else _text(self.engine, self.dimension)

    @property
    def html(self) -> Markup:
        """The textbook's number as a link to where it comes from, if it is one formula's."""
        if self.evaluation is None:
            return Markup('<span class="num">{}</span>').format(self.text)
        return live_link(self.text, self.evaluation, _UNIT.get(self.dimension, ""))

    def to_json(self) -> dict[str, object]:
        """The line as JSON data."""
        source = self.evaluation
        formula = {"formula": source.formula.name, "inputs": dict(source.inputs)} if source else {"formula": None}
        numbers = {"dimension": self.dimension, "textbook": self.value, "engine": self.engine}
        return {"name": self.name, **numbers, **formula, "why": self.why}


@dataclass(frozen=True)
class Section:
    """Lines about one thing."""

    title: str
    lines: tuple[Line, ...]

    @property
    def reasons(self) -> tuple[tuple[tuple[Line, ...], str], ...]:
        """Lines that follow each other and differ for one reason, with that; empty where the engine says the same."""
        runs = ((why, tuple(lines)) for why, lines in groupby(self.lines, lambda line: line.why))
        return tuple((lines, why if any(line.differs for line in lines) else "") for why, lines in runs)


def by_formula(name: str, formula: str, why: str, engine: float | None = None, **inputs: Value) -> Line:
    """A line of a registered formula. Raises SpecError where its inputs are not what it takes."""
    made = evaluate(FORMULAS.by_name[formula], inputs)
    return Line(name, made.value, made.formula.dimension, why, engine, made)


# By schedule, the formula of its idle time between equal stages.
BUBBLES = {"gpipe": "bubble", "1f1b": "bubble", "interleaved": "interleaved_bubble", "zero-bubble": "zero_bubble"}


def ideal_bubble(made: Plan, asked: str = "fraction") -> Evaluation | None:
    """Idle time of equal stages that do nothing but compute, as a `fraction` of both or the `overhead` over compute.
    None without a pipeline, and of a schedule without a formula."""
    values, micro_batches = made.form.values, made.estimate.pipeline.micro_batches
    formula = BUBBLES.get(values["schedule"])
    if made.form.is_own or values["pipeline"] == 1 or formula is None or micro_batches is None:
        return None
    inputs: dict[str, Value] = {"stages": values["pipeline"], "micro_batches": micro_batches, "asked": asked}
    if formula == "interleaved_bubble":
        inputs["virtual_stages"] = values["virtual_stages"]
    return evaluate(FORMULAS.by_name[formula], inputs)


@dataclass(frozen=True)
class Asked:
    """A plan and what the formulas take of it: sizes of a stage, links at their whole rates."""

    made: Plan
    shape: Model
    values: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self.made.form.values)

    def axis(self, name: str) -> int:
        return int(self.values[name])

    @property
    def layout(self) -> str:
        """Bytes of a parameter's state: as typed, or those of ZeRO's paper, with which interviews count."""
        return str(self.values["layout"] or OPEN_LAYOUT)

    @property
    def replicas(self) -> int:
        """Ranks that hold the same and share it out by ZeRO."""
        return int(self.values["shard"] or self.made.form.data * self.axis("context"))

    @property
    def micro_batches(self) -> int:
        count = self.made.estimate.pipeline.micro_batches
        assert count is not None, "a plan with a shape has a step"
        return count

    @property
    def in_flight(self) -> float:
        """Micro-batches that the first stage holds at once."""
        return self.made.estimate.memory.by_stage[0].in_flight_micro_batches

    @property
    def stage_layers(self) -> int:
        return -(-self.shape.layers // self.axis("pipeline"))

    @property
    def tokens(self) -> int:
        """Of a micro-batch."""
        return self.axis("micro_batch") * self.sequence

    @property
    def sequence(self) -> int:
        return self.made.request.training.sequence // self.axis("context")

    @property
    def stage_parameters(self) -> float:
        return self.made.size / (self.axis("tensor") * self.axis("pipeline"))

    def ring_rate(self) -> float | None:
        """Bytes a second that a ring over the replicas finds; None where nodes hold unequal parts of it."""
        (inside, between), per_node, tensor = self.made.link_rates, self.made.form.gpus_per_node, self.axis("tensor")
        if Mesh(tensor=tensor, data=self.replicas).nodes_spanned("data", per_node) == 1:
            return inside
        inputs: dict[str, Value] = {
            "ranks": self.replicas,
            "ranks_per_node": min(self.replicas, max(1, per_node // tensor)),
        }
        links: dict[str, Value] = {
            "bytes_per_second": inside,
            "nic_bytes_per_second": between,
            "nics_per_node": per_node,
        }
        try:
            return evaluate(FORMULAS.by_name["ring_bandwidth"], inputs | links).value
        except SpecError:
            return None

    def data_parallel(self) -> Evaluation:
        """Bytes a GPU sends in a step for its replicas to agree."""
        zero = self.axis("zero")
        sizes = {"size_bytes": 2 * self.stage_parameters, "ranks": self.replicas, "accumulation": self.micro_batches}
        strategy = f"zero-{zero}" if zero else "ddp"
        return evaluate(FORMULAS.by_name["data_parallel_bytes"], {**sizes, "strategy": strategy})

    def activations(self, attention: str, micro_batch: int) -> Evaluation:
        """What a stage's layers keep of one micro-batch."""
        return evaluate(FORMULAS.by_name["activations"], self._layers(micro_batch) | self._kept(attention))

    def held_activations(self) -> float:
        """The same of all micro-batches in flight; of layers that are computed again, one stands whole at a time."""
        one = self.activations(self.values["attention"], self.axis("micro_batch")).value
        if self.values["recompute"] != "full":
            return self.in_flight * one
        inputs = {name: value for name, value in self._layers(self.axis("micro_batch")).items() if name != "heads"}
        kept = evaluate(FORMULAS.by_name["checkpointed_activations"], inputs)
        return one + (self.in_flight - 1) * kept.value

    def _layers(self, micro_batch: int) -> dict[str, Value]:
        return {
            "sequence": self.sequence,
            "micro_batch": micro_batch,
            "hidden": self.shape.hidden,
            "heads": self.shape.heads,
            "layers": self.stage_layers,
            "tensor": self.axis("tensor"),
            "sequence_parallel": "yes" if self.values["sequence_parallel"] else "no",
        }

    def _kept(self, attention: str) -> dict[str, Value]:
        return {"recompute": str(self.values["recompute"]), "flash": "yes" if attention == "flash" else "no"}


def _text(value: float, dimension: str) -> str:
    if dimension == "bytes":
        return bytes_text(value, 4)
    if dimension == "seconds":
        return seconds_text(value, 4)
    if dimension == "fraction":
        return scaled(value, "%")
    return count_text(value, 4) if value >= 1e6 else f"{value:,.0f}"
