"""Recorded runs, `cards/recordings/<id>.yaml`: what ranks of our own lab did with a fault planted in them.

They are written by `python -m tests.support.record_faults` and by nobody's hand. Of a run that stood still there is
what torch's flight recorder had of every rank; of one whose loss was lost, every step with its loss scale. What an
interview says of one, and its keys, are read from it here; a recording that does not show its fault is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from app.content.schemas import Slug, Strict, Text
from app.units import count_text, scaled
from labs.spec import SpecError, parse_run_spec

TIMED_OUT = "Timed out"  # of what ranks say at the end, what the first of them says
StandingFault = Literal["stuck-loader", "one-rank-validates"]


class Planted(Strict):
    """What went wrong on purpose: on which rank, before which step. An `overflow` is every rank's."""

    kind: StandingFault | Literal["overflow"]
    rank: Annotated[int, Field(ge=0)]
    step: Annotated[int, Field(ge=2)]


class Called(Strict):
    """A collective as a rank called it: its number in the order of its group, and from where, the outermost first."""

    number: Annotated[int, Field(ge=1)]
    operation: Text
    bytes: Annotated[int, Field(ge=1)]
    called_from: tuple[Text, ...]
    done: bool


class RankRecord(Strict):
    """What a rank that stood still had called last, oldest first, where it stood, and its last word."""

    rank: Annotated[int, Field(ge=0)]
    collectives: Annotated[tuple[Called, ...], Field(min_length=1)]
    stands_in: Annotated[tuple[Text, ...], Field(min_length=1)]
    said: str

    @property
    def waits_in(self) -> Called | None:
        """The first collective that it called and that was never over."""
        return next((each for each in self.collectives if not each.done), None)


class StepRecord(Strict):
    """A step under a dynamic loss scale; no loss where it was not a number. `loss_scale` is that after the step."""

    step: Annotated[int, Field(ge=1)]
    loss: float | None
    loss_scale: Annotated[float, Field(gt=0)]
    skipped: bool


class Recording(Strict):
    """A run with a planted fault, as its ranks reported it."""

    id: Slug
    torch: Text
    spec: dict[str, Any]
    planted: Planted
    ranks: tuple[RankRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()

    @model_validator(mode="after")
    def _shows_its_fault(self) -> Recording:
        try:
            spec = parse_run_spec(self.spec)
        except SpecError as error:
            raise ValueError(f"spec: {error}") from None
        if self.planted.kind == "overflow":
            lost = first_lost(self.steps)
            if lost != self.planted.step:
                raise ValueError(f"planted in step {self.planted.step}, but the loss is lost from step {lost} on")
        else:
            if [each.rank for each in self.ranks] != list(range(spec.parallel.world_size)):
                raise ValueError("there is not one record for each rank")
            if (found := diagnose(self.ranks)) != (self.planted.kind, self.planted.rank):
                raise ValueError(f"planted {self.planted.kind} on rank {self.planted.rank}, but it reads as {found}")
        return self


def number_that_parts(ranks: tuple[RankRecord, ...]) -> int | None:
    """The number of the first collective that was never over; None where nobody waits."""
    return min((waits.number for each in ranks if (waits := each.waits_in)), default=None)


def diagnose(ranks: tuple[RankRecord, ...]) -> tuple[StandingFault, int] | None:
    """What the records alone say: which one rank never came, or called something else; None where it is not one."""
    waits = {each.rank: each.waits_in for each in ranks}
    absent = [rank for rank, call in waits.items() if call is None]
    if absent:
        return ("stuck-loader", absent[0]) if len(absent) == 1 and len(ranks) > 1 else None
    called = {rank: call.operation for rank, call in waits.items() if call}
    numbers = {call.number for call in waits.values() if call}
    operations = list(called.values())
    odd = [rank for rank, operation in called.items() if operations.count(operation) == 1]
    return ("one-rank-validates", odd[0]) if len(numbers) == 1 and odd else None


def first_lost(steps: tuple[StepRecord, ...]) -> int | None:
    """The step from which on no loss is a number, and every step is skipped."""
    lost = [each for each in steps if each.loss is None]
    stays = bool(lost) and steps[-len(lost) :] == tuple(lost) and all(each.skipped for each in lost)
    return lost[0].step if stays else None


def facts(recording: Recording) -> Mapping[str, Any]:
    """What expressions see of a recording: numbers, and texts in the words of a log."""
    if recording.planted.kind == "overflow":
        return _facts_of_steps(recording)
    odd, number = recording.ranks[recording.planted.rank], number_that_parts(recording.ranks)
    other = next(each for each in recording.ranks if each is not odd)
    waits = other.waits_in
    assert waits is not None, "somebody waits, or it had been refused"
    mine = odd.waits_in
    return {
        "ranks": len(recording.ranks),
        "rank": odd.rank,
        "step": recording.planted.step,
        "number": number,
        "operation": _said(waits.operation),
        "bytes": waits.bytes,
        "odd_operation": _said(mine.operation) if mine else "",
        "said": next((each.said for each in recording.ranks if TIMED_OUT in each.said), other.said),
        "log": "\n".join(_log_lines(recording)),
    }


def _facts_of_steps(recording: Recording) -> Mapping[str, Any]:
    before = recording.steps[recording.planted.step - 2]
    lost = recording.steps[recording.planted.step - 1 :]
    return {
        "step": recording.planted.step,
        "loss_before": before.loss,
        "scale_before": before.loss_scale,
        "scales": [each.loss_scale for each in lost],
    }


def _log_lines(recording: Recording) -> Iterator[str]:
    """A line for each rank: the collective it waits in, or the last it was through, and from where it called it. Of a
    rank that waits in none, also where it stands."""
    for each in recording.ranks:
        call = each.waits_in or each.collectives[-1]
        size = scaled(call.bytes, "kB") if call.bytes >= 1000 else f"{count_text(call.bytes)} B"
        state = f"#{call.number} {'waits' if each.waits_in else 'done '} {_said(call.operation)} {size}"
        yield f"rank {each.rank}  {state:30}  {_innermost(call.called_from)}"
    for each in recording.ranks:
        if each.waits_in is None:
            yield f"rank {each.rank}  {'main thread':30}  {_innermost(each.stands_in)}"


def _innermost(calls: tuple[str, ...]) -> str:
    """The last two of a stack: what was called, and from where."""
    return " → ".join(calls[-2:])


def _said(operation: str) -> str:
    return operation.replace("_", "-")
