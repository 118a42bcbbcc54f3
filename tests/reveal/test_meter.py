"""Terms are named over their parts of a bar where every name has room there."""

from __future__ import annotations

import pytest

from app.reveal.comparison import Comparison
from app.reveal.gap import Gap, Term
from app.reveal.meter import Meter, TermBars, make_scale


def _bars(*terms: tuple[str, float]) -> TermBars:
    whole = sum(size for _, size in terms)
    row = Comparison("Payload", "bytes", None, None, whole, whole, None)
    parts = tuple(Term(name, "communication", size, size) for name, size in terms)
    return TermBars(Meter(row, "", parts, None, make_scale(0.0, whole, whole, "bytes"), "communication", True))


@pytest.mark.parametrize(
    ("terms", "named_from"),
    [
        ((("weights", 4e9), ("moments", 4e9)), 160),
        ((("all-gather in forward", 1e6), ("all-gather in backward", 1e6), ("reduce-scatter of gradients", 1e6)), 300),
        ((("weights", 96e9), ("reduce-scatter of gradients", 4e9)), None),  # its part is narrower than a word
    ],
)
def test_no_name_loses_a_letter(terms: tuple[tuple[str, float], ...], named_from: int | None) -> None:
    assert _bars(*terms).named_from == named_from


def test_what_is_nothing_has_no_name() -> None:
    bars = _bars(("weights", 4e9), ("buffers", 0.0))
    assert [name for _, _, name, _ in bars.names] == ["weights"]
    assert bars.named_from == 160


@pytest.mark.parametrize(("lacks", "missed"), [("moments", True), ("", False)])
def test_a_number_that_lacks_something_by_name_is_a_miss_however_near(lacks: str, missed: bool) -> None:
    terms = (Term("weights", "parameters", 9e9, 9e9), Term("moments", "optimizer", 1e9, 1e9))
    gap = Gap("You left out moments", (terms[1],)) if lacks else Gap()
    row = Comparison("State", "bytes", "9 GB", 9e9, 10e9, 10e9, None)
    assert not row.missed, "near enough, were it not for what it lacks"
    assert Meter(row, "", terms, gap, make_scale(9e9, 10e9, 10e9, "bytes"), "plain", True).missed == missed
