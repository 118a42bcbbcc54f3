"""The concept map: what each idea says, what it needs, and where it is taught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from app.content.catalogue import Catalogue
from app.content.concept_map import layers
from app.content.diagrams.svg import LINE, NARROW, Canvas, Point, number, text_width, wrapped
from app.content.schemas import Concept

WIDEST, GAP = 112.0, 14.0  # width of a concept on the map, and between two columns
KNOWN, INSET = 3.0, 4.0  # the bar that says how much of it was right lately: its height; what is left free at the sides
TALL, BETWEEN = 56.0, 10.0  # height of a concept, and between two
_VOWELS = "aeiou"


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
class GroupMap:
    """One group's concepts from left to right by what they need of it: their top left corners, and the line of every
    need as points, from what is needed to what needs it."""

    width: float
    height: float
    places: Mapping[str, tuple[float, float]]
    lines: tuple[tuple[Point, ...], ...]


def map_of(concepts: Mapping[str, Concept]) -> GroupMap:
    """A map of `concepts` alone, as wide as a phone. Boxes stand in columns and rows, and lines run between them."""
    order = layers(concepts)
    width = (NARROW - (len(order) - 1) * GAP) / len(order) if len(order) > 1 else WIDEST
    width = min(width, WIDEST)
    column = {concept.id: index for index, layer in enumerate(order) for concept in layer}
    places = {
        concept.id: (column[concept.id] * (width + GAP), 1.0 + row * (TALL + BETWEEN))
        for layer in order
        for row, concept in enumerate(layer)
    }
    lanes = _lanes(concepts, places)
    lines = tuple(
        _line(places[need], places[identity], width, lanes[need], column[identity] - column[need] == 1)
        for identity in places
        for need in concepts[identity].needs
        if need in places
    )
    return GroupMap(width, max(map(len, order), default=0) * (TALL + BETWEEN), places, lines)


def _lanes(concepts: Mapping[str, Concept], places: Mapping[str, Point]) -> dict[str, float]:
    """Where between two columns, 0 to 1, the line of each concept turns that others need: no two of a column alike."""
    columns: dict[float, list[str]] = {}
    for identity, (x, _) in places.items():
        if any(identity in concepts[other].needs for other in places):
            columns.setdefault(x, []).append(identity)
    return {
        identity: (index + 1) / (len(found) + 1) for found in columns.values() for index, identity in enumerate(found)
    }


def _line(need: Point, target: Point, width: float, lane: float, is_next: bool) -> tuple[Point, ...]:
    """From the right of what is needed to the left of what needs it, in right angles. To the next column it turns once
    between the two; further on it runs in the gap below or above its own row, which all columns have at one height."""
    (left, top), (x, y) = need, target
    begin, end, turn = (left + width, top + TALL / 2), (x, y + TALL / 2), left + width + lane * GAP
    if is_next:
        return begin, (turn, begin[1]), (turn, end[1]), end
    row = top + TALL + lane * BETWEEN if y >= top else top - (1 - lane) * BETWEEN
    last = x - GAP + lane * GAP
    return begin, (turn, begin[1]), (turn, row), (last, row), (last, end[1]), end


def draw_maps(concepts: Mapping[str, Concept], known: Mapping[str, float]) -> dict[str, Markup]:
    """A map for each group. Needs across groups would be too many to follow; the lists below name them.

    `known` is the learner's recent share right, 0 to 1: a bar along the foot of each concept that has one.
    """
    found = {}
    for group in dict.fromkeys(concept.group for concept in concepts.values()):
        members = {identity: concept for identity, concept in concepts.items() if concept.group == group}
        drawn = map_of(members)
        canvas = Canvas()
        for points in drawn.lines:
            canvas.line(points, "map-need")
        for identity, place in drawn.places.items():
            _draw_concept(canvas, members[identity], place, drawn.width, known.get(identity))
        found[group] = Markup(
            '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-hidden="true">{body}</svg>'
        ).format(w=number(canvas.width), h=number(drawn.height), body=Markup("\n").join(canvas.marks))
    return found


def title_lines(concept: Concept, width: float) -> list[str]:
    """A concept's title as it stands in its box: a word that is too long goes on in the next line."""
    room = width - 2 * INSET
    return wrapped(" ".join(part for word in concept.title.split() for part in _parts(word, room)), room)


def _parts(word: str, room: float) -> list[str]:
    """The word, cut after its own hyphen or before a syllable where it does not fit."""
    if text_width(word) <= room:
        return [word]
    first, hyphen, rest = word.partition("-")
    if hyphen:
        return [first + hyphen, *_parts(rest, room)]
    cuts = [at for at in range(3, len(word) - 3) if word[at] not in _VOWELS and word[at + 1] in _VOWELS]
    fitting = [at for at in cuts if text_width(f"{word[:at]}-") <= room]
    return [f"{word[: fitting[-1]]}-", word[fitting[-1] :]] if fitting else [word]


def _draw_concept(canvas: Canvas, concept: Concept, place: Point, width: float, known: float | None) -> None:
    x, y = place
    canvas.marks.append(Markup('<a href="#{}" tabindex="-1">').format(concept.id))
    canvas.box(x, y, width, TALL, "d-node", 4)
    if known is not None:
        canvas.box(x + INSET, y + TALL - 2 * KNOWN, width - 2 * INSET, KNOWN, "map-asked")
        canvas.box(x + INSET, y + TALL - 2 * KNOWN, (width - 2 * INSET) * known, KNOWN, "map-known")
    texts = title_lines(concept, width)
    middle = y + (TALL if known is None else TALL - 2 * KNOWN) / 2
    canvas.lines(x + INSET, middle + 4 - (len(texts) - 1) * LINE / 2, texts, "d-ink")
    canvas.marks.append(Markup("</a>"))
