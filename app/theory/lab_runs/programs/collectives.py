"""What the collectives that are written out send, to the byte. (How long that takes, a run's own α and β must say.)

A ring cuts a tensor of v values into n chunks, of which the first v mod n are one value longer. Rank r sends all chunks
but chunk r in the first half and all but chunk r+1 in the second: 2(n−1)/n·S if all are equal, and from the busiest
rank a little more if not. Empty chunks, of tensors with fewer values than ranks, are not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from app.theory.lab_runs.programs.parts import Expected, Point
from labs.spec import CollectivesOptions

Sent = tuple[int, int]  # values and messages from the rank with the most


def expect(options: CollectivesOptions, ranks: int) -> Expected:
    """Bytes and messages of the busiest rank by size, and both at the largest size."""
    names = [name for name in options.algorithms if name in _SENT]
    points = tuple(point for name in names for point in _points(options, ranks, name))
    largest = max(options.sizes_bytes)
    quantities = {f"{point.name}_{point.figure}": point.y for point in points if point.x == largest}
    known = {name: value for name, value in quantities.items() if name in options.quantities}
    return Expected(points, known | ({"largest_error": 0.0} if names else {}))


def parts_of(options: CollectivesOptions, ranks: int, quantity: str) -> Mapping[str, float]:
    """What a quantity of the largest size adds up from, by what it is sent in; empty where it is sent all at once."""
    values = max(options.sizes_bytes) // options.value_bytes
    if quantity == "ring_bytes_sent":
        chunks = _chunks(values, ranks)
        busiest = max(range(ranks), key=lambda rank: sum(_both_halves(chunks, rank)))
        halves = [half * options.value_bytes for half in _both_halves(chunks, busiest)]
        return dict(zip(_HALVES, halves, strict=True))
    if quantity == "ring_messages_sent" and values >= ranks:
        return dict.fromkeys(_HALVES, ranks - 1)
    if quantity == "tree_bytes_sent":
        return dict.fromkeys(_COPIES[: (ranks - 1).bit_length()], values * options.value_bytes)
    return {}


_HALVES = ("the reduce-scatter", "the all-gather")
_COPIES = ("the first child's copy", "the second child's copy", "the third child's copy")  # of 8 ranks at most


def _both_halves(chunks: list[int], rank: int) -> tuple[int, int]:
    """Values that a rank of a ring sends in the first half, and in the second."""
    return sum(_all_but(chunks, rank)), sum(_all_but(chunks, (rank + 1) % len(chunks)))


def _points(options: CollectivesOptions, ranks: int, name: str) -> Iterator[Point]:
    for size in sorted(options.sizes_bytes):
        values, messages = _SENT[name](size // options.value_bytes, ranks)
        yield Point("bytes_sent", name, size, values * options.value_bytes)
        yield Point("messages_sent", name, size, messages)


def _ring(values: int, ranks: int) -> Sent:
    chunks = _chunks(values, ranks)
    return _most([_all_but(chunks, rank) + _all_but(chunks, (rank + 1) % ranks) for rank in range(ranks)])


def _reduce_scatter(values: int, ranks: int) -> Sent:
    chunks = _chunks(values, ranks)
    return _most([_all_but(chunks, rank) for rank in range(ranks)])


def _tree(values: int, ranks: int) -> Sent:
    """Rank 0 sends the sum to each of its ⌈log2 n⌉ children."""
    rounds = (ranks - 1).bit_length()
    return rounds * values, rounds


def _to_all_others(values: int, ranks: int) -> Sent:
    """What every rank sends in the naive all-reduce, and what the server sends of its sum."""
    return (ranks - 1) * values, ranks - 1


_SENT: Mapping[str, Callable[[int, int], Sent]] = {
    "ring": _ring,
    "ring reduce-scatter": _reduce_scatter,
    "ring all-gather": _reduce_scatter,  # each rank leaves out one chunk, if not the same
    "tree": _tree,
    "naive": _to_all_others,
    "server": _to_all_others,
}


def _chunks(values: int, ranks: int) -> list[int]:
    return [values // ranks + (chunk < values % ranks) for chunk in range(ranks)]


def _all_but(chunks: list[int], left_out: int) -> list[int]:
    return chunks[:left_out] + chunks[left_out + 1 :]


def _most(messages_by_rank: list[list[int]]) -> Sent:
    """The largest sum of values and, maybe on another rank, the largest number of messages that are not empty."""
    sums = [sum(messages) for messages in messages_by_rank]
    counts = [sum(1 for message in messages if message) for messages in messages_by_rank]
    return max(sums), max(counts)
