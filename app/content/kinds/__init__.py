"""The kinds of cards: each folder here is one kind, with all there is to it.

A kind says which fields its cards have, what must hold of them, what a showing asks, what becomes of an answer, and how
long it takes; how it looks stands beside that in `macro.html`, where the machine checks what is answered. To add one,
put a folder with a `KIND` beside the others, and its test into tests/content/kinds.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Literal

from pydantic import create_model, model_validator

from app.content.card_schemas import CardHead
from app.content.kinds.kind import CardKind, CheckedKind

_SHARED = ("kind", "asking")  # modules here that are no kind


def _discovered() -> dict[str, CardKind]:
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED)
    found: list[CardKind] = [import_module(f"{__name__}.{name}").KIND for name in names]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: (kind.place, kind.name))}


KINDS: dict[str, CardKind] = _discovered()
OWN_KINDS: dict[str, CardKind] = {name: kind for name, kind in KINDS.items() if kind.own}  # that learners may write
PLAIN = next(name for name, kind in OWN_KINDS.items() if kind.own and kind.own.needs_answer)
WITH_BLANKS = next(name for name, kind in OWN_KINDS.items() if kind.own and kind.own.has_blanks)
WITH_OPTIONS = next(name for name, kind in OWN_KINDS.items() if kind.own and kind.own.has_options)


def kind_of(head: CardHead) -> CardKind:
    """The kind of a card."""
    return KINDS[head.kind]


class _FieldsOfItsKind(CardHead):
    """A card's front matter, refused where it has what belongs to another kind."""

    @model_validator(mode="after")
    def _has_only_what_its_kind_needs(self) -> _FieldsOfItsKind:
        for kind in KINDS.values():
            if isinstance(kind, CheckedKind) and kind.name != self.kind and kind.asked_of(self):
                raise ValueError(f"{kind.field.name} belongs to a {kind.name} card; this one is {self.kind}")
        return self


@cache
def head_model() -> type[CardHead]:
    """The schema of a card's front matter: what every card has, and the field of each kind."""
    checked = [kind for kind in KINDS.values() if isinstance(kind, CheckedKind)]
    fields = {kind.field.name: (kind.field.annotation, kind.field.default) for kind in checked}
    kinds = Literal[tuple(KINDS)]  # type: ignore[valid-type]
    return create_model("FrontMatter", __base__=_FieldsOfItsKind, kind=(kinds, ...), **fields)  # type: ignore[call-overload,no-any-return]


def __getattr__(name: str) -> type[CardHead]:
    """`FrontMatter` is the schema by its own name, which kept cards are found by."""
    if name == "FrontMatter":
        return head_model()
    raise AttributeError(name)
