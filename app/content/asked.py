"""What a checked card asks at a seed."""

from __future__ import annotations

from app.content.cards import Card
from app.content.kinds.asking import LETTERS, Asked, Choice, Verdict
from app.content.kinds.kind import CheckedKind

__all__ = ["LETTERS", "Asked", "Choice", "Verdict", "ask"]


def ask(card: Card, seed: int) -> Asked:
    """What `card`, one the machine checks, asks at `seed`. Raises ExpressionError when its content does not compute."""
    assert isinstance(card.kind, CheckedKind), f"{card.id} is not checked by the machine"
    return card.kind.ask(card, seed)
