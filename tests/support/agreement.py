"""How well the built-in grader agrees with people's labels: `python -m tests.support.agreement [open|frozen]`.
The first lot, R01 to R12, is by the rubrics' own authors; the other authors saw no evidence, and another hand labelled
theirs. Each author stands alone, since who tuned on one has not seen the others.

Prints sums over all answers only. With `open` and the name of a rubric it also shows where they differ, for tuning; the
frozen part is for measuring and is never shown.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.grading.levels import CAP, NAMES, is_at_least
from app.grading.rubrics.grader import RubricGrade
from tests.support import shipped
from tests.support.yaml_files import read_yaml

ANSWERS = Path(__file__).parent.parent / "grading" / "answers"
NEVER_GOOD = ("stuffed", "fluent-wrong")


@dataclass(frozen=True)
class Agreement:
    """The figures that are published, and how many answers they rest on."""

    answers: int
    within_one_level: float
    same_level: float
    rank_correlation: float
    kappa: float
    taken_in: int
    hollow: int
    wrong_reaching: int
    wrong: int

    def __str__(self) -> str:
        return (
            f"{self.answers} answers: level within one step {self.within_one_level:.1%} (same {self.same_level:.1%}), "
            f"rank correlation of scores {self.rank_correlation:.3f}, kappa of points {self.kappa:.3f}, "
            f"stuffed or wrong answers above lean no hire {self.taken_in} of {self.hollow}, "
            f"wrong ones that reach it {self.wrong_reaching} of {self.wrong}"
        )


def graded(part: str, only: str = "") -> list[tuple[dict[str, Any], RubricGrade]]:
    """Each labelled answer of a part with the grader's own grade."""
    mine = [label for label in labels(part) if label["rubric"].startswith(only)]
    return [(label, shipped.graded(label["rubric"], label["text"])) for label in mine]


def labels(part: str) -> list[dict[str, Any]]:
    """The labelled answers of a part."""
    return [each for path in sorted((ANSWERS / part).glob("*.yaml")) for each in read_yaml(path)]


def agreement(pairs: Sequence[tuple[dict[str, Any], RubricGrade]]) -> Agreement:
    """Compare labels and grades. An unsure point counts as missed, as it does without a person."""
    steps = [abs(NAMES.index(label["level"]) - NAMES.index(found.level)) for label, found in pairs]
    hollow = [(label, found) for label, found in pairs if label["voice"] in NEVER_GOOD]
    wrong = [found for label, found in hollow if label["voice"] == "fluent-wrong" and label["level"] == "no hire"]
    return Agreement(
        len(pairs),
        sum(step <= 1 for step in steps) / len(steps),
        sum(step == 0 for step in steps) / len(steps),
        rank_correlation([label["score"] for label, _ in pairs], [found.score for _, found in pairs]),
        kappa(verdicts(pairs)),
        sum(not is_at_least(CAP, found.level) for _, found in hollow),
        len(hollow),
        sum(is_at_least(found.level, CAP) for found in wrong),
        len(wrong),
    )


def verdicts(pairs: Iterable[tuple[Mapping[str, Any], RubricGrade]]) -> list[tuple[str, str]]:
    """Of each point its label and its verdict."""
    return [
        (label["points"][point.id], "missed" if point.verdict == "unsure" else point.verdict)
        for label, found in pairs
        for point in found.points
    ]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's: Pearson's correlation of ranks, equal values sharing the mean of theirs."""
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def kappa(pairs: Iterable[tuple[str, str]]) -> float:
    """Cohen's: the agreement beyond what both would have by chance."""
    both = Counter(pairs)
    total = sum(both.values())
    observed = sum(count for (left, right), count in both.items() if left == right) / total
    lefts, rights = Counter[str](), Counter[str]()
    for (left, right), count in both.items():
        lefts[left] += count
        rights[right] += count
    chance = sum(lefts[each] * rights[each] for each in lefts) / total**2
    return (observed - chance) / (1 - chance)


def confusion(pairs: Sequence[tuple[dict[str, Any], RubricGrade]]) -> dict[tuple[str, str], int]:
    """How many answers of each labelled level were graded as each level."""
    return dict(Counter((str(label["level"]), str(found.level)) for label, found in pairs))


def by_author(
    pairs: Sequence[tuple[dict[str, Any], RubricGrade]],
) -> dict[str, list[tuple[dict[str, Any], RubricGrade]]]:
    """The answers of each author; the first lot names none."""
    found: dict[str, list[tuple[dict[str, Any], RubricGrade]]] = {}
    for label, graded_as in pairs:
        found.setdefault(str(label.get("author", "own")), []).append((label, graded_as))
    return found


def differences(pairs: Sequence[tuple[dict[str, Any], RubricGrade]]) -> None:
    """Print where labels and grades differ."""
    for label, found in pairs:
        partly = label.get("partly") or []
        sys.stdout.write(
            f"\n{label['id']} {label['voice']}: {label['level']} {label['score']:.2f} {label['critical']}, "
            f"graded {found.level} {found.score:.2f} {dict(found.critical)} {found.notes}\n"
        )
        for point in found.points:
            credit = (0.5 if point.id in partly else 1.0) * (label["points"][point.id] == "met")
            verdict = label["points"][point.id]
            if credit != point.credit or (verdict == "contradicted") != (point.verdict == "contradicted"):
                said = f"{verdict} {credit}, graded {point.verdict} {point.credit} {point.evidence}"
                sys.stdout.write(f"  {point.id}: {said}\n")


def main() -> None:
    part = sys.argv[1] if len(sys.argv) > 1 else "frozen"
    pairs = graded(part, sys.argv[2] if part == "open" and len(sys.argv) > 2 else "")
    if part == "open" and len(sys.argv) > 2:
        differences(pairs)
    for author, mine in by_author(pairs).items():
        sys.stdout.write(f"{author}: {agreement(mine)}\n")
        table = confusion(mine)
        for level in NAMES:
            sys.stdout.write(f"  {level:13}" + "".join(f"{table.get((level, other), 0):5}" for other in NAMES) + "\n")


if __name__ == "__main__":
    main()
