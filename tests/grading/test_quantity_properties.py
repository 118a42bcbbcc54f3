"""What holds of every text: it is read or refused, in bounded time; and what the pages print reads back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.grading.quantities import Quantity, Unreadable, evaluate_quantity, read_quantity
from app.units import DIMENSIONS, SCALES, bytes_text, count_text, scaled

VALUES = st.floats(min_value=1e-3, max_value=9e5, allow_nan=False)
PIECES = st.sampled_from(
    [
        *"0123456789.,+-−*/×()[] ~≈^%_'",
        "10^",
        "10¹¹",
        "e9",
        "GB",
        "GiB",
        "Gb",
        "Gbps",
        "TFLOP/s",
        "days",
        "h",
        "ms",
        "µs",
        "7B",
        "billion",
        "tokens",
        "GPU-hours",
        "percent",
        " or ",
        " and ",
        " to ",
        " per ",
        "@0",
        "٣",
        "１",
        "٫",
        "🙂",
        "\u202e",
        "\u200b",
        "\x00",
        "\ud800",
        "9**9**9",
        "1e400",
        "inf",
        "nan",
        "<script>",
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=250)


def outcome(read: Callable[[], Quantity]) -> Quantity | str:
    """What was read, or why it was refused."""
    try:
        return read()
    except Unreadable as refused:
        return str(refused)


@settings(max_examples=400, deadline=None)
@given(value=VALUES, unit=st.sampled_from(sorted(SCALES)), significant=st.integers(3, 6))
def test_every_number_a_page_prints_reads_back(value: float, unit: str, significant: int) -> None:
    dimension, factor = SCALES[unit]
    shown = scaled(value * factor, unit, significant)
    if dimension == "fraction" and unit == "×":
        shown = shown.replace(" ×", "×")
    read = read_quantity(shown, dimension)
    assert read.value == pytest.approx(value * factor, rel=0.6 * 10 ** (1 - significant))


@given(value=st.floats(min_value=1, max_value=1e17))
def test_bytes_and_counts_in_short_form_read_back(value: float) -> None:
    assert read_quantity(bytes_text(value, 4), "bytes").value == pytest.approx(value, rel=6e-4)
    assert read_quantity(count_text(value, 4), "count").value == pytest.approx(value, rel=6e-4)


@pytest.mark.slow
@settings(max_examples=1500, deadline=500)
@given(text=TEXTS, expected=st.sampled_from(sorted(DIMENSIONS)))
def test_any_text_is_read_or_refused_with_a_reason(text: str, expected: str) -> None:
    found = outcome(lambda: read_quantity(text, expected))
    if isinstance(found, Quantity):
        assert abs(found.value) <= 1e30
        assert found.dimension == DIMENSIONS[expected]
    else:
        assert found.isprintable()
    assert outcome(lambda: evaluate_quantity(text))


@given(text=TEXTS)
def test_reading_twice_says_the_same(text: str) -> None:
    assert outcome(lambda: read_quantity(text, "bytes")) == outcome(lambda: read_quantity(text, "bytes"))


@pytest.mark.parametrize("piece", ["9", "(", "-", "1 ", "10^9*", "1,", "1.", " or 1", "GB", "e9", "²", "🙂", "1 GB "])
def test_a_hundred_thousand_characters_take_no_time(piece: str) -> None:
    started = time.process_time()
    with pytest.raises(Unreadable, match="characters"):
        read_quantity(piece * (100_000 // len(piece)), "bytes")
    for length in (150, 199):
        try:
            read_quantity(piece * (length // len(piece)), "bytes")
        except Unreadable:
            continue
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("112 GB or 120 GB", "bytes", "more than one answer: 112 GB and 120 GB"),
        ("112 GB, 120 GB", "bytes", "more than one answer: 112 GB and 120 GB"),
        ("70-72 GB", "bytes", "more than one answer: 70 and 72 GB"),
        ("70 – 72 GB", "bytes", "more than one answer"),
        ("112 to 120 GB", "bytes", "more than one answer"),
        ("[4, 8, 8]", "count", "list"),
        ("112", "bytes", "unit is missing: it reads as 112"),
        ("25 gb/s", "bytes_per_second", "Write Gb or GB"),
        ("112 GB quickly", "bytes", "“112 GB” was read, but not “quickly”"),
        ("26 GB/s", "bytes", "bandwidth"),
    ],
)
def test_a_refusal_says_what_was_understood(text: str, expected: str, said: str) -> None:
    with pytest.raises(Unreadable, match="(?s)" + said.replace("[", r"\[")):
        read_quantity(text, expected)


@pytest.mark.parametrize(
    ("text", "expected", "value"),
    [
        ("14 - 2 GB", "bytes", 12e9),
        ("7 GB - 1 GB", "bytes", 6e9),
        ("2 days and 3 h", "seconds", 51 * 3600.0),
        ("2 days, 3 h", "seconds", 51 * 3600.0),
        ("25 GB per second", "bytes_per_second", 25e9),
        ("400 gigabits per second", "bytes_per_second", 50e9),
        ("1.4T", "tokens", 1.4e12),
        ("112 gigs", "bytes", 112e9),
        ("16 bytes per parameter", "bytes", 16.0),
    ],
)
def test_more_of_what_engineers_type(text: str, expected: str, value: float) -> None:
    assert read_quantity(text, expected).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("text", "value", "said"), [("112 gb", 112e9, "GB"), ("40mb", 40e6, "MB")])
def test_memory_in_small_letters_is_bytes_and_that_is_said(text: str, value: float, said: str) -> None:
    found = read_quantity(text, "bytes")
    assert found.value == pytest.approx(value)
    assert found.taken_as.endswith(f"read as {said}.")


def test_a_bare_number_is_taken_in_the_unit_that_was_asked_for_and_that_is_said() -> None:
    found = read_quantity("112", "bytes", "GB")
    assert found.value == pytest.approx(112e9)
    assert "taken as GB" in found.taken_as
    assert read_quantity("112 MB", "bytes", "GB").value == pytest.approx(112e6)
    with pytest.raises(Unreadable, match="unit is missing"):
        read_quantity("112", "bytes")
