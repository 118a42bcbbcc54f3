"""Column and row parallelism in small whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.content.players.player import Choice, Control, Frame, Player, Settings, share
from app.theory.tensor_step import FIRST, INPUT, SECOND, Matrix, TensorState, columns, rows, tensor_step

CONTROLS: tuple[Control, ...] = (Choice("ranks", "Tensor ranks", (("2", "2"), ("4", "4")), "2"),)


@dataclass(frozen=True)
class _Held:
    """What a rank has after a move: in its picture, in words, and its colour."""

    name: str
    words: str
    tone: str = "activations"


_HELD = {
    "input": _Held("X", "the whole input"),
    "first product": _Held("X·A", "its columns of the result"),
    "activation": _Held("ReLU", "its columns of the result"),
    "second product": _Held("part of Z", "a part of every number", "temporary"),
    "all-reduce": _Held("Z", "the whole result"),
}


def make(settings: Settings, at: int | None) -> Player:
    ranks = int(settings["ranks"])
    states = tensor_step(ranks)
    total = states[-1].sent
    frames = tuple(
        Frame(
            html=_drawn(state, ranks),
            says=Markup(_says(state, ranks)),  # noqa: S704 - made of numbers and the words below
            counters=(
                f"{share(state.sent)} S of {share(total)} S",
                f"1/{ranks} of both matrices",
                _HELD[state.move].words,
            ),
        )
        for state in states
    )
    return Player(
        figure="tensor",
        title=f"An MLP over {ranks} tensor ranks, forward",
        controls=CONTROLS,
        settings=settings,
        frames=frames,
        counters=("Sent per rank", "Weights, each rank", "What a rank has"),
        phases=(("Nothing is sent", 3), ("All-reduce", 1)),
        key=(("parameters", "weights of this rank"), ("activations", "activations"), ("temporary", "a part of a sum")),
        says=(
            f"Columns of the first matrix and rows of the second on each of {ranks} ranks: nothing is sent between the "
            f"two products, and one all-reduce of {share(total)} S ends the block."
        ),
        head=("Step", *(f"Rank {rank}" for rank in range(ranks)), "Sent, S"),
        rows=tuple((state.move, *(_text(each) for each in state.held), share(state.sent)) for state in states),
        few=tuple(range(len(states))),
        at=len(states) - 2 if at is None else min(len(states) - 1, at),
        columns=ranks,
    )


def _drawn(state: TensorState, ranks: int) -> Markup:
    cells = Markup("")
    for rank in range(ranks):
        weights = {
            "first product": ("A, its columns", columns(FIRST, rank, ranks)),
            "second product": ("B, its rows", rows(SECOND, rank, ranks)),
        }.get(state.move)
        cells += Markup('<div class="tr"><b><span>Rank </span>{}</b>{}{}</div>').format(
            rank,
            _matrix(*weights, "parameters") if weights else "",
            _matrix(_HELD[state.move].name, state.held[rank], _HELD[state.move].tone),
        )
    return Markup('<div class="tp" style="--n:{}">{}</div>').format(ranks, cells)


def _matrix(name: str, values: Matrix, tone: str) -> Markup:
    lines = Markup("").join(Markup("<span>{}</span>").format(_number(value)) for line in values for value in line)
    return Markup('<p>{}</p><div class="mx {}" style="--k:{}">{}</div>').format(name, tone, len(values[0]), lines)


def _number(value: int) -> str:
    return str(value).replace("-", "−")


def _text(matrix: Matrix) -> str:
    return "; ".join(" ".join(map(_number, line)) for line in matrix)


def _says(state: TensorState, ranks: int) -> str:
    return {
        "input": f"All {ranks} ranks have the same two tokens X, of width {len(INPUT[0])}. Nobody has all of A or B.",
        "first product": f"Each rank multiplies X by <b>its columns</b> of A: {4 // ranks} of 4 columns, finished.",
        "activation": "ReLU is done number by number, so <b>nothing is sent</b>: no number needs another rank’s.",
        "second product": "Its columns meet <b>its rows</b> of B. Every rank has every number of Z, but only in part.",
    }.get(
        state.move, f"One <b>all-reduce</b> adds the parts: all ranks have Z, for {share(state.sent)} S sent by each."
    )
