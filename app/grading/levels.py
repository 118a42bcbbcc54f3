"""The one table of levels: from a score to a level, and what holds it down. Rubrics and interviews use it alike."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Literal

Level = Literal["strong hire", "hire", "lean no hire", "no hire"]

DIGITS = 4  # of a score, as it is stored and sent: the level is that of the score somebody sees


@dataclass(frozen=True)
class Threshold:
    """A level and the least score, 0 to 1, that reaches it."""

    level: Level
    least: float

    @property
    def least_percent(self) -> str:
        return f"{percent(self.least)} %"


THRESHOLDS = (
    Threshold("strong hire", 0.80),
    Threshold("hire", 0.60),
    Threshold("lean no hire", 0.35),
    Threshold("no hire", 0.0),
)
NAMES: tuple[Level, ...] = tuple(each.level for each in THRESHOLDS)
CAP: Level = (
    "lean no hire"  # the best that an answer with a critical mistake can be, and the least of right definitions
)

# What of an interview's points has to be reached without being asked about, for each level at least: what comes only
# when an interviewer points at it is known, and would not be used.
UNAIDED: dict[Level, float] = {"strong hire": 0.7, "hire": 0.45, "lean no hire": 0.25}
# A strong hire vouches for more than answers, and what was not shown cannot be vouched for.
STRONG_RATED = 3  # of the five criteria, that an interview asked for enough to rate
STRONG_WEAK = 1  # of them that may be at lean no hire or below
STRONG_CAP: Level = "hire"  # without these, without a right number of one's own, or with a program that does not pass

UNDECIDED_CAP: Level = "hire"  # the best without the stance that a question asks for


def rounded(score: float) -> float:
    """A score as it is stored: 0.7999999999999999, the sum of eight tenths, is 0.8."""
    return round(score, DIGITS)


def share(reached: float, points: float) -> float:
    """The score of so many points reached; 0 where there are none to reach."""
    return rounded(reached / points) if points else 0.0


def percent(score: float) -> int:
    """A score in whole per cent, rounded to the nearest one that promises no more than was reached: 79.6 % must not
    read as the 80 % of a strong hire, nor 99.7 % as all of it."""
    exact = 100 * rounded(score)
    nearest = floor(exact + 0.5)
    bounds = (1.0, *UNAIDED.values(), *(each.least for each in THRESHOLDS))
    return floor(exact + 1e-9) if any(rounded(score) < each <= nearest / 100 for each in bounds) else nearest


def level_of(score: float, capped: bool = False, lifted: bool = False, undecided: bool = False) -> Level:
    """The level of a score from 0 to 1: `capped` to lean no hire at most, or `lifted` to it at least; hire at most
    where it is `undecided`."""
    level = next(each.level for each in THRESHOLDS if rounded(score) >= each.least)
    if capped and is_at_least(level, CAP):
        return CAP
    if undecided and is_at_least(level, UNDECIDED_CAP):
        return UNDECIDED_CAP
    return CAP if lifted and not is_at_least(level, CAP) else level


def unaided_cap(score: float) -> Level:
    """The best level that goes with so much reached without being asked about, 0 to 1."""
    return next((level for level, least in UNAIDED.items() if rounded(score) >= least), NAMES[-1])


def lower(level: Level, other: Level) -> Level:
    """The lower one of two levels."""
    return max(level, other, key=NAMES.index)


def following(score: float) -> Threshold | None:
    """The level that a score falls short of next; None at the best one."""
    return above(level_of(score))


def above(level: Level) -> Threshold | None:
    """The next better level; None above the best."""
    return THRESHOLDS[NAMES.index(level) - 1] if level != NAMES[0] else None


def middle(level: Level) -> int:
    """The middle of a level's stretch of the scale, in whole per cent: where somebody stands who says no more."""
    ends = (1.0, *(each.least for each in THRESHOLDS))
    at = NAMES.index(level)
    return percent((ends[at] + ends[at + 1]) / 2)


def is_at_least(level: Level, other: Level) -> bool:
    """Whether `level` is as good as `other` or better."""
    return NAMES.index(level) <= NAMES.index(other)


def reaches(score: float, level: Level) -> bool:
    """Whether a score is of `level` or a better one."""
    return is_at_least(level_of(score), level)


def least_percent(level: Level) -> str:
    """Where a level starts, for a page."""
    return next(each.least_percent for each in THRESHOLDS if each.level == level)


def for_page() -> dict[str, object]:
    """What a template needs to say a score and where the levels start, best first."""
    ends = (1.0, *(each.least for each in THRESHOLDS))
    return {
        "thresholds": THRESHOLDS[:-1],
        "unaided": UNAIDED,
        "strong_rated": STRONG_RATED,
        "percent": percent,
        "cap": CAP,
        "middle": middle,
        # every level from the lowest up, with the per cent of the scale that are its own
        "spans": [(each, percent(end - each.least)) for each, end in zip(THRESHOLDS, ends, strict=False)][::-1],
    }
