"""The progress page's charts as finished values: places in percent, words and tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import quantiles
from typing import Any

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core.charts import PERCENT_TICKS, Scale, Tick, round_scale
from app.core.share import Share
from app.study.api import Answer, Memory, Retention, seconds_of

FEWEST_WEEKS, MOST_WEEKS = 20, 53  # of a calendar
FEWEST_SPREAD = 30  # cards below which a distribution says nothing
LEVEL_NAMES = {1: "Blank", 2: "Partly wrong", 3: "With effort", 4: "Good", 5: "Easy"}
CELL = 15  # px: a day's square with its gap
FEWEST_TIMED, SHOWN_CONCEPTS = 3, 12


@dataclass(frozen=True)
class Lane:
    """One row of a chart of intervals: everything in percent of the axis, and what the table says."""

    label: str
    says: str
    dot: str | None
    low: str
    high: str
    value: str
    tick: str | None = None
    cells: tuple[str, ...] = ()
    href: str = ""


@dataclass(frozen=True)
class Column:
    """One bar of a histogram."""

    height: str
    count: int
    label: str
    name: str
    is_now: bool = False


@dataclass(frozen=True)
class HeatMap:
    """Reviews per day over `weeks`: squares by how many, months, and the table by month."""

    squares: Mapping[str, str]
    months: Sequence[tuple[int, str]]
    width: int
    now: tuple[int, int]
    steps: Sequence[str]
    rows: Sequence[tuple[str, int, int]]
    total: int
    days_studied: int
    weeks: int

    @property
    def span(self) -> str:
        """The time it covers, in words."""
        return "a year" if self.weeks == MOST_WEEKS else f"{self.weeks} weeks"


def since_begun(counts: Sequence[int]) -> Sequence[int]:
    """The weeks of `counts` from the first with a review on, FEWEST_WEEKS at the least; it begins with a Monday."""
    begun = next((index for index, count in enumerate(counts) if count), len(counts)) // 7
    return counts[7 * min(begun, MOST_WEEKS - FEWEST_WEEKS) :]


def heat_map(counts: Sequence[int], last: date) -> HeatMap:
    """`counts` of consecutive days that end with `last`; weeks are columns, Monday on top."""
    first = last - timedelta(days=len(counts) - 1)
    days = [first + timedelta(days=index) for index in range(len(counts))]
    start = first - timedelta(days=first.weekday())
    busy = sorted(each for each in counts if each)
    bounds = _thirds(busy)
    paths: dict[str, list[str]] = {name: [] for name in ("c0", "c1", "c2", "c3")}
    months: list[tuple[int, str]] = []
    for day, count in zip(days, counts, strict=True):
        week, row = divmod((day - start).days, 7)
        step = 0 if not count else 1 + sum(count >= bound for bound in bounds)
        paths[f"c{step}"].append(f"M{CELL * week} {CELL * row + 6}h12")
        if day.day == 1 or day == days[0]:
            months.append((CELL * week, f"{day:%b}"))
    if len(months) > 1 and months[1][0] - months[0][0] < 2 * CELL:
        months.pop(0)
    week, row = divmod((last - start).days, 7)
    return HeatMap(
        {name: "".join(found) for name, found in paths.items()},
        months,
        CELL * (week + 1),
        (CELL * week - 1, CELL * row - 1),
        _steps(bounds),
        _by_month(days, counts),
        sum(counts),
        len(busy),
        week + 1,
    )


def due_columns(counts: Sequence[int], first: date) -> list[Column]:
    """Cards due per day from today on."""
    days = [first + timedelta(days=index) for index in range(len(counts))]
    most = max([*counts, 1])
    return [
        Column(_part(count, most), count, f"{day:%a}"[:2], f"{day:%A} {day.day} {day:%B}", index == 0)
        for index, (day, count) in enumerate(zip(days, counts, strict=True))
    ]


def retention_lanes(shares: Sequence[Retention]) -> list[Lane]:
    """True retention from 50 to 100 %, with what FSRS expected as a tick."""
    return [
        Lane(
            each.name,
            each.says,
            _from_half(each.share.value),
            _from_half(each.share.interval[0]),
            _from_half(each.share.interval[1]),
            _percent(each.share.value),
            None if each.expected is None else _from_half(each.expected),
            (
                f"{each.share.count:,}",
                f"{each.share.right:,}",
                _percent(each.share.value),
                _interval(each.share),
                "–" if each.expected is None else _percent(each.expected),
            ),
        )
        for each in shares
        if each.share.count
    ]


HALF_TICKS = tuple(
    Tick(f"{2 * (each - 50)}", f"{each}{' %' if each == 100 else ''}", each in (60, 80, 90))
    for each in (50, 60, 70, 80, 90, 100)
)


def histogram(values: Sequence[float], bounds: Sequence[float], labels: Sequence[str]) -> list[Column]:
    """How many values lie from each bound up to the next; the last bin has no end."""
    counts = [0] * len(bounds)
    for value in values:
        counts[max(0, sum(value >= bound for bound in bounds) - 1)] += 1
    most = max([*counts, 1])
    return [Column(_part(count, most), count, label, label) for count, label in zip(counts, labels, strict=True)]


STABILITY = ((0, 2, 7, 21, 60, 180), ("< 2", "2–7", "7–21", "21–60", "60–180", "> 180"))
DIFFICULTY = ((0, 2, 4, 6, 8), ("1–2", "2–4", "4–6", "6–8", "8–10"))
RECALL = ((0, 0.5, 0.7, 0.8, 0.9, 0.95), ("< 50", "50–70", "70–80", "80–90", "90–95", "> 95"))


def recalls(memories: Sequence[Memory], decay: float) -> dict[str, float]:
    """Chance of recall today, by card."""
    factor = 0.9 ** (-1 / decay) - 1
    return {each.card_id: (1 + factor * each.elapsed_days / each.stability) ** -decay for each in memories}


def time_lanes(answers: Sequence[Answer], cards: Mapping[str, Card]) -> tuple[list[Lane], Scale]:
    """Median and middle half of the seconds an answer takes, by deck, slowest first; `cards` by id, own ones too."""
    by_deck: dict[str, list[float]] = {}
    for card_id, seconds in seconds_of(answers).items():
        if card_id in cards:
            by_deck.setdefault(cards[card_id].deck.id, []).extend(seconds)
    titles = {card.deck.id: card.deck.title for card in cards.values()}
    found = {deck: quantiles(each, n=4) for deck, each in by_deck.items() if len(each) >= FEWEST_TIMED}
    scale = round_scale(max((each[2] for each in found.values()), default=1.0), "s")
    ranked = sorted(found, key=lambda deck: -found[deck][1])
    return [_time_lane(titles[deck], found[deck], len(by_deck[deck]), scale) for deck in ranked], scale


def calibration_lanes(shares: Mapping[int, Share]) -> list[Lane]:
    """How often the machine agreed, by what the learner pressed."""
    return [
        Lane(
            f"{level} {LEVEL_NAMES[level]}",
            "",
            f"{100 * share.value:.1f}",
            f"{100 * share.interval[0]:.1f}",
            f"{100 * share.interval[1]:.1f}",
            _percent(share.value),
            None,
            (f"{share.count:,}", f"{share.right:,}", _percent(share.value), _interval(share)),
        )
        for level, share in sorted(shares.items())
    ]


def concept_lanes(recall: Mapping[str, float], answers: Sequence[Answer], catalogue: Catalogue) -> list[Lane]:
    """Mean chance of recall of each concept's cards, from the weakest to the strongest met; weakest first."""
    mine: dict[str, list[float]] = {}
    asked: dict[str, list[bool]] = {}
    for card_id, chance in recall.items():
        for concept in catalogue.cards[card_id].head.concepts if card_id in catalogue.cards else ():
            mine.setdefault(concept, []).append(chance)
    for each in answers:
        if each.elapsed_days and each.card_id in catalogue.cards:
            for concept in catalogue.cards[each.card_id].head.concepts:
                asked.setdefault(concept, []).append(each.rating > 1)
    total = _cards_by_concept(catalogue)
    ranked = sorted(mine, key=lambda concept: sum(mine[concept]) / len(mine[concept]))
    return [
        _concept_lane(catalogue, each, mine[each], total[each], asked.get(each, []))
        for each in ranked
        if each in catalogue.concepts
    ]


def _time_lane(title: str, seconds: Sequence[float], count: int, scale: Scale) -> Lane:
    low, middle, high = seconds
    return Lane(
        title,
        "",
        scale.percent(middle),
        scale.percent(low),
        scale.percent(high),
        f"{middle:.0f} s",
        None,
        (f"{count:,}", f"{middle:.0f} s", f"{low:.0f} to {high:.0f} s"),
    )


def _concept_lane(
    catalogue: Catalogue, concept: str, chances: Sequence[float], cards: int, asked: Sequence[bool]
) -> Lane:
    mean = sum(chances) / len(chances)
    share = f"{sum(asked):,} of {len(asked):,}" if asked else "none yet"
    return Lane(
        catalogue.concepts[concept].title,
        f"{len(chances)} of {cards} cards met",
        f"{100 * mean:.1f}",
        f"{100 * min(chances):.1f}",
        f"{100 * max(chances):.1f}",
        _percent(mean),
        None,
        (_percent(mean), f"{len(chances)} of {cards}", share),
        f"/reference/concepts#{concept}",
    )


def _cards_by_concept(catalogue: Catalogue) -> dict[str, int]:
    found: dict[str, int] = {}
    for card in catalogue.cards.values():
        for concept in card.head.concepts:
            found[concept] = found.get(concept, 0) + 1
    return found


def _by_month(days: Sequence[date], counts: Sequence[int]) -> list[tuple[str, int, int]]:
    rows: dict[str, tuple[int, int]] = {}
    for day, count in zip(days, counts, strict=True):
        reviews, studied = rows.get(f"{day:%B %Y}", (0, 0))
        rows[f"{day:%B %Y}"] = (reviews + count, studied + bool(count))
    return [(month, *found) for month, found in rows.items() if found[0]]


def _thirds(busy: Sequence[int]) -> tuple[int, int]:
    """Where the middle and the upper third of the days studied begin."""
    if not busy:
        return 1, 2
    low, high = busy[len(busy) // 3], busy[2 * len(busy) // 3]
    return max(2, low), max(3, low + 1, high)


def _steps(bounds: tuple[int, int]) -> list[str]:
    low, high = bounds
    first = "1" if low == 2 else f"1 to {low - 1}"
    second = f"{low}" if high - low == 1 else f"{low} to {high - 1}"
    return ["none", first, second, f"{high} and more"]


def _part(count: float, most: float) -> str:
    return f"{100 * count / most:.1f}"


def _from_half(share: float) -> str:
    return f"{max(0.0, 200 * (share - 0.5)):.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _interval(share: Share) -> str:
    low, high = share.interval
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def as_context(**figures: Any) -> dict[str, object]:
    """What every chart's template needs besides."""
    return {"percent_ticks": PERCENT_TICKS, "half_ticks": HALF_TICKS, "shown_concepts": SHOWN_CONCEPTS, **figures}
