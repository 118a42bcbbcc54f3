"""Draws at which two mistakes lead to one number are drawn again, where another draw is no worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.content.catalogue import Catalogue
from app.content.live import Expressions
from app.content.seeded import Lost, draw
from app.grading.numbers import within
from app.practice.variants import make_variant

CHOICES = {"ranks": (2, 4, 8)}


def _drawn(lost: Callable[[Mapping[str, Any]], Lost]) -> set[object]:
    return {draw("item:1", CHOICES, {"twice": "2 * ranks"}, None, seed, lost)["ranks"] for seed in range(60)}


def test_where_mistakes_meet_is_drawn_again() -> None:
    assert _drawn(lambda values: Lost(met=values["twice"] == 8)) == {2, 8}


def test_not_for_a_draw_that_hides_more_of_them() -> None:
    assert _drawn(lambda values: Lost(met=values["ranks"] == 4, hidden=values["ranks"] != 4)) == {2, 4, 8}


def test_where_they_always_meet_the_first_draw_stays() -> None:
    plain = [draw("item:1", CHOICES, {}, None, seed) for seed in range(20)]
    assert [draw("item:1", CHOICES, {}, None, seed, lambda _: Lost(met=1)) for seed in range(20)] == plain


def test_the_gathered_units_of_p05_never_hide_one_mistake_behind_another(content: Catalogue) -> None:
    problem = content.problems["P05"]
    for seed in range(40):
        variant = make_variant(problem, seed)
        for source, part in zip(problem.parts, variant.parts, strict=True):
            number: Any = part.question
            away = [
                slip for slip in source.slips if slip.id not in {known.id for known in getattr(number, "slips", ())}
            ]
            for slip in away:  # one that cannot be named leads to the key, not to another's number
                assert within(float(Expressions(variant.values).number(slip.value)), number.key, number.tolerance), (
                    seed,
                    slip.id,
                )
