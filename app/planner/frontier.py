"""Step time against memory: everything a search saw, what nothing of it beats, and the plan of the form among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.charts import Scale, Tick, byte_scale, round_scale
from app.planner.finding import Choice, Option
from app.planner.made import Plan
from app.theory.planner.asking import USABLE
from app.units import factor_of

SHOWN = 2.0  # times the fastest: as far the axis of time goes for what is merely slow
MOST = 3.0  # times the fastest, or a GPU's memory: the front and the form's plan widen the axes up to there
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
    """The scatter of what a search found; None where it found nothing that fits. Its axes hold the form's plan and the
    ones it came from, so that choosing another moves neither; beyond `MOST` these stand on the edge."""
    if not choice.front:
        return None
    fastest = min(seconds for seconds, _ in choice.seen)
    slowest = max(seconds for seconds, _ in choice.seen)
    on_front = max(option.candidate.step_seconds for option in choice.front)
    seconds, held = made.estimate.time.step_seconds or 0.0, made.stage.total
    reach_seconds, reach_bytes = (max(both) for both in zip(made.form.reach, (seconds, held), strict=True))
    across = byte_scale([made.capacity, *(size for _, size in choice.seen), min(reach_bytes, MOST * made.capacity)])
    wanted = max(min(slowest, SHOWN * fastest), on_front, reach_seconds if reach_seconds <= MOST * fastest else 0.0)
    highest = min(wanted, MOST * fastest)
    low, high, ticks, unit = _seconds_axis(fastest, highest)

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
        across.percent(USABLE * made.capacity),
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
    ticks = tuple(Tick(f"{100 - 100 * i / count:.2f}", f"{low + step * i:,.6g}", False) for i in range(count + 1))
    return low * size, (low + step * count) * size, ticks, unit


def _path(front: Sequence[OnFront]) -> str:
    """Steps: from each plan on, nothing is faster until the next."""
    first = front[0].place
    return f"M{first[0]} 0V{first[1]}" + "".join(f"H{each.place[0]}V{each.place[1]}" for each in front[1:]) + "H100"
