"""How well an interviewer hears what strangers say: `python -m tests.support.heard [open|frozen]`.

Answers to the interviews' questions in words, each point labelled by the hand that wrote it, without sight of
evidence, claims or the grader: tests/interview/answers. Each is heard at seed 0, after right answers to all before it.
Prints sums; with `open` and an interview it also shows where they differ, for tuning. What is frozen is measured and
never shown.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.content.catalogue import Catalogue, catalogue
from app.interview.challenging import held_in
from app.interview.drawing import draw, values_of
from app.interview.hearing import hear
from app.interview.parts import Part, Values, contradicted_by, known_to, parts_of
from app.interview.questions import right_answer, rubric_of
from tests.support.agreement import kappa
from tests.support.yaml_files import read_yaml

ANSWERS = Path(__file__).parent.parent / "interview" / "answers"
LABELS = ("met", "half", "absent", "contradicted")
VERDICTS = ("met", "half", "unsure", "missed", "contradicted")


@dataclass(frozen=True)
class Heard:
    """A labelled point of an answer, and what was heard of it."""

    interview: str
    point: str
    label: str
    verdict: str
    sentence: str


def heard_of(part: str, content: Catalogue) -> list[Heard]:
    """Every labelled point of the answers of a part, open or frozen, as it is heard."""
    asked: dict[str, dict[str, tuple[Part, Values]]] = {}
    found = []
    for answer in read_yaml(ANSWERS / f"{part}.yaml"):
        identity = answer["interview"]
        if identity not in asked:
            asked[identity] = dict(_asked(content, identity))
        found += _heard(answer, *asked[identity][answer["part"]])
    return found


def _asked(content: Catalogue, identity: str) -> Iterator[tuple[str, tuple[Part, Values]]]:
    interview = content.interviews[identity]
    values, answers = values_of(interview, draw(interview, 0)), dict[str, str]()
    for part in parts_of(interview):
        if part.kind == "text":
            known = known_to(part, values, answers)
            assert known is not None, "all before it was answered"
            yield part.id, (part, known)
        answers[part.id] = "words" if part.kind == "text" else right_answer(part, values, answers)


def _heard(answer: dict[str, Any], part: Part, known: Values) -> Iterator[Heard]:
    points = part.question.rubric
    assert answer["points"].keys() == {each.id for each in points}, f"{part.id}: other points than those labelled"
    held = held_in(part, answer["answer"], known)
    against = {point for each in held for point in contradicted_by(each.challenge, part)}
    for each in hear(rubric_of(part, known), points, answer["answer"]).points:
        label = answer["points"][each.id]
        half = each.verdict == "met" and each.credit < 1
        verdict = "contradicted" if each.id in against else "half" if half else each.verdict
        yield Heard(answer["interview"], each.id, label["verdict"], verdict, label.get("sentence", ""))


def confusion(heard: Sequence[Heard]) -> Counter[tuple[str, str]]:
    """How many points with each label were heard as what."""
    return Counter((each.label, each.verdict) for each in heard)


def agreement(heard: Sequence[Heard]) -> float:
    """Cohen's kappa of said, not said and denied. Half of a point is said, and what is unsure is not."""
    three = {"half": "met", "absent": "missed", "unsure": "missed"}
    return kappa([(three.get(each.label, each.label), three.get(each.verdict, each.verdict)) for each in heard])


def main() -> None:
    """Print how labels and what was heard agree."""
    part, only = (sys.argv[1:] + ["open", ""][len(sys.argv) - 1 :])[:2]
    heard = heard_of(part, catalogue())
    table = confusion(heard)
    sys.stdout.write(f"{part}: {len(heard)} points, kappa {agreement(heard):.3f}\n{'':14}{'':2}")
    sys.stdout.write("".join(f"{each:>14}" for each in VERDICTS) + "\n")
    for label in LABELS:
        sys.stdout.write(f"{label:16}" + "".join(f"{table[label, each]:14}" for each in VERDICTS) + "\n")
    for each in heard if part == "open" and only else ():
        if each.interview == only and each.label != each.verdict:
            sys.stdout.write(f"{each.point}: {each.label}, heard as {each.verdict}: {each.sentence}\n")


if __name__ == "__main__":
    main()
