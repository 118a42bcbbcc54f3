"""Concepts in layers: each stands below everything it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.content.schemas import Concept


def layers(concepts: Mapping[str, Concept]) -> list[list[Concept]]:
    """The concepts by how many steps of prerequisites lie above them, each layer in the file's order.

    Concepts in a circle have no place; `in_circles` names them.
    """
    return _layers(concepts, len(concepts))


def columns(concepts: Mapping[str, Concept], most: int) -> list[list[Concept]]:
    """The same with at most `most` in a layer: the others come later, those that most builds on first."""
    height: dict[str, int] = {}
    for layer in reversed(layers(concepts)):
        for concept in layer:
            height.setdefault(concept.id, 0)
            for need in concept.needs:
                height[need] = max(height.get(need, 0), height[concept.id] + 1)
    return _layers(dict(sorted(concepts.items(), key=lambda each: -height.get(each[0], 0))), most)


def _layers(concepts: Mapping[str, Concept], most: int) -> list[list[Concept]]:
    placed: set[str] = set()
    found: list[list[Concept]] = []
    while True:
        ready = [
            concept
            for concept in concepts.values()
            if concept.id not in placed and all(need in placed or need not in concepts for need in concept.needs)
        ][:most]
        if not ready:
            return found
        placed |= {concept.id for concept in ready}
        found.append(ready)


def in_circles(concepts: Mapping[str, Concept]) -> list[str]:
    """Concepts that need themselves through others, or something that does."""
    placed = {concept.id for layer in layers(concepts) for concept in layer}
    return [identity for identity in concepts if identity not in placed]


def below(concepts: Mapping[str, Concept], identity: str) -> set[str]:
    """Everything a concept rests on, near and far."""
    found: set[str] = set()
    waiting = list(concepts[identity].needs)
    while waiting:
        need = waiting.pop()
        if need in concepts and need not in found:
            found.add(need)
            waiting += concepts[need].needs
    return found


def direct_needs(concepts: Mapping[str, Concept]) -> dict[str, list[str]]:
    """The needs of each concept without those that another of its needs rests on."""
    deep = {identity: below(concepts, identity) for identity in concepts}
    return {
        identity: [need for need in each.needs if not any(need in deep.get(other, ()) for other in each.needs)]
        for identity, each in concepts.items()
    }


def longest_way(concepts: Mapping[str, Concept]) -> list[str]:
    """The longest chain in which each concept needs the one before it."""
    order = layers(concepts)
    way: list[str] = [order[-1][0].id] if order else []
    for layer in reversed(order[:-1]):
        way.append(next(each.id for each in layer if each.id in concepts[way[-1]].needs))
    return way[::-1]


def way_to(concepts: Mapping[str, Concept], goal: str) -> list[str]:
    """What a concept rests on, in an order to learn it in, and the concept itself at the end."""
    wanted = below(concepts, goal) | {goal}
    return [concept.id for layer in layers(concepts) for concept in layer if concept.id in wanted]


def named(concepts: Mapping[str, Concept], ids: Iterable[str]) -> list[Concept]:
    """The concepts an item names, without those that are gone."""
    return [concepts[each] for each in ids if each in concepts]
