"""Figures of programs: what is drawn of them, and what is said."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from app.content.diagrams.plot import HEIGHT, TOP
from app.lab.playing import figure_of, trained
from app.lab.plots import draw_figure
from app.theory.lab_runs import Point, run_theory
from app.units import bytes_text
from labs.spec import Figure, RunSpec, parse_run_spec

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


def test_theory_and_a_fitted_law_are_dashed_in_no_series_colour() -> None:
    figure = Figure("Time of an all-reduce", "size", "time", "B", "s", x_log=True, y_log=True, fitted=("α",))
    measured = at("tree", (1e3, 2e-4), (1e6, 3e-3)) + at("tree by α and B", (1e3, 1e-4), (1e6, 2e-3))
    drawing = draw_figure("time", figure, measured, [])
    assert drawing is not None
    assert drawing.head == ("size, kB", "tree", "tree by α and B")
    assert drawing.svg.count('class="d-theory d-expected"') == 1
    assert drawing.svg.count("<circle") == 2
    assert drawing.key == (("d-series-0", "tree"), ("d-theory", "tree by α and B"))
    assert drawing.finding == "Measured is 1.5 to 2 × the law. Dashes are a law fitted here, the rest is measured."
    assert draw_figure("time", figure, measured[2:], []) is None, "nothing was measured"


def test_affine_laws_are_curves_and_their_crossing_is_said_beside_the_measured_one() -> None:
    figure = replace(TIME, fitted=("α",), is_affine=True)
    ring = at("ring by α and B", (1e3, 6.0015e-4), (1e6, 2.1e-3))
    tree = at("tree by α and B", (1e3, 4.004e-4), (1e6, 4.4e-3))
    measured = at("ring", (1e3, 6.0015e-3), (1e6, 4.2e-3)) + at("tree", (1e3, 4.004e-4), (1e6, 8.8e-3))
    drawing = draw_figure("time", figure, measured + ring + tree, [])
    assert drawing is not None
    assert drawing.finding.startswith(
        "Measured over its own law: ring 2 to 10 ×, tree 1 to 2 ×. "
        "By law the ring is faster than the tree from 81 kB on; measured, from 1 MB on. Dashes and dots are laws"
    )
    curve = re.search(r'd-dotted" d="([^"]+)"', str(drawing.svg))
    assert curve is not None
    assert curve[1].count("L") > 10


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


@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_what_a_runs_figure_counts_at_its_end_is_the_theory_of_its_ledger(
    stage: int, ranks: int, micro_batches: int
) -> None:
    spec = l10(stage, ranks, micro_batches)
    found, theory = figure_of(spec, "/lab/runs/7/figure"), run_theory(spec)
    assert found is not None
    assert found.address == "/lab/runs/7/figure"
    assert found.note == "as theory has it, at this run’s size"
    payload, sent = bytes_text(theory.payload_bytes_per_step, 4), bytes_text(theory.wire_bytes_per_step, 4)
    assert found.frames[-1].counters[2:] == (f"{payload} of {payload}", f"{sent} of {sent}")
    state = trained(spec, stage, ranks)
    assert state.layout.total == 16
    assert state.layout.parameters == 4
    assert 16 * state.parameters == pytest.approx(16 * theory.parameters, rel=1e-2)  # padded on three ranks
    if stage == 3:
        assert [unit.stays for unit in state.units] == [True, False, False, False, False]


@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_ring_of_ddp_is_of_the_runs_own_gradients(ranks: int, micro_batches: int) -> None:
    spec = l10(0, ranks, micro_batches)
    found, theory = figure_of(spec), run_theory(spec)
    assert found is not None
    assert found.figure == "collective"
    assert found.title.endswith(f"S = {bytes_text(theory.payload_bytes_per_step)}")
    sent = bytes_text(theory.wire_bytes_per_step)
    assert found.frames[-1].counters[1] == f"{sent} of {sent}"
    turned = figure_of(l10(3, ranks, micro_batches), turned={"stage": "0"})  # the same by turning FSDP's figure
    assert turned is not None
    assert turned.frames[-1].counters[2].endswith(f" of {bytes_text(theory.payload_bytes_per_step, 4)}")


def test_a_figure_that_does_not_tell_all_a_run_sends_says_that_its_numbers_are_others() -> None:
    dealt_out = {"training": {"zero_implementation": "ZeroRedundancyOptimizer"}, "parallel": {"data": 2, "zero": 1}}
    for asked in (dealt_out, {"parallel": {"tensor": 2}}):
        found = figure_of(parse_run_spec({"model": "gpt-mini", **asked}))
        assert found is not None
        assert found.note.endswith("not this run’s numbers")


def l10(stage: int, ranks: int, micro_batches: int) -> RunSpec:
    training = {"sequence": 128, "micro_batch": 2, "micro_batches": micro_batches, "steps": 20, "seed": 1}
    return parse_run_spec({"model": "gpt-small", "training": training, "parallel": {"data": ranks, "zero": stage}})
