"""From the planner's form to estimates, one for each ZeRO stage, through the same engine as the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pydantic_core import to_json

from app.core.errors import SpecError
from app.planner.columns import Communication, communication_table, texts_in_one_unit
from app.planner.fields import SHAPE
from app.planner.form import Form, read_form, sequence_of
from app.planner.rows import search_csv
from app.planner.step import Lane, lanes_of
from app.planner.table import estimate_table
from app.theory.collectives import hierarchical_node_bytes
from app.theory.hardware import GPUS
from app.theory.planner import (
    Estimate,
    EstimateRequest,
    Flags,
    MemoryBytes,
    Outcome,
    StageMemoryEstimate,
    estimate,
    fewest_ranks,
    flags_of,
    front,
    outcome,
    parse_estimate_request,
    parse_search_request,
    search,
)
from app.theory.planner.engine.constants import FITTED
from app.theory.planner.engine.memory import COMPONENTS
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.remarks import repeats
from app.theory.presets import PRESETS
from app.units import count_text, digits, scaled
from app.words import capital

STAGE_LABELS = ("None", "ZeRO-1", "ZeRO-2", "ZeRO-3")
LARGEST_BATCH = 256e6  # tokens: four times those of DeepSeek-V3, 15,360 sequences of 4,096
NOTABLE = 0.05  # of a step: what is lost to one thing and worth a word


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
        return str(self.form.values["layout"])

    @property
    def ranks(self) -> int:
        return int(self.form.values["ranks"])

    @property
    def parameters(self) -> float:
        return self.estimate.parameters.total

    @property
    def capacity(self) -> float:
        return _capacity(self.estimate)

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

    def link_text(self, link: str) -> str:
        """What a link of the estimate is called on this GPU, with its data sheet's bytes a second where those hold."""
        gpu, values = GPUS[self.form.values["gpu"]], self.form.values
        if link == "intra_node":
            named, rate = gpu.scale_up, gpu.scale_up_bytes_per_second
        else:
            named, rate = "network per GPU", values["inter_node"] or gpu.nic_bytes_per_second
        return named if values["measured"] else f"{named}, {rate / 1e9:.3g} GB/s"

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
        card = self.form.values["inter_node"] or GPUS[self.form.values["gpu"]].nic_bytes_per_second
        return TwoLevels(size, nodes, sent, sent / (card * self.form.gpus_per_node))

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
    def mfu_range(self) -> tuple[float, float] | None:
        """MFU in the step's interval; None where nothing measured is near."""
        made, between = self.estimate, self.estimate.interval.step_seconds
        if between is None or not made.mfu or not made.time.step_seconds:
            return None
        low, high = (made.mfu * made.time.step_seconds / seconds for seconds in reversed(between))
        return low, high

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
        """Where a batch is far larger than any that is published, what was understood."""
        typed = self.typed["global_batch"]
        if self.form.is_own or not typed or self.batch_tokens <= LARGEST_BATCH:
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
        return f"{shape.layers} layers of {shape.hidden:,}, {shape.heads} heads, {how}"


def plan(form: Mapping[str, str]) -> Plan:
    """The plan of a form. What cannot be read or does not go together is replaced, and says so at its place."""
    read = read_form(form)
    zero, data = read.values["zero"], read.request()
    request = parse_estimate_request(data)
    answer = estimate(request)
    memory = answer.memory
    mine = Outcome(answer.time.step_seconds, memory.per_rank_bytes, memory.fits)
    requests = dict(sorted({**dict(_other_stages(read)), zero: request}.items()))
    by_zero = {stage: mine if stage == zero else outcome(each) for stage, each in requests.items()}
    stages = {stage: _bar(each, by_zero[stage], read, answer) for stage, each in requests.items()}
    preset = PRESETS.get(read.values["model"])
    name = preset.title if preset else f"{count_text(read.values['parameters'])} parameters"
    ranks = read.values["ranks"]
    by_stage = answer.memory.by_stage
    return Plan(
        read,
        f"{name} on {ranks:,} {'GPU' if ranks == 1 else 'GPUs'}",
        tuple(stages.values()),
        list(stages).index(zero),
        tuple(_pipeline_bar(each, answer) for each in by_stage) if len(by_stage) > 1 else (),
        lanes_of(answer),
        answer,
        request,
        to_json(data, indent=2).decode(),
        by_zero,
    )


def _other_stages(form: Form) -> Iterator[tuple[int, EstimateRequest]]:
    """The same plan at every other ZeRO stage that goes with it."""
    for stage in range(len(STAGE_LABELS)):
        if stage != form.values["zero"]:
            try:
                yield stage, parse_estimate_request(form.request(stage))
            except SpecError:
                continue


def _bar(request: EstimateRequest, at_stage: Outcome, form: Form, answer: Estimate) -> StageBar:
    zero, fewest = request.parallel.zero, None
    if form.is_own:
        fewest = fewest_ranks(answer.parameters.total, zero, form.values["layout"], _capacity(answer))
    held, title = held_of(at_stage.per_rank_bytes), PROFILES[profile_of(request)].title
    return StageBar(STAGE_LABELS[zero], held, bool(at_stage.fits), zero, title, fewest, at_stage.step_seconds)


def _pipeline_bar(stage: StageMemoryEstimate, answer: Estimate) -> StageBar:
    held = held_of(stage.bytes)
    return StageBar(f"Stage {stage.stage}", held, sum(held.values()) <= _capacity(answer))


def held_of(memory: MemoryBytes) -> dict[str, float]:
    """Bytes by component; what is not estimated takes no room on a bar."""
    return {component: getattr(memory, component) or 0.0 for component in COMPONENTS}


def _capacity(answer: Estimate) -> float:
    assert answer.memory.capacity_bytes is not None, "the form names a GPU"
    return answer.memory.capacity_bytes


def finding(made: Plan) -> str:
    """What the plan says in a sentence or two."""
    if made.form.is_own:
        return _finding_of_state(made)
    values, total = made.form.values, made.stage.total
    axes = [f"{name} {values[name]:,}" for name in ("tensor", "pipeline", "context", "expert") if values[name] > 1]
    axes += [f"data {made.form.data:,}"] if made.form.data > 1 else []
    axes += [made.stage.label if made.chosen or values["zero"] else "no sharding"]
    said = ", ".join(axes)
    asked = made.form.asked_ranks
    if made.ranks < asked:
        said += (
            f", on {made.ranks:,} of the {asked:,} GPUs, for tensor × pipeline × context = {made.form.divisor:,} does"
            f" not divide {asked:,}"
        )
    if total > made.capacity:
        over = f"{scaled(total, 'GB', 3)}, {total / made.capacity:.2f} × what it has"
        return f"{capital(said)}. Does not fit: the fullest GPU needs {over}."
    room = f"{capital(said)}. Fits with {scaled(made.capacity - total, 'GB', 3)} to spare"
    loss = max(made.lanes, key=lambda lane: lane.seconds if lane.is_loss else 0.0, default=None)
    if loss is None or not loss.is_loss or loss.share < NOTABLE:
        return f"{room}."
    return f"{room}; {100 * loss.share:.0f} % of every step is {loss.loss}."


def counted_as(made: Plan) -> str:
    """Whose implementation the plan is counted as, and whether anybody asked for it."""
    if made.form.is_own:
        return ""
    suggested = "" if made.form.values["profile"] else ", which its ZeRO stage suggests"
    return f"Counted as {made.stage.profile} does it{suggested}."


def selects(made: Plan) -> str:
    """What selective recomputation repeats in the plan's implementation."""
    return repeats(profile_of(made.request), made.request.training.recompute_modules)


def _finding_of_state(made: Plan) -> str:
    stage, capacity = made.stage, made.capacity
    name = "Without sharding" if made.chosen == 0 else f"At stage {made.chosen}"
    room = capacity - stage.total
    if room >= 0:
        held, left = scaled(stage.total, "GB", 3), scaled(room, "GB", 3)
        return f"{name} each GPU holds {held} of model state and has {left} left for activations and buffers."
    fewest = stage.fewest_ranks
    enough = f"{fewest:,} GPUs would be enough for the state" if fewest else "no number of GPUs is enough at this stage"
    return f"{name} each GPU would hold {scaled(stage.total, 'GB', 3)} of model state, more than it has; {enough}."


def flags(made: Plan) -> tuple[Flags, ...]:
    """The plan as other programs are told it."""
    return flags_of(made.request)


def answer_front(data: object) -> dict[str, object]:
    """Plans that nothing beats in time, memory and GPUs at once, for a SearchRequest. Raises SpecError."""
    return {"front": [point.to_json() for point in front(parse_search_request(data))]}


def answer_search_as_csv(data: object) -> str:
    """The plans of a search as comma-separated values. Raises SpecError."""
    return search_csv(search(parse_search_request(data))).rstrip()


def answer_search(data: object, now: Callable[[], float] = perf_counter) -> dict[str, object]:
    """The JSON reply to a SearchRequest. Raises SpecError."""
    began = now()
    found = search(parse_search_request(data)).to_json()
    considered = found.pop("considered")
    return {"considered": considered, "seconds": round(now() - began, 3), **found}


def answer_request(data: object) -> Estimate:
    """The answer to an EstimateRequest from outside. Raises SpecError."""
    return estimate(parse_estimate_request(data))


def answer_request_as_table(data: Any) -> str:
    """The same, to be read on a terminal. Raises SpecError."""
    return estimate_table(answer_request(data))
