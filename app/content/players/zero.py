"""Who holds what under a ZeRO stage, through one step: area is bytes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from app.content.players.player import Choice, Control, Frame, Player, Range, Settings, boxes, path, picture, rank_names
from app.theory.state import LAYOUTS
from app.theory.zero_step import ZeroState, zero_step
from app.units import bytes_text

PARAMETERS, LAYERS = 7e9, 4  # what is drawn: 7B in four equal layers
_PIXELS_A_BYTE = 6.0
_COMPONENTS = ("parameters", "gradients", "optimizer")
_RANK, _PAD = 100.0, 5.0
CONTROLS: tuple[Control, ...] = (
    Choice("stage", "ZeRO stage", (("0", "None"), ("1", "ZeRO-1"), ("2", "ZeRO-2"), ("3", "ZeRO-3")), "3"),
    Range("ranks", "Ranks", 2, 8, 4, "n"),
)


def make(settings: Settings, at: int | None) -> Player:
    stage, ranks = int(settings["stage"]), int(settings["ranks"])
    states = zero_step(PARAMETERS, LAYERS, ranks, stage)
    held = [state.held_bytes(PARAMETERS) for state in states]
    totals = [sum(each.values()) for each in held]
    whole, sent = LAYOUTS["zero-16"].total * PARAMETERS, states[-1].sent_bytes
    frames = [
        Frame(
            html=_drawn(state, ranks),
            says=Markup(_says(state, stage, ranks)),  # noqa: S704 - numbers and the words below
            counters=(
                bytes_text(total),
                bytes_text(max(totals)),
                f"{bytes_text(state.sent_bytes) if state.sent_bytes else '0 B'} of {bytes_text(sent)}",
            ),
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
        counters=("Held now, each rank", "Most in this step", "Sent per rank"),
        phases=tuple(phases),
        key=(
            ("parameters", "Parameters, 2 bytes"),
            ("gradients", "Gradients, 2 bytes"),
            ("optimizer", "Optimizer, 12 bytes"),
            ("computing", "computing"),
            ("sending", "sending"),
        ),
        says=(
            f"{what} of 7B parameters in four layers on {ranks} ranks: a rank holds at most {bytes_text(max(totals))} "
            f"and sends {bytes_text(sent)} in the step."
        ),
        head=("Step", "What happens", "Parameters", "Gradients", "Optimizer", "Sent"),
        rows=tuple(
            (
                str(index),
                frame.says.striptags(),
                *(bytes_text(each[name]) if each[name] else "0 B" for name in _COMPONENTS),
                bytes_text(state.sent_bytes) if state.sent_bytes else "0 B",
            )
            for index, (state, each, frame) in enumerate(zip(states, held, frames, strict=True))
        ),
        few=_few(states),
        at=min(len(states) - 1, _peak(totals) if at is None else at),
        still=rank_names(ranks),
        columns=ranks,
    )


def _peak(totals: Sequence[float]) -> int:
    return max(range(len(totals)), key=lambda index: totals[index])


def _few(states: Sequence[ZeroState]) -> tuple[int, ...]:
    """One layer's way forward and back, and the end."""
    middle = [index for index, state in enumerate(states) if state.layer == LAYERS - 1]
    return tuple(dict.fromkeys([0, *middle, len(states) - 2, len(states) - 1]))


def _drawn(state: ZeroState, ranks: int) -> Markup:
    layout = LAYOUTS["zero-16"]
    shares = {
        "parameters": state.parameters,
        "gradients": state.gradients,
        "optimizer": (state.optimizer,) * LAYERS,
    }
    rows = Markup("")
    for name in _COMPONENTS:
        height = getattr(layout, name) * _PIXELS_A_BYTE
        rows += _row(name, shares[name], ranks, height, _lit(name, state))
    return rows


def _row(name: str, shares: Sequence[float], ranks: int, height: float, lit: tuple[str, tuple[int, ...]]) -> Markup:
    width = (_RANK - 2 * _PAD) / LAYERS
    outlines, filled, marked = [], [], []
    for rank in range(ranks):
        for layer, part in enumerate(shares):
            x = rank * _RANK + _PAD + layer * width + 1
            outlines.append((x, 1.0, width - 2, height))
            if part:
                start = rank / ranks * (width - 2) if part < 1 else 0.0
                filled.append((x + start, 1.0, part * (width - 2), height))
            if layer in lit[1]:
                marked.append((x, 1.0, width - 2, height))
    marks = path("cell", boxes(outlines)) + path(name, boxes(filled)) + path(lit[0], boxes(marked))
    return picture(ranks * _RANK, height + 4, marks, "cells")


def _lit(name: str, state: ZeroState) -> tuple[str, tuple[int, ...]]:
    """What of a component is computed with or sent in a move."""
    every = tuple(range(LAYERS))
    layer = every if state.layer is None else (state.layer,)
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
        return "computing", layer
    return ("sending", layer) if name in sending.get(state.move, ()) else ("", ())


def _says(state: ZeroState, stage: int, ranks: int) -> str:
    part = f"1/{ranks}"
    layer = f"layer {state.layer}"
    each = bytes_text(2 * PARAMETERS / LAYERS)
    half_ring = bytes_text(2 * PARAMETERS / LAYERS * (ranks - 1) / ranks)
    kept = {0: "all weights and the whole optimizer state", 3: f"{part} of everything"}.get(
        stage, f"all weights and {part} of the optimizer state"
    )
    reduce = {
        0: f"<b>All-reduce</b> {layer}: every rank ends with the whole sum.",
        1: f"<b>Reduce-scatter</b> {layer}: its own {part} is summed on each rank; the buffer stays whole.",
    }.get(stage, f"<b>Reduce-scatter</b> {layer}: each rank keeps the sum of its {part} and frees the rest.")
    as_much = {
        0: "the ring’s 2(n − 1)/n of the gradients",
        3: "half as much again as data parallelism",
    }.get(stage, "no more than data parallelism")
    updated = f"its {part} of the weights" if stage else "all weights, the same on every rank"
    says = {
        "begin": f"Before the step every rank holds {kept}.",
        "gather": f"<b>Gather</b> {layer}: each rank sends its {part} around the ring, {half_ring} go out.",
        "forward": f"<b>Forward</b> through {layer} with whole weights.",
        "free": f"<b>Free</b> what was gathered of {layer}; the own {part} stays.",
        "gather again": f"<b>Gather</b> {layer} again: backward needs its weights a second time.",
        "backward": f"<b>Backward</b> through {layer}: its gradient appears whole, {each}.",
        "reduce": reduce,
        "update": f"<b>Update</b>: each rank updates {updated}.",
        "gather all": f"<b>Gather</b> the new weights: the second half of an all-reduce. In all {as_much}.",
        "end": f"Gradients are freed. In all a rank has sent <b>{bytes_text(state.sent_bytes)}</b>: {as_much}.",
    }
    return says[state.move]
