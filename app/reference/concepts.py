"""The concept map: what each idea says, what it needs, and where it is taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from app.content.catalogue import Catalogue
from app.content.concept_map import layers
from app.content.diagrams.svg import LINE, Canvas, number, wrapped
from app.content.schemas import Concept

BOX, GAP = 111.0, 12.0  # width of a concept on the map, and between two layers
KNOWN, INSET = 3.0, 7.0  # the bar that says how much of it was right lately: its height, its distance to the sides
TALL, BETWEEN, ABOVE = 38.0, 6.0, 26.0  # height of a concept, between two, and of a group's heading


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


def draw_map(concepts: Mapping[str, Concept], known: Mapping[str, float]) -> Markup:
    """Concepts from left to right by what they need, a band for each group. The lists below it say the same.

    `known` is the learner's recent share right, 0 to 1: a bar along the foot of each concept that has one.
    """
    order = layers(concepts)
    bands: dict[str, list[list[Concept]]] = {each.group: [[] for _ in order] for each in concepts.values()}
    for column, layer in enumerate(order):
        for concept in layer:
            bands[concept.group][column].append(concept)
    canvas = Canvas(len(order) * (BOX + GAP) - GAP)
    places, headings, height = _places(bands)
    for group, y in headings:
        canvas.label(0, y, group, "d-strong")
    _draw_needs(canvas, concepts, places)
    for identity, (x, y) in places.items():
        _draw_concept(canvas, concepts[identity], x, y, known.get(identity))
    return Markup('<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-hidden="true">{body}</svg>').format(
        w=number(canvas.width), h=number(height), body=Markup("\n").join(canvas.marks)
    )


def _places(
    bands: Mapping[str, Sequence[Sequence[Concept]]],
) -> tuple[dict[str, tuple[float, float]], list[tuple[str, float]], float]:
    """Where each concept and each heading stands, and how high the map is."""
    places: dict[str, tuple[float, float]] = {}
    headings: list[tuple[str, float]] = []
    top = 0.0
    for group, columns in bands.items():
        headings.append((group, top + LINE))
        for column, members in enumerate(columns):
            for row, concept in enumerate(members):
                places[concept.id] = (column * (BOX + GAP), top + ABOVE + row * (TALL + BETWEEN))
        top += ABOVE + max(map(len, columns)) * (TALL + BETWEEN) + BETWEEN
    return places, headings, top


def _draw_needs(canvas: Canvas, concepts: Mapping[str, Concept], places: Mapping[str, tuple[float, float]]) -> None:
    """Lines inside a group; across groups there would be too many to follow, and the lists name them."""
    for identity, (x, y) in places.items():
        for need in concepts[identity].needs:
            if need not in places or concepts[need].group != concepts[identity].group:
                continue
            x0, y0 = places[need][0] + BOX, places[need][1] + TALL / 2
            canvas.line([(x0, y0), (x0 + GAP / 2, y0), (x - GAP / 2, y + TALL / 2), (x, y + TALL / 2)], "map-need")


def _draw_concept(canvas: Canvas, concept: Concept, x: float, y: float, known: float | None) -> None:
    canvas.marks.append(Markup('<a href="#{}" tabindex="-1">').format(concept.id))
    canvas.box(x, y, BOX, TALL, "d-node", 4)
    if known is not None:
        canvas.box(x + INSET, y + TALL - 2 * KNOWN, BOX - 2 * INSET, KNOWN, "map-asked")
        canvas.box(x + INSET, y + TALL - 2 * KNOWN, (BOX - 2 * INSET) * known, KNOWN, "map-known")
    texts = wrapped(concept.title, BOX - 12)[:2]
    middle = y + (TALL if known is None else TALL - 2 * KNOWN) / 2
    canvas.lines(x + INSET, middle + 4 - (len(texts) - 1) * LINE / 2, texts, "d-ink")
    canvas.marks.append(Markup("</a>"))
