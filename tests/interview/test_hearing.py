"""What is heard of somebody who goes through things one after the other, and which sentence is quoted."""

from __future__ import annotations

from app.content.interview_schemas import ProbedPoint
from app.content.rubric_schemas import make_points
from app.grading.rubrics.grader import Rubric, grade
from app.interview.hearing import hear, says_as_before

POINTS = (
    ProbedPoint(
        id="order",
        topic="the order",
        text="Announces an order: memory, layout, failures.",
        shown_by="order",
        weight=2,
        ask="In which order?",
        met=("first | order & memory & layout & failure",),
    ),
    ProbedPoint(
        id="batch",
        topic="the batch",
        text="Checks the batch: micro-batches of a replica, and the bubble.",
        weight=2,
        ask="And the batch?",
        met=("microbatch & each | per", "bubble & microbatch"),
    ),
)
RUBRIC = Rubric(make_points("rubric", POINTS, {}, {}), ())
ORDER = "First I compute memory. Then I choose the layout. At the end come failures."


def _heard(answer: str, point: str) -> tuple[float, tuple[str, ...]]:
    found = next(each for each in hear(RUBRIC, POINTS, answer).points if each.id == point)
    return found.credit, found.evidence


def test_what_goes_on_from_sentence_to_sentence_is_one_statement() -> None:
    assert grade(RUBRIC, ORDER).points[0].credit == 0.0, "no sentence of it says it by itself"
    assert _heard(ORDER, "order") == (1.0, tuple(f"{each}." for each in ORDER.rstrip(".").split(". ")))
    apart = "First I compute memory. I like the layout. Failures are rare."
    assert _heard(apart, "order") == (0.0, ())


def test_the_sentence_that_is_most_about_a_point_is_quoted() -> None:
    early = "A pipeline sends one activation per micro-batch."
    late = "With 16 micro-batches for each replica the bubble is 5.9 %."
    assert grade(RUBRIC, f"{early} {late}").points[1].evidence == (early,)
    assert _heard(f"{early} {late}", "batch") == (1.0, (late,))
    assert _heard(early, "batch") == (1.0, (early,))


def test_what_refers_to_the_sentence_before_is_heard_with_it() -> None:
    said = "The micro-batches are small. This is 16 for each replica."
    assert _heard(said, "batch")[0] == 1.0
    assert grade(RUBRIC, said).points[1].credit == 0.0


def test_steps_that_are_gone_through_are_an_order_and_words_about_something_else_deny_none() -> None:
    told = "First I compute days. Second is memory. After that I lay it out. And I'd end with what may break."
    apart = told.replace("First ", "").replace("Second is", "I need").replace("After that ", "").replace("And I'd", "I")
    assert _heard(told, "order")[0] == 1.0
    assert _heard(apart, "order")[0] == 0.0


def test_who_says_that_there_is_nothing_to_ask_has_asked_for_nothing() -> None:
    asks = ProbedPoint(
        id="ask",
        topic="it",
        text="Asks for the machine.",
        shown_by="asking",
        weight=2,
        ask="What?",
        met=("node & link",),
    )
    rubric = Rubric(make_points("rubric", (asks,), {}, {}), ())

    def verdict(answer: str) -> str:
        return hear(rubric, (asks,), answer).points[0].verdict

    plain = "With a fast link the node pools its memory."
    assert verdict(plain) == "met"
    assert verdict(f"I don't think I need to ask anything. {plain}") == "contradicted"
    assert verdict(f"I don't need to ask for tokens. {plain[:-1]}, but what is the link of a node?") == "met"


def test_a_reply_may_say_that_it_repeats() -> None:
    assert says_as_before("As I said, the average over all ranks.")
    assert says_as_before("I said it already: the average.")
    assert not says_as_before("It is said to be the average.")


def test_a_point_that_wants_a_number_is_said_in_half_without_one() -> None:
    point = ProbedPoint(
        id="run",
        topic="the run",
        text="Says what run it was, in numbers.",
        shown_by="figures",
        weight=2,
        ask="Which?",
        met=("train & gpu",),
    )
    rubric = Rubric(make_points("rubric", (point,), {}, {}), ())
    credits = [
        hear(rubric, (point,), said).points[0].credit
        for said in (
            "We trained it on many GPUs.",
            "We trained one of them on many GPUs.",
            "We trained it on 128 GPUs.",
            "We trained it on sixty-four GPUs.",
        )
    ]
    assert credits == [0.5, 0.5, 1.0, 1.0]
