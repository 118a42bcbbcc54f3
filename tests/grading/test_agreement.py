"""How well the built-in grader agrees with people, on answers nobody looked at while it was made."""

from __future__ import annotations

import pytest

from tests.support import claims
from tests.support.agreement import Agreement, agreement, graded, kappa, labels, rank_correlation


@pytest.fixture(scope="module")
def frozen() -> Agreement:
    return agreement(graded("frozen"))


def test_there_are_enough_labelled_answers(frozen: Agreement) -> None:
    assert frozen.answers >= 40
    assert frozen.answers + len(labels("open")) >= 120


def test_levels_are_at_most_one_step_apart(frozen: Agreement) -> None:
    assert frozen.within_one_level >= 0.90


def test_scores_rank_answers_as_people_do(frozen: Agreement) -> None:
    assert frozen.rank_correlation >= 0.75


def test_points_agree_beyond_chance(frozen: Agreement) -> None:
    assert frozen.kappa >= 0.6


def test_neither_stuffed_nor_wrong_answers_are_taken_for_good_ones(frozen: Agreement) -> None:
    assert frozen.taken_in == 0


def test_single_claims_of_a_hand_that_saw_no_evidence_are_told_apart() -> None:
    """Every sixth open claim is enough to see the grader lose what it knew."""
    pairs = [(each, claims.graded(each)) for each in claims.claims("open")[::6]]
    assert claims.share(pairs, "right") >= 0.7
    assert claims.share(pairs, "wrong") >= 0.45


def test_kappa_by_hand() -> None:
    # 20 yes/yes, 15 no/no, 5 yes/no, 10 no/yes: observed 0.70, chance 0.5 × 0.6 + 0.5 × 0.4 = 0.50, kappa 0.4
    pairs = [("y", "y")] * 20 + [("n", "n")] * 15 + [("y", "n")] * 5 + [("n", "y")] * 10
    assert kappa(pairs) == pytest.approx(0.4)


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 1000]) == pytest.approx(1.0)
    # ranks 0 1 2 3 against 1 0 3 2: 1 − 6·4/(4·15) = 0.6
    assert rank_correlation([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
