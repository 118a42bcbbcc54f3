"""Whether every probe can be asked, be answered, and be answered only by who knows: the rubric's own exemplar tells."""

from __future__ import annotations

from collections.abc import Iterator

from app.content.interview_schemas import ProbedPoint
from app.content.live import Expressions
from app.grading.rubrics.grader import Rubric, grade
from app.interview.at_levels import without
from app.interview.parts import Part, Values
from app.interview.prompts import probe_question
from app.interview.questions import rubric_of
from app.interview.reacting import next_point
from app.interview.replies import hear_reply

# What says nothing, whatever was asked.
EMPTY_REPLIES = (
    "Yes, that would be fine.",
    "No, not really, I am not sure about this.",
    "It depends on the setup; I would look at it, measure and tune it.",
)


def probe_findings(part: Part, known: Values, full: str) -> Iterator[str]:
    """What is wrong with the probes of an answer in words, whose exemplar is `full`."""
    rubric, reached = rubric_of(part, known), set[str]()
    evidence = {each.id: each.evidence for each in grade(rubric, full).points}
    probed = [each for each in part.question.rubric if each.ask]
    for point in probed:
        ask = probe_question(point, Expressions(known))
        if empty := next((each for each in EMPTY_REPLIES if hear_reply(rubric, point.id, ask, each).credit), None):
            yield f"the probe for {point.id} gives itself away: “{empty}” is heard as the answer to it"
        if not hear_reply(rubric, point.id, ask, " ".join(evidence[point.id])).credit:
            yield f"what the exemplar says of {point.id} is not heard as the answer to its probe"
        left = without(rubric, point.id, full)
        reached |= _probes_of(rubric, part.question.rubric, left)
    if missed := [each.id for each in probed if each.id not in reached]:
        yield f"nobody is asked for {', '.join(missed)}, whatever is left out of the exemplar"


def _probes_of(rubric: Rubric, points: tuple[ProbedPoint, ...], said: str) -> set[str]:
    """The points that are asked for after `said`, where the replies say nothing."""
    heard = {each.id for each in grade(rubric, said).points if each.credit}
    asked = set[str]()
    while point := next_point(points, heard, asked):
        asked.add(point.id)
    return asked
