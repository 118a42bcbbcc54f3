"""The concept map: what each idea says, what it needs, and where it is taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.content.catalogue import Catalogue
from app.content.concept_map import below, layers, longest_way, way_to
from app.content.schemas import Concept
from app.core.errors import NotFound
from app.progress.evidence import Standing, weakest_of


@dataclass(frozen=True)
class Entry:
    """A concept with what it needs, what needs it, and where it leads."""

    concept: Concept
    needs: tuple[Concept, ...]
    opens: tuple[Concept, ...]
    links: tuple[dict[str, str], ...]


def groups(catalogue: Catalogue) -> dict[str, list[Entry]]:
    """Every concept under its group, each group from what needs least to what needs most."""
    concepts = catalogue.concepts
    found: dict[str, list[Entry]] = {concept.group: [] for concept in concepts.values()}
    for layer in layers(concepts):
        for concept in layer:
            needs = tuple(concepts[need] for need in concept.needs if need in concepts)
            opens = tuple(each for each in concepts.values() if concept.id in each.needs)
            found[concept.group].append(Entry(concept, needs, opens, _links(catalogue, concept.id)))
    return found


def _links(catalogue: Catalogue, concept: str) -> tuple[dict[str, str], ...]:
    """Pages, cards, problems and experiments that teach a concept."""
    pages = [
        (f"/reference/{slug}", each.head.title, "")
        for slug, each in catalogue.pages.items()
        if concept in each.head.concepts
    ]
    cards = [
        (f"/study/cards/{each.id}", each.id, each.head.title)
        for each in catalogue.cards.values()
        if concept in each.head.concepts
    ]
    problems = [
        (f"/practice/{each.slug}", each.id, each.title)
        for each in catalogue.problems.values()
        if concept in each.concepts
    ]
    experiments = [
        (f"/lab/experiments/{each.slug}", each.id, each.title)
        for each in catalogue.experiments.values()
        if concept in each.concepts
    ]
    rubrics = [
        (f"/rubrics/{each.slug}", each.id, each.title)
        for each in catalogue.rubrics.values()
        if concept in each.concepts
    ]
    found = [*pages, *cards, *problems, *rubrics, *experiments]
    return tuple({"href": href, "text": text, "title": title} for href, text, title in found)


@dataclass(frozen=True)
class Way:
    """What leads to an idea, in an order to learn it in, with the idea itself last. `is_chosen`: somebody asked for it.
    Else it is where the learner is weak, and `weak` are the ideas on it that are; without any, the longest chain."""

    goal: Concept
    ideas: Sequence[Concept]
    firm: int
    is_chosen: bool
    weak: Sequence[Concept] = ()

    @property
    def ids(self) -> frozenset[str]:
        """Of every idea on it."""
        return frozenset(each.id for each in self.ideas)


def way(catalogue: Catalogue, standings: Mapping[str, Standing], goal: str | None) -> Way:
    """The way to `goal`; without one, the learner's weak way. Raises NotFound."""
    concepts = catalogue.concepts
    if goal is not None and goal not in concepts:
        raise NotFound(f"There is no concept {goal!r}. Accepted: {', '.join(concepts)}.")
    weak = () if goal else weak_chain(concepts, weakest_of(standings.values()))
    ids = _between(concepts, weak) if weak else longest_way(concepts) if goal is None else way_to(concepts, goal)
    firm = sum(each in standings and standings[each].word == "firm" for each in ids[:-1])
    found = [concepts[each] for each in ids]
    return Way(found[-1], found, firm, goal is not None, [concepts[each] for each in weak])


def weak_chain(concepts: Mapping[str, Concept], weak: Sequence[str]) -> tuple[str, ...]:
    """The longest chain of `weak` ideas, weakest first, in which each rests on the one before it, near or far; of
    those as long, one that ends in the weakest."""
    deep = {each: below(concepts, each) for each in weak}
    chains: dict[str, tuple[str, ...]] = {}
    for each in sorted(weak, key=lambda one: len(deep[one])):  # what it rests on rests on less
        before = max((chains[other] for other in chains if other in deep[each]), key=len, default=())
        chains[each] = (*before, each)
    return max((chains[each] for each in weak), key=len, default=())


def _between(concepts: Mapping[str, Concept], chain: Sequence[str]) -> list[str]:
    """The ideas from the first of a chain to its last; all that leads to an idea that stands alone."""
    first, *others = chain
    leads = way_to(concepts, chain[-1])
    return [each for each in leads if each == first or first in below(concepts, each)] if others else leads
