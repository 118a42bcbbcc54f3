"""Step time against memory: everything a search saw, what nothing of it beats, and the plan of the form among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from app.core.charts import Scale, Tick, byte_scale, round_scale
from app.planner.finding import Choice, Option
from app.planner.made import Plan
from app.units import factor_of

SHOWN = 0.95  # of the plans that were seen, the fastest: what is slower stands beyond the axis of time
BELOW = 0.11  # of the picture's height is free below the fastest plan, for its label
MOST = 2.0  # times the fastest: as far the axis goes for them
Place = tuple[str, str]  # percent from the left and from the top


@dataclass(frozen=True)
class OnFront:
    """A plan of the front and its place, on the edge where it lies outside."""

    option: Option
    place: Place
    is_inside: bool


@dataclass(frozen=True)
class Frontier:
    """The scatter. `at` counts the plans of the front that are no larger than the form's, `outside` those that were
    estimated and lie beyond the axes; `yours` stands on the edge where it does; `limit` is what a plan may hold."""

    dots: tuple[Place, ...]
    outside: int
    front: tuple[OnFront, ...]
    path: str
    yours: Place
    is_yours_inside: bool
    at: int
    limit: str
    bytes_scale: Scale
    seconds_ticks: tuple[Tick, ...]
    unit: str


def draw(made: Plan, choice: Choice) -> Frontier | None:
    """The scatter of what a search found; None where it found nothing that fits. Its axes are of what was found alone,
    so that choosing another plan moves neither; the form's plan stands on the edge where it lies beyond them."""
    if not choice.front:
        return None
    by_time = sorted(seconds for seconds, _ in choice.seen)
    fastest, slowest = by_time[0], by_time[ceil(SHOWN * len(by_time)) - 1]
    on_front = max(option.candidate.step_seconds for option in choice.front)
    seconds, held = made.estimate.time.step_seconds or 0.0, made.stage.total
    across = byte_scale([made.usable_bytes, *(size for _, size in choice.seen)])
    low, high, ticks, unit = _seconds_axis(fastest, max(min(slowest, MOST * fastest), on_front))

    def is_inside(seconds: float, held: float) -> bool:
        return low <= seconds <= high and held <= across.maximum

    def place(seconds: float, held: float) -> Place:
        down = (high - min(max(seconds, low), high)) / (high - low)
        return across.percent(min(held, across.maximum)), f"{100 * down:.2f}"

    front = tuple(
        OnFront(option, place(*figures), is_inside(*figures))
        for option in choice.front
        for figures in [(option.candidate.step_seconds, option.candidate.memory_bytes)]
    )
    dots = [place(*each) for each in choice.seen if is_inside(*each)]
    return Frontier(
        tuple(dict.fromkeys(dots)),
        len(choice.seen) - len(dots),
        front,
        _path(front),
        place(seconds, held),
        is_inside(seconds, held),
        sum(option.candidate.memory_bytes <= held for option in choice.front),
        across.percent(min(made.usable_bytes, across.maximum)),
        across,
        ticks,
        unit,
    )


def _seconds_axis(fastest: float, slowest: float) -> tuple[float, float, tuple[Tick, ...], str]:
    """(lowest, highest, ticks from the top in percent, unit): round, and just around what is shown."""
    unit = "s" if fastest >= 1 else "ms"
    size = factor_of(unit)
    whole = round_scale((slowest - fastest) / size, unit)
    step = whole.maximum / (len(whole.ticks) - 1)
    low = int(fastest / size / step) * step
    count = int((slowest / size - low) / step) + 1
    if low > 0 and fastest / size - low < BELOW * step * count:
        low, count = max(low - step, 0), count + 1
    ticks = tuple(Tick(f"{100 - 100 * i / count:.2f}", f"{low + step * i:,.6g}", False) for i in range(count + 1))
    return low * size, (low + step * count) * size, ticks, unit


def _path(front: Sequence[OnFront]) -> str:
    """Steps from the first plan to the last: from each on, nothing is faster until the next."""
    first = front[0].place
    return f"M{first[0]} {first[1]}" + "".join(f"H{each.place[0]}V{each.place[1]}" for each in front[1:])
