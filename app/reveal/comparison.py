"""One quantity: what somebody said of it, what theory says, and what came out."""

from __future__ import annotations

from dataclasses import dataclass

from app.units import scaled, value_text

_NEAR = 1.02  # as near as that nothing is missing from a prediction
# A prediction this near to the measurement, as a factor, was right. What is counted can be known exactly; bytes nearly
# so, and who leaves out one term of four is off by 1.33 (one transfer of three: up to 1.5).
_RIGHT_WITHIN = 1.5
_RIGHT_WITHIN_OF = {"count": 1.1, "bytes": 1.25}


@dataclass(frozen=True)
class Comparison:
    """One quantity in base units: what was predicted, what theory says, what was measured.

    `is_computed`: nothing was measured; `measured` is then the right answer to what was asked, and near is not right.
    `unit`: what values are written in, where the question has one of its own.
    """

    title: str
    dimension: str
    text: str | None
    predicted: float | None
    theory: float | None
    measured: float | None
    within: float | None
    name: str = ""
    unit: str = ""
    is_computed: bool = False

    @property
    def off_by(self) -> float | None:
        """The ratio between prediction and measurement, 1 or more."""
        if self.predicted is not None and self.predicted == self.measured:
            return 1.0  # both may be zero
        if not self.predicted or not self.measured:
            return None
        return max(self.predicted / self.measured, self.measured / self.predicted)

    def said(self, value: float | None) -> str:
        if value is None:
            return "–"
        return scaled(value, self.unit) if self.unit else value_text(value, self.dimension)

    @property
    def verdict(self) -> str:
        if self.off_by is None:
            return "not predicted" if self.predicted is None else "–"
        if self.off_by < 1.005:
            return "exact"
        return f"{times(self.off_by)} ×"

    @property
    def is_near(self) -> bool:
        """Whether there is no gap to speak of between prediction and measurement."""
        return self.off_by is not None and self.off_by < _NEAR and not self.is_computed

    @property
    def missed(self) -> bool:
        """Whether what was predicted was not near enough to what came out: `Meter.missed` says whether it was wrong."""
        if self.predicted is None or self.measured is None:
            return False
        return not is_right(self.predicted, self.measured, self.dimension)

    @property
    def kept_confidence(self) -> bool | None:
        """Whether the measurement lies within what the learner was sure of."""
        if self.within is None or self.off_by is None:
            return None
        return self.off_by <= self.within


def times(ratio: float) -> str:
    """A ratio as it is said of a guess: what is far off is no better known for its decimals."""
    return f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 100 else "over 100"


def is_right(predicted: float, measured: float, dimension: str) -> bool:
    """Whether a prediction came near enough to have been right.

    A share is held to what it leaves as well: 90 % is not near 99 % of useful time, which wastes a tenth of that.
    What is more than all is a ratio.
    """
    is_share = dimension == "fraction" and max(predicted, measured) <= 1
    if is_share and not _is_near(1 - predicted, 1 - measured, _RIGHT_WITHIN):
        return False
    return _is_near(predicted, measured, _RIGHT_WITHIN_OF.get(dimension, _RIGHT_WITHIN))


def _is_near(one: float, other: float, factor: float) -> bool:
    if one == other:
        return True
    return one > 0 and other > 0 and 1 / factor <= other / one <= factor
