"""Reading what people type where a quantity is asked."""

from __future__ import annotations

import random
import time

import pytest

from app.grading.quantities import MAX_LENGTH, Unreadable, must_count, read_quantity
from app.units import DIMENSIONS, EXAMPLES

GB, GIB = 1e9, 2.0**30


def reason(text: str, asked: str = "bytes") -> str:
    with pytest.raises(Unreadable) as raised:
        read_quantity(text, asked)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("112 GB", 112 * GB),
        ("112GB", 112 * GB),
        ("  112   GB  ", 112 * GB),
        ("104.3GiB", 104.3 * GIB),
        ("112 gigabytes", 112 * GB),
        ("112 Gigabytes", 112 * GB),
        ("0.112 TB", 112 * GB),
        ("112e9 B", 112 * GB),
        ("1.12E+11 bytes", 112 * GB),
        ("512", None),
        # powers of ten, however they are written
        ("1.12·10^11 bytes", 112 * GB),
        ("1.12*10**11 B", 112 * GB),
        ("1.12 x 10^11 B", 112 * GB),
        ("1.12×10¹¹ B", 112 * GB),
        ("1.12 ⋅ 10¹¹ B", 112 * GB),
        ("10^11 B", 1e11),
        ("5·10⁻³ GB", 5e6),
        ("5e−3 GB", 5e6),
        ("5·10^−3 GB", 5e6),
        # about
        ("~56*2 GB", 112 * GB),
        ("≈ 112 GB", 112 * GB),
        ("about 112 GB", 112 * GB),
        ("approx. 112 GB", 112 * GB),
        ("= 112 GB", 112 * GB),
        # arithmetic; one unit may serve all
        ("2×56 GB", 112 * GB),
        ("2x56GB", 112 * GB),
        ("56 GB × 2", 112 * GB),
        ("14+98 GB", 112 * GB),
        # what stands behind the last “so” or “=” is the answer
        ("2, so 24 GB", 24 * GB),
        ("16 B × 7e9 = 112 GB", 112 * GB),
        # a root whose units come in pairs
        ("sqrt(4 GB x 9 GB)", 6 * GB),
        ("2 × √(36 GB * 1e9 B)", 12 * GB),
        ("14 GB + 98 GB", 112 * GB),
        ("14 GB + 500 MB", 14.5 * GB),
        ("120 GB − 8 GB", 112 * GB),
        ("(14 + 42) * 2 GB", 112 * GB),
        ("2 * (14 + 42) GB", 112 * GB),
        ("2 (GB)", None),
        ("224 GB / 2", 112 * GB),
        ("224/2 GB", 112 * GB),
        ("16 * 7e9 B", 112 * GB),
        ("16*7*10^9 bytes", 112 * GB),
        ("56 GB/s * 2 s", 112 * GB),
        ("−5 GB", -5 * GB),
        ("112 GB/GPU", 112 * GB),
        # bits
        ("896 Gb", 112 * GB),
        ("896 Gbit", 112 * GB),
        ("8 Kibit", 1024.0),
        # digits of other scripts, marks and spaces that cannot be seen
        ("١١٢ GB", 112 * GB),
        ("１１２ GB", 112 * GB),
        ("112\u00a0GB", 112 * GB),
        ("112\u202fGB", 112 * GB),
        ("\u200f112 GB\u200f", 112 * GB),
        ("\ufeff112\u200b GB\n", 112 * GB),
    ],
)
def test_a_number_of_bytes(text: str, value: float | None) -> None:
    if value is None:
        reason(text)
    else:
        assert read_quantity(text, "bytes").value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("38.5", 38.5),
        ("38,5", 38.5),
        (".5", 0.5),
        ("112.", 112),
        ("1,120", 1120),
        ("1,120.5", 1120.5),
        ("1.120,5", 1120.5),
        ("1.120", 1.12),
        ("0,125", 0.125),
        ("1120,500", 1120.5),
        ("1,120,000", 1.12e6),
        ("1.120.000", 1.12e6),
        ("1,120,000.25", 1120000.25),
        ("1,00,000", 1e5),
        ("1 120", 1120),
        ("1\u00a0120\u00a0000", 1.12e6),
        ("1\u202f120,5", 1120.5),
        ("1'120", 1120),
        ("1’120", 1120),
        ("1_000_000", 1e6),
    ],
)
def test_decimal_commas_and_thousands(text: str, value: float) -> None:
    assert read_quantity(text, "count").value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["1.2.3", "1,12,0", "12,34.5", "1,234,56", "1..2", "1.,2", "112, 120", "1 12"])
def test_marks_that_make_no_number_are_not_guessed_at(text: str) -> None:
    reason(text, "count")


@pytest.mark.parametrize(
    ("text", "asked", "value"),
    [
        ("200 Gb/s", "bytes_per_second", 25e9),
        ("200 Gbps", "bytes_per_second", 25e9),
        ("25 GB/s", "bytes_per_second", 25e9),
        ("25 GBps", "bytes_per_second", 25e9),
        ("25 MB/ms", "bytes_per_second", 25e9),
        ("2 days 3 h", "seconds", 51 * 3600.0),
        ("2 d 3 h 5 min", "seconds", 51 * 3600.0 + 300),
        ("1 h 30 min", "seconds", 5400.0),
        ("5.9 ms", "seconds", 0.0059),
        ("590 µs", "seconds", 590e-6),
        ("590 μs", "seconds", 590e-6),
        ("5 Days", "seconds", 432000.0),
        ("14 GB / 25 GB/s", "seconds", 0.56),
        ("14 GB / (25 GB/s)", "seconds", 0.56),
        ("4*7/8*4096*2 B/(450 GB/s)", "seconds", 4 * 7 / 8 * 4096 * 2 / 450e9),
        ("17.9 %", "fraction", 0.179),
        ("17.9%", "fraction", 0.179),
        ("17.9 percent", "fraction", 0.179),
        ("0.179", "fraction", 0.179),
        ("7/39", "fraction", 7 / 39),
        ("7/39*100 %", "fraction", 7 / 39),
        ("1.5x", "fraction", 1.5),
        ("1.5×", "fraction", 1.5),
        ("120 %", "fraction", 1.2),
        ("7B", "count", 7e9),
        ("7 billion", "count", 7e9),
        ("350M params", "count", 350e6),
        ("1.3e9", "count", 1.3e9),
        ("8 GPUs", "count", 8),
        ("24 micro-batches", "count", 24),
        ("4.2M tokens", "tokens", 4.2e6),
        ("2T tokens", "tokens", 2e12),
        ("3.5k tokens/s", "tokens_per_second", 3500),
        ("312 TFLOP/s", "flop_per_second", 312e12),
        ("312 TFLOPS", "flop_per_second", 312e12),
        ("6.9e14 FLOPs", "flop", 6.9e14),
        ("8.4·10²³ FLOP", "flop", 8.4e23),
    ],
)
def test_every_dimension_in_its_usual_units(text: str, asked: str, value: float) -> None:
    assert read_quantity(text, asked).value == pytest.approx(value, rel=1e-12)


def test_a_gibibyte_is_no_gigabyte() -> None:
    assert read_quantity("80 GiB", "bytes").value == 85_899_345_920
    assert read_quantity("80 GB", "bytes").value == 80_000_000_000


def test_b_is_bytes_where_bytes_are_asked_and_a_billion_where_a_count_is() -> None:
    assert read_quantity("7B", "bytes").value == 7
    assert read_quantity("7B", "count").value == 7e9


def test_a_bandwidth_is_no_answer_where_bytes_are_asked() -> None:
    assert reason("25 GB/s") == "That is a bandwidth; this asks for bytes, such as 3.5 GB."
    assert "That is time" in reason("2 days 3 h")
    assert "That is bytes; this asks for time" in reason("112 GB", "seconds")
    assert "That is bytes; this asks for a plain number" in reason("112 GB", "count")


@pytest.mark.parametrize("asked", sorted(set(DIMENSIONS) - {"count", "fraction"}))
def test_a_bare_number_is_no_quantity(asked: str) -> None:
    assert "The unit is missing" in reason("112", asked)
    assert "The unit is missing" in reason("1.12e11", asked)


def test_a_share_above_two_must_say_whether_it_is_percent() -> None:
    assert "17.9 % or 17.9 times" in reason("17.9", "fraction")
    assert read_quantity("1.9", "fraction").value == 1.9


@pytest.mark.parametrize("text", ["112 GB 120 GB", "112 GB or 120 GB", "112 GB, 120 GB", "112 MB 1 GB", "5 GB 3 s"])
def test_two_answers_are_none(text: str) -> None:
    """Only a smaller unit may follow without a sign: hours after days."""
    reason(text)


@pytest.mark.parametrize("text", ["", "   ", "\u00a0", "\u200b", "~", "about"])
def test_nothing_is_nothing_to_read(text: str) -> None:
    assert "nothing to read" in reason(text)


@pytest.mark.parametrize(
    "text",
    [
        "112 gbb",
        "112 GBs",
        "112 furlongs",
        "112 GB GB",
        "GB",
        "GB 112",
        "one hundred GB",
        "<b>112 GB</b>",
        "112 GB <script>alert(1)</script>",
        "112 GB 🙂",
        "🙂",
        "112 جيجابايت",
        "²",
        "5*² GB",
        "__import__('os')",
        "lambda: 112",
        "112 GB; 120 GB",
        "{{ 7*7 }} GB",
        "9**9**9",
        "9^9 GB",
        "2^30 B",
        "10**9**9 B",
        "10^999 B",
        "1e400 B",
        "1e999999 B",
        "1e31 GB",
        "1e-320 B",
        "inf",
        "nan GB",
        "Infinity GB",
        "1/0 GB",
        "0/0 GB",
        "1 GB / 0",
        "1e400 GB / 1e400",
        "(5 GB",
        "5 GB)",
        "()",
        "5 + GB",
        "5 GB +",
        "*5 GB",
        "5 GB + 5 s",
        "\ud800 GB",
        "5\x00GB",
        "5 GB \x1b[31m",
    ],
)
def test_what_is_no_quantity_says_why(text: str) -> None:
    assert reason(text)


def test_ten_thousand_characters_are_not_read() -> None:
    started = time.process_time()
    assert str(10_000) in reason("1" * 10_000)
    assert reason("(" * 10_000)
    assert time.process_time() - started < 5
    assert read_quantity("0" * (MAX_LENGTH - 6) + "112 GB", "bytes").value == 112 * GB


def test_brackets_nest_as_deep_as_anyone_needs_and_no_deeper() -> None:
    assert read_quantity("(" * 10 + "5 GB" + ")" * 10, "bytes").value == 5 * GB
    assert "Too many brackets" in reason("(" * 90 + "5 GB" + ")" * 90)
    assert "Too many brackets" in reason("-" * 90 + "5 GB")


def test_what_is_said_about_it_repeats_no_character_that_cannot_be_shown() -> None:
    for text in ("\ud800", "5\x00", "\x1b[31m5 GB", "\ue000 GB", "5 GB\u202e)("):
        assert reason(text).isprintable()


ALPHABET = [
    *"0123456789.,'’_ ()+-−*/×x·⋅÷^%~eE",
    "10^",
    "**",
    "10¹¹",
    "⁻",
    "²",
    "\u00a0",
    "\u202f",
    "\u200f",
    "GB",
    "GiB",
    "Gb",
    "Gbps",
    "ms",
    "µs",
    "h",
    "days",
    "B",
    "k",
    "M",
    "T",
    "billion",
    "tokens",
    "FLOPs",
    "GPUs",
    "/s",
    "percent",
    "about ",
    "inf",
    "nan",
    "1e400",
    "9**9**9",
    "1e-400",
    "🙂",
    "١",
    "\ud800",
    "\x00",
    "<b>",
    "((((((",
]


WELL_FORMED = ["2 days 3 h", "~56*2 GB", "1.12·10^11 B", "(14 + 14) GB", "14 GB / 25 GB/s", *EXAMPLES.values()]


def _random_text(source: random.Random) -> str:
    """Pieces of the grammar in any order, or something well formed with a few of them put in."""
    if source.random() < 0.5:
        return "".join(source.choices(ALPHABET, k=source.choice([1, 2, 4, 10, 40])))
    pieces = list(source.choice(WELL_FORMED))
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(pieces))
        pieces[at : at + source.randint(0, 1)] = [source.choice(ALPHABET)]
    return "".join(pieces)


def test_twenty_thousand_random_texts_are_read_or_refused_and_quickly() -> None:
    source = random.Random(20_000)
    asked, read = list(DIMENSIONS), 0
    started = time.process_time()
    for _ in range(20_000):
        try:
            found = read_quantity(_random_text(source), source.choice(asked))
        except Unreadable:
            continue
        read += 1
        assert -1e30 <= found.value <= 1e30
    assert time.process_time() - started < 30
    assert read > 100  # the alphabet is that of the grammar


def test_the_longest_texts_of_every_kind_are_quick() -> None:
    started = time.process_time()
    for piece in ALPHABET:
        for text in (piece * (MAX_LENGTH // len(piece)), "1" + piece * (MAX_LENGTH // len(piece) - 1)):
            try:
                read_quantity(text, "bytes")
            except Unreadable:
                continue
    assert time.process_time() - started < 10


@pytest.mark.parametrize(("text", "unit"), [("62 nodes", "GPUs"), ("4 sequences", "GPUs"), ("4, so 3 layers", "calls")])
def test_a_count_of_other_things_than_were_asked_for_is_refused(text: str, unit: str) -> None:
    with pytest.raises(Unreadable, match=f"That counts .*; this asks for {unit}"):
        must_count(text, unit)


@pytest.mark.parametrize(
    ("text", "unit"), [("496", "GPUs"), ("496 ranks", "GPUs"), ("62 nodes × 8", "GPUs"), ("2x", "GPUs")]
)
def test_a_count_of_what_was_asked_for_is_taken(text: str, unit: str) -> None:
    must_count(text, unit)


def test_a_root_of_single_units_or_of_a_negative_number_is_refused() -> None:
    assert "do not come in pairs" in reason("sqrt(4 GB)")
    assert "no root of a negative number" in reason("sqrt(-4)")
