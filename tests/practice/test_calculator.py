"""The scratch pad: quantities, formulas, the last line, other units; and nothing is evaluated."""

from __future__ import annotations

import time

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app.grading.quantities import Quantity, Unreadable
from app.practice.calculator import MAX_TEXT, calculate, names

GB = (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("13e9 × 16 B", "208 GB"),
        ("26 GB in GiB", "24.2144 GiB"),  # 26e9 / 2^30
        ("26 GB / 450 GB/s", "57.7778 ms"),
        ("2 days in h", "48 h"),
        ("312 TFLOP/s * 50 %", "156 TFLOP/s"),
        ("6 * 7e9 * 16,384", "6.8813·10^14"),
        ("bubble(stages=8, micro_batches=32)", "0.179487"),  # 7/39
        ("bubble(stages = 4*2; micro_batches = 32; asked = overhead) * 100 %", "0.21875"),  # 7/32
        ("training_state(parameters=7B) in GB", "112 GB"),
        ("zero_state(parameters=(7 + 6) * 1e9, ranks=8, stage=1)", "71.5 GB"),
        (
            "training_state(parameters=transformer_parameters(layers=12, hidden=1000)) / 8",
            "288 MB",
        ),  # 16 × 12·12·10^6/8
        ("1 GB * 2 s", "2·10^9 B·s"),
        ("1/3", "0.333333"),
    ],
)
def test_a_line_is_worked_out(line: str, shown: str) -> None:
    assert calculate(line).text == shown


def test_ans_is_the_last_line() -> None:
    ans = Quantity(208e9, GB, True)
    assert calculate("ans / 8", ans).text == "26 GB"
    assert calculate("ANS + ans in TB", ans).text == "0.416 TB"
    with pytest.raises(Unreadable, match="no last line"):
        calculate("ans / 8")


def test_formulas_used_are_named_and_every_one_can_be_called() -> None:
    assert calculate("bubble(stages=2, micro_batches=2)").formulas == ("bubble",)
    assert any(call == "bubble(stages=, micro_batches=)" for call, _ in names())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("26 GB + 450 GB/s", "do not add up"),
        ("26 GB in s", "cannot be written in s"),
        ("frobnicate(x=1)", "no formula “frobnicate”"),
        ("bubble(stages=8)", "micro_batches"),
        ("bubble(stages=8, micro_batches=32, hue=3)", "no input “hue”"),
        ("bubble(8, 32)", "Name it"),
        ("bubble(stages=8, micro_batches=32", "bracket is not closed"),
        ("bubble(stages=8 GB, micro_batches=32)", "takes a plain number, not bytes"),
        ("bubble(stages=0, micro_batches=32)", "out of range"),
        ("bubble(stages=8, micro_batches=32, asked=colour)", "not known"),
        ("9**9**9", "9"),
        ("__import__('os')", "no formula"),
        ("@0 + 1", "@"),
        ("(" * 150, "brackets"),
        ("1" * 500, "characters"),
        ("1/0", "no finite value"),
        ("", "nothing to read"),
    ],
)
def test_what_cannot_be_worked_out_says_why(line: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=r"(?s)" + reason.replace("(", r"\(")):
        calculate(line)


def test_formulas_within_formulas_are_bounded() -> None:
    line = "1"
    for _ in range(8):
        line = f"bubble(stages=2, micro_batches={line})"
    with pytest.raises(Unreadable):
        calculate(line)
    many = " + ".join(["bubble(stages=2, micro_batches=2)"] * 11)
    started = time.process_time()
    with pytest.raises(Unreadable):
        calculate(many)
    assert time.process_time() - started < 10


PIECES = st.sampled_from(
    [
        "ans",
        "bubble(",
        "stages=8",
        ", ",
        "micro_batches=4",
        ")",
        "(",
        "1e9",
        " GB",
        " in ",
        "GiB",
        "@0",
        "*",
        "/",
        "+",
        "training_state(parameters=",
        "7B",
        "s",
        "-",
        " ",
        "=",
        ";",
        "'",
        "é",
        "🙂",
        "\u202e",
        "0",
        "1e300",
        "layout=fp32",
    ]
)


@settings(max_examples=300, deadline=1000)
@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=MAX_TEXT + 10))
def test_any_line_is_worked_out_or_refused(line: str) -> None:
    try:
        value = calculate(line, Quantity(8.0, GB, True)).value
    except Unreadable:
        return
    assert abs(value) <= 1e30


def test_it_works_over_http_and_keeps_nothing(page: TestClient) -> None:
    first = page.post("/api/v1/calculate", json={"text": "13e9 × 16 B"}).json()
    assert (first["value"], first["dimension"], first["text"]) == (208e9, [1, 0, 0, 0], "208 GB")
    last = {"value": first["value"], "dimension": first["dimension"]}
    assert page.post("/api/v1/calculate", json={"text": "ans / 8", "ans": last}).json()["text"] == "26 GB"
    refused = page.post("/api/v1/calculate", json={"text": "26 GB + 1 s"}).json()
    assert refused["value"] is None
    assert "do not add up" in refused["refused"]
    assert page.post("/api/v1/calculate", json={"text": "1" * 100_000}).status_code == 422
    called = page.get("/api/v1/calculate/names").json()
    assert {"call", "title"} == set(called[0])
