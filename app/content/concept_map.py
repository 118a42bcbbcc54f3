"""Concepts in layers: each stands below everything it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.content.schemas import Concept


def layers(concepts: Mapping[str, Concept]) -> list[list[Concept]]:
    """The concepts by how many steps of prerequisites lie above them, each layer in the file's order.

    Concepts in a circle have no place; `in_circles` names them.
    """
    placed: dict[str, int] = {}
    found: list[list[Concept]] = []
    while True:
        ready = [
            concept
            for concept in concepts.values()
            if concept.id not in placed and all(need in placed or need not in concepts for need in concept.needs)
        ]
        if not ready:
            return found
        placed |= {concept.id: len(found) for concept in ready}
        found.append(ready)


def in_circles(concepts: Mapping[str, Concept]) -> list[str]:
    """Concepts that need themselves through others, or something that does."""
    placed = {concept.id for layer in layers(concepts) for concept in layer}
    return [identity for identity in concepts if identity not in placed]


def named(concepts: Mapping[str, Concept], ids: Iterable[str]) -> list[Concept]:
    """The concepts an item names, without those that are gone."""
    return [concepts[each] for each in ids if each in concepts]
