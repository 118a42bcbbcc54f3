from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.labs.covering import ALL_ROWS, SHARES, covering, share_of_this_commit

OPTIONS = {"data": "24", "zero": "0123", "precision": ("fp32", "bf16"), "schedule": ("none", "1f1b", "zbv")}
ROWS = [frozenset(zip(OPTIONS, values, strict=True)) for values in product(*OPTIONS.values())]


def pairs(rows):
    return {pair for row in rows for pair in combinations(sorted(row), 2)}


def test_every_pair_of_options_is_in_fewer_rows():
    taken = covering(ROWS, lambda row: row, lambda _row: 1)
    assert pairs(taken) == pairs(ROWS)
    assert len(taken) < len(ROWS) / 2


def test_an_option_that_stands_alone_is_taken():
    rows = [frozenset({("data", "2")}), frozenset({("data", "4")})]
    assert covering(rows, lambda row: row, lambda _row: 1) == rows


def test_dear_rows_are_left_where_cheap_ones_do():
    cheap, dear = frozenset({("a", "1"), ("b", "1")}), frozenset({("a", "1"), ("b", "1"), ("c", "1")})
    rest = [frozenset({("c", "1"), ("a", "1")}), frozenset({("c", "1"), ("b", "1")})]
    assert dear not in covering([dear, cheap, *rest], lambda row: row, lambda row: 100 if row == dear else 1)


def test_what_is_run_anyhow_is_not_taken_again():
    anyhow = ROWS[::5]
    taken = covering(ROWS, lambda row: row, lambda _row: 1, anyhow)
    assert pairs([*taken, *anyhow]) == pairs(ROWS)
    assert not pairs(anyhow) >= pairs(taken)
    assert covering(ROWS, lambda row: row, lambda _row: 1, ROWS) == []


def test_three_commits_take_all(monkeypatch):
    monkeypatch.delenv(ALL_ROWS, raising=False)
    taken = []
    for commit in range(SHARES):
        monkeypatch.setattr("tests.labs.covering.this_commit", lambda commit=commit: commit)
        taken += share_of_this_commit(range(10))
    assert sorted(taken) == list(range(10))


@pytest.mark.parametrize(("all_rows", "commit"), [("1", 5), ("", None)])
def test_all_are_taken_when_asked_for_and_where_there_is_no_commit(monkeypatch, all_rows, commit):
    monkeypatch.setenv(ALL_ROWS, all_rows)
    monkeypatch.setattr("tests.labs.covering.this_commit", lambda: commit)
    assert share_of_this_commit("abc") == ["a", "b", "c"]
