"""Fits what the last look at a point weighs by: `python -m tests.support.weights` writes `weights.py` of the rubrics.

A multinomial logistic regression over the points of all open labelled answers, and with less weight over answers that
are composed of open claims, whose points nobody had to label. Says first what it gives on each author when it is fitted
on the others. Nothing frozen is looked at.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from app.content.rubric_schemas import make_rubric
from app.grading.rubrics import weights as home
from app.grading.rubrics.grader import Rubric, RubricGrade, grade, look_at
from app.grading.rubrics.weighing import VERDICTS, Weights, features_of
from tests.support.agreement import kappa, labels, verdicts
from tests.support.claims import claims
from tests.support.shipped import shipped

COMPOSED_FOR_EACH = 14  # answers for each rubric
COMPOSED_COUNTS = 0.1  # of what a point counts that a person labelled
HELD_BACK = 0.3  # how much large weights cost
ALWAYS = "always"


@dataclass(frozen=True)
class Labelled:
    """A point of an answer with its label: what is found of it, and what it counts."""

    features: Mapping[str, float]
    label: str
    counts: float = 1.0


@cache
def rubric_of(identity: str) -> Rubric:
    """A rubric as the grader takes it."""
    return make_rubric(shipped().rubrics[identity])


def labelled(answer: Mapping[str, Any], counts: float = 1.0) -> list[Labelled]:
    """The points of a labelled answer."""
    looked = look_at(rubric_of(answer["rubric"]), answer["text"])
    found = features_of(looked.looks, looked.said)
    return [Labelled(found[point], label, counts) for point, label in answer["points"].items()]


def composed() -> Iterator[dict[str, Any]]:
    """Answers made of open claims, some mostly right and some mostly wrong, with a label for each point."""
    draw, known = random.Random(5), defaultdict[tuple[str, str, str], list[str]](list)
    for each in claims("open"):
        known[each.rubric, each.point, each.verdict].append(each.text.rstrip())
    for rubric in sorted({rubric for rubric, _, _ in known}):
        points = [each.id for each in rubric_of(rubric).points]
        for _ in range(COMPOSED_FOR_EACH):
            good, said, verdicts = draw.random(), list[str](), dict.fromkeys(points, "missed")
            for point in draw.sample(points, draw.randint(1, len(points))):
                (truth,) = draw.choices(("right", "half", "wrong"), (0.9 * good, 0.1, 0.9 - 0.9 * good))
                if texts := known[rubric, point, truth]:
                    said.append(draw.choice(texts))
                    verdicts[point] = "contradicted" if truth == "wrong" else "met"
            if said:
                text = " ".join(each if each[-1] in ".!?" else f"{each}." for each in said)
                yield {"rubric": rubric, "text": text, "points": verdicts}


def fit(points: Sequence[Labelled]) -> dict[str, tuple[float, float, float]]:
    """What each thing that is found is worth for each verdict."""
    names = list(points[0].features)
    found = torch.tensor([[each.features[name] for name in names] for each in points], dtype=torch.float64)
    label = torch.tensor([VERDICTS.index(each.label) for each in points])
    counts = torch.tensor([each.counts for each in points], dtype=torch.float64)
    mean, spread = found.mean(0), found.std(0) + 1e-3
    always = names.index(ALWAYS)
    mean[always], spread[always] = 0.0, 1.0
    scaled = (found - mean) / spread
    worth = torch.zeros(len(names), len(VERDICTS), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([worth], max_iter=300, line_search_fn="strong_wolfe")
    others = [at for at in range(len(names)) if at != always]

    def loss() -> torch.Tensor:
        search.zero_grad()
        each = torch.nn.functional.cross_entropy(scaled @ worth, label, reduction="none")
        total = (each * counts).sum() / counts.sum() + HELD_BACK * (worth[others] ** 2).mean()
        total.backward()
        return total

    search.step(loss)
    plain = worth.detach() / spread[:, None]
    plain[always] -= (mean[others, None] * plain[others]).sum(0)
    plain -= plain.mean(1, keepdim=True)
    return {name: (row[0], row[1], row[2]) for name, row in zip(names, plain.tolist(), strict=True)}


def written(weights: Mapping[str, Sequence[float]]) -> str:
    """The weights as a module."""
    rows = "\n".join(f'    "{name}": ({", ".join(f"{each:.2f}" for each in row)}),' for name, row in weights.items())
    return (
        '"""What each thing that is found of a point is worth for met, missed and contradicted.\n\n'
        'Fitted by `python -m tests.support.weights`, never typed.\n"""\n\n'
        "from __future__ import annotations\n\nfrom collections.abc import Mapping\n\n"
        f"WEIGHTS: Mapping[str, tuple[float, float, float]] = {{\n{rows}\n}}\n"
    )


def main() -> None:
    answers = defaultdict[str, list[dict[str, Any]]](list)
    for each in (*labels("open"), *labels("third-open")):
        answers[each.get("author", "own")].append(each)
    points = {author: [point for each in mine for point in labelled(each)] for author, mine in answers.items()}
    made = [point for each in composed() for point in labelled(each, COMPOSED_COUNTS)]
    for author, mine in answers.items():
        others = fit([*(each for other in points if other != author for each in points[other]), *made])
        before, after = (kappa(verdicts(_graded(mine, each))) for each in (None, others))
        sys.stdout.write(f"{author}: kappa {before:.3f} without, {after:.3f} weighed as fitted on the others\n")
    Path(str(home.__file__)).write_text(written(fit([*(each for mine in points.values() for each in mine), *made])))


def _graded(
    answers: Iterable[Mapping[str, Any]], weights: Weights | None
) -> Iterator[tuple[Mapping[str, Any], RubricGrade]]:
    for each in answers:
        yield each, grade(replace(rubric_of(each["rubric"]), weights=weights), each["text"])


if __name__ == "__main__":
    main()
