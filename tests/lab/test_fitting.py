"""Least squares by hand, and laws fitted to made runs whose answer is known."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.lab import service
from app.lab.fitting.law import Sample
from app.lab.fitting.link import said_of_one_side
from app.lab.least_squares import fit, student_t
from app.lab.models import Chunk
from app.lab.residuals import durbin_watson, is_patterned, pattern
from labs.spec.events import MeasurementEvent, to_json
from tests.conftest import NOW

HTML = {"Accept": "text/html"}


def test_a_line_is_found_with_its_error_and_what_is_left_over() -> None:
    """y = 1 + 2x, with 0.1 more and less at the ends: by hand the slope keeps, the level rises by nothing."""
    found = fit([(1.0, x) for x in (0.0, 1.0, 2.0, 3.0)], [1.1, 2.9, 4.9, 7.1])
    assert found is not None
    assert found.coefficients == pytest.approx((1.0, 2.0))
    assert found.residuals == pytest.approx((0.1, -0.1, -0.1, 0.1))
    # residual variance 0.04/2; Σ(x − 1.5)² = 5
    assert found.errors[1] == pytest.approx((0.02 / 5) ** 0.5)
    assert found.margins[1] == pytest.approx(4.303 * (0.02 / 5) ** 0.5)
    assert not found.tells, "two degrees of freedom"


@pytest.mark.parametrize(("degrees", "reach"), [(1, 12.706), (3, 3.182), (10, 2.228), (11, 2.201), (30, 2.042)])
def test_an_interval_reaches_as_far_as_students_table_says(degrees: int, reach: float) -> None:
    assert student_t(degrees) == pytest.approx(reach, abs=0.0006)


def test_points_that_tell_nothing_apart_give_nothing() -> None:
    assert fit([], []) is None
    assert fit([(1.0, 2.0)], [3.0]) is None
    assert fit([(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)], [1.0, 2.0, 3.0]) is None
    assert fit([(1.0, 0.0), (2.0, 0.0)], [1.0, 2.0]) is None
    exact = fit([(1.0, 1.0), (1.0, 2.0)], [3.0, 5.0])
    assert exact is not None
    assert exact.coefficients == pytest.approx((1.0, 2.0))
    assert exact.errors == (None, None)


def _finished(client: TestClient, database: Database, spec: dict[str, Any], **measured: float) -> int:
    run_id = int(client.post("/api/v1/lab/runs", json={"spec": spec}).json()["id"])
    with database.write() as session:
        run = service.find_run(session, 1, run_id)
        run.status, run.started_at, run.ended_at, run.result = "finished", NOW, NOW, measured
    return run_id


def test_the_page_says_what_it_takes_until_there_are_runs(client: TestClient) -> None:
    html = client.get("/lab/fit", headers=HTML).text
    assert html.count("No points yet") == 4
    assert html.count("the knob: ") >= 4, "each law is drawn over what its runs turn"
    assert "/lab/experiments/ring-by-the-byte" in html


def test_alpha_and_bandwidth_come_from_the_ping_pong(client: TestClient, database: Database) -> None:
    run_id = _finished(client, database, {"program": "collectives", "parallel": {"data": 2}})
    points = [
        MeasurementEvent(1.0, 0, "ping-pong", size, 20e-6 + size / 2e9, "s", "ping_pong")
        for size in (1e3, 1e4, 1e5, 1e6, 1e7)
    ]
    with database.write() as session:
        service.find_run(session, 1, run_id).chunks = 1
        session.add(Chunk(run_id=run_id, sequence=1, events=[to_json(each) for each in points], created_at=NOW))
    html = client.get("/lab/fit", headers=HTML).text
    assert "20 µs" in html
    assert "2 GB/s" in html
    assert "the law holds as far as this machine can tell" in html
    assert "Runs differ" not in html
    later = _finished(client, database, {"program": "collectives", "parallel": {"data": 2}})
    slower = [replace(each, y=each.y + 100e-6) for each in points]
    with database.write() as session:
        service.find_run(session, 1, later).chunks = 1
        session.add(Chunk(run_id=later, sequence=1, events=[to_json(each) for each in slower], created_at=NOW))
    html = client.get("/lab/fit", headers=HTML).text.replace("\xa0", " ")
    assert f"differ by more than their errors say: α is 20 µs in run {run_id} and 120 µs in run {later}." in html
    assert html.count('name="without" value="link.') == 10, "points of both runs"
    assert f"for 1 kB in run {run_id}, the middle of 2" in html
    alone = "&".join(f"without=link.{later}-{each.x:.0f}" for each in points)
    html = client.get(f"/lab/fit?{alone}", headers=HTML).text.replace("\xa0", " ")
    assert "<b>20 µs</b>" in html
    assert "Runs differ" not in html


def test_one_run_does_not_tell_the_machine_from_a_term(client: TestClient, database: Database) -> None:
    """Made about a law whose small messages come out below, as one run's do; in the second the other way round."""

    def pinged(*shares: float) -> None:
        run_id = _finished(client, database, {"program": "collectives", "parallel": {"data": 2}})
        events = [
            MeasurementEvent(1.0, 0, "ping-pong", size, (1 + share) * (100e-6 + size / 1e9), "s", "ping_pong")
            for size, share in zip((1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 5e6), shares, strict=True)
        ]
        with database.write() as session:
            service.find_run(session, 1, run_id).chunks = 1
            session.add(Chunk(run_id=run_id, sequence=1, events=[to_json(e) for e in events], created_at=NOW))

    pinged(-0.04, -0.08, -0.12, -0.03, 0.3, 0.12, 0.15, -0.12)
    html = client.get("/lab/fit", headers=HTML).text.replace("\xa0", " ")
    assert (
        "is left over, at message 100 kB. Along the axis 1 above, then 3 below, then 3 above, then 1 below the law"
        in html
    )
    assert "one run cannot tell" in html
    pinged(0.04, 0.08, 0.12, 0.03, -0.2, -0.12, -0.15, 0.12)
    html = client.get("/lab/fit", headers=HTML).text
    assert "with no order along the axis in 2 runs: that is the machine" in html


def test_a_run_that_is_another_machine_is_named_even_without_a_line_of_its_own() -> None:
    """1 ms and 1 GB/s; of run 13 only the small messages are kept, each a third too slow."""

    def sample(run: int, size: float, times: float) -> Sample:
        took = times * (1e-3 + size / 1e9)
        return Sample(f"{run}-{size}", (run,), (), "", size, took, (1.0, size), took)

    sizes = [1e3 * 4**step for step in range(6)]
    right = [sample(9, size, 1.0) for size in sizes]
    slow = [sample(13, size, 1.33) for size in sizes[:3]]
    said = said_of_one_side([*right, *slow], 1e-3, 1e-9)
    assert said.startswith(" All 3 small messages that are kept of run 13 lie 33 % or more above the law")
    assert said_of_one_side(right, 1e-3, 1e-9) == ""
    assert said_of_one_side([*right, *slow[:2]], 1e-3, 1e-9) == "", "two points are chance"


def test_both_terms_of_activations_and_the_factor_of_recomputation(client: TestClient, database: Database) -> None:
    """k = 60 and c = 4 of runs made so; steps of 1 s that take 1.2 s with recomputation."""
    for sequence in (32, 64, 96, 128):
        for attention in ("flash", "full"):
            training = {"sequence": sequence, "micro_batch": 2, "attention": attention}
            terms = (2 * 2 * sequence * 128, 2 * 2 * sequence**2 * 4 if attention == "full" else 0)
            spec = {"model": "gpt-mini", "training": training}
            kept = 60 * terms[0] + 4 * terms[1]
            _finished(client, database, spec, activation_bytes=kept, step_seconds=1.0)
        again = {"model": "gpt-mini", "training": {"sequence": sequence, "micro_batch": 2, "recompute": "full"}}
        _finished(client, database, again, step_seconds=1.2)
    other = {"model": {"layers": 1, "hidden": 64, "heads": 2, "vocab": 256}}
    _finished(client, database, other, activation_bytes=1e6)  # newer, of a shape with too few for a law of its own
    html = client.get("/lab/fit", headers=HTML).text
    activations = html.split('id="activations"')[1].split('id="recomputation"')[0]
    assert "<b>60</b>" in activations
    assert "<b>4</b>" in activations
    made_of = re.findall(r'<th scope="row">(?:<b>)?([^<]+).*?<td[^>]*>([^<]+)</td><td[^>]*>([^<]+)</td>', activations)
    by_name = {name: texts for name, *texts in made_of}
    assert by_name["k, for each of s·b·h"][0] == "34"
    assert by_name["c, for each of a·s²·b"] == ["5", "4"]
    assert by_name["two dropout masks"] == ["2", "–"], "the lab has no dropout"
    assert by_name["queries"] == ["2", "4"], "bf16 and fp32"
    assert by_name["final norm, head and logits, once for 2 layers"][1] == "8", "(2 + 2) · 4 bytes over two layers"
    assert "<b>20 %</b>" in html
    assert "Less than a third" in html


def test_pairs_that_scatter_say_nothing_of_a_third(client: TestClient, database: Database) -> None:
    for micro_batch, seconds in ((1, 2.0), (2, 3.5), (4, 1.2), (8, 2.5)):
        for recompute, took in (("none", 1.5), ("full", seconds)):
            training = {"micro_batch": micro_batch, "recompute": recompute}
            _finished(client, database, {"model": "gpt-mini", "training": training}, step_seconds=took)
    html = client.get("/lab/fit", headers=HTML).text
    assert "nothing can be said of a third yet" in html
    assert "not determined by these points" in html.split('id="recomputation"')[1]


def test_pairs_show_a_part_that_does_not_grow_with_the_step(client: TestClient, database: Database) -> None:
    """Steps that take 20 ms and a third more: the small ones pay more than a third, by a fixed part."""
    for micro_batch, plain in ((1, 0.05), (2, 0.1), (4, 0.2), (8, 0.4), (16, 0.8)):
        for recompute, took in (("none", plain), ("full", 0.02 + 4 / 3 * plain)):
            training = {"micro_batch": micro_batch, "recompute": recompute}
            _finished(client, database, {"model": "gpt-mini", "training": training}, step_seconds=took)
    html = client.get("/lab/fit", headers=HTML).text.replace("\xa0", " ").split('id="recomputation"')[1]
    assert "<b>20 ms</b>" in html
    assert "<b>33 %</b>" in html
    assert "A part of it does not grow with the step, 20 ms" in html


def test_a_point_that_is_left_out_leaves_the_fit_and_its_error_and_the_result_says_so(
    client: TestClient, database: Database
) -> None:
    """Four pairs of 1.38 to 1.41, and one that was disturbed: without it 1.395 ± 3.18 · 0.0065."""
    runs = []
    for micro_batch, again in ((1, 1.39), (2, 1.38), (4, 1.40), (8, 5.0), (16, 1.41)):
        for recompute, took in (("none", 1.0), ("full", again)):
            training = {"micro_batch": micro_batch, "recompute": recompute}
            runs.append(
                _finished(
                    client, database, {"model": "gpt-mini", "training": training}, step_seconds=micro_batch * took
                )
            )
    disturbed = f"recomputation.{runs[6]}-{runs[7]}"
    whole = client.get("/lab/fit", headers=HTML).text
    assert "nothing can be said of a third yet" in whole
    assert f'value="{disturbed}" id="p-{disturbed}"' in whole
    html = client.get(f"/lab/fit?without={disturbed}&without=link.99-1024", headers=HTML).text
    assert "without 1 of 5 points" in html
    assert "<b>39 %</b>" in html
    assert "± 2.1 points" in html
    assert "More than a third, in 4 pairs" in html
    assert "takes 1.18 times what one of the plain step takes" in html
    assert "machine had other work" not in html
    assert html.count(" checked") == 1
    every = "&".join(f"without=recomputation.{runs[at]}-{runs[at + 1]}" for at in range(0, 10, 2))
    for at in (0, 2):
        disturbed += f"&without=recomputation.{runs[at]}-{runs[at + 1]}"
    few = client.get(f"/lab/fit?without={disturbed}", headers=HTML).text
    assert "2 points for 1 number leave 1 degree of freedom, and a verdict takes 3: 4 points" in few
    assert "More than a third" not in few
    assert "Put some back" in client.get(f"/lab/fit?{every}", headers=HTML).text


@pytest.mark.parametrize("point", ["colour.3", "link", "link.", ".3"])
def test_what_is_no_point_of_any_law_is_refused(client: TestClient, point: str) -> None:
    reply = client.get(f"/lab/fit?without={point}")
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["field"] == "without"


def test_a_pattern_is_said_where_neighbours_are_alike_and_not_where_they_scatter() -> None:
    """By hand: of +1 +1 −1 −1 the squares of the steps are 4, over 4; of +1 −1 +1 −1 they are 12."""
    assert durbin_watson([1.0, 1.0, -1.0, -1.0]) == pytest.approx(1.0)
    assert durbin_watson([1.0, -1.0, 1.0, -1.0]) == pytest.approx(3.0)
    assert durbin_watson([0.0, 0.0]) is None
    bent = [0.03, 0.02, -0.01, -0.03, -0.02, 0.01, 0.03]
    assert is_patterned(bent)
    assert not is_patterned([0.03, -0.02, 0.01, -0.03, 0.02, -0.01, 0.03])
    assert not is_patterned([1.0, 1.0, -1.0]), "three points have no pattern to speak of"


@pytest.mark.parametrize(
    ("apart", "is_exact", "said"),
    [
        ([0.05, 0.0505, 0.05], False, "Much the same everywhere, from +5 % at b 1 to +5 % at 3: a factor"),
        ([-0.05, 0.01, 0.04], False, "Rises point by point from −5 % at b 1 to +4 % at 3, through theory"),
        ([0.09, 0.05, 0.01], False, "Falls point by point from +9 % at b 1 to +1 % at 3, always on one side"),
        ([0.01, 0.05, 0.02], False, "Always above theory, from +1 % at b 1 to +2 % at 3. Chance alone puts 3 points"),
        ([-0.01, -0.05, -0.02], True, "Always below theory, from −1 % at b 1 to −2 % at 3: a term"),
        ([0.01, -0.05, 0.02], False, "too few points for a pattern"),
        ([0.03, -0.02, 0.01, -0.03, 0.02], False, "no order along the axis"),
        ([0.02], False, "One point, +2 %."),
    ],
)
def test_the_pattern_of_residuals_is_told_as_they_show_it(apart: list[float], is_exact: bool, said: str) -> None:
    assert said in pattern("b", list(enumerate(apart, start=1)), is_exact)
