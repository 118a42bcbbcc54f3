"""Figures to step through: every frame from the simulator, every number from what is drawn."""

from __future__ import annotations

from collections import Counter

import pytest

from app.content.players.catalogue import FIGURES, player
from app.content.players.player import Choice, Player
from app.core.errors import DomainError, NotFound
from app.theory.collectives import half_ring_bytes, ring_all_reduce_bytes
from app.theory.pipeline import bubble
from labs.spec import SCHEDULE_RULES

ALGORITHMS = [name for name, _ in next(c for c in FIGURES["collective"].controls if isinstance(c, Choice)).options]


def collective(algorithm: str, ranks: int) -> Player:
    return player("collective", {"algorithm": algorithm, "ranks": str(ranks)})


@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_travels_is_what_is_counted(algorithm: str, ranks: int) -> None:
    """Chunks that move from a rank, times their size, are the bytes the counter says it sent."""
    shown = collective(algorithm, ranks)
    chunk = 0.5 if algorithm == "tree" else 1 / ranks
    moved = Counter(source for frame in shown.frames for source, _, _ in frame.moves)
    worst = int(shown.counters[1].split()[3].rstrip(","))
    assert moved[worst] == max(moved.values())
    said = float(shown.frames[-1].counters[1].split()[0])
    assert moved[worst] * chunk == pytest.approx(said, abs=0.006)
    expected = {
        "ring": ring_all_reduce_bytes(1.0, ranks),
        "naive": ranks - 1.0,
        "reduce-scatter": half_ring_bytes(1.0, ranks),
        "all-gather": half_ring_bytes(1.0, ranks),
        "all-to-all": half_ring_bytes(1.0, ranks),
    }
    assert said == pytest.approx(expected.get(algorithm, said), abs=0.006)
    assert all(frame.html.count('class="got"') == bool(frame.moves) for frame in shown.frames)
    whole = ranks if algorithm not in ("tree", "reduce-scatter") else {"tree": 2, "reduce-scatter": 1}[algorithm]
    assert all(cell == str(whole) for cell in shown.rows[-1][1:-1])


@pytest.mark.parametrize("schedule", SCHEDULE_RULES)
def test_a_schedule_ends_with_the_simulators_bubble(schedule: str) -> None:
    shown = player("pipeline", {"schedule": schedule, "virtual_stages": "2" if schedule != "gpipe" else "1"})
    assert shown.frames[0].clip == "0"
    assert shown.frames[-1].clip == "100"
    so_far, _, end = shown.frames[-1].counters[0].partition(" % so far, ")
    assert end == f"{so_far} % at the end"
    assert set(shown.frames[-1].slots) == {"0"}  # nothing is kept when all is done
    assert shown.still.count('class="row"') == 4


def test_the_bubble_is_the_closed_form() -> None:
    for stages, micro_batches in ((2, 3), (4, 8), (8, 16)):
        shown = player("pipeline", {"stages": str(stages), "micro_batches": str(micro_batches)})
        said = float(shown.frames[-1].counters[0].split(" %")[0])
        assert said == pytest.approx(100 * bubble(stages, micro_batches), rel=0.005)


def test_what_a_schedule_refuses_is_named_and_what_is_shown_instead() -> None:
    shown = player("pipeline", {"schedule": "interleaved", "micro_batches": "7", "virtual_stages": "2"})
    assert shown.settings["micro_batches"] == 8
    assert "in groups of as many as there are ranks. Shown: 8 micro-batches. " in shown.frames[0].says


def test_zero_draws_the_bytes_it_counts() -> None:
    """The strip's bars are shares of the 112 GB that a rank holds without sharding."""
    for stage, held, sent in (("0", "112 GB", "21 GB"), ("3", "33.25 GB", "31.5 GB")):
        shown = player("zero", {"stage": stage})
        assert shown.shown.counters[0] == shown.shown.counters[1] == held  # it opens at the peak
        assert shown.frames[-1].counters[2] == f"{sent} of {sent}"
        drawn = sum(float(height) for _, height in shown.shown.bar) * 112 / 100
        assert drawn == pytest.approx(float(held.split()[0]), abs=0.06)


def test_what_cannot_be_drawn_is_named_field_by_field() -> None:
    with pytest.raises(NotFound):
        player("hexagon", {})
    with pytest.raises(DomainError) as refused:
        player("collective", {"algorithm": "magic", "ranks": "9"})
    assert [(each.field, each.accepted) for each in refused.value.violations] == [
        ("algorithm", ", ".join(ALGORITHMS)),
        ("ranks", "2 to 8"),
    ]


def test_a_number_too_large_for_a_frame_is_the_last_one() -> None:
    assert player("tensor", {"at": "99"}).at == 4
    assert player("collective", {"at": "-1"}).at == 1
