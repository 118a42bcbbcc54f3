"""A problem at a seed: parameters drawn, texts rendered, keys and slips computed. Pure, and the same for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from app.content import seeded
from app.content.figures import Figure, draw_figure
from app.content.live import Expressions, at
from app.content.markdown import render, render_inline
from app.content.problem_draws import draw, right_numbers
from app.content.problem_schemas import Problem
from app.practice.parts import Part, make_part

LARGEST_ISSUED_SEED = 999_999  # short enough to read out


@dataclass(frozen=True)
class Variant:
    """A problem's variant. Texts are rendered when they are asked for: grading needs none of them."""

    problem: Problem
    seed: int
    values: Mapping[str, object]
    parts: tuple[Part, ...]

    @cached_property
    def statement(self) -> Markup:
        with at("statement"):
            return render(self.problem.statement, Expressions(self.values))

    @cached_property
    def given(self) -> tuple[tuple[str, Markup], ...]:
        with at("given"):
            return tuple(
                (each.label, render_inline(each.text, Expressions(self.values))) for each in self.problem.given
            )

    @cached_property
    def hints(self) -> tuple[Markup, ...]:
        with at("hints"):
            return tuple(render_inline(hint, Expressions(self.values)) for hint in self.problem.hints)

    @cached_property
    def solution(self) -> Markup:
        with at("solution"):
            return render(self.problem.solution, Expressions(self.values))

    @cached_property
    def figure(self) -> Figure | None:
        with at("figure"):
            return draw_figure(self.problem.figure, Expressions(self.values)) if self.problem.figure else None


def make_variant(problem: Problem, seed: int, drawn: Mapping[str, object] | None = None) -> Variant:
    """The variant of `problem` at `seed`. Raises ExpressionError when its content does not compute, now or where one
    of its texts is asked for.

    `drawn` are the parameters a variant was issued with: a later revision of the problem draws others for the same
    seed, and an answered variant must keep its numbers. Parameters the problem no longer has are drawn anew.
    """
    keeps = drawn is not None and set(drawn) == set(problem.parameters)
    values = seeded.with_lets(problem.let, drawn if drawn is not None and keeps else draw(problem, seed))
    parts, right = _parts(problem, values, seed)
    return Variant(problem, seed, {**values, "answer": right}, parts)


def _parts(problem: Problem, values: Mapping[str, object], seed: int) -> tuple[tuple[Part, ...], Mapping[str, float]]:
    """The parts in order, and the right values of its numbers, which later parts may build on."""
    right = right_numbers(problem, values)
    parts: list[Part] = []
    for index, source in enumerate(problem.parts):
        with at("parts", index):
            name = f"{problem.id}:{problem.revision}:{source.id}:{seed}"
            parts.append(make_part(source, {**values, "answer": right}, name, problem.let))
    return tuple(parts), right
