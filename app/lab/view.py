"""A run as a page shows it: its events folded into what stands now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any

from app.core.charts import Scale, byte_scale
from app.lab.quantities import is_right, value_text
from app.theory.lab_runs import Point
from labs.spec import Quantity

COMPONENTS = ("parameters", "gradients", "optimizer", "activations", "temporary")
LOG_LINES = 200


@dataclass(frozen=True)
class RankMemory:
    """What one rank held at the peak of a step."""

    rank: int
    bytes: Mapping[str, float]

    @property
    def label(self) -> str:
        return f"Rank {self.rank}"

    @property
    def total(self) -> float:
        return sum(self.bytes.values())


@dataclass(frozen=True)
class Transfer:
    """Collectives of one kind on one rank in one step."""

    title: str
    operation: str
    count: int
    payload_bytes: float
    wire_bytes: float
    seconds: float
    expected_payload_bytes: float | None


@dataclass(frozen=True)
class Reading:
    """What a strategy reported of itself in its last step so far, on rank 0."""

    name: str
    step: int
    value: float
    unit: str


@dataclass
class RunView:
    """Where a run stands, from its events."""

    phase: str = ""
    steps_done: int = 0
    last_step: dict[str, Any] | None = None
    memory_step: int | None = None
    memory_during: str = ""
    memory: list[RankMemory] = field(default_factory=list)
    state: list[RankMemory] = field(default_factory=list)
    transfers_step: int | None = None
    transfers: list[Transfer] = field(default_factory=list)
    spans: list[Mapping[str, Any]] = field(default_factory=list)
    split: Mapping[str, float] | None = None
    readings: list[Reading] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    log_dropped: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def worst(self) -> RankMemory | None:
        return max(self.memory, key=lambda each: each.total, default=None)

    def memory_scale(self, *others: float) -> Scale:
        """One axis for both pictures of memory, so that they may be compared."""
        return byte_scale([*(each.total for each in self.memory), *(each.total for each in self.state), *others])


def fold(events: Iterable[Mapping[str, Any]], theory: Mapping[str, Any]) -> RunView:
    """The view after `events`, communication beside what `theory` expects of it."""
    view = RunView()
    memory: dict[int, dict[int, dict[str, Any]]] = {}
    state: dict[int, dict[str, Any]] = {}
    traffic: dict[int, list[Mapping[str, Any]]] = {}
    readings: dict[str, Reading] = {}
    for event in events:
        kind = event["kind"]
        if kind == "phase":
            _enter(view, event)
        elif kind == "step":
            view.steps_done, view.last_step = event["step"], dict(event)
            view.split = event.get("split") or view.split
        elif kind == "memory" and event["at"] == "peak":
            memory.setdefault(event["step"], {})[event["rank"]] = dict(event)
        elif kind == "memory" and event["at"] == "step_end":
            state[event["rank"]] = dict(event)
        elif kind == "communication" and event["rank"] == 0:
            traffic.setdefault(event["step"], []).append(event)
        elif kind == "span":
            _keep_span(view, event)
        elif kind == "measurement" and "figure" in event:
            _keep_point(view, event)
        elif kind == "measurement" and event["rank"] == 0 and event.get("y") is not None:
            name = str(event["name"])
            readings[name] = Reading(name, event["x"], float(event["y"]), str(event.get("unit") or ""))
        elif kind == "log":
            view.log.append(dict(event))
    if memory:
        view.memory_step = max(memory)
        view.memory_during = str(next(iter(memory[view.memory_step].values())).get("during") or "")
        view.memory = [_rank(rank, event) for rank, event in sorted(memory[view.memory_step].items())]
    view.state = [_state(rank, event) for rank, event in sorted(state.items())]
    if traffic:
        view.transfers_step = max(traffic)
        view.transfers = _transfers(traffic[view.transfers_step], theory)
    view.readings = list(readings.values())
    view.log_dropped = max(0, len(view.log) - LOG_LINES)
    view.log = view.log[-LOG_LINES:]
    return view


def _enter(view: RunView, event: Mapping[str, Any]) -> None:
    view.phase = event["phase"]
    if event["phase"] == "failed":
        view.failures.append({"rank": event["rank"], **(event.get("detail") or {})})


def _keep_span(view: RunView, event: Mapping[str, Any]) -> None:
    """Those of the last watched step only."""
    if view.spans and view.spans[-1]["step"] < event["step"]:
        view.spans = []
    view.spans.append(event)


def _keep_point(view: RunView, event: Mapping[str, Any]) -> None:
    """A point of a program's figure, from whichever rank measured it."""
    x, y = event.get("x"), event.get("y")
    if isinstance(x, int | float) and isinstance(y, int | float):
        view.points.append(Point(str(event["figure"]), str(event["name"]), float(x), float(y)))


def _rank(rank: int, event: Mapping[str, Any]) -> RankMemory:
    return RankMemory(rank, {name: float(event["bytes"].get(name, 0)) for name in COMPONENTS})


def _state(rank: int, event: Mapping[str, Any]) -> RankMemory:
    """Only what persists from step to step: the model state."""
    kept = ("parameters", "gradients", "optimizer")
    return RankMemory(rank, {name: float(event["bytes"].get(name, 0)) if name in kept else 0.0 for name in COMPONENTS})


def _transfers(events: list[Mapping[str, Any]], theory: Mapping[str, Any]) -> list[Transfer]:
    known = _by_kind(theory.get("transfers", []))
    rows: dict[tuple[str, str, str], list[float]] = {}
    for event in events:
        key = (event["operation"], event.get("phase", ""), event.get("group", "data"))
        row = rows.setdefault(key, [0, 0.0, 0.0, 0.0])
        for i, name in enumerate(("count", "payload_bytes", "wire_bytes", "seconds")):
            row[i] += event.get(name) or 0
    return [
        Transfer(
            _title(key, known.get(key)),
            key[0],
            int(row[0]),
            row[1],
            row[2],
            row[3],
            known[key]["payload_bytes"] if key in known else None,
        )
        for key, row in rows.items()
    ]


def _by_kind(transfers: list[Mapping[str, Any]]) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Theory's transfers by operation, phase and group: what a ledger cannot tell apart is added up, all its names
    given."""
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for each in transfers:
        key = (each["operation"], each["phase"], each.get("group", "data"))
        before = found.get(key, {"payload_bytes": 0.0})
        titles = filter(None, (before.get("title"), each.get("title")))
        together = {"title": "; ".join(titles), "payload_bytes": before["payload_bytes"] + each["payload_bytes"]}
        found[key] = {**each, **together}
    return found


def _title(key: tuple[str, str, str], known: Mapping[str, Any] | None) -> str:
    """Theory's name for it; by its operation and phase where theory does not know it."""
    if known is not None and known.get("title"):
        return str(known["title"])
    return f"{key[0].replace('_', '-').capitalize()}, {key[1]}"


@dataclass(frozen=True)
class Comparison:
    """One quantity: what was predicted, what theory says, what was measured. Positions are percent of a log axis."""

    title: str
    dimension: str
    text: str | None
    predicted: float | None
    theory: float | None
    measured: float | None
    within: float | None

    @property
    def off_by(self) -> float | None:
        """The ratio between prediction and measurement, 1 or more."""
        if self.predicted is not None and self.predicted == self.measured:
            return 1.0  # both may be zero
        if not self.predicted or not self.measured:
            return None
        return max(self.predicted / self.measured, self.measured / self.predicted)

    def said(self, value: float | None) -> str:
        return "–" if value is None else value_text(value, self.dimension)

    @property
    def verdict(self) -> str:
        if self.off_by is None:
            return "not predicted" if self.predicted is None else "–"
        if self.off_by < 1.005:
            return "exact"
        return f"{self.off_by:.2f} ×" if self.off_by < 100 else "over 100 ×"

    @property
    def missed(self) -> bool:
        """Whether what was predicted was not what came out, near enough."""
        if self.predicted is None or self.measured is None:
            return False
        return not is_right(self.predicted, self.measured, self.dimension)

    @property
    def kept_confidence(self) -> bool | None:
        """Whether the measurement lies within what the learner was sure of."""
        if self.within is None or self.off_by is None:
            return None
        return self.off_by <= self.within

    def at(self, value: float | None) -> str | None:
        """Where `value` stands on an axis from a quarter to four times the measurement (or theory)."""
        base = self.measured or self.theory
        if not value or not base:
            return None
        return f"{min(98.0, max(2.0, 50 + 50 * log(value / base) / log(4))):.2f}"


def compare(
    quantities: Mapping[str, Quantity],
    prediction: Mapping[str, Any] | None,
    theory: Mapping[str, Any],
    result: Mapping[str, Any] | None,
) -> list[Comparison]:
    """Prediction, theory and measurement of each of `quantities`."""
    rows = []
    for name, quantity in quantities.items():
        said = (prediction or {}).get(name)
        rows.append(
            Comparison(
                quantity.title,
                quantity.dimension,
                said["text"] if said else None,
                said["value"] if said else None,
                theory.get(name),
                (result or {}).get(name),
                said.get("within") if said else None,
            )
        )
    return rows
