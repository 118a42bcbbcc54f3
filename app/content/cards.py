"""A card as it is shown: its sections rendered, its options, pairs and steps, its figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from markupsafe import Markup

from app.content.card_schemas import CardHead
from app.content.diagrams.drawing import Drawing, draw
from app.content.figures import Figure, draw_figure
from app.content.files import ContentError, Source, validated
from app.content.kinds import head_model, kind_of
from app.content.kinds.kind import CardKind, CheckedKind
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.content.schemas import Deck
from app.core.errors import ContentProblem

CARD_SECTIONS = ("Question", "Answer", "Shorthand", "Precise", "Trap")
SLOW = 3.0  # this many times the expected seconds is too long for a right answer to have been easy

T = TypeVar("T")


@dataclass(frozen=True)
class Card:
    """A card and where it belongs. `asks` is what its kind asks, rendered: options, pairs, steps and so on. `pages` are
    the titles of the handbook's pages that it leads to, by slug."""

    head: CardHead
    deck: Deck
    sections: Mapping[str, Markup]
    figure: Figure | None
    source: Source
    diagram: Drawing | None = None
    asks: object = None
    pages: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def kind(self) -> CardKind:
        return kind_of(self.head)

    @property
    def is_checked(self) -> bool:
        """Whether the machine checks what is answered."""
        return isinstance(self.kind, CheckedKind) and bool(self.asks)

    @property
    def expected_seconds(self) -> int:
        return self.head.seconds or self.kind.seconds

    @property
    def slow_milliseconds(self) -> int:
        """From here on a right answer was not easy."""
        return round(SLOW * self.expected_seconds * 1000)

    def name_at(self, seed: int) -> str:
        """What decides the order in which things are offered at a seed."""
        return f"{self.id}:{self.head.revision}:{seed}"

    def fenced(self, section: str, info: str) -> list[str]:
        """The fenced blocks of a section that are marked `info`."""
        return fenced(self.source.sections[section], info)


def make_card(source: Source, deck: Deck, stem: str) -> Card:
    """The card in a file called `stem`. Raises ContentError with everything that is wrong with it."""
    head = validated(head_model(), source)
    kind = kind_of(head)
    problems = list(_section_problems(source))
    if head.id != stem:
        problems.append(source.problem(("id",), f"{head.id} stands in a file called {stem}.md"))
    show = _Renderer(source, problems)
    sections = {name: show.section(name, kind) for name in source.sections}
    card = Card(
        head,
        deck,
        sections,
        show.part("figure", make=lambda: draw_figure(head.figure, Expressions()) if head.figure else None),
        source,
        show.part("diagram", make=lambda: draw(head.diagram) if head.diagram else None),
        kind.make(head, show) if isinstance(kind, CheckedKind) else None,
    )
    if problems:
        raise ContentError(problems)
    return card


def fenced(text: str, info: str) -> list[str]:
    """The contents of the fenced blocks of `text` that are marked `info`, as in ```` ```python run ````."""
    return re.findall(rf"^```{re.escape(info)} *\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class _Renderer:
    """Renders the parts of one file and collects what does not compute, each with its line."""

    def __init__(self, source: Source, problems: list[ContentProblem]) -> None:
        self.source = source
        self.problems = problems

    def section(self, name: str, kind: CardKind) -> Markup:
        text = self.source.sections[name]
        try:
            return kind.render_question(text) if name == "Question" else render(text)
        except ExpressionError as error:
            self.problems.append(self.source.section_problem(name, str(error)))
        return Markup()

    def inline(self, text: str, *location: str | int) -> Markup:
        return self.part(*location, make=lambda: render_inline(text)) or Markup()

    def part(self, *location: str | int, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except ExpressionError as error:
            self.problems.append(self.source.problem((*location, *error.location), str(error)))
        return None


def _section_problems(source: Source) -> Iterator[ContentProblem]:
    for name in source.sections:
        if name not in CARD_SECTIONS:
            yield source.section_problem(name, "there is no such section, but " + ", ".join(CARD_SECTIONS))
    for name in ("Question", "Answer"):
        if not source.sections.get(name):
            yield source.problem((), f"the section {name!r} is missing")
