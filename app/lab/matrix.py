"""The support matrix as a grid: layouts of axes down, features across, and in each cell what is tested, or why not.

Nothing here says what works. A tested cell is a row of `labs.spec.SUPPORT`, which the tests run on real ranks; for
every other one the lab's own check is asked, with the feature put on the plainest tested layout of these axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from app.words import capital
from labs.spec import SUPPORT, Row, SpecError, Violation, parse_run_spec

State = Literal["exact", "close", "untested", "refused"]
# How each state is said, in a line and after a number.
STATES: Mapping[State, tuple[str, str]] = {
    "exact": ("Tested: exact", "Exact"),
    "close": ("Tested: within a tolerance", "Within a tolerance"),
    "untested": ("Taken, not among the tests", "Not among the tests"),
    "refused": ("Refused", "Refused"),
}
Layout = Mapping[str, Any]
Asked = Mapping[str, object]

_MODEL = {"layers": 8, "hidden": 128, "heads": 8, "vocab": 256}
_ZERO_BY_STAGE = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3")
_ORDER = (*_ZERO_BY_STAGE, "HSDP", "tensor", "sequence", "context", "expert", "pipeline")
_SCHEDULE = ("schedule", "virtual_stages")
_OF_AXES = ("micro_batches", "reshard_after_forward")  # what a layout needs of training, whatever the feature


@dataclass(frozen=True)
class Feature:
    """A column. `has` says of a tested row on a layout whether it is one of it; `fits` of axes whether it applies."""

    key: str
    title: str
    group: str
    has: Callable[[Row, Layout], bool]
    fits: Callable[[tuple[str, ...]], bool] = lambda axes: True


@dataclass(frozen=True)
class Tested:
    """A row of the support matrix on those of its layouts that have the same axes."""

    row: Row
    layouts: tuple[Layout, ...]


@dataclass(frozen=True)
class Cell:
    """tests: what is tested of it, the plainest first. spec: what a run of it asks for; of a refused one, what was."""

    axes: tuple[str, ...]
    feature: Feature
    state: State
    tests: tuple[Tested, ...]
    spec: Mapping[str, object]
    violations: tuple[Violation, ...] = ()

    @property
    def title(self) -> str:
        """`ZeRO-3, tensor: recompute, full`."""
        feature = self.feature.title
        return f"{axes_text(self.axes)}: {feature[0].lower() + feature[1:] if feature[1].islower() else feature}"

    @property
    def words(self) -> str:
        return STATES[self.state][0]


@dataclass(frozen=True)
class Line:
    """The cells of some axes, by feature; None where a feature says nothing of them."""

    axes: tuple[str, ...]
    ranks: tuple[int, ...]
    cells: tuple[Cell | None, ...]

    @property
    def key(self) -> str:
        return "-".join(self.axes).lower()

    @property
    def title(self) -> str:
        return axes_text(self.axes)

    @property
    def size(self) -> str:
        return f"{', '.join(map(str, self.ranks))} ranks"

    def matches(self, words: str) -> bool:
        """Whether every word asked for is a part of what it is called."""
        said = f"{self.title} {self.size}".lower()
        return all(word in said for word in words.lower().replace(",", " ").split())


def _trained(field: str, *values: object) -> Callable[[Row, Layout], bool]:
    return lambda row, layout: row.training.get(field) in values


def _scheduled(*names: str) -> Callable[[Row, Layout], bool]:
    """1F1B is what a pipeline runs that asks for nothing else."""
    return lambda row, layout: layout.get("pipeline", 1) > 1 and layout.get("schedule", "1f1b") in names


def _compressed(*kinds: str) -> Callable[[Row, Layout], bool]:
    return lambda row, layout: row.compression.get("kind") in kinds


def _in_pipeline(axes: tuple[str, ...]) -> bool:
    return "pipeline" in axes


_FEATURES = (
    Feature(
        "bf16-autocast", "bf16 by autocast", "Numbers", lambda row, _: _numbers(row) == ("bf16-mixed", "torch-amp")
    ),
    Feature(
        "bf16-master",
        "bf16, master copy",
        "Numbers",
        lambda row, _: _numbers(row) in (("bf16-mixed", "zero-16"), ("bf16-mixed", "megatron-18")),
    ),
    Feature("fp16", "fp16, loss scaled", "Numbers", _trained("precision", "fp16-mixed")),
    Feature("bf16-throughout", "bf16 throughout", "Numbers", _trained("precision", "bf16")),
    Feature("recompute-selective", "Recompute, selective", "Memory", _trained("recompute", "selective")),
    Feature("recompute-full", "Recompute, full", "Memory", _trained("recompute", "full")),
    Feature("offload-host", "Offload to the host", "Memory", _trained("offload", "optimizer", "all")),
    Feature("offload-file", "Offload to a file", "Memory", _trained("offload", "file")),
    Feature(
        "accumulation",
        "Accumulation",
        "Model, batch",
        lambda row, layout: layout.get("pipeline", 1) == 1 and row.training.get("micro_batches", 1) > 1,
        lambda axes: not _in_pipeline(axes),
    ),
    Feature(
        "shapes",
        "Other shapes",
        "Model, batch",
        lambda row, _: row.model.get("tied_embeddings") is False and "norm" not in row.model,
    ),
    Feature("rotary", "Rotary, RMS norm", "Model, batch", lambda row, _: row.model.get("norm") == "rms"),
    Feature("experts", "Experts", "Model, batch", lambda row, _: "experts" in row.model),
    Feature("gpipe", "GPipe", "Schedule", _scheduled("gpipe"), _in_pipeline),
    Feature("1f1b", "1F1B", "Schedule", _scheduled("1f1b"), _in_pipeline),
    Feature("interleaved", "Interleaved", "Schedule", _scheduled("interleaved"), _in_pipeline),
    Feature("looped-bfs", "Looped BFS", "Schedule", _scheduled("looped-bfs"), _in_pipeline),
    Feature("zero-bubble", "Zero bubble", "Schedule", _scheduled("zero-bubble"), _in_pipeline),
    Feature("zbv", "ZB-V", "Schedule", _scheduled("zbv"), _in_pipeline),
    Feature("dualpipev", "DualPipe-V", "Schedule", _scheduled("dualpipev"), _in_pipeline),
    Feature("sgd", "SGD", "Update", _trained("optimizer", "sgd")),
    Feature("lars-lamb", "LARS, LAMB", "Update", _trained("optimizer", "lars", "lamb")),
    Feature("rounded", "Gradients rounded", "Update", _compressed("fp16", "bf16", "one-bit")),
    Feature("sparse", "Gradients thinned", "Update", _compressed("top-k", "random-k", "powersgd")),
)
# What is plain: fp32 and AdamW, the first model, 1F1B in a pipeline, nothing from the other columns.
_PLAIN = Feature("plain", "Plain, fp32", "Numbers", lambda row, layout: not _beyond_plain(row, layout))
FEATURES: tuple[Feature, ...] = (_PLAIN, *_FEATURES)


def _numbers(row: Row) -> tuple[object, object]:
    return row.training.get("precision", "fp32"), row.training.get("state_layout", "fp32")


def _beyond_plain(row: Row, layout: Layout) -> list[str]:
    """The other columns it is in. Axes bring their 1F1B and their experts along."""
    brought = {"1f1b"} | ({"experts"} if layout.get("expert", 1) > 1 else set())
    return [feature.key for feature in _FEATURES if feature.key not in brought and feature.has(row, layout)]


def axes_of(layout: Layout) -> tuple[str, ...]:
    """The axes along which a layout cuts a run, in the order they are said."""
    axes = [name for name in ("tensor", "context", "expert", "pipeline") if layout.get(name, 1) > 1]
    if layout.get("sequence_parallel"):
        axes.append("sequence")
    if layout.get("data", 1) > 1:
        axes.append("HSDP" if layout.get("shard") else _ZERO_BY_STAGE[layout.get("zero", 0)])
    return tuple(sorted(axes, key=_ORDER.index))


def axes_text(axes: tuple[str, ...]) -> str:
    return capital(", ".join(axes))


def layout_text(layout: Layout) -> str:
    """`data 2, tensor 2, with sequence parallelism`."""
    said = (f"{name.replace('_', ' ')} {value}" for name, value in layout.items() if value is not True)
    flags = (f"with {name.replace('_parallel', ' parallelism')}" for name, value in layout.items() if value is True)
    return ", ".join([*said, *flags])


def example(row: Row, layout: Layout) -> dict[str, object]:
    """A spec that does what `row` says on `layout`."""
    return _spec(layout, row.model, row.training, row.compression)


def _spec(layout: Layout, model: Asked, training: Asked, compression: Asked) -> dict[str, object]:
    """A spec small enough to be run at once."""
    spec: dict[str, object] = {
        "model": {**_MODEL, **model},
        "training": {"sequence": 64, "micro_batch": 1, "steps": 20, **training},
        "parallel": dict(layout),
    }
    return {**spec, "compression": dict(compression)} if compression else spec


@cache
def lines() -> tuple[Line, ...]:
    """The whole grid: a line for every set of axes that is tested at all, few axes first."""
    by_axes: dict[tuple[str, ...], list[tuple[Row, Layout]]] = {}
    for row in SUPPORT:
        for layout in row.layouts:
            by_axes.setdefault(axes_of(layout), []).append((row, layout))
    order = sorted(by_axes, key=lambda axes: (len(axes), [_ORDER.index(axis) for axis in axes]))
    return tuple(_line(axes, by_axes[axes]) for axes in order)


def _line(axes: tuple[str, ...], tested: list[tuple[Row, Layout]]) -> Line:
    ranks = sorted({_ranks(layout) for _, layout in tested})
    plainest = min(tested, key=lambda pair: len(_beyond_plain(*pair)))
    return Line(axes, tuple(ranks), tuple(_cell(axes, feature, tested, plainest) for feature in FEATURES))


def _ranks(layout: Layout) -> int:
    """Expert ranks are data ranks."""
    product = 1
    for name in ("data", "tensor", "context", "pipeline"):
        product *= layout.get(name, 1)
    return product


def _cell(
    axes: tuple[str, ...], feature: Feature, tested: list[tuple[Row, Layout]], plainest: tuple[Row, Layout]
) -> Cell | None:
    if not feature.fits(axes):
        return None
    found = sorted(
        (pair for pair in tested if feature.has(*pair)), key=lambda pair: (len(_beyond_plain(*pair)), _ranks(pair[1]))
    )
    if found:
        rows = {row.id: row for row, _ in found}
        tests = tuple(
            Tested(row, tuple(layout for each, layout in found if each.id == row.id)) for row in rows.values()
        )
        state: State = "exact" if tests[0].row.is_exact else "close"
        return Cell(axes, feature, state, tests, example(*found[0]))
    spec = _with(feature, *plainest)
    try:
        parse_run_spec(spec)
    except SpecError as error:
        return Cell(axes, feature, "refused", (), spec, tuple(error.violations))
    return Cell(axes, feature, "untested", (), spec)


def _with(feature: Feature, row: Row, layout: Layout) -> dict[str, object]:
    """The plainest spec of some axes, with what the plainest row that has the feature asks for."""
    training = {name: row.training[name] for name in _OF_AXES if name in row.training}
    model = {name: value for name, value in row.model.items() if "experts" in name}
    if feature is _PLAIN:
        return _spec(layout, model, training, {})
    having = [(each, tried) for each in SUPPORT for tried in each.layouts if feature.has(each, tried)]
    other, its_layout = min(having, key=lambda pair: len(_beyond_plain(*pair)))
    schedule = {name: its_layout[name] for name in _SCHEDULE if name in its_layout}
    asked = {name: value for name, value in other.training.items() if name != "bucket_bytes"}
    return _spec({**layout, **schedule}, {**model, **other.model}, {**training, **asked}, other.compression)


def find(axes: str, feature: str) -> Cell | None:
    """The cell of an address; None where there is none."""
    for line in lines():
        for cell in line.cells:
            if cell and line.key == axes and cell.feature.key == feature:
                return cell
    return None
