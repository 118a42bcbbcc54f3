"""What the planner answers with: an Estimate, in bytes, seconds and FLOP, with fractions in 0..1.

Field names are the keys of its JSON, on which programs rely. What is not estimated is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.records import json_data


@dataclass(frozen=True)
class Parameters:
    """`total` of the model, `per_rank` on the rank with most of them, and those `active` for one token."""

    total: float
    per_rank: float
    active: float


@dataclass(frozen=True)
class MemoryBytes:
    """What one rank holds at its fullest moment, by component."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float | None
    temporary: float | None
    total: float


@dataclass(frozen=True)
class Outcome:
    """What plans are compared by: a step, and what the fullest rank holds. An Estimate says the same, and the rest."""

    step_seconds: float | None
    per_rank_bytes: MemoryBytes
    fits: bool | None


@dataclass(frozen=True)
class ForwardFlops:
    """FLOPs of a token's forward pass through a stage, by all its tensor ranks together."""

    matrices: float
    attention: float
    head: float


@dataclass(frozen=True)
class StageMemoryEstimate:
    """One rank of a pipeline stage, which is counted from 0."""

    stage: int
    layers: int
    parameters: float
    in_flight_micro_batches: float
    forward_flops_per_token: ForwardFlops
    bytes: MemoryBytes


@dataclass(frozen=True)
class SoftwareDefault:
    """How a plan's software keeps state unless told otherwise, and how many bytes more the fullest rank's state would
    take so than in the layout that was counted; 0 where it takes no more."""

    state_layout: str
    more_bytes: float


@dataclass(frozen=True)
class MemoryEstimate:
    """`per_rank_bytes` is the fullest rank; `host_bytes` is what offload keeps beside it. `software_default` is None
    where state is counted as the plan's software keeps it by itself."""

    per_rank_bytes: MemoryBytes
    by_stage: tuple[StageMemoryEstimate, ...]
    host_bytes: float | None
    capacity_bytes: float | None
    fits: bool | None
    software_default: SoftwareDefault | None = None


@dataclass(frozen=True)
class CollectiveEstimate:
    """All collectives of one kind in a step. Payload is the tensor handed over, wire is what one rank sends.

    `ranks_per_node` of the group are on each node it reaches; what leaves the node goes through `cards_per_node` of its
    network cards, 0 where nothing does.
    """

    name: str
    operation: str
    group: str
    group_size: int
    count_per_step: float
    payload_bytes_per_rank_per_step: float
    wire_bytes_per_rank_per_step: float
    link: str
    seconds: float | None
    exposed_seconds: float | None
    ranks_per_node: int = 1
    cards_per_node: int = 0


@dataclass(frozen=True)
class PipelineEstimate:
    """`bubble_fraction` is idle over total; the others are the micro-batches each stage holds, and those of a step."""

    bubble_fraction: float | None
    in_flight_micro_batches: tuple[float, ...]
    micro_batches: int | None


@dataclass(frozen=True)
class TimeEstimate:
    """One optimizer step: its parts add up to `step_seconds`."""

    step_seconds: float | None = None
    compute_seconds: float | None = None
    recompute_seconds: float | None = None
    bubble_seconds: float | None = None
    exposed_communication_seconds: float | None = None
    optimizer_seconds: float | None = None
    tokens_per_second: float | None = None


@dataclass(frozen=True)
class MfuByDefinition:
    """MFU by what it counts of attention: nothing (6N), the whole sequence, or the causal half."""

    six_n: float | None = None
    attention: float | None = None
    causal_attention: float | None = None


@dataclass(frozen=True)
class Interval:
    """Where four of five measurements lie, from the errors of `rows` published values, those nearest to the plan first.

    None where nothing was timed, or without a GPU, whose generation says which rows are near.
    """

    step_seconds: tuple[float, float] | None = None
    memory_bytes: tuple[float, float] | None = None
    rows: int = 0


@dataclass(frozen=True)
class Estimate:
    """What a plan holds, sends and takes. MFU counts the model's FLOPs as the request asks, HFU those of recomputation
    too."""

    parameters: Parameters
    memory: MemoryEstimate
    communication: tuple[CollectiveEstimate, ...]
    pipeline: PipelineEstimate
    time: TimeEstimate
    mfu: float | None
    mfu_by_definition: MfuByDefinition
    hfu: float | None
    interval: Interval
    model_flops_per_second_per_gpu: float | None
    hardware_flops_per_second_per_gpu: float | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def mfu_range(self) -> tuple[float, float] | None:
        """MFU in the step's interval; None where nothing measured is near."""
        between = self.interval.step_seconds
        if between is None or not self.mfu or not self.time.step_seconds:
            return None
        low, high = (self.mfu * self.time.step_seconds / seconds for seconds in reversed(between))
        return low, high

    def to_json(self) -> dict[str, object]:
        """The Estimate as JSON data."""
        data: dict[str, object] = json_data(self)
        return data
