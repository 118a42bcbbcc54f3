"""Collectives chunk by chunk, as the simulator plays them on equal links without latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from app.content.players.player import (
    Choice,
    Control,
    Frame,
    Player,
    Range,
    Settings,
    boxes,
    path,
    picture,
    rank_names,
    share,
)
from app.theory.collectives import (
    CollectiveRun,
    Held,
    Message,
    Round,
    own_pieces,
    own_values,
    rounds,
    simulate_all_gather,
    simulate_all_to_all,
    simulate_naive_all_reduce,
    simulate_reduce_scatter,
    simulate_ring_all_reduce,
    simulate_tree_all_reduce,
)
from app.units import bytes_text
from app.words import capital

_CELL, _ROW, _GAP, _WIRE = 100.0, 28.0, 7.0, 34.0
_FEW = 12
_Box = tuple[float, float, float, float]  # x, y, width, height


def _tree(size: float, ranks: int, bandwidth: float) -> CollectiveRun:
    return simulate_tree_all_reduce(size, ranks, bandwidth, pieces=1)


@dataclass(frozen=True)
class _Kind:
    """How it is played, how it begins, and after how many of `ranks`' rounds its first half is over."""

    title: str
    play: Callable[[float, int, float], CollectiveRun]
    phases: tuple[str, ...]
    reduces: bool
    begins: str


_KINDS = {
    "ring": _Kind("Ring all-reduce", simulate_ring_all_reduce, ("Reduce-scatter", "All-gather"), True, "gradient"),
    "tree": _Kind("Double-tree all-reduce", _tree, ("Up both trees, and down again",), True, "gradient"),
    "naive": _Kind("Naive all-reduce", simulate_naive_all_reduce, ("Everything to everybody",), True, "gradient"),
    "reduce-scatter": _Kind("Reduce-scatter", simulate_reduce_scatter, ("Around the ring",), True, "gradient"),
    "all-gather": _Kind("All-gather", simulate_all_gather, ("Around the ring",), False, "shard"),
    "all-to-all": _Kind("All-to-all", simulate_all_to_all, ("Pair by pair",), False, "blocks"),
}
CONTROLS: tuple[Control, ...] = (
    Choice(
        "algorithm",
        "Collective",
        (
            ("ring", "Ring"),
            ("tree", "Tree"),
            ("naive", "Naive"),
            ("reduce-scatter", "Reduce-scatter"),
            ("all-gather", "All-gather"),
            ("all-to-all", "All-to-all"),
        ),
        "ring",
    ),
    Range("ranks", "Ranks", 2, 8, 4, "n"),
)


def make(settings: Settings, at: int | None, size_bytes: float | None = None) -> Player:
    """size_bytes: what S is; None where it stands for any size."""
    name, ranks = str(settings["algorithm"]), int(settings["ranks"])
    kind = _KINDS[name]
    run = kind.play(1.0, ranks, 1.0)
    begun = _begun(name, ranks)
    states = list(rounds(run, begun))
    painter = _Painter(name, ranks, kind.reduces)
    worst = max(range(ranks), key=lambda rank: run.sent_bytes[rank])
    total = run.sent_bytes[worst]
    opening = Markup(_opening(name, ranks))  # noqa: S704 - made of numbers and the words below
    first = Frame(
        painter.drawn(begun, ()), opening, _counted(0, len(states), (0.0, total), (0.0, run.seconds), size_bytes)
    )
    frames = [first]
    for index, state in enumerate(states, start=1):
        counters = _counted(
            index, len(states), (state.sent_bytes[worst], total), (state.end_seconds, run.seconds), size_bytes
        )
        says = _says(name, ranks, index, len(states), state)
        frames.append(Frame(painter.drawn(state.held, state.messages), says, counters, moves=painter.moves(state)))
    half = (len(states) // 2,) * 2 if len(kind.phases) == 2 else (len(states),)
    return Player(
        figure="collective",
        title=f"{kind.title} on {ranks} ranks" + (f", S = {bytes_text(size_bytes)}" if size_bytes else ""),
        controls=CONTROLS,
        settings=settings,
        frames=tuple(frames),
        counters=("Rounds", f"Sent by rank {worst}" + ("" if _alike(run) else ", the most"), "Time, in S ÷ bandwidth"),
        phases=tuple(zip(kind.phases, half, strict=True)),
        key=(
            ("gradients share", "from one rank" if not kind.reduces else "one rank’s share of the sum"),
            ("gradients", "arrived" if not kind.reduces else "finished sum"),
            ("got", "arrived in this step"),
        ),
        says=f"{kind.title} on {ranks} ranks: after {len(states)} rounds a rank has sent at most {share(total)} S.",
        head=("Round", *(f"Rank {rank}, whole" for rank in range(ranks)), "Sent, S"),
        rows=_rows(painter, begun, states, worst),
        few=_few(len(frames)),
        at=min(len(states), 1 if at is None else at),
        still=rank_names(ranks),
        columns=ranks,
    )


def _begun(name: str, ranks: int) -> Held:
    if name == "all-gather":
        return own_pieces(ranks)
    if name == "all-to-all":  # piece s·n + t is what rank s has for rank t
        return tuple(
            tuple(frozenset({rank} if piece // ranks == rank else ()) for piece in range(ranks * ranks))
            for rank in range(ranks)
        )
    return own_values(ranks, 2 if name == "tree" else ranks)


def _alike(run: CollectiveRun) -> bool:
    return max(run.sent_bytes) - min(run.sent_bytes) < 1e-9


def _few(frames: int) -> tuple[int, ...]:
    """At most a dozen, the first and the last among them."""
    stride = -(-(frames - 1) // (_FEW - 1)) if frames > _FEW else 1
    return tuple(sorted({*range(0, frames, stride), frames - 1}))


def _counted(
    step: int, steps: int, sent: tuple[float, float], times: tuple[float, float], size_bytes: float | None
) -> tuple[str, ...]:
    """So far, and in all."""
    so_far, in_all = (
        f"{share(each)} S" if not size_bytes else bytes_text(each * size_bytes) if each else "0 B" for each in sent
    )
    return f"{step} of {steps}", f"{so_far} of {in_all}", " of ".join(map(share, times))


class _Painter:
    """A column a rank, a row a chunk; a slice of a cell is what comes from one rank."""

    def __init__(self, name: str, ranks: int, reduces: bool) -> None:
        self.name, self.ranks, self.reduces = name, ranks, reduces
        self.rows = 2 if name == "tree" else ranks

    def cell(self, held: Held, rank: int, row: int) -> tuple[frozenset[int], bool]:
        """Whose values are in a cell, and whether they are what the rank shall end with."""
        if self.name == "all-to-all":
            arrived = held[rank][row * self.ranks + rank]
            own = held[rank][rank * self.ranks + row]
            return (arrived, True) if arrived else (own, False)
        there = held[rank][row]
        return there, len(there) == self.ranks if self.reduces else bool(there)

    def drawn(self, held: Held, messages: Sequence[Message]) -> Markup:
        outlines: list[_Box] = []
        slices: list[_Box] = []
        full: list[_Box] = []
        for rank in range(self.ranks):
            for row in range(self.rows):
                there, whole = self.cell(held, rank, row)
                x, y, width, height = self._box(rank, row)
                outlines.append((x, y, width, height))
                if whole and self.reduces:
                    full.append((x, y, width, height))
                    continue
                each = width / self.ranks
                found = full if whole else slices
                found += [(x + each * other, y, each, height) for other in sorted(there)]
        got = [self._box(message.target, row) for message in messages for row in self._row(message)]
        marks = path("cell", boxes(outlines)) + path("gradients share", boxes(slices)) + path("gradients", boxes(full))
        height = self.rows * _ROW
        cells = picture(self.ranks * _CELL, height, marks + path("got", boxes(got)), "cells")
        return self._wires(messages) + cells

    def _box(self, rank: int, row: int) -> tuple[float, float, float, float]:
        return rank * _CELL + _GAP, row * _ROW + 2, _CELL - 2 * _GAP, _ROW - 4

    def _row(self, message: Message) -> list[int]:
        """The rows of its target that a message fills."""
        if self.name == "all-to-all":
            return [piece // self.ranks for piece in message.pieces]
        return list(message.pieces)

    def moves(self, state: Round) -> tuple[tuple[int, int, int], ...]:
        """Where each chunk comes from: of an all-to-all from the row it is sent for."""
        return tuple((message.source, message.target, row) for message in state.messages for row in self._row(message))

    def _wires(self, messages: Sequence[Message]) -> Markup:
        d, heads = "", Markup("")
        for message in messages:
            a, b = ((rank + 0.5) * _CELL for rank in (message.source, message.target))
            top = 30 - min(28, 10 + 5 * abs(message.source - message.target))
            d += f"M{a:g} 31C{a:g} {top - 8:g} {b:g} {top - 8:g} {b:g} 31"
            heads += Markup('<i style="--x:{}%"></i>').format(f"{100 * b / (self.ranks * _CELL):.4g}")
        return Markup('<div class="wires">{}{}</div>').format(
            picture(self.ranks * _CELL, _WIRE, path("wire", d)), heads
        )


def _opening(name: str, ranks: int) -> str:
    if name == "all-gather":
        return f"Each of the {ranks} ranks holds its own chunk, <b>S/{ranks}</b>. All want all of it."
    if name == "all-to-all":
        return f"Each rank holds {ranks} blocks, one for every rank: <b>S</b> together. Row r is what goes to rank r."
    return f"Each of the {ranks} ranks holds its own gradient, <b>S</b> bytes. Nothing is summed yet."


def _says(name: str, ranks: int, step: int, steps: int, state: Round) -> Markup:
    last = step == steps
    sent = share(max(state.sent_bytes))
    first = next((each for each in state.messages if each.source == 0), state.messages[0])
    where = f"rank {first.source} sends chunk {first.pieces[0]} to rank {first.target}"
    if name == "ring" and step < ranks:
        own = (first.source + 1) % ranks
        says = (
            f"The last sums arrive. Every rank now owns <b>one finished chunk</b>, rank {first.source} chunk {own}: "
            "that was the reduce-scatter."
            if step == ranks - 1
            else f"Every rank sends one chunk to its right and adds what arrives: {where}. Sums of {step + 1} now."
        )
    elif name == "ring":
        says = (
            f"Every rank holds the whole sum. Each has sent 2(n − 1)/n = <b>{sent} S</b>."
            if last
            else f"Finished chunks go round now, and nothing is added: {where}."
        )
    elif name == "reduce-scatter":
        says = (
            f"Every rank owns one finished chunk. Each has sent (n − 1)/n = <b>{sent} S</b>."
            if last
            else f"Every rank sends one chunk to its right and adds what arrives: {where}."
        )
    elif name == "all-gather":
        says = (
            f"Every rank has all chunks. Each has sent (n − 1)/n = <b>{sent} S</b>; nothing was added."
            if last
            else f"Every rank passes on the chunk it got last: {where}."
        )
    elif name == "all-to-all":
        says = (
            f"Every rank sends the block for the rank {step} places on: rank {first.source} to rank {first.target}."
            + (f" Done: each has sent (n − 1)/n = <b>{sent} S</b>, and kept its own block." if last else "")
        )
    elif name == "naive":
        says = f"Every rank sends its <b>whole</b> gradient to the rank {step} places on."
        says += f" Done: each has sent n − 1 = <b>{sent} S</b>, and adds up what came." if last else ""
    else:
        says = _tree_says(state, last, sent)
    return Markup(says)  # noqa: S704 - made of numbers and the words above


def _tree_says(state: Round, last: bool, sent: str) -> str:
    ups = sorted({each.source for each in state.messages if each.name.startswith("up")})
    downs = sorted({each.target for each in state.messages if each.name.startswith("down")})
    parts = []
    if ups:
        parts.append(f"rank{'s' if len(ups) > 1 else ''} {_list(ups)} send{'' if len(ups) > 1 else 's'} half of S up")
    if downs:
        parts.append(f"finished halves come down to {_list(downs)}")
    says = f"{'; '.join(parts)}."
    done = f" Done: no rank has sent more than <b>{sent} S</b>; in pieces the way down overlaps the way up."
    return capital(says) + (done if last else "")


def _list(numbers: Sequence[int]) -> str:
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _rows(painter: _Painter, begun: Held, states: Sequence[Round], worst: int) -> tuple[tuple[str, ...], ...]:
    sent = [0.0, *(state.sent_bytes[worst] for state in states)]
    found = []
    for index, held in enumerate([begun, *(state.held for state in states)]):
        whole = [
            str(sum(painter.cell(held, rank, row)[1] for row in range(painter.rows))) for rank in range(painter.ranks)
        ]
        found.append((str(index), *whole, share(sent[index])))
    return tuple(found)
