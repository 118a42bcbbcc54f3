"""What a parameter set predicts of reviews held out, against figures worked by hand from py-fsrs's own recall."""

from __future__ import annotations

from datetime import UTC, datetime
from math import log, sqrt

import pytest

from app.study.fsrs.losses import History, compare, losses, review_logs, split_day
from app.study.fsrs.memory_model import interval_days, parameters, recall
from app.study.fsrs.parameters import DEFAULT

CARD = History([3, 3, 1, 3], [10, 13, 13, 20])
OTHER = (0.4, *DEFAULT[1:2], 3.0, *DEFAULT[3:])


def test_a_history_is_read_by_study_days_and_backwards() -> None:
    history = History()
    history.add(3, datetime(2026, 11, 21, 3, 59, tzinfo=UTC), "UTC", 4)  # still the day before
    history.add(4, datetime(2026, 11, 21, 4, 0, tzinfo=UTC), "UTC", 4)
    assert history.days[1] - history.days[0] == 1
    assert history.reversed() == History(history.ratings[::-1], history.days[::-1])
    assert CARD.until(13) == History([3], [10])
    assert CARD.until(14) == History([3, 3, 1], [10, 13, 13])
    assert CARD.later == [13, 20]


def test_a_fifth_of_what_counts_is_held_out() -> None:
    assert split_day([History([3] * 11, list(range(11)))]) == 9  # the ninth of days 1 to 10
    with pytest.raises(ValueError, match="no card was reviewed on two days"):
        split_day([History([3, 3], [5, 5])])


def test_study_days_become_whole_days_apart() -> None:
    logs = review_logs([CARD, History([4], [11])])
    assert [(each.card_id, int(each.rating)) for each in logs] == [(0, 3), (0, 3), (0, 1), (0, 3), (1, 4)]
    since = [(each.review_datetime - logs[0].review_datetime).days for each in logs]
    assert since == [0, 3, 3, 10, 1]


def test_a_loss_is_minus_the_log_of_what_was_held_likely() -> None:
    w = parameters(DEFAULT)
    good, again = (losses([History([3, rating], [10, 13])], 0, DEFAULT)[0] for rating in (2, 1))
    likely = float(recall(w, DEFAULT[2], 3.0))
    assert good == pytest.approx(-log(likely), rel=1e-9)
    assert again == pytest.approx(-log(1 - likely), rel=1e-9)
    assert len(losses([CARD], 0, DEFAULT)) == 2, "the same day's answers show nothing"
    assert len(losses([CARD], 14, DEFAULT)) == 1


def test_two_sets_are_compared_over_the_same_reviews() -> None:
    histories = [CARD, History([3, 1, 3], [10, 12, 13]), History([4, 3], [10, 30])]
    default, fitted = (losses(histories, 0, each) for each in (DEFAULT, OTHER))
    found = compare(histories, 0, OTHER)
    count = len(default)
    differences = [b - a for a, b in zip(default, fitted, strict=True)]
    mean = sum(differences) / count
    spread = sum((each - mean) ** 2 for each in differences) / (count - 1)
    assert (found.held_out, found.default, found.fitted) == (count, sum(default) / count, sum(fitted) / count)
    assert found.difference_error == pytest.approx(sqrt(spread / count), rel=1e-9)
    assert found.difference_error > 0
    with pytest.raises(ValueError, match="no review from study day 99 on"):
        compare(histories, 99, OTHER)
    two = [History([3, 3], [10, 13]), History([3, 1], [10, 13])]
    assert compare(two, 0, OTHER).difference_error == pytest.approx(
        abs(
            losses(two, 0, OTHER)[0]
            - losses(two, 0, DEFAULT)[0]
            - losses(two, 0, OTHER)[1]
            + losses(two, 0, DEFAULT)[1]
        )
        / 2,
        rel=1e-9,
    )


def test_nothing_is_forgotten_before_it_was_learned_and_the_least_interval_is_a_day() -> None:
    w = parameters(DEFAULT)
    assert float(recall(w, 5.0, -3.0)) == float(recall(w, 5.0, 0.0)) == 1.0
    assert float(recall(w, 5.0, 0.5)) > float(recall(w, 5.0, 1.0))
    assert float(interval_days(w, 0.01, 0.9)) == 1.0
    assert float(interval_days(w, 10.0, 0.9)) == 10.0
