"""A collective as it was played, round by round: which messages arrive together, and what every rank holds then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.theory.collectives.messages import CollectiveRun, Message

# By rank and piece of the tensor: the ranks whose values are there, summed up where there are several.
Held = tuple[tuple[frozenset[int], ...], ...]
_TOGETHER = 1e-9  # of the whole time: what arrives closer together is one round


@dataclass(frozen=True)
class Round:
    """`messages` have arrived at `end_seconds`; `held` and `sent_bytes` (by rank) are as they are then."""

    end_seconds: float
    messages: tuple[Message, ...]
    held: Held
    sent_bytes: tuple[float, ...]


def own_values(ranks: int, pieces: int) -> Held:
    """Every rank has its own value of every piece: how a reduction begins."""
    return tuple(tuple(frozenset({rank}) for _ in range(pieces)) for rank in range(ranks))


def own_pieces(ranks: int) -> Held:
    """Rank r has piece r, and nothing else: how a gather begins."""
    return tuple(tuple(frozenset({rank} if piece == rank else ()) for piece in range(ranks)) for rank in range(ranks))


def rounds(run: CollectiveRun, begun: Held) -> Iterator[Round]:
    """What a message brings is added to what its target holds of its pieces."""
    now, sent = [list(each) for each in begun], [0.0] * len(begun)
    for end, together in _by_arrival(run):
        before = [list(each) for each in now]
        for message in together:
            sent[message.source] += message.size_bytes
            for piece in message.pieces:
                now[message.target][piece] |= before[message.source][piece]
        yield Round(end, tuple(together), tuple(map(tuple, now)), tuple(sent))


def _by_arrival(run: CollectiveRun) -> Iterator[tuple[float, list[Message]]]:
    order = sorted(zip(run.spans, run.messages, strict=True), key=lambda pair: pair[0].end_seconds)
    together: list[Message] = []
    end = 0.0
    for span, message in order:
        if together and span.end_seconds - end > _TOGETHER * run.seconds:
            yield end, together
            together = []
        end = span.end_seconds
        together.append(message)
    if together:
        yield end, together
