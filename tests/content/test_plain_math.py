"""Formulas in titles: what stands there in plain text means what the formula means."""

from __future__ import annotations

import pytest

from app.content.plain_math import plain_math


@pytest.mark.parametrize(
    ("latex", "written"),
    [
        (r"6ND", "6ND"),
        (r"\frac{2(n-1)}{n} S", "2(n − 1)/n S"),
        (r"\frac{p-1}{m+p-1}", "(p − 1)/(m + p − 1)"),
        (r"\mathrm{MFU} = \frac{6ND}{t \cdot P}", "MFU = 6ND/(t · P)"),
        (r"x_i^2", "x_i^2"),
        (r"e^{-x/2}", "e^(−x/2)"),
        (r"\sqrt{2N}", "√2N"),
        (r"\sqrt{a+b}", "√(a + b)"),
        (r"\sqrt[3]{x}", "x^(1/3)"),
        (r"\sum_{i} x_i", "∑_i x_i"),
        (r"\log_2 n", "log_2 n"),
        (r"f(x_i), \left(\frac{1}{2}\right)", "f(x_i),(1/2)"),
        (r"\binom{n}{k}", "(n choose k)"),
        (r"16N \text{ bytes}", "16N bytes"),
        (r"W \leftarrow W - \eta g", "W ← W − ηg"),
        (r"\begin{matrix}a&b\\c&d\end{matrix}", "a, b; c, d"),
    ],
)
def test_a_formula_is_written_out_in_a_line(latex: str, written: str) -> None:
    assert plain_math(f"What is ${latex}$?") == f"What is {written}?"


@pytest.mark.parametrize(
    "text", ["It costs $5 and $6.", r"It costs \$5 or \$6$", r"$\frac{$ is open", "no formula_at all"]
)
def test_what_is_no_formula_stays(text: str) -> None:
    assert plain_math(text) == text
