"""The search for a strategy takes seconds and goes by its arguments alone: tests on both databases ask the same."""

from __future__ import annotations

import pytest

from app.study.exam import preparation
from app.study.exam.search import Choice, choose_strategy
from app.study.exam.strategy import Cards
from app.study.fsrs.memory_model import Numbers

_found: dict[tuple[object, ...], Choice] = {}


@pytest.fixture(autouse=True)
def strategies_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file that imports this, what was searched for with the very same numbers is not searched for again."""

    def choose(w: Numbers, cards: Cards, days: int, answers_per_day: float) -> Choice:
        numbers = (w, cards.stability, cards.difficulty, cards.last_day, cards.met)
        key = (*(each.tobytes() for each in numbers), days, answers_per_day)
        if key not in _found:
            _found[key] = choose_strategy(w, cards, days, answers_per_day)
        return _found[key]

    monkeypatch.setattr(preparation, "choose_strategy", choose)
