"""The points of a rubric as text, and what became of each in an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.content.live import Expressions
from app.content.markdown import render_inline
from app.content.rubric_schemas import RubricFile
from app.grading.rubrics.points import CREDITS, Judgement
from app.grading.rubrics.quotes import passage_about, topic
from app.reveal.words import CLASSES, named

OWN_WORD = 3.0  # how much more a word of a point tells than one of its evidence
TAKEN_BACK = "taken back"  # what was met, or contradicted, by words that the learner did not mean so
JUDGEMENTS: tuple[tuple[str, Judgement], ...] = (("Yes", "met"), ("Half of it", "half met"), ("No", "missed"))
_CLASS = {"half met": "met", TAKEN_BACK: "missed"}  # what is shown as another verdict is


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
    """What became of one point: the grader's verdict, and the learner's where they were asked or know better.

    The learner is asked where the grader was unsure, where what counts as met is `doubted`, and where what was heard is
    `guessed` to be the opposite; of what was heard as the opposite and not `known` to be false they may say that they
    meant the point. `graded` is the grader's own word, and `judged` the learner's, where that is another.
    """

    point: PointView
    verdict: str
    css: str
    credit: float
    evidence: tuple[str, ...]
    graded: str
    doubted: bool
    guessed: bool
    known: bool
    judged: Judgement | None
    second: Opinion | None = None

    @property
    def is_unsure(self) -> bool:
        return self.graded == "unsure"

    @property
    def asks(self) -> bool:
        return self.is_unsure or self.doubted

    @property
    def is_open(self) -> bool:
        """Whether it waits for what the learner says of it."""
        return self.asks and self.judged is None

    @property
    def may_take_back(self) -> bool:
        """Whether it was met, or is known to be false: only whoever said it knows that something else was meant."""
        return not self.asks and (self.graded == "met" or (self.graded == "contradicted" and self.known))

    @property
    def may_object(self) -> bool:
        """Whether it was heard as the opposite, by words that are not known to be false."""
        return self.graded == "contradicted" and not self.known

    @property
    def may_raise(self) -> bool:
        """Whether half of it was heard beyond doubt: whoever said it may have said all, or meant something else."""
        return not self.asks and self.graded == "half met"

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
        return tuple(dict.fromkeys(_quoted(passage_about(each, self.point.about), each) for each in self.evidence))


def _quoted(passage: str, sentence: str) -> str:
    """A passage with the dots that say where its sentence goes on."""
    before, _, after = sentence.partition(passage)
    return f"{'… ' if before.strip() else ''}{passage}{' …' if after.strip(' .,;:!?') else ''}"


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
    point: PointView,
    graded: Mapping[str, Any],
    judged: Mapping[str, Judgement],
    false: Collection[str] = frozenset(),
    second: Mapping[str, Any] | None = None,
) -> Row:
    """What became of a point, as its grade and what the learner judged are kept; `false` are sentences known to be."""
    verdict, doubted = str(graded["verdict"]), bool(graded.get("doubted"))
    guessed = doubted and verdict == "contradicted"
    if guessed:  # nobody is told that they said the opposite where that is a guess
        verdict, doubted = "unsure", False
    word = "half met" if verdict == "met" and graded["credit"] == CREDITS["half met"] else verdict
    decision = judged.get(point.id)
    known = not set(graded["evidence"]).isdisjoint(false)
    if verdict == "missed" or (verdict == "contradicted" and known and decision != "missed"):
        decision = None
    asks = doubted or verdict == "unsure"
    shown = decision or word
    if decision == "missed" and not asks:
        shown = TAKEN_BACK
    css = "unsure" if doubted and not decision else CLASSES[_CLASS.get(shown, shown)]
    credit = CREDITS[decision] if decision else float(graded["credit"])
    own = decision if asks or decision != word else None
    opinion = _opinion(second, shown if verdict != "unsure" else None) if second else None
    return Row(point, shown, css, credit, tuple(graded["evidence"]), word, doubted, guessed, known, own, opinion)


def _opinion(second: Mapping[str, Any], first: str | None) -> Opinion:
    """The second grader's verdict beside the built-in one, if that is sure."""
    claimed = second.get("claimed")
    differs = claimed is None and first is not None and second["verdict"] != first
    return Opinion(second["verdict"], second["quote"], claimed, differs)
