"""Answers labelled in short form, as in `tests/grading/written`, beside the grader's own grades.

`python -m tests.support.written [SP1]` prints how well they agree, and for one rubric where they differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from app.content.catalogue import catalogue
from app.content.rubric_schemas import RubricFile
from app.grading.rubrics.grader import RubricGrade
from tests.support import shipped
from tests.support.agreement import agreement, differences
from tests.support.yaml_files import read_yaml

WRITTEN = Path(__file__).parent.parent / "grading" / "written"
Answer = dict[str, Any]


def written(only: str = "") -> dict[str, list[Answer]]:
    """The answers by rubric, as their files have them."""
    return {path.stem: read_yaml(path) for path in sorted(WRITTEN.glob(f"{only}*.yaml"))}


def labelled(answer: Answer, rubric: RubricFile) -> Answer:
    """An answer with a verdict for each point and its score, as the long form of labels has them."""
    verdicts = {point.id: "missed" for point in rubric.points}
    verdicts |= dict.fromkeys((*answer.get("met", ()), *answer.get("half", ())), "met")
    verdicts |= dict.fromkeys(answer.get("against", ()), "contradicted")
    weights = {point.id: point.weight for point in rubric.points}
    earned = sum(weights[point] for point in answer.get("met", ()))
    earned += sum(weights[point] for point in answer.get("half", ())) / 2
    return {
        **answer,
        "points": verdicts,
        "partly": answer.get("half", []),
        "critical": answer.get("critical", []),
        "score": earned / sum(weights.values()),
    }


def graded(only: str = "") -> list[tuple[Answer, RubricGrade]]:
    """Each answer, labelled, with the grader's own grade."""
    pairs = []
    for identity, answers in written(only).items():
        file = catalogue().rubrics[identity]
        pairs += [(labelled(answer, file), shipped.graded(identity, answer["text"])) for answer in answers]
    return pairs


def main() -> None:
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    pairs = graded(only)
    if only:
        differences(pairs)
    sys.stdout.write(f"{agreement(pairs)}\n")


if __name__ == "__main__":
    main()
