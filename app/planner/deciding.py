"""The path of decisions as a page: what it is for, read from the address, and the plan it ends in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.core.charts import Scale, byte_scale
from app.core.errors import SpecError
from app.core.options import Options
from app.planner.fields import FIELDS, OWN, SIZED, fields_of
from app.planner.form import Unread, read_form, unread_of
from app.planner.lists import DECIDED
from app.planner.made import StageBar
from app.planner.mending import OWN_SEQUENCE
from app.planner.readers import Tokens
from app.planner.service import held_of
from app.theory.hardware import GPUS
from app.theory.planner import Candidate
from app.theory.planner.asking import USABLE
from app.theory.planner.deciding import Decision, decide
from app.theory.planner.engine.memory import COMPONENTS
from app.theory.planner.kinds import Asked, fits
from app.theory.planner.space import divisors
from app.theory.presets import PRESETS
from app.units import count_text
from app.words import capital, counted

NAMES = ("model", "parameters", "gpu", "ranks", "sequence", "global_batch")
LONGEST = 1.6  # times what fits, to which a bar that does not is drawn
STEP_TOKENS = 2**22  # of a global batch that is not given: four million, as large runs take


@dataclass(frozen=True)
class Path:
    """What the page shows. `typed` and `errors` are by field; `plan` and `search` are addresses in the planner, `plan`
    empty where none fits; `tried` is what a GPU holds under the plan of each kind, of which it may hold
    `usable_bytes`, on an axis on which longer bars are broken."""

    typed: Mapping[str, str]
    errors: Mapping[str, str]
    title: str
    decision: Decision
    plan: str
    search: str
    unread: tuple[Unread, ...]
    lists: Mapping[str, Options]
    tried: tuple[StageBar, ...]
    usable_bytes: float
    scale: Scale

    @property
    def is_sized(self) -> bool:
        """Whether the model is one's own, of which the size is asked."""
        return self.typed["model"] == SIZED

    def is_broken(self, bar: StageBar) -> bool:
        """Whether a bar is longer than the axis."""
        return bar.total > self.scale.maximum

    def drawn(self, bar: StageBar) -> dict[str, float]:
        """Of a bar's components what the axis has room for."""
        left, found = self.scale.maximum, dict[str, float]()
        for name in COMPONENTS:
            found[name] = min(bar.bytes[name], left)
            left -= found[name]
        return found


def path(form: Mapping[str, str]) -> Path:
    """The decisions for a form. What cannot be read is replaced, and says so at its place."""
    typed = {name: form.get(name, FIELDS[name].start).strip() for name in NAMES}
    errors: dict[str, str] = {}
    values = {name: _read(name, typed[name], errors) for name in NAMES}
    gpu, ranks = GPUS[values["gpu"]], values["ranks"]
    title, model, own = _model(values, typed, errors)
    sequence = values["sequence"] or own
    batch = _batch(values["global_batch"], sequence, ranks)
    joined = min(gpu.scale_up_gpus, ranks)
    per_node = max(each for each in divisors(ranks) if each <= joined)
    found = decide(Asked(model, gpu.name, ranks, per_node, sequence, batch))
    asked = {name: str(values[name]) for name in ("model", "gpu", "ranks")}
    asked |= {"sequence": str(sequence), "global_batch": str(batch)}
    if values["model"] == SIZED:
        asked["parameters"] = f"{values['parameters']:g}"
    nodes = ""
    if per_node < joined:
        asked["gpus_per_node"], nodes = str(per_node), f" in nodes of {per_node:,}"
    title += f" on {ranks:,} × {gpu.title}{nodes}, {counted(batch, 'sequence')} of {counted(sequence, 'token')}"
    # Counted as a plan is that leaves its software open, so the address leaves it open.
    query = urlencode(asked | (fields_of(found.chosen.request) | {"profile": ""} if found.chosen else {}))
    plan = f"/planner?{query}" if found.chosen else ""
    search = f"/planner?{query}&find=1#p-find"
    unread = tuple(unread_of(form, NAMES))
    tried = tuple(_bar(found, each.kind, each.tried) for each in found.questions if each.tried)
    usable = USABLE * gpu.capacity_bytes
    return Path(typed, errors, title, found, plan, search, unread, DECIDED, tried, usable, _scale(tried, usable))


def _scale(tried: tuple[StageBar, ...], usable: float) -> Scale:
    """An axis for what fits: a bar that is much longer is broken at its end, or it would squash all others."""
    fitting = max([usable, *(each.total for each in tried if each.fits)])
    return byte_scale([fitting, *(min(each.total, LONGEST * fitting) for each in tried)])


def _bar(decision: Decision, kind: str, tried: Candidate) -> StageBar:
    """What a GPU holds under the plan that a kind comes to."""
    return StageBar(
        capital(kind) + (", the plan" if tried == decision.chosen else ""),
        held_of(tried.estimate.memory.per_rank_bytes),
        fits(tried.estimate),
        step_seconds=tried.step_seconds,
    )


def _model(values: dict[str, Any], typed: Mapping[str, str], errors: dict[str, str]) -> tuple[str, Any, int]:
    """(title, what an EstimateRequest calls it, its own sequence) of a published model, or of a size with a shape."""
    if values["model"] != SIZED:
        preset = PRESETS[values["model"]]
        return preset.title, preset.name, preset.sequence
    form = read_form({name: typed[name] for name in ("model", "parameters", "sequence")})
    errors |= {name: text for name, text in form.errors.items() if name in NAMES}
    shape = form.shape
    assert shape is not None, "it has a derived shape"
    return f"{count_text(form.values['parameters'])} parameters", shape.model_dump(exclude_defaults=True), OWN_SEQUENCE


def _batch(given: int | Tokens | None, sequence: int, ranks: int) -> int:
    """Sequences of a step, of which every rank takes as many."""
    if isinstance(given, int):
        return given
    return (given or Tokens(STEP_TOKENS)).sequences(sequence, ranks, ranks)


def _read(name: str, text: str, errors: dict[str, str]) -> Any:
    field = FIELDS[name]
    if not text and field.absent:
        return None
    try:
        value = field.read(name, text)
        if name == "model" and value == OWN:
            raise KeyError(value)
    except SpecError as error:
        (violation,) = error.violations
        errors[name] = f"{violation.message} Accepted: {violation.accepted}."
    except KeyError:
        errors[name] = "Model state alone has no layers to divide: choose a model, or a size with a shape."
    else:
        return value
    return field.read(name, field.start) if field.start else None
