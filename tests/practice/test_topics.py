"""What a learner's tries say about problems and topics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.content.catalogue import Catalogue
from app.core.moment import Moment
from app.core.share import EIGHTY_PERCENT, Share
from app.practice.queries import Settled
from app.practice.topics import Topic, finding, topics_of, weakest_first

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
MOMENT = Moment(NOW, ZoneInfo("UTC"))


def topics(content: Catalogue, *tries: tuple[str, float, int]) -> list[Topic]:
    """Tries a day apart, the last one today: problem, score, hints."""
    settled = [
        Settled(problem, (at := NOW - timedelta(days=len(tries) - 1 - index)), at, score, hints)
        for index, (problem, score, hints) in enumerate(tries)
    ]
    return topics_of(content.problems.values(), content.concepts, settled)


def of(found: list[Topic], problem: str) -> Topic:
    (topic,) = (each for each in found if problem in {stand.problem.id for stand in each.stands})
    return topic


def state(found: list[Topic], problem: str) -> str:
    return next(stand.state for stand in of(found, problem).stands if stand.problem.id == problem)


def test_every_problem_stands_in_one_topic(content: Catalogue) -> None:
    found = topics(content)
    assert sorted(stand.problem.id for topic in found for stand in topic.stands) == sorted(content.problems)
    assert [topic.title for topic in found][:2] == ["Training step", "Memory"]


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ([], "new"),
        ([(0.9, 0)], "missed"),
        ([(0.75, 1)], "hinted"),
        ([(0.74, 1)], "missed"),
        ([(0.5625, 2)], "hinted"),
        ([(1.0, 1)], "hinted"),  # every part was right before the hint was opened
        ([(1.0, 0)], "solved"),
        ([(1.0, 0), (0.0, 0)], "solved"),
    ],
)
def test_a_problem_stands_as_its_best_try(content: Catalogue, tries: list[tuple[float, int]], expected: str) -> None:
    assert state(topics(content, *(("P15", *each) for each in tries)), "P15") == expected


def test_a_topic_counts_its_newest_five_tries(content: Catalogue) -> None:
    found = topics(content, *[("P15", 1.0, 0)] * 3, *[("P16", 0.5, 0)] * 4)
    assert of(found, "P15").share == Share(1, 5)


def test_few_tries_say_little() -> None:
    # Wilson 1927 at z = 1.2816: one of one lies above 1 / (1 + z²) = 0.378
    assert Share(1, 1).wilson(EIGHTY_PERCENT) == pytest.approx((0.3784, 1.0), abs=1e-4)
    low, high = Share(4, 5).wilson(EIGHTY_PERCENT)
    assert Share(1, 5).wilson(EIGHTY_PERCENT) == pytest.approx((1 - high, 1 - low))


def test_the_weakest_topic_is_the_title_and_comes_first(content: Catalogue) -> None:
    found = topics(
        content, *[("P15", 0.5, 0)] * 3, *[("P01", 1.0, 0)] * 3, ("P23", 1.0, 0), ("P23", 0.0, 0), ("P23", 0.0, 0)
    )
    order = [topic.title for topic in weakest_first(found)]
    assert order[:3] == ["Model parallelism", "Reliability", "Memory"]
    assert finding(found) == "Model parallelism and reliability hold you back"
    assert finding(topics(content, *[("P01", 1.0, 0)] * 3)) == "Nothing you tried holds you back"
    assert finding(topics(content, ("P01", 0.0, 0))) == "One topic tried so far", "one try says nothing yet"
    assert finding(topics(content)) is None


def test_a_topic_goes_on_with_its_first_of_an_order(content: Catalogue) -> None:
    found = topics(content, ("P15", 0.75, 1), ("P01", 0.2, 0), ("P20", 1.0, 0))
    next_ = of(found, "P15").next_of(["P01", "P20", "P15"])
    assert next_ is not None
    assert (next_.problem.id, next_.says(MOMENT)) == ("P15", "solved with a hint, last tried 2 days ago")
    assert of(found, "P15").next_of(["P01"]) is None
