"""A column has one unit and as many decimals in every row."""

from __future__ import annotations

from app.planner.columns import bytes_column, communication_table, seconds_column, texts_in_one_unit
from app.theory.planner import CollectiveEstimate


def test_the_largest_value_chooses_the_unit_and_the_decimals() -> None:
    column = bytes_column([12.345e9, 340e6, 0.0, 2.0])
    assert (column.unit, column.texts) == ("GB", ("12.3", "0.3", "0", "< 0.1"))
    assert seconds_column([0.0123, 0.4]).texts == ("12", "400")
    assert seconds_column([0.0123, 0.4]).unit == "ms"
    assert bytes_column([]).texts == ()


def test_time_and_what_is_not_hidden_share_a_unit() -> None:
    rows = [
        CollectiveEstimate("gradients", "all_reduce", "data", 8, 1, 3e6, 5e6, "intra_node", 2.0, 0.002),
        CollectiveEstimate("outputs", "all_reduce", "tensor", 8, 4, 6e5, 1e6, "intra_node", 0.5, 0.0),
    ]
    table = communication_table(rows)
    assert table.time.unit == table.exposed.unit == "s"
    assert table.time.texts == ("2.00", "0.50")
    assert table.exposed.texts == ("< 0.01", "0")


def test_cells_with_their_unit_share_it() -> None:
    assert texts_in_one_unit([141.26e9, 535.4e6, 0.0], "bytes") == ("141.3 GB", "0.5354 GB", "0 GB")
    assert texts_in_one_unit([1.12e12], "bytes") == ("1,120 GB",)
    assert texts_in_one_unit([1.49, 0.0941], "seconds") == ("1.49 s", "0.0941 s")
