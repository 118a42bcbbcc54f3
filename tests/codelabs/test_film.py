"""What the judge carried, as a film strip: who waited for whom, and what is lit on which rank."""

from __future__ import annotations

from itertools import pairwise

from app.codelabs.film import film_of
from labs.spec.code import Trace, TracedCall
from tests.support.judged import TRACE


def test_a_message_is_one_thing_on_both_of_its_ranks() -> None:
    film = film_of(TRACE, 0, end_seconds=0.008, whose="your")
    assert film is not None
    assert (film.milliseconds, len(film.lanes)) == (8.0, 2)
    moment = film.reel.shown
    assert (moment.name, moment.start, moment.end) == ("Send to rank 1, no. 1", 0.0, 4.0)
    assert moment.says == (
        "80 B at your line 7. The program waited 3 ms, 3 ms of them until the last rank came. "
        "The program went on for 1 ms before it waited."
    )
    assert [rank for rank, _, _ in moment.on] == [0, 1]
    assert film.lanes[0].late == (("0", "37.5"),), "3 of 8 ms until rank 1 came"
    assert [lane.still for lane in film.lanes] == ["75 % waits", "25 % waits"]
    taken = film_of(TRACE, 1, end_seconds=0.008, whose="the reference’s")
    assert taken is not None
    assert taken.reel.shown.key == moment.key
    assert taken.reel.shown.says == "80 B at the reference’s line 8. The program waited 1 ms."
    assert taken.reel.rows[0].payload == "80 B", "of what came, not of what it sent"


def test_what_is_never_over_lasts_to_the_end_and_a_rank_without_calls_says_so() -> None:
    call = TracedCall(
        rank=0, operation="all_reduce", sequence=2, group=(0, 1), payload_bytes=8, posted=0.001, waited=0.001
    )
    trace = Trace(ranks=2, seconds=0.005, calls=(call,))
    hung, idle = (film_of(trace, rank, 0.005, "your") for rank in (0, 1))
    assert hung is not None
    assert idle is not None
    assert hung.reel.shown.name == "All-reduce no. 2"
    assert (hung.reel.shown.end, hung.reel.shown.says) == (5.0, "8 B. It was never over.")
    assert idle.reel.shown.says == "This rank called nothing."
    assert film_of(trace, 2, 0.005, "your") is None
    assert film_of(Trace(ranks=2, seconds=0.0, calls=()), 0, 0.0, "your") is None


def test_calls_that_overlap_are_waited_for_once() -> None:
    """Two calls begun together and waited for one after the other: the program runs before, never twice at a time."""
    calls = tuple(
        TracedCall(rank=0, operation="send", sequence=n, peer=1, payload_bytes=8, posted=0.0, waited=w, done=d)
        for n, w, d in ((1, 0.002, 0.003), (2, 0.003, 0.004))
    )
    film = film_of(Trace(ranks=2, seconds=0.004, calls=calls), 0, 0.004, "your")
    assert film is not None
    assert film.lanes[0].still == "50 % waits"
    starts = [moment.start for moment in film.reel.moments]
    assert all(before <= after for before, after in pairwise(starts))
