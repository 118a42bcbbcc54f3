"""Thinning what a rank held until it fits a line of events."""

from __future__ import annotations

import random

import pytest

from labs.probes.history import MOST_POINTS, History


def drawn(points: int) -> History:
    """A history of `points` changes of one component each, large and small."""
    draw, held, history = random.Random(points), [500_000] * 5, History()
    for at in range(points):
        held[draw.randrange(5)] += draw.choice((-1, 1)) * draw.choice((0, 10, 1000, 50_000))
        history.points.append((float(at), tuple(held)))
    return history


@pytest.mark.parametrize("points", [1, 2, MOST_POINTS, MOST_POINTS + 1, 5000])
def test_no_change_as_large_as_the_finest_is_missing(points: int) -> None:
    history = drawn(points)
    thinned = history.thinned()
    assert len(thinned.at) <= MOST_POINTS
    kept = dict(zip(thinned.at, thinned.held, strict=True))
    assert {0.0, points - 1.0} <= set(kept)
    assert max(map(sum, thinned.held)) == max(sum(held) for _, held in history.points)
    shown = thinned.held[0]
    for at, held in history.points:
        assert kept.get(at, held) == held
        shown = kept.get(at, shown)
        assert all(abs(now - then) < thinned.finest_bytes for now, then in zip(held, shown, strict=True))


def test_nothing_is_thinned_to_nothing() -> None:
    assert History().thinned().at == []
