"""Why a step takes longer than its arithmetic at the peak: by what the run itself measured of its operations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from app.lab.least_squares import fit
from app.lab.sweeps.lines import Line
from app.units import digits, step_for, value_text
from app.words import listed

_SLACK = 0.03  # of a step: what is less than nothing by no more is rounding between a middle and another
# In the order in which they are told; together they are the step.
PARTS: Mapping[str, str] = {
    "arithmetic": "Arithmetic at the peak",
    "slower": "Products slower than the peak",
    "others": "Other operations",
    "optimizer": "Optimizer",
    "between": "Between operations",
    "waiting": "Waiting",
}


@dataclass(frozen=True)
class StepParts:
    """A run's typical step in seconds, by what `PARTS` names. `slower` and `between` may be less than nothing where the
    machine was busier at one time than at another: they are differences."""

    run_id: int
    step: float
    seconds: Mapping[str, float]
    series: str = ""

    @property
    def ratio(self) -> float:
        return self.step / self.seconds["arithmetic"]

    def of_arithmetic(self, part: str) -> float:
        return self.seconds[part] / self.seconds["arithmetic"]

    @property
    def of_peak(self) -> float:
        """The rate of its products, over the peak's."""
        return self.seconds["arithmetic"] / (self.seconds["arithmetic"] + self.seconds["slower"])


def parts_of(run_id: int, result: Mapping[str, Any], arithmetic: float | None, series: str = "") -> StepParts | None:
    """None where not all was timed: on a GPU, with the probes off, or by an older release."""
    timed, step, waiting = result.get("operations"), result.get("step_seconds"), result.get("waiting_seconds")
    if not timed or not step or waiting is None or not arithmetic or not timed["products"]:
        return None
    seconds = {
        "arithmetic": arithmetic,
        "slower": timed["products"] - arithmetic,
        "others": timed["others"],
        "optimizer": timed["optimizer"],
        "between": step - waiting - sum(timed[name] for name in ("products", "others", "optimizer")),
        "waiting": waiting,
    }
    return StepParts(run_id, step, seconds, series)


def why_not_apart(every: Sequence[StepParts], *, is_peak_sure: bool = True) -> str:
    """Why steps cannot be taken apart by the peak; nothing where they can."""
    if not is_peak_sure or any(each.ratio < 1 for each in every):
        return "Steps cannot be taken apart by a peak that some of them beat: it was measured too low."
    if any(each.of_peak > 1 + _SLACK for each in every):
        return (
            "In some of these steps products ran faster than at the peak that is known here, which was timed beside "
            "other work: by that peak they cannot be taken apart."
        )
    return ""


def said_of_parts(every: Sequence[StepParts], lines: Sequence[Line] = ()) -> str:
    """What the factor over the arithmetic and the offset are made of, where there is a line; else what one step in the
    middle is made of, largest first, and what there is of it in the smallest step."""
    if not every:
        return ""
    if known := parts_of_lines(every, lines):
        return f"{' '.join(map(_said_of_line, known))}{_said_of_disturbed(every)}"
    middle = sorted(every, key=lambda each: each.ratio)[len(every) // 2]
    added = {part: middle.of_arithmetic(part) for part in _NAMED}
    ordered = sorted(_NAMED, key=added.__getitem__, reverse=True)
    named = [f"{_NAMED[part]} {digits(added[part], 2)}" for part in ordered]
    rates = [100 * each.of_peak for each in every]
    share = _between(min(rates), max(rates), "%")
    return (
        f"Run {middle.run_id}, in the middle, takes {digits(middle.ratio, 3)} times its arithmetic: 1 for itself, "
        f"{', '.join(named)}. Products ran at {share} of the peak's rate, which is that "
        f"of one large square product. {_said_of_smallest(every)}{_said_of_disturbed(every)}"
    )


@dataclass(frozen=True)
class LineParts:
    """What the offset (seconds) and the factor of a line are made of, each by part but for the arithmetic itself, which
    is 1 of the factor: together they are the line's own."""

    line: Line
    offsets: Mapping[str, float]
    factors: Mapping[str, float]


def parts_of_lines(every: Sequence[StepParts], lines: Sequence[Line]) -> list[LineParts]:
    """A line through each part, with the weights of the line through the steps, so that they add up to that. Empty
    where not all lines and steps were taken apart, and where no peak is sure."""
    found = [_parts_of_line(line, [each for each in every if each.series == line.series]) for line in lines]
    known = [each for each in found if each is not None]
    return known if len(known) == len(lines) else []


def _parts_of_line(line: Line, every: Sequence[StepParts]) -> LineParts | None:
    rows = [(1 / each.step, each.seconds["arithmetic"] / each.step) for each in every]
    if not line.is_known or len(every) != len(line.left):
        return None
    offsets, factors = dict[str, float](), dict[str, float]()
    for part in _NAMED:
        found = fit(rows, [each.seconds[part] / each.step for each in every])
        if found is None:
            return None
        offsets[part], factors[part] = found.coefficients
    return LineParts(line, offsets, factors)


def _said_of_line(parts: LineParts) -> str:
    """Every part, to the last place that its sum is written to, so that a reader can add them up."""
    line, step = parts.line, step_for(parts.line.offset, "seconds")
    of_factor, of_offset = (_places(each) for each in (line.factor, line.offset / step.size))
    grows = [f"{name} {_to(parts.factors[part], of_factor)}" for part, name in _NAMED.items()]
    stays = [f"{PARTS[part].lower()} {_to(parts.offsets[part] / step.size, of_offset)} {step.unit}" for part in _NAMED]
    of_peak = 100 / (1 + parts.factors["slower"])
    return (
        f"{line.series}: the factor {_to(line.factor, of_factor)} is 1 for the arithmetic itself, {', '.join(grows)}. "
        f"Products ran at {digits(of_peak, 2)} % of the peak's rate, that of one large square product. The offset "
        f"{_to(line.offset / step.size, of_offset)} {step.unit} is {', '.join(stays)}."
    )


def _places(value: float) -> int:
    """Behind the point, for three digits of it."""
    return max(0, 2 - floor(log10(abs(value)))) if value else 2


def _to(value: float, places: int) -> str:
    text = f"{abs(value):,.{places}f}"
    return _with_sign(text, value if text.strip("0.") else 0.0)


def _said_of_disturbed(every: Sequence[StepParts]) -> str:
    """That a machine with other work makes differences that cannot be: told, not hidden."""
    disturbed = [each.run_id for each in every if each.seconds["between"] < -_SLACK * each.step]
    if not disturbed:
        return ""
    named = listed([f"run {each}" for each in disturbed])
    return f" In {named} the watched steps were slower than the typical one, so that less than nothing is left between."


_NAMED: Mapping[str, str] = {
    "slower": "products below the peak's rate",
    "others": "other operations (norms, activations, loss, copies)",
    "optimizer": "the optimizer",
    "between": "what lies between operations (Python, autograd)",
    "waiting": "waiting (in collectives, or for a core)",
}


def _said_of_smallest(every: Sequence[StepParts]) -> str:
    """What does not shrink with the step, in the smallest: that is an offset's measure."""
    small = min(every, key=lambda each: each.seconds["arithmetic"])
    optimizer, between = small.seconds["optimizer"], small.seconds["between"]
    start = f"In the smallest step (run {small.run_id}) the optimizer"
    if between < 0:
        return f"{start} takes {value_text(optimizer, 'seconds')}."
    return f"{start} and what lies between operations take {value_text(optimizer + between, 'seconds')}."


def _between(low: float, high: float, unit: str) -> str:
    ends = digits(low, 2), digits(high, 2)
    return f"{ends[0]} {unit}" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} {unit}"


def rows_of(every: Sequence[StepParts]) -> Iterator[tuple[StepParts, tuple[str, ...]]]:
    """A run each: its parts in time, as texts."""
    for each in every:
        yield each, tuple(_signed(each.seconds[part]) for part in PARTS)


def _signed(seconds: float) -> str:
    return _with_sign(value_text(abs(seconds), "seconds"), seconds)


def _with_sign(text: str, value: float) -> str:
    return f"{'−' if value < 0 else ''}{text}"
