"""The points of a rubric as text, and what became of each in an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.content.live import Expressions
from app.content.markdown import render_inline
from app.content.rubric_schemas import RubricFile
from app.grading.rubrics.quotes import passage_about, topic
from app.reveal.words import CLASSES, named

OWN_WORD = 3.0  # how much more a word of a point tells than one of its evidence
TAKEN_BACK = "taken back"  # what was met, or contradicted, by words that the learner did not mean so


@dataclass(frozen=True)
class PointView:
    """A point of a rubric as text. It is `about` these stems and numbers, in any of its wordings; those that few points
    of the rubric are about tell more."""

    id: str
    text: Markup
    half: str | None
    weight: int
    about: Mapping[str, float]

    @property
    def name(self) -> str:
        """What it is known by in a sentence."""
        return named(self.text.striptags())


@dataclass(frozen=True)
class Opinion:
    """What the second grader made of one point: `claimed` where it quoted nothing that would bear it out."""

    verdict: str
    passage: str | None
    claimed: str | None
    differs: bool


@dataclass(frozen=True)
class Row:
    """What became of one point: the grader's verdict, and the learner's where they were asked or take it back.

    The learner is asked where the grader was unsure, and where what counts as met is `doubted`.
    """

    point: PointView
    verdict: str
    css: str
    credit: float
    evidence: tuple[str, ...]
    is_unsure: bool
    doubted: bool
    judged: str | None
    second: Opinion | None = None

    @property
    def asks(self) -> bool:
        return self.is_unsure or self.doubted

    @property
    def may_take_back(self) -> bool:
        """Whether it was met or contradicted beyond doubt: only whoever said it knows that something else was meant."""
        return not self.asks and (self.verdict in ("met", "half met", "contradicted") or self.is_taken_back)

    @property
    def is_taken_back(self) -> bool:
        return self.verdict == TAKEN_BACK

    @property
    def lost(self) -> float:
        """The points it cost."""
        return self.point.weight * (1 - self.credit)

    @property
    def quotes(self) -> tuple[str, ...]:
        """The words that were taken for it: of each sentence what it says about the point."""
        return tuple(dict.fromkeys(passage_about(each, self.point.about) for each in self.evidence))


def point_views(rubric: RubricFile) -> tuple[PointView, ...]:
    """The points of a rubric with their numbers computed. Raises ExpressionError."""
    values = rubric.values()
    texts = {each.id: render_inline(each.text, Expressions(values)) for each in rubric.points}
    own = {each.id: topic(texts[each.id].striptags()) for each in rubric.points}
    every = {each.id: own[each.id] | topic(each.half or "", each.evidence_words) for each in rubric.points}
    having = Counter(word for words in every.values() for word in words)

    def about(point: str) -> dict[str, float]:
        return {word: (OWN_WORD if word in own[point] else 1.0) / having[word] for word in every[point]}

    return tuple(PointView(each.id, texts[each.id], each.half, each.weight, about(each.id)) for each in rubric.points)


def make_row(
    point: PointView, graded: Mapping[str, Any], judged: Mapping[str, str], second: Mapping[str, Any] | None = None
) -> Row:
    """What became of a point, as its grade and what the learner judged are kept."""
    verdict, decision = str(graded["verdict"]), judged.get(point.id)
    doubted = bool(graded.get("doubted"))
    if doubted and verdict == "contradicted":  # nobody is told that they said the opposite where that is a guess
        verdict, doubted = "unsure", False
    is_unsure = verdict == "unsure"
    if verdict in ("met", "contradicted") and decision == "missed" and not doubted:
        shown, css = TAKEN_BACK, CLASSES["missed"]
    else:
        shown = decision if decision and (is_unsure or doubted) else verdict
        css = CLASSES["unsure" if doubted and not decision else shown]
    word = "half met" if shown == "met" and graded["credit"] == 0.5 else shown
    credit = 0.0 if shown in ("missed", TAKEN_BACK) else float(graded["credit"] or shown == "met")
    own = decision if is_unsure or doubted else None
    opinion = _opinion(second, word if not is_unsure else None) if second else None
    return Row(point, word, css, credit, tuple(graded["evidence"]), is_unsure, doubted, own, opinion)


def _opinion(second: Mapping[str, Any], first: str | None) -> Opinion:
    """The second grader's verdict beside the built-in one, if that is sure."""
    claimed = second.get("claimed")
    differs = claimed is None and first is not None and second["verdict"] != first
    return Opinion(second["verdict"], second["quote"], claimed, differs)
