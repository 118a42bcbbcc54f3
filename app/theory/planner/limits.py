"""What limits a search: the values of an axis that may be looked at, and the least and the most of a degree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from app.theory.planner.fields import Module, Overlap
from labs.spec import Precision, Recompute, Schedule, Strict

Degree = Annotated[int, Field(ge=1, le=1_000_000)] | None
Degrees = tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...]


class Axes(Strict):
    """The values to look at on each axis, in place of all that the GPUs allow; precision and overlap stay as asked and
    as the implementation does it unless they are listed. A null in `shard` is all replicas, in `reshard_after_forward`
    what the implementation does by itself, as in an EstimateRequest."""

    data: Degrees | None = None
    tensor: Degrees | None = None
    pipeline: Degrees | None = None
    context: Degrees | None = None
    expert: Degrees | None = None
    expert_tensor: Degrees | None = None
    expert_nodes: Degrees | None = None
    virtual_stages: Degrees | None = None
    schedule: tuple[Schedule, ...] | None = None
    zero: tuple[Annotated[int, Field(ge=0, le=3)], ...] | None = None
    shard: tuple[Degree, ...] | None = None
    reshard_after_forward: tuple[bool | None, ...] | None = None
    micro_batch: Degrees | None = None
    recompute: tuple[Recompute, ...] | None = None
    recompute_modules: tuple[tuple[Module, ...], ...] | None = None
    precision: tuple[Precision, ...] | None = None
    overlap: tuple[Overlap, ...] | None = None


class Bound(Strict):
    """The least, or the most, of a degree or of a micro-batch's sequences."""

    data: Degree = None
    tensor: Degree = None
    pipeline: Degree = None
    context: Degree = None
    expert: Degree = None
    virtual_stages: Degree = None
    micro_batch: Degree = None


@dataclass(frozen=True)
class Limits:
    """What of a search's axes may be looked at: listed values, and a least and a most."""

    axes: Axes = field(default_factory=Axes)
    at_least: Bound = field(default_factory=Bound)
    at_most: Bound = field(default_factory=Bound)

    def among(self, axis: str, known: Sequence[int]) -> Sequence[int]:
        """Of the values there are of a degree, those that may be looked at."""
        listed, least, most = (getattr(part, axis) for part in (self.axes, self.at_least, self.at_most))
        if listed is None and least is None and most is None:
            return known
        return [value for value in known if not self.excluding(axis, value)]

    def given(self, axis: str, usual: Sequence[int]) -> Sequence[int]:
        """The values of an axis that is listed in place of what is usual."""
        listed = getattr(self.axes, axis)
        return self.among(axis, usual if listed is None else listed)

    def excluding(self, axis: str, value: object) -> str:
        """The field that leaves a value of an axis out; empty where none does."""
        listed = getattr(self.axes, axis)
        if listed is not None and value not in listed:
            return f"axes.{axis}"
        if isinstance(value, int) and axis in Bound.model_fields:
            least, most = getattr(self.at_least, axis), getattr(self.at_most, axis)
            if least is not None and value < least:
                return f"at_least.{axis}"
            if most is not None and value > most:
                return f"at_most.{axis}"
        return ""

    @property
    def fields(self) -> tuple[str, ...]:
        """What limits: "axes.tensor", "at_most.pipeline"."""
        parts = {"axes": self.axes, "at_least": self.at_least, "at_most": self.at_most}
        return tuple(f"{name}.{axis}" for name, part in parts.items() for axis in part.model_dump(exclude_none=True))
