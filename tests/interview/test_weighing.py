"""What becomes of a point when the statement nearest to it is for it, against it, or only about it."""

from __future__ import annotations

from app.grading.rubrics.grader import Rubric
from app.grading.rubrics.likeness import Claim, make_claims
from app.grading.rubrics.nearness import nearnesses
from app.grading.rubrics.points import Point, PointGrade
from app.grading.rubrics.reading import read
from app.interview.weighing import weighed

CLAIMS = make_claims(
    Claim(point, truth, text)
    for point, truth, text in (
        ("freed", "right", "The weights of a layer are dropped once its forward is through."),
        ("freed", "right", "After forward the gathered weights are thrown away again."),
        ("freed", "wrong", "The gathered weights stay on the card until the step ends."),
        ("freed", "wrong", "Nothing is dropped after forward, the weights stay where they are."),
        ("order", "right", "Every rank has to launch its buckets in the same order."),
        ("order", "right", "If one rank launches another bucket first, all of them hang."),
        ("order", "wrong", "In which order buckets are launched plays no role."),
        ("order", "wrong", "Each rank may launch buckets as it likes."),
    )
)
RUBRIC = Rubric((Point("freed", 1), Point("order", 1)), (), near_claims=CLAIMS)


def _verdicts(answer: str, *heard: PointGrade) -> dict[str, tuple[str, float]]:
    unheard = (PointGrade("freed", "missed", 0.0, ()), PointGrade("order", "missed", 0.0, ()))
    return {each.id: (each.verdict, each.credit) for each in weighed(heard or unheard, RUBRIC, read(answer))}


def test_a_statement_without_evidence_is_met_or_contradicted_by_the_side_it_is_on() -> None:
    assert _verdicts("The weights of the layer are dropped once forward is through with it.") == {
        "freed": ("met", 1.0),
        "order": ("missed", 0.0),
    }
    assert _verdicts("The gathered weights stay there until the step ends.")["freed"] == ("contradicted", 0.0)
    assert _verdicts("I would buy faster cards.") == {"freed": ("missed", 0.0), "order": ("missed", 0.0)}


def test_what_is_about_a_point_and_on_neither_side_is_unsure() -> None:
    assert _verdicts("Then there are the gathered weights and the buckets.")["freed"][0] in ("missed", "unsure")
    assert _verdicts("The gathered weights of a layer, after forward: they stay, or are dropped.")["freed"] == (
        "unsure",
        0.0,
    )


def test_evidence_is_not_believed_where_its_statement_clearly_denies_the_point() -> None:
    denied = "Nothing is dropped after forward, the gathered weights stay where they are."
    met = PointGrade("freed", "met", 1.0, (denied,))
    assert _verdicts(denied, met, PointGrade("order", "missed", 0.0, ()))["freed"] == ("unsure", 0.0)


def test_it_may_take_two_sentences_and_the_nearest_is_told() -> None:
    said = "I like DDP. Buckets go out one by one. All ranks launch them in the same order."
    (nearest, *_) = nearnesses(CLAIMS, read(said))["order"]
    assert list(nearest.sentences)[-1] == 2
    assert nearest.lean > 0
    assert nearnesses(make_claims(()), read(said)) == {}


def test_what_hardly_leans_is_not_called_the_opposite_for_what_the_rest_is_like() -> None:
    said = "In which order buckets are launched plays no role."
    hardly = "After forward the weights of the layer stay or are dropped on the card."
    assert _verdicts(f"{said} {hardly}") == {"freed": ("unsure", 0.0), "order": ("contradicted", 0.0)}
