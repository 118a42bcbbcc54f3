"""What a learner predicted of runs, over what was measured: a lane for each kind of quantity. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log2
from statistics import median

from app.core.charts import Tick
from app.lab.predictions import Guess

_KINDS = {
    "bytes": "Bytes",
    "seconds": "Time",
    "fraction": "Shares",
    "count": "Counts",
    "flop": "FLOPs",
}
_FEWEST = 3  # predictions that have a middle to speak of
_REACHES = (2, 4, 6)  # powers of two to either side of what was measured, up to 64 times it
_BELOW = {1: "½", 2: "¼", 3: "⅛"}  # as type has them


@dataclass(frozen=True)
class GuessLane:
    """The predictions of one kind: where each stands, and their middle, in percent of the axis, empty of fewer
    than `_FEWEST`; the cells of the table.

    `says` sums up how often the measurement lay inside the range that was given.
    """

    label: str
    dots: tuple[tuple[str, str], ...]
    middle: str
    value: str
    says: str
    cells: tuple[str, ...]
    href: str = ""


def reach_of(guesses: Sequence[Guess]) -> int:
    """How many powers of two the axis reaches to either side: as far as the guesses do, if it can."""
    furthest = max((abs(log2(guess.ratio)) for guess in guesses), default=0.0)
    return next((reach for reach in _REACHES if furthest <= reach), _REACHES[-1])


def ticks_of(guesses: Sequence[Guess]) -> tuple[Tick, ...]:
    """The axis from one over to as many times what was measured as `reach_of` has it."""
    reach = reach_of(guesses)
    return tuple(
        Tick(f"{100 * (power + reach) / (2 * reach):g}", _tick(power, reach), False)
        for power in range(-reach, reach + 1, reach // 2)
    )


def _tick(power: int, reach: int) -> str:
    if power == 0:
        return "measured"
    if power < 0:
        return _BELOW.get(-power, f"1/{2**-power}")
    return f"{2**power}{' ×' if power == reach else ''}"


def lanes(guesses: Sequence[Guess]) -> list[GuessLane]:
    """A lane for each kind that was predicted, in the order of the table above; kinds without a name come last."""
    by_kind: dict[str, list[Guess]] = {title: [] for title in _KINDS.values()}
    for guess in guesses:
        by_kind.setdefault(_KINDS.get(guess.dimension, "Rates"), []).append(guess)
    reach = reach_of(guesses)
    return [_lane(kind, of_kind, reach) for kind, of_kind in by_kind.items() if of_kind]


def ranges(guesses: Sequence[Guess]) -> tuple[int, int]:
    """How often the measurement lay inside a range that was given, of how many that were."""
    given = [guess.is_inside for guess in guesses if guess.is_inside is not None]
    return sum(given), len(given)


def _lane(kind: str, guesses: Sequence[Guess], reach: int) -> GuessLane:
    inside, given = ranges(guesses)
    middle = median(guess.ratio for guess in guesses)
    has_middle = len(guesses) >= _FEWEST
    off = exp(sum(abs(log(guess.ratio)) for guess in guesses) / len(guesses))
    return GuessLane(
        kind,
        tuple((_place(guess.ratio, reach), "miss" if guess.is_inside is False else "") for guess in guesses),
        _place(middle, reach) if has_middle else "",
        f"{inside} of {given}" if given else f"{len(guesses)}",
        "inside your range" if given else "without a range",
        (
            f"{len(guesses)}",
            f"{middle:.2f} ×" if has_middle else "–",
            f"{off:.2f} ×",
            f"{inside} of {given}" if given else "–",
        ),
    )


def _place(ratio: float, reach: int) -> str:
    """On a log scale, in percent; what lies beyond it stands at its end."""
    return f"{min(100.0, max(0.0, 50 + 50 * log2(ratio) / reach)):.1f}"
