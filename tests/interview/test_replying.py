"""What a reply does with what was said before, by its own words."""

from __future__ import annotations

import pytest

from app.interview.replying import is_an_answer, says_nothing, stands_by, takes_back


@pytest.mark.parametrize(
    ("reply", "holds", "is_back"),
    [
        ("No, I'm staying with it, it's a law and the same for all data.", True, False),
        ("No, I stand by that. It has no influence on the design.", True, False),
        ("I’m sticking with that.", True, False),
        ("I take tensor parallelism over all of them, that stays my plan.", True, False),
        ("No, wait, it is three times the weights.", False, True),
        ("No network is that fast.", False, False),
        ("I'd stay with my number.", True, False),
        ("I still think it halves.", True, False),
        ("I don't take it back.", True, False),
        ("I take that back, NVLink doesn't pool the memory.", False, True),
        ("That was too strong, I take it back.", False, True),
        ("OK, I was wrong there.", False, True),
        ("I wouldn't stand by that any more, scratch that.", False, True),
        ("I'd stay with ZeRO-2 there.", False, False),
        ("I don't know.", False, False),
        ("It is sharded, so it must be less.", False, False),
    ],
)
def test_it_holds_on_or_takes_back_in_so_many_words(reply: str, holds: bool, is_back: bool) -> None:
    assert (stands_by(reply), takes_back(reply)) == (holds, is_back)


def test_who_does_not_know_gives_no_answer() -> None:
    assert not is_an_answer("I really don't know that one.")
    assert not is_an_answer("No idea.")
    assert says_nothing("I don't know.")
    assert not says_nothing("I don't know, perhaps the network.")
    assert not says_nothing("Not quite: 95 %.")
    assert is_an_answer("The job comes up again from the last saved state.")
