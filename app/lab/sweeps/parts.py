"""Why a step takes longer than its arithmetic at the peak: by what the run itself measured of its operations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.lab.least_squares import fit
from app.lab.sweeps.lines import Line
from app.units import digits, value_text
from app.words import listed

_SEEN = 0.005  # of a line's factor or offset: a smaller part is not told
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


def said_of_parts(every: Sequence[StepParts], lines: Sequence[Line] = (), *, is_peak_sure: bool = True) -> str:
    """What the factor over the arithmetic and the offset are made of, where there is a line; else what one step in the
    middle is made of, largest first, and what there is of it in the smallest step."""
    if not every:
        return ""
    if not is_peak_sure or any(each.ratio < 1 for each in every):
        return "Steps cannot be taken apart by a peak that some of them beat: it was measured too low."
    if any(each.of_peak > 1 + _SLACK for each in every):
        return (
            "In some of these steps products ran faster than at the peak that is known here, which was timed beside "
            "other work: by that peak they cannot be taken apart."
        )
    said = [_said_of_line(line, [each for each in every if each.series == line.series]) for line in lines]
    if said and all(said):
        return f"{' '.join(said)}{_said_of_disturbed(every)}"
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


def _said_of_line(line: Line, every: Sequence[StepParts]) -> str:
    """What of each part grows with the arithmetic, and what of it is always there: a line through each part, with the
    weights of the line through the steps, so that they add up to that. Empty where not all steps were taken apart."""
    rows = [(1 / each.step, each.seconds["arithmetic"] / each.step) for each in every]
    if not line.is_known or len(every) != len(line.left):
        return ""
    offsets, factors = dict[str, float](), dict[str, float]()
    for part in _NAMED:
        found = fit(rows, [each.seconds[part] / each.step for each in every])
        if found is None:
            return ""
        offsets[part], factors[part] = found.coefficients
    grows = [
        f"{_NAMED[part]} {_with_sign(digits(abs(factors[part]), 2), factors[part])}"
        for part in _NAMED
        if abs(factors[part]) >= _SEEN * line.factor
    ]
    stays = [
        f"{PARTS[part].lower()} {_signed(offsets[part])}"
        for part in _NAMED
        if abs(offsets[part]) >= _SEEN * abs(line.offset)
    ]
    of_peak = 100 / (1 + factors["slower"])
    return (
        f"{line.series}: the factor {digits(line.factor, 3)} is 1 for the arithmetic itself, {', '.join(grows)}. "
        f"Products ran at {digits(of_peak, 2)} % of the peak's rate, that of one large square product. The offset "
        f"{_signed(line.offset)} is {', '.join(stays)}."
    )


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
    "waiting": "waiting (for the other ranks, or for a core)",
}


def _said_of_smallest(every: Sequence[StepParts]) -> str:
    """What does not shrink with the step, in the smallest: that is an offset's measure."""
    small = min(every, key=lambda each: each.seconds["arithmetic"])
    optimizer, between = small.seconds["optimizer"], small.seconds["between"]
    start = f"In the smallest step (run {small.run_id}) the optimizer"
    if between < 0:
        return f"{start}, which hardly grows with the batch, takes {value_text(optimizer, 'seconds')}."
    return (
        f"{start} and what lies between operations, which hardly grow with the batch, take "
        f"{value_text(optimizer + between, 'seconds')}."
    )


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
