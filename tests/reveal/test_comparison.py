"""Whether a prediction came near enough to have been right."""

import pytest

from app.reveal.comparison import is_right


@pytest.mark.parametrize(
    ("predicted", "measured", "dimension", "right"),
    [
        (25.99e6, 38.59e6, "bytes", False),  # two gathers and a reduce-scatter without the second gather
        (12.0, 16.0, "bytes", False),  # 2 + 2 + 12 bytes without one term of 4
        (24.0, 26.0, "bytes", True),
        (1.4, 1.0, "seconds", True),  # a machine's pace is not known as what is counted is
        (1.6, 1.0, "seconds", False),
        (9, 10, "count", False),
    ],
)
def test_a_term_that_was_left_out_is_a_miss(predicted: float, measured: float, dimension: str, right: bool) -> None:
    assert is_right(predicted, measured, dimension) is right
