"""Whether anything that was said may be about a point, though it was not heard to say it. Pure.

What is said to be missing must be missing. Right answers in new words are often not heard, but words of the subject
they have. So a point counts as surely missing only where no two sentences that follow each other share enough of its
words: those of its text, topic, evidence and known claims, each weighed by how few of the question's points have it, 1
where it is one point's alone. How NEAR was chosen stands in docs/grading.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from app.content.live import Expressions
from app.grading.rubrics.quotes import topic
from app.grading.rubrics.wordings import Wordings
from app.interview.parts import Part, Values
from app.interview.questions import said_of
from app.reveal.words import sentences

NEAR = 2.5  # words of one point alone, in two sentences
TOGETHER = 2  # sentences


@dataclass(frozen=True)
class Subjects:
    """What each point of a question is about: its words with their weights, read through `wordings`."""

    words: Mapping[str, Mapping[str, float]]
    wordings: Wordings

    def is_near(self, point: str, text: str) -> bool:
        """Whether something in a text may be about a point."""
        said, about = [topic(each, wordings=self.wordings) for each in sentences(text)], self.words[point]
        together = (frozenset[str]().union(*said[at : at + TOGETHER]) for at in range(len(said)))
        return any(sum(about.get(word, 0.0) for word in words) >= NEAR for words in together)


def subjects_of(part: Part, known: Values) -> Subjects:
    """What the points of a question in words are about. Raises ExpressionError."""
    expressions, claims = Expressions(known), said_of(part, known)
    texts = tuple(
        (
            each.id,
            expressions.text(expressions.fill(each.text)),
            each.topic,
            each.evidence_words,
            *(claim.text for claim in claims if claim.point == each.id),
        )
        for each in part.question.rubric
    )
    return _weighed(texts, part.wordings)


@lru_cache(maxsize=64)  # a sitting is graded again with each judgement of its candidate
def _weighed(texts: tuple[tuple[str, ...], ...], wordings: Wordings) -> Subjects:
    words = {point: topic(*about, wordings=wordings) for point, *about in texts}
    points_with = Counter(word for of_point in words.values() for word in of_point)
    most = math.log(len(words) + 1)
    return Subjects(
        {
            point: {word: math.log((len(words) + 1) / points_with[word]) / most for word in of_point}
            for point, of_point in words.items()
        },
        wordings,
    )
