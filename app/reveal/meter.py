"""A prediction, theory and what came out on one scale from 0, with the gap between them named. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from app.core.charts import Scale, round_scale
from app.reveal.comparison import Comparison
from app.reveal.gap import Gap, Term
from app.units import SCALES, digits, step_for

_TRACK_PX = (160, 200, 220, 300, 400, 520, 700)  # widths of a bar's track at which a style sheet may name its terms
_CHARACTER_PX, _NAME_LINES = 6.4, 2  # of the small type that they are named in
_APART = 28.0  # percent of a scale from which on two labels stand apart, on a phone too


def _one_of(said: str) -> str:
    """A count of one without the plural: 1 GPU, 1 sequence."""
    number, _, unit = said.partition(" ")
    is_counted = unit in SCALES and SCALES[unit][0] in ("count", "tokens")
    return said.removesuffix("s") if number == "1" and is_counted else said


@dataclass(frozen=True)
class Meter:
    """One quantity on its scale. Before it has ended it shows the learner's number and nothing else."""

    row: Comparison
    says: str
    terms: tuple[Term, ...]
    gap: Gap | None
    scale: Scale
    kind: str
    is_ended: bool

    @property
    def missed(self) -> bool:
        """Whether the number was wrong, which every room goes by: it was not near enough, or what it lacks has a name,
        however near it came. One transfer of three left out is a factor of 1.5, and is what there was to learn."""
        return self.row.missed or bool(self.gap and self.gap.finding)

    @property
    def low(self) -> float | None:
        """Where the learner's range starts."""
        return self.row.predicted / self.row.within if self.row.predicted and self.row.within else None

    @property
    def high(self) -> float | None:
        return self.row.predicted * self.row.within if self.row.predicted and self.row.within else None

    @property
    def range_text(self) -> str:
        """The learner's range, both ends in the unit of the upper one."""
        if self.low is None or self.high is None:
            return ""
        step = step_for(self.high, self.row.dimension)
        return f"{digits(self.low / step.size, 3)} to {digits(self.high / step.size, 3)} {step.unit}".rstrip()

    def place(self, value: float) -> str:
        """Percent of the scale; beyond its end, the end."""
        return self.scale.percent(max(0.0, min(value, self.scale.maximum)))

    @property
    def is_beyond(self) -> bool:
        """Whether the learner's number lies beyond the end of the scale."""
        return (self.row.predicted or 0.0) > self.scale.maximum

    @property
    def segments(self) -> list[tuple[str, str]]:
        """The measured bar: kind and width in percent of the bar."""
        measured = self.row.measured or 0.0
        whole = sum(term.value for term in self.terms)
        if not measured or not self.terms:
            return [(self.kind, "100")]
        return [(term.kind, f"{100 * term.value / whole:.3f}") for term in self.terms]

    @property
    def colours(self) -> tuple[str, ...]:
        """The kinds of what its bar is divided into; none where it is of one."""
        kinds = tuple(dict.fromkeys(term.kind for term in self.terms if term.value))
        return kinds if len(kinds) > 1 else ()

    @property
    def gap_start(self) -> str:
        return self.place(min(self.row.predicted or 0.0, self.row.measured or 0.0))

    @property
    def gap_width(self) -> str:
        ends = sorted((self.row.predicted or 0.0, self.row.measured or 0.0))
        low, high = (min(end, self.scale.maximum) for end in ends)
        return self.scale.percent(high - low)

    @property
    def gap_text(self) -> str:
        """The gap's name with its size; empty where there is none to speak of."""
        predicted, measured = self.row.predicted, self.row.measured
        if self.gap is None or predicted is None or measured is None or self.row.is_near:
            return ""
        if self.gap.missing:
            size = sum(term.value for term in self.gap.missing)
            return f"{self.gap.label}, {self.row.said(size)}"
        off = _one_of(self.row.said(abs(measured - predicted)))
        is_counted = self.row.dimension == "count" and bool(self.row.unit)
        above, below = ("too many", "too few") if is_counted else ("too much", "too little")
        if self.gap.slip:  # what was done, not what is missing
            return f"{self.gap.slip}: {off} {below if measured > predicted else above}"
        return f"{off} {'more than you said' if measured > predicted else above}"

    @property
    def labels(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """What stands under the marks, from the left: place in percent, and who says what. Marks that lie near each
        other share one place."""
        row = self.row
        said = [
            (float(self.place(value)), who, f"{words} {text}")
            for value, who, words, text in (
                (row.predicted, "you", "you", row.text),
                (row.measured, "is", "it is", row.said(row.measured)),
            )
            if value is not None
        ]
        said.sort()
        if len(said) == 2 and said[1][0] - said[0][0] < _APART:
            return [(f"{(said[0][0] + said[1][0]) / 2:.2f}", [each[1:] for each in said])]
        return [(f"{place:.2f}", [(who, text)]) for place, who, text in said]

    @property
    def verdict(self) -> str:
        """How far off, and whether the range held: the one may be so without the other."""
        off = self.row.off_by
        if off is None:
            return "" if self.row.predicted is None else self.row.verdict
        said = self.row.verdict if off < 1.005 else f"{self.row.verdict} off"
        if self.row.kept_confidence is None:
            return said
        return f"{said}, range {'held' if self.row.kept_confidence else 'missed'}"

    @property
    def aria(self) -> str:
        """The whole picture in a sentence or two."""
        row = self.row
        parts = [f"{row.title}:"]
        if row.predicted is not None:
            parts.append(f"you said {row.text}{', ' + self.range_text if self.range_text else ''};")
        if not self.is_ended:
            return " ".join(parts).rstrip(";:") + "."
        if row.theory is not None:
            parts.append(f"theory {row.said(row.theory)},")
        parts.append(f"{'it is' if row.is_computed else 'measured'} {row.said(row.measured)}.")
        if row.predicted is not None and row.off_by is not None:
            parts.append(f"{self._differs}: {self.gap_text}." if self.gap_text else "Nothing is missing.")
        return " ".join(parts)

    @property
    def _differs(self) -> str:
        if self.gap and self.gap.missing:
            return "Your number lacks"
        predicted, measured = self.row.predicted, self.row.measured
        if predicted is not None and measured is not None and predicted > measured:
            return "Your number has"
        return "Between them" if self.row.is_computed else "Your number lacks"

    @property
    def bars(self) -> TermBars | None:
        """The same term by term, where it has several and was measured: the picture above says as much else."""
        return TermBars(self) if self.is_ended and self.row.measured is not None and len(self.terms) > 1 else None

    @property
    def is_split(self) -> bool:
        """Whether it is known which terms the learner's number has: of one that is near, and of one that lacks some."""
        return self.row.predicted is not None and (self.row.is_near or self._is_missing_here)

    @property
    def _is_missing_here(self) -> bool:
        """Whether what the number lacks are terms of the whole: of one or another, none can be drawn as missing."""
        return self.gap is not None and any(term in self.terms for term in self.gap.missing)


@dataclass(frozen=True)
class TermBars:
    """Theory and measurement term by term; in the learner's bar, a hole where a term is missing."""

    meter: Meter

    @property
    def scale(self) -> Scale:
        """Of theory and measurement; a prediction far beyond them ends at its end."""
        row = self.meter.row
        largest = max(row.theory or 0.0, row.measured or 0.0)
        return make_scale(min(row.predicted or 0.0, 2 * largest), largest, 0.0, row.dimension)

    def width(self, value: float) -> str:
        return self.scale.percent(value)

    @property
    def names(self) -> list[tuple[str, str, str, bool]]:
        """Over each term of the measured bar: where it starts, how wide it is, its name, whether it is missing."""
        found, start = [], 0.0
        missing = self.meter.gap.missing if self.meter.gap else ()
        for term in self.meter.terms:
            if term.value:
                found.append((self.width(start), self.width(term.value), term.short, term in missing))
            start += term.value
        return found

    @property
    def named_from(self) -> int | None:
        """The least width in px of the bar's track at which every name stands over its term without a letter less;
        none where one never does. Below it they are listed."""
        return next(
            (px for px in _TRACK_PX if all(_fits(name, px * float(width) / 100) for _, width, name, _ in self.names)),
            None,
        )

    def had(self, term: Term) -> float | None:
        """What the learner's number has of a term, where that is known."""
        if not self.meter.is_split:
            return None
        missing = self.meter.gap.missing if self.meter.gap else ()
        if term in missing:
            return 0.0
        rest = sum(each.value for each in self.meter.terms if each not in missing)
        return (self.meter.row.predicted or 0.0) / rest * term.value if rest else None

    @property
    def yours(self) -> list[tuple[str, str]]:
        """Kind and width: the terms the learner has, outlined; `hole` for what is missing. One part where nobody knows
        of what their number is made."""
        row, gap, scale = self.meter.row, self.meter.gap, self.scale
        if row.predicted is None:
            return []
        if not self.meter.is_split:
            return [("plain", scale.percent(min(row.predicted, scale.maximum)))]
        missing = gap.missing if gap else ()
        kept = sum(term.value for term in self.meter.terms if term not in missing)
        fit = row.predicted / kept if kept else 1.0
        return [
            ("hole", scale.percent(term.value)) if term in missing else (term.kind, scale.percent(fit * term.value))
            for term in self.meter.terms
        ]


def _fits(name: str, room_px: float) -> bool:
    """Whether a name, broken between its words, has room over a part of a bar."""
    most = int(room_px / _CHARACTER_PX)
    lines = wrap(name, most, break_long_words=False) if most else []
    return 0 < len(lines) <= _NAME_LINES and all(len(line) <= most for line in lines)


def make_scale(predicted: float, theory: float, measured: float, dimension: str, unit: str = "") -> Scale:
    """An axis from 0 that holds all three, in `unit` or in one that suits them."""
    largest = max(predicted, theory, measured) or 1.0
    step = step_for(largest, dimension)
    size, label = (SCALES[unit][1], unit) if unit else (step.size, step.unit)
    scale = round_scale(largest / size, label)
    return Scale(scale.maximum * size, scale.ticks)


def finding(meters: Sequence[Meter]) -> Meter | None:
    """The meter whose gap says most: one with a name before one without, the furthest off first."""
    far = [meter for meter in meters if meter.row.off_by is not None and not meter.row.is_near]
    return max(far, key=lambda meter: (bool(meter.gap and meter.gap.finding), meter.row.off_by or 0), default=None)
