"""Figures of programs: what is drawn of them, and what is said."""

import re
from itertools import pairwise

from app.content.diagrams.plot import HEIGHT, TOP
from app.lab.playing import figure_of
from app.lab.plots import draw_figure
from app.theory.lab_runs import Point
from labs.spec import Figure, parse_run_spec

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


def test_a_line_that_another_hides_shows_beneath_it() -> None:
    figure = Figure("Idle share of a step", "micro-batches", "idle share", x_log=True)
    same = (4.0, 0.43), (8.0, 0.27), (16.0, 0.158)
    hidden = draw_figure("bubble", figure, [*at("GPipe", *same), *at("1F1B", *same)], [])
    apart = draw_figure("bubble", figure, [*at("GPipe", *same), *at("1F1B", (4.0, 0.2), (8.0, 0.1), (16.0, 0.05))], [])
    assert hidden is not None
    assert apart is not None
    assert str(hidden.svg).count("d-under") == 1
    assert 'class="d-series-0 d-under"' in hidden.svg, "the broad one is the one drawn first"
    assert "d-under" not in apart.svg


def test_three_lines_and_more_are_named_at_their_ends_apart_from_each_other() -> None:
    names = ("ring", "tree", "naive", "library all-reduce")
    drawing = draw_figure("time", TIME, [p for name in names for p in at(name, (1e3, 1e-4), (1e6, 2e-3))], [])
    assert drawing is not None
    assert drawing.key == ()
    heights = [float(re.search(rf'y="([\d.]+)"[^>]*>{name}<', drawing.svg)[1]) for name in names]  # type: ignore[index]
    assert all(other - one >= 15 for one, other in pairwise(sorted(heights)))
    assert max(heights) <= TOP + HEIGHT + 4


def test_a_run_is_shown_step_by_step_at_its_own_size() -> None:
    def figure(**parallel: int) -> tuple[str, object] | None:
        found = figure_of(parse_run_spec({"model": "gpt-mini", "parallel": parallel}))
        return (found.figure, found.settings["ranks"]) if found else None

    assert figure(data=2, zero=3) == ("zero", 2)
    assert figure(data=4) == ("collective", 4)
    assert figure(tensor=2) == ("tensor", "2")
    assert figure(data=1) is None
