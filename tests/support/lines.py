"""What each line of evidence lets in: `python -m tests.support.lines RUBRIC [POINT]`.

Each known claim about a point (`cards/claims/`) is looked at alone. Of each line of the point's evidence it says how
many right, half right and wrong claims have it, and prints the wrong ones; then the right ones that no line hears. A
line that wrong claims have as often as right ones is mere words: it should say what is claimed of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from app.grading.rubrics.grader import Rubric, false_claims
from app.grading.rubrics.likeness import Claim
from app.grading.rubrics.looking import claimed, look
from app.grading.rubrics.patterns import Pattern
from app.grading.rubrics.points import Point
from app.grading.rubrics.reading import read
from tests.support.shipped import shipped
from tests.support.weights import rubric_of


@dataclass(frozen=True)
class Line:
    """A line of evidence, what it earns by itself, and the claims about its point that have it."""

    source: str
    earns: str
    claims: Sequence[Claim]

    def of(self, truth: str) -> list[Claim]:
        return [each for each in self.claims if each.truth == truth]


def lines_of(rubric: Rubric, point: Point, claims: Sequence[Claim]) -> list[Line]:
    """The lines of a point's evidence, each with the claims that have it and that nothing else says to be false."""
    passing = [each for each in claims if not _is_known_false(rubric, point, each)]
    parts = ((f"part {number}", part.patterns) for number, part in enumerate(point.parts, 1))
    kinds: list[tuple[str, Sequence[Pattern]]] = [("met", point.met), *parts, ("half", point.half)]
    return [
        Line(pattern.source, earns, [each for each in passing if _has(rubric, point, pattern, each)])
        for earns, patterns in kinds
        for pattern in patterns
    ]


def _has(rubric: Rubric, point: Point, pattern: Pattern, claim: Claim) -> bool:
    return look((pattern,), read(claim.text, rubric.wordings), point.course).shown is not None


def _is_known_false(rubric: Rubric, point: Point, claim: Claim) -> bool:
    against = false_claims(rubric.misconceptions, claim.text, rubric.wordings)
    return any(point.id in each.points for each, _ in against) or (
        claimed(point.against, read(claim.text, rubric.wordings)) is not None
    )


def main() -> None:
    rubric, file = rubric_of(sys.argv[1]), shipped().rubrics[sys.argv[1]]
    known = file.knowledge.claims[file.id].claims()
    for point in rubric.points:
        if sys.argv[2:] and point.id not in sys.argv[2:]:
            continue
        claims = [each for each in known if each.point == point.id]
        lines = lines_of(rubric, point, claims)
        sys.stdout.write(f"\n## {point.id}: needs {point.needs or 1}\n")
        for line in lines:
            counts = " ".join(f"{truth} {len(line.of(truth))}" for truth in ("right", "half", "wrong"))
            sys.stdout.write(f"  [{line.earns}] {line.source}\n      {counts}\n")
            sys.stdout.writelines(f"        wrong: {each.text}\n" for each in line.of("wrong"))
        heard = {each.text for line in lines if line.earns != "half" for each in line.claims}
        sys.stdout.writelines(
            f"  not heard: {each.text}\n" for each in claims if each.truth == "right" and each.text not in heard
        )


if __name__ == "__main__":
    main()
