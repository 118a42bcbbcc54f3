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
_REACH = 2  # powers of two to either side of what was measured
TICKS = tuple(
    Tick(f"{100 * (power + _REACH) / (2 * _REACH):g}", text, False)
    for power, text in ((-2, "¼"), (-1, "½"), (0, "measured"), (1, "2"), (2, "4 ×"))
)


@dataclass(frozen=True)
class GuessLane:
    """The predictions of one kind: where each stands, and their middle, in percent of the axis; the cells of the table.

    `says` sums up how often the measurement lay inside the range that was given.
    """

    label: str
    dots: tuple[tuple[str, str], ...]
    middle: str
    value: str
    says: str
    cells: tuple[str, ...]
    href: str = ""


def lanes(guesses: Sequence[Guess]) -> list[GuessLane]:
    """A lane for each kind that was predicted, in the order of the table above; kinds without a name come last."""
    by_kind: dict[str, list[Guess]] = {title: [] for title in _KINDS.values()}
    for guess in guesses:
        by_kind.setdefault(_KINDS.get(guess.dimension, "Rates"), []).append(guess)
    return [_lane(kind, of_kind) for kind, of_kind in by_kind.items() if of_kind]


def ranges(guesses: Sequence[Guess]) -> tuple[int, int]:
    """How often the measurement lay inside a range that was given, of how many that were."""
    given = [guess.is_inside for guess in guesses if guess.is_inside is not None]
    return sum(given), len(given)


def _lane(kind: str, guesses: Sequence[Guess]) -> GuessLane:
    inside, given = ranges(guesses)
    middle = median(guess.ratio for guess in guesses)
    off = exp(sum(abs(log(guess.ratio)) for guess in guesses) / len(guesses))
    return GuessLane(
        kind,
        tuple((_place(guess.ratio), "miss" if guess.is_inside is False else "") for guess in guesses),
        _place(middle),
        f"{inside} of {given}" if given else f"{len(guesses)}",
        "inside your range" if given else "without a range",
        (f"{len(guesses)}", f"{middle:.2f} ×", f"{off:.2f} ×", f"{inside} of {given}" if given else "–"),
    )


def _place(ratio: float) -> str:
    """On a log scale, in percent; what lies beyond it stands at its end."""
    return f"{min(100.0, max(0.0, 50 + 50 * log2(ratio) / _REACH)):.1f}"
