"""Who holds what under a ZeRO stage, through one step: area is bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from markupsafe import Markup

from app.content.players.player import Choice, Control, Frame, Player, Range, Settings, boxes, path, picture, rank_names
from app.theory.collectives import half_ring_bytes, ring_all_reduce_bytes
from app.theory.state import LAYOUTS, StateLayout
from app.theory.zero_step import Unit, ZeroState, equal_layers, zero_step
from app.units import bytes_text

_PIXELS_A_BYTE = 6.0
_COMPONENTS = ("parameters", "gradients", "optimizer")
_SENT = "Sent per rank"
_RANK, _PAD = 100.0, 5.0
_THINNEST = 0.6  # of a unit's cell
_MANY = 4  # ranks beyond which a picture needs more than a quarter of the page
CONTROLS: tuple[Control, ...] = (
    Choice("stage", "ZeRO stage", (("0", "None"), ("1", "ZeRO-1"), ("2", "ZeRO-2"), ("3", "ZeRO-3")), "3"),
    Range("ranks", "Ranks", 2, 8, 4, "n"),
)


@dataclass(frozen=True)
class Trained:
    """What is stepped through: units in the order of forward, and the bytes that each parameter's state takes.

    has_payload: whether the sizes of the tensors handed over are counted besides what is sent for them.
    """

    says: str
    units: tuple[Unit, ...]
    layout: StateLayout = LAYOUTS["zero-16"]
    micro_batches: int = 1
    has_payload: bool = False

    @property
    def parameters(self) -> float:
        return sum(unit.parameters for unit in self.units)


SEVEN_BILLION = Trained("7B parameters in four layers", equal_layers(7e9, 4))


def make(settings: Settings, at: int | None, model: Trained = SEVEN_BILLION) -> Player:
    stage, ranks = int(settings["stage"]), int(settings["ranks"])
    states = zero_step(model.units, ranks, stage, model.layout, model.micro_batches)
    held = [state.held_bytes(model.units, model.layout) for state in states]
    totals = [sum(each.values()) for each in held]
    whole, sent = model.layout.total * model.parameters, states[-1].sent_bytes
    words = _Words(model, stage, ranks, states[-1])
    frames = [
        Frame(
            html=_drawn(state, ranks, model),
            says=Markup(words.of(state)),  # noqa: S704 - numbers and the words below
            counters=(_bytes(total), _bytes(max(totals)), *_counted(state, states[-1], model)),
            bar=tuple((name, f"{100 * each[name] / whole:.4g}") for name in _COMPONENTS),
        )
        for state, each, total in zip(states, held, totals, strict=True)
    ]
    phases = [(name, sum(state.phase == name.lower() for state in states)) for name in ("Forward", "Backward", "Step")]
    phases[0] = ("Forward", phases[0][1] - 1)  # before the step is no step
    what = f"ZeRO-{stage}" if stage else "Plain data parallelism"
    return Player(
        figure="zero",
        title=f"{what}, one step on {ranks} ranks",
        controls=CONTROLS,
        settings=settings,
        frames=tuple(frames),
        counters=("Held now, each rank", "Most in this step", *(["Payload"] if model.has_payload else []), _SENT),
        phases=tuple(phases),
        key=(*((name, name) for name in _COMPONENTS), ("computing", "computing"), ("sending", "sending")),
        says=(
            f"{what} of {model.says} on {ranks} ranks: a rank holds at most {_bytes(max(totals))} "
            f"and sends {_bytes(sent)} in the step."
        ),
        head=("Step", "What happens", "Parameters", "Gradients", "Optimizer", "Sent"),
        rows=tuple(
            (
                str(index),
                frame.says.striptags(),
                *(_bytes(each[name]) for name in _COMPONENTS),
                _bytes(state.sent_bytes),
            )
            for index, (state, each, frame) in enumerate(zip(states, held, frames, strict=True))
        ),
        few=_few(states, len(model.units), ranks),
        at=min(len(states) - 1, _peak(totals) if at is None else at),
        still=rank_names(ranks),
        columns=ranks,
    )


def _bytes(value: float) -> str:
    """To four digits, so that parts add up to their sum as it is written."""
    return bytes_text(value, 4) if value else "0 B"


def _counted(state: ZeroState, end: ZeroState, model: Trained) -> tuple[str, ...]:
    """What was handed over and sent so far, of how much in the step."""
    payload = f"{_bytes(state.payload_bytes)} of {_bytes(end.payload_bytes)}"
    sent = f"{_bytes(state.sent_bytes)} of {_bytes(end.sent_bytes)}"
    return (payload, sent) if model.has_payload else (sent,)


def _peak(totals: Sequence[float]) -> int:
    return max(range(len(totals)), key=lambda index: totals[index])


def _few(states: Sequence[ZeroState], units: int, ranks: int) -> tuple[int, ...]:
    """One layer's way forward and back, and the end; of many ranks every other one, which has more room then."""
    middle = [index for index, state in enumerate(states) if state.unit == units - 1]
    every = list(dict.fromkeys([0, *middle, len(states) - 2, len(states) - 1]))
    return tuple(every if ranks <= _MANY else [*every[:-1:2], every[-1]])


def _drawn(state: ZeroState, ranks: int, model: Trained) -> Markup:
    shares = {
        "parameters": state.parameters,
        "gradients": state.gradients,
        "optimizer": (state.optimizer,) * len(model.units),
    }
    rows = Markup("")
    for name in _COMPONENTS:
        height = getattr(model.layout, name) * _PIXELS_A_BYTE
        rows += Markup('<p class="what"><i class="{}"></i>{}, {} bytes</p>').format(
            name, name.capitalize(), f"{getattr(model.layout, name):g}"
        )
        rows += _row(shares[name], ranks, model, height, name, _lit(name, state))
    return rows


def _row(
    shares: Sequence[float], ranks: int, model: Trained, height: float, name: str, lit: tuple[str, tuple[int, ...]]
) -> Markup:
    outlines, filled, marked = [], [], []
    for rank in range(ranks):
        for unit, (part, (left, width)) in enumerate(zip(shares, _columns(model), strict=True)):
            x = rank * _RANK + left
            outlines.append((x, 1.0, width, height))
            if part:
                start = rank / ranks * width if part < 1 else 0.0
                filled.append((x + start, 1.0, part * width, height))
            if unit in lit[1]:
                marked.append((x, 1.0, width, height))
    marks = path("cell", boxes(outlines)) + path(name, boxes(filled)) + path(lit[0], boxes(marked))
    return picture(ranks * _RANK, height + 4, marks, "cells")


def _columns(model: Trained) -> list[tuple[float, float]]:
    """Where each unit's cell begins in a rank's column, and its width: as much of it as it has of the parameters."""
    widths = [(_RANK - 2 * _PAD) * unit.parameters / model.parameters for unit in model.units]
    ends = accumulate(widths)
    return [
        (_PAD + end - width + min(1.0, width / 4), max(_THINNEST, width - 2))
        for width, end in zip(widths, ends, strict=True)
    ]


def _lit(name: str, state: ZeroState) -> tuple[str, tuple[int, ...]]:
    """What of a component is computed with or sent in a move."""
    every = tuple(range(len(state.parameters)))
    units = every if state.unit is None else (state.unit,)
    computing = {
        "forward": ("parameters",),
        "backward": ("parameters", "gradients"),
        "update": ("parameters", "optimizer"),
    }
    sending = {
        "gather": ("parameters",),
        "gather again": ("parameters",),
        "gather all": ("parameters",),
        "reduce": ("gradients",),
    }
    if name in computing.get(state.move, ()):
        return "computing", units
    return ("sending", units) if name in sending.get(state.move, ()) else ("", ())


class _Words:
    """What is said of each state of a step that ends with `end`."""

    def __init__(self, model: Trained, stage: int, ranks: int, end: ZeroState) -> None:
        self.model, self.stage, self.ranks = model, stage, ranks
        self.as_much = self._as_much(end)

    def of(self, state: ZeroState) -> str:
        if state.unit is None:
            return self._of_all(state)
        return self._of_unit(state, self.model.units[state.unit])

    def _as_much(self, end: ZeroState) -> str:
        """What is sent in all, beside one all-reduce of the gradients."""
        if self.stage == 0:
            return "the ring’s 2(n − 1)/n of the gradients"
        ratio = end.sent_bytes / ring_all_reduce_bytes(self.model.layout.gradients * self.model.parameters, self.ranks)
        if abs(ratio - 1) < 0.005:
            return "no more than data parallelism"
        if abs(ratio - 1.5) < 0.005:
            return "half as much again as data parallelism"
        return f"{ratio:.2f} × what data parallelism sends"

    def _of_unit(self, state: ZeroState, unit: Unit) -> str:
        part, name = f"1/{self.ranks}", unit.name
        gradient = _bytes(self.model.layout.gradients * unit.parameters)
        half_ring = _bytes(half_ring_bytes(self.model.layout.parameters * unit.parameters, self.ranks))
        reduce = {
            0: f"<b>All-reduce</b> {name}: every rank ends with the whole sum.",
            1: f"<b>Reduce-scatter</b> {name}: its own {part} is summed on each rank; the buffer stays whole.",
        }.get(self.stage, f"<b>Reduce-scatter</b> {name}: each rank keeps the sum of its {part} and frees the rest.")
        stays = " It stays whole until backward." if unit.stays and self.stage == 3 else ""
        says = {
            "gather": f"<b>Gather</b> {name}: each rank sends its {part} around the ring, {half_ring} go out.{stays}",
            "forward": f"<b>Forward</b> through {name} with whole weights.",
            "free": f"<b>Free</b> what was gathered of {name}; the own {part} stays.",
            "gather again": f"<b>Gather</b> {name} again: backward needs its weights a second time.",
            "backward": f"<b>Backward</b> through {name}: its gradient appears whole, {gradient}.",
            "reduce": reduce,
        }
        return says[state.move]

    def _of_all(self, state: ZeroState) -> str:
        part, others = f"1/{self.ranks}", self.model.micro_batches - 1
        kept = {0: "all weights and the whole optimizer state", 3: f"{part} of everything"}.get(
            self.stage, f"all weights and {part} of the optimizer state"
        )
        updated = f"its {part} of the weights" if self.stage else "all weights, the same on every rank"
        sent = _bytes(state.sent_bytes)
        more = "the other micro-batch does" if others == 1 else f"each of the other {others} micro-batches does"
        says = {
            "begin": f"Before the step every rank holds {kept}.",
            "repeat": f"<b>Again</b>: {more} all of this once more. {sent} sent by now.",
            "update": f"<b>Update</b>: each rank updates {updated}.",
            "gather all": f"<b>Gather</b> the new weights: the second half of an all-reduce. In all {self.as_much}.",
            "end": f"Gradients are freed. In all a rank has sent <b>{sent}</b>: {self.as_much}.",
        }
        return says[state.move]
