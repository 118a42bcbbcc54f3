"""A plan as the planner shows it: its form, what its stages hold, where a step goes, and the texts of its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.planner.columns import Communication, communication_table, texts_in_one_unit
from app.planner.fields import SHAPE
from app.planner.form import Form
from app.planner.limits import usable_bytes
from app.planner.mending import batch_rule_of, sequence_of
from app.planner.readers import Tokens
from app.planner.step import Lane
from app.theory.collectives import hierarchical_node_bytes
from app.theory.hardware import GPUS
from app.theory.planner import Estimate, EstimateRequest, Outcome
from app.theory.planner.engine.constants import FITTED
from app.units import count_text, digits

ROUNDED = 0.01  # of a model's parameters: what its name leaves out
NEAR = 0.05  # of the parameters that were asked for
LARGEST_BATCH = 256e6  # tokens: four times those of DeepSeek-V3, 15,360 sequences of 4,096


@dataclass(frozen=True)
class StageBar:
    """What a GPU holds, in bytes by component: at a ZeRO stage, or on a stage of the pipeline."""

    label: str
    bytes: Mapping[str, float]
    fits: bool
    zero: int = 0
    profile: str = ""
    fewest_ranks: int | None = None
    step_seconds: float | None = None

    @property
    def total(self) -> float:
        return sum(self.bytes.values())


@dataclass(frozen=True)
class TwoLevels:
    """An all-reduce of `size_bytes` inside nodes first: what leaves a node, and how long over all its cards at their
    own rate."""

    size_bytes: float
    nodes: int
    node_bytes: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What the planner shows for a form. `stages` are by ZeRO stage, `pipeline` by pipeline stage if there are any."""

    form: Form
    title: str
    stages: tuple[StageBar, ...]
    chosen: int
    pipeline: tuple[StageBar, ...]
    lanes: tuple[Lane, ...]
    estimate: Estimate
    request: EstimateRequest
    request_text: str
    by_zero: Mapping[int, Outcome]

    @property
    def typed(self) -> Mapping[str, str]:
        return self.form.typed

    @property
    def errors(self) -> Mapping[str, str]:
        return self.form.errors

    @property
    def layout(self) -> str:
        return str(self.request.training.state_layout)

    @property
    def ranks(self) -> int:
        return int(self.form.values["ranks"])

    @property
    def parameters(self) -> float:
        return self.estimate.parameters.total

    @property
    def is_called(self) -> bool:
        """Whether the model is called by a size that one typed, and its shape comes to that."""
        is_typed = self.form.is_own or self.form.is_sized
        return is_typed and abs(self.parameters / self.form.values["parameters"] - 1) < ROUNDED

    @property
    def size(self) -> float:
        """Parameters as textbooks take them: the size that the model is called by, or else all there are."""
        return float(self.form.values["parameters"]) if self.is_called else self.parameters

    @property
    def capacity(self) -> float:
        return capacity_of(self.estimate)

    @property
    def usable_bytes(self) -> float:
        """What of a GPU's memory one plans with."""
        return usable_bytes(self.form.values, self.capacity)

    @property
    def most_bytes(self) -> float:
        """What the fullest GPU may hold: the upper end of the interval, where there is one."""
        between = self.estimate.interval.memory_bytes
        return between[1] if between else self.stage.total

    @property
    def may_not_fit(self) -> bool:
        """Whether it fits as estimated, and no longer at the upper end of the interval."""
        return self.stage.fits and self.most_bytes > self.capacity

    @property
    def has_room(self) -> bool:
        """Whether it fits with what one leaves free, and surely."""
        return self.stage.total <= self.usable_bytes and self.most_bytes <= self.capacity

    @property
    def stage(self) -> StageBar:
        return self.stages[self.chosen]

    @property
    def state_inputs(self) -> Mapping[str, float] | None:
        """What ZeRO's formula takes for a published model; None for a size alone or where stages or experts differ."""
        values, shape = self.form.values, self.form.shape
        if shape is None or values["pipeline"] > 1 or shape.experts > 1:
            return None
        return {"parameters": self.estimate.parameters.per_rank, "ranks": self.form.data * values["context"]}

    @property
    def stage_texts(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of the table by ZeRO stage: a text for each stage, one unit in a column."""
        found = {
            part: texts_in_one_unit([stage.bytes.get(part, 0.0) for stage in self.stages], "bytes")
            for part in ("parameters", "gradients", "optimizer", "activations", "temporary")
        }
        found["total"] = texts_in_one_unit([stage.total for stage in self.stages], "bytes")
        found["step"] = texts_in_one_unit([stage.step_seconds or 0.0 for stage in self.stages], "seconds")
        return found

    @property
    def link_rates(self) -> tuple[float, float]:
        """Bytes a second inside a node and between nodes, per GPU, as data sheets or measurements have them."""
        gpu, measured = GPUS[self.form.values["gpu"]], self.form.values["measured"] or {}
        inside = measured.get("intra_node_bytes_per_second") or gpu.scale_up_bytes_per_second
        typed = self.form.values["inter_node"] or gpu.nic_bytes_per_second
        return inside, measured.get("inter_node_bytes_per_second") or typed

    def link_text(self, link: str) -> str:
        """What a link of the estimate is called on this GPU, with its data sheet's bytes a second where those hold."""
        inside, between = self.link_rates
        is_inside = link == "intra_node"
        named = GPUS[self.form.values["gpu"]].scale_up if is_inside else "network per GPU"
        rate = inside if is_inside else between
        return named if self.form.values["measured"] else f"{named}, {rate / 1e9:.3g} GB/s"

    @property
    def reached(self) -> str:
        """What of a link's rate the times take: what collectives usually reach, or what was measured."""
        if self.form.values["measured"]:
            return "Times are at the rates that were measured."
        return f"Times take {100 * FITTED.network_efficiency:.0f} % of a link's rate, as collectives usually reach."

    @property
    def in_two_levels(self) -> TwoLevels | None:
        """Gradients reduced over nodes of replicas alone, if that went by two levels; None of any other plan."""
        nodes, rest = divmod(self.ranks, self.form.gpus_per_node)
        rows = [row for row in self.estimate.communication if row.operation == "all_reduce"]
        if rest or nodes == 1 or self.form.divisor > 1 or len(rows) != 1:
            return None
        size = rows[0].payload_bytes_per_rank_per_step
        sent = hierarchical_node_bytes(size, nodes)
        return TwoLevels(size, nodes, sent, sent / (self.link_rates[1] * self.form.gpus_per_node))

    @property
    def reduced_otherwise(self) -> str:
        """That gradients are sent in another type than they are kept in, where they are."""
        return next((each for each in self.estimate.assumptions if each.startswith("Gradients are sent in")), "")

    @property
    def profiles(self) -> tuple[str, ...]:
        """The implementations that the table by ZeRO stage counts as."""
        return tuple(dict.fromkeys(stage.profile for stage in self.stages))

    @property
    def communication(self) -> Communication:
        """What a GPU sends in a step, a unit for each column."""
        return communication_table(self.estimate.communication)

    @property
    def tokens_per_second_text(self) -> str:
        """Tokens a second with as many digits as an estimate has a right to."""
        return digits(float(f"{self.estimate.time.tokens_per_second or 0:.3g}"))

    @property
    def global_batch(self) -> int:
        """Sequences of a step, over all data ranks."""
        micro_batches = self.estimate.pipeline.micro_batches
        assert micro_batches is not None, "a size alone has no step"
        return int(micro_batches * self.form.values["micro_batch"] * self.form.data)

    @property
    def batch_tokens(self) -> int:
        """The same in tokens."""
        return self.global_batch * sequence_of(self.form.values)

    @property
    def batch_remark(self) -> str:
        """Where tokens do not share out, what was taken; of a batch far larger than any published, what was
        understood."""
        typed, wanted = self.typed["global_batch"], self.form.batch_asked
        if self.form.is_own or not typed or "global_batch" in self.errors:
            return ""
        if isinstance(wanted, Tokens) and round(wanted.value) != self.batch_tokens:
            unit = batch_rule_of(self.form.values)[1]
            sequence = sequence_of(self.form.values)
            return (
                f"“{typed}” are {wanted.value / sequence:,.1f} sequences of {sequence:,}; taken are "
                f"{self.global_batch:,}, {self.batch_tokens:,} tokens: the nearest that this plan shares out, in "
                f"multiples of {unit:,}."
            )
        if self.batch_tokens <= LARGEST_BATCH:
            return ""
        understood = f"{self.global_batch:,} sequences, {count_text(self.batch_tokens)} tokens a step"
        return f"“{typed}” was understood as {understood}. If tokens are meant, say so: “{typed} tokens”."

    @property
    def shape_text(self) -> str:
        """Of a model of one's own: its shape, and that it was derived where it was."""
        shape, typed = self.form.shape, self.form.typed
        assert shape is not None, "a size alone has no shape"
        given = [name for name in SHAPE if typed[name]]
        how = "derived" if not given else "as typed" if len(given) == len(SHAPE) else "in part derived"
        wanted = float(self.form.values["parameters"])
        missed = abs(self.parameters / wanted - 1) > NEAR
        apart = f": not the {count_text(wanted)} that were asked, which these sizes cannot make" if missed else ""
        return f"{shape.layers} layers of {shape.hidden:,}, {shape.heads} heads, {how}{apart}"


def capacity_of(answer: Estimate) -> float:
    assert answer.memory.capacity_bytes is not None, "the form names a GPU"
    return answer.memory.capacity_bytes
