"""Figures of programs: what is drawn of them, and what is said."""

from app.lab.plots import draw_figure
from app.theory.lab_runs import Point
from labs.spec import Figure

TIME = Figure("Time of an all-reduce", "size", "time", "B", "s", x_log=True, y_log=True)


def at(name: str, *values: tuple[float, float]) -> list[Point]:
    return [Point("time", name, x, y) for x, y in values]


def test_a_figure_says_and_tabulates_what_it_draws_in_units_that_suit() -> None:
    measured = at("ring", (1e3, 2e-4), (1e6, 3e-3)) + at("tree", (1e3, 1e-4))
    drawing = draw_figure("time", TIME, measured, at("ring", (1e3, 1e-4), (1e6, 2e-3)))
    assert drawing is not None
    assert drawing.head == ("size, kB", "ring", "ring, theory", "tree")
    assert drawing.rows == (("1", "200", "100", "100"), ("1,000", "3,000", "2,000", "–"))
    assert drawing.says == "time, µs over size, kB from 1 to 1,000: ring from 200 to 3,000; tree 100."
    assert drawing.svg.count("<circle") == 3
    assert [text for _, text in drawing.key] == ["ring", "tree"]


def test_what_a_log_axis_cannot_hold_is_left_out_and_nothing_is_no_figure() -> None:
    assert draw_figure("time", TIME, [], at("ring", (1e3, 1e-4))) is None
    assert draw_figure("time", TIME, at("ring", (1e3, 0.0)), []) is None
    drawing = draw_figure("time", TIME, at("ring", (1e3, 0.0), (1e3, 1e-3)), [])
    assert drawing is not None
    assert len(drawing.rows) == 1
