"""How single claims are graded: `python -m tests.support.claims [open|set-aside] [RUBRIC]`.

Each claim was written for one point of one rubric, right, half or wrong, by a hand that saw no evidence. It is graded
as an answer to the rubric, and the verdict on its own point is compared. Prints sums only; with `open` and the name
of a rubric it also shows where they differ, for tuning.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.grading.rubrics.points import PointGrade
from tests.support import shipped
from tests.support.yaml_files import read_yaml

CLAIMS = Path(__file__).parent.parent / "grading" / "claims"
EARNS = {"right": 1.0, "half": 0.5, "wrong": 0.0}


@dataclass(frozen=True)
class Claim:
    """One claim: the rubric and the point it was written for, and whether it is right, half or wrong."""

    rubric: str
    point: str
    verdict: str
    text: str


def claims(part: str) -> list[Claim]:
    """The claims of a part, in the order of the file."""
    rubrics = read_yaml(CLAIMS / f"{part}.yaml")
    return [
        Claim(rubric, point, verdict, text)
        for rubric, points in rubrics.items()
        for point, verdicts in points.items()
        for verdict, texts in verdicts.items()
        for text in texts
    ]


def graded(claim: Claim) -> PointGrade:
    """What the grader says of the claim's own point."""
    return next(each for each in shipped.graded(claim.rubric, claim.text).points if each.id == claim.point)


def share(pairs: Sequence[tuple[Claim, PointGrade]], verdict: str, credit: float | None = None) -> float:
    """Of the claims of a verdict, how many earn `credit`, or else what such a claim should."""
    mine = [found for claim, found in pairs if claim.verdict == verdict]
    return sum(found.credit == (EARNS[verdict] if credit is None else credit) for found in mine) / len(mine)


def report(pairs: Sequence[tuple[Claim, PointGrade]]) -> str:
    """The published figures."""
    wrong = [found for claim, found in pairs if claim.verdict == "wrong"]
    contradicted = sum(found.verdict == "contradicted" for found in wrong) / len(wrong)
    return (
        f"{len(pairs)} claims: right ones met {share(pairs, 'right'):.1%} and half {share(pairs, 'right', 0.5):.1%}, "
        f"halves that earn half {share(pairs, 'half'):.1%} and all {share(pairs, 'half', 1.0):.1%}, "
        f"wrong ones not met {share(pairs, 'wrong'):.1%} and contradicted {contradicted:.1%}"
    )


def main() -> None:
    part, only = sys.argv[1] if len(sys.argv) > 1 else "set-aside", sys.argv[2] if len(sys.argv) > 2 else ""
    pairs = [(each, graded(each)) for each in claims(part)]
    if part == "open" and only:
        for claim, found in pairs:
            if claim.rubric == only and found.credit != EARNS[claim.verdict]:
                sys.stdout.write(f"{claim.point} {claim.verdict}: {claim.text}\n  {found.verdict} {found.credit}\n")
    sys.stdout.write(report(pairs) + "\n")


if __name__ == "__main__":
    main()
