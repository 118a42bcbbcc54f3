"""What each pipeline schedule can run: for training runs and for the program that measures schedules."""

from __future__ import annotations

from collections.abc import Mapping

from labs.spec.vocabulary import Schedule

CHUNKS: Mapping[Schedule, tuple[int, int | None]] = {  # stages a rank, from and up to
    "gpipe": (1, 1),
    "1f1b": (1, 1),
    "interleaved": (2, None),
    "looped-bfs": (1, None),
    "zero-bubble": (1, None),
    "zbv": (2, 2),
    "dualpipev": (2, 2),
}
IN_ROUNDS = ("interleaved", "zero-bubble")  # these move micro-batches in groups of as many as there are ranks
V_SHAPED = ("zbv", "dualpipev")  # the first rank has the last stage as well


def fewest_micro_batches(schedule: Schedule, ranks: int) -> int:
    """How many micro-batches `schedule` needs on so many ranks."""
    return 2 * ranks if schedule == "dualpipev" else 1
