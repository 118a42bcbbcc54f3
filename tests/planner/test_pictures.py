"""The planner's pictures: the front a search found, the groups of a GPU, and what one change would do."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html import unescape
from io import StringIO
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi.testclient import TestClient

from app.planner import beside, cluster, finding, frontier, saying, service
from app.theory import estimate, parse_estimate_request
from app.theory.mesh import AXES, Mesh
from app.theory.planner.candidates import notably_faster
from app.units import bytes_text, factor_of

SMALL = {"model": "llama-3-8b", "ranks": "8", "global_batch": "64"}


@pytest.fixture(scope="module")
def made() -> service.Plan:
    return service.plan(SMALL)


@pytest.fixture(scope="module")
def choice(made: service.Plan) -> finding.Choice:
    return finding.choose(made, finding.ANY)


def test_nothing_that_was_seen_beats_the_front(choice: finding.Choice) -> None:
    front = [(each.candidate.step_seconds, each.candidate.memory_bytes) for each in choice.front]
    assert front == sorted(front, reverse=True)
    assert min(seconds for seconds, _ in choice.seen) == pytest.approx(choice.options[0].candidate.step_seconds)
    for seconds, held in choice.seen:
        assert any(size <= held * 1.000001 and step <= seconds / 0.99 for step, size in front)


def test_the_front_ends_with_the_fastest_that_fits_by_how_little_it_may_be(choice: finding.Choice) -> None:
    assert choice.front[-1].candidate.step_seconds == choice.options[0].candidate.step_seconds
    figures = [(1.0, 4.0), (2.0, 2.0), (3.0, 1.99), (4.0, 1.985), (5.0, 1.999)]
    assert notably_faster(figures, lambda each: each[1]) == [(1.0, 4.0), (2.0, 2.0), (4.0, 1.985)]


def test_a_plan_of_the_front_keeps_its_search_and_its_place(made: service.Plan, choice: finding.Choice) -> None:
    drawn = frontier.draw(made, choice)
    assert drawn is not None
    for each in drawn.front:
        query = dict(part.split("=") for part in each.option.address.removeprefix("/planner?").split("&"))
        again = service.plan({**query, "inter_node": ""})
        assert finding.is_remembered(again, finding.ANY)
        other = frontier.draw(again, finding.choose(again, finding.ANY))
        assert other is not None
        assert other.front[0].place == drawn.front[0].place
        assert other.yours == each.place


def test_a_slower_plan_stands_on_the_edge_and_moves_no_axis(made: service.Plan, choice: finding.Choice) -> None:
    slow = service.plan({**SMALL, "tensor": "8", "zero": "1"})
    found = finding.choose(slow, finding.ANY)
    drawn, before = frontier.draw(slow, found), frontier.draw(made, choice)
    assert drawn is not None
    assert before is not None
    assert (drawn.front[0].place, drawn.seconds_ticks) == (before.front[0].place, before.seconds_ticks)
    assert not drawn.is_yours_inside
    assert drawn.yours[1] == "0.00", "slower than the picture goes: at its top"
    ratio = slow.estimate.time.step_seconds / found.options[0].candidate.step_seconds
    said = beside.verdict(slow, found)
    assert said.startswith(f"{100 * (ratio - 1):.0f} % slower" if ratio < 2 else f"{ratio:.1f} × as long")
    taken = service.plan(dict(parse_qsl(urlsplit(found.options[0].address).query)))
    assert beside.is_fastest(taken, found)
    assert beside.verdict(taken, found) == "This is the fastest plan that fits in 90 % of the memory"


def test_the_axis_of_time_ends_at_what_is_worth_a_look(made: service.Plan, choice: finding.Choice) -> None:
    fastest = min(seconds for seconds, _ in choice.seen)
    crawling = tuple((100 * fastest, 1e9 * each) for each in range(1, 4))
    one, more = (replace(choice, seen=(*choice.seen, *crawling[:count])) for count in (1, 3))
    before, after = frontier.draw(made, one), frontier.draw(made, more)
    assert before is not None
    assert after is not None
    assert after.outside >= 3, "those that crawl, whatever of the others the axis takes in"
    largest = float(after.seconds_ticks[-1].text.replace(",", "")) * factor_of(after.unit)
    assert largest <= 1.2 * frontier.MOST * fastest
    assert len(after.dots) > 0.9 * len(dict.fromkeys(choice.seen)), "nearly all of them are in the picture"


def test_the_bars_beside_another_plan_add_up_to_the_steps_difference(choice: finding.Choice) -> None:
    gap = beside.runner_up(choice)
    assert gap is not None
    signed = [float(row.width) * (-1 if float(row.left) < 50 else 1) for row in gap.rows]
    assert sum(signed[:-1]) == pytest.approx(signed[-1], abs=50 * beside.ALIKE * (len(gap.alike) + 1))
    assert signed[-1] <= 0, "the first is no slower than the second"


def test_gpus_that_the_axes_do_not_divide_are_explained() -> None:
    made = service.plan({"model": "llama-3-8b", "ranks": "12", "tensor": "8"})
    assert (made.ranks, made.form.asked_ranks) == (8, 12)
    assert "on 8 of the 12 GPUs, for tensor × pipeline × context = 8 does not divide 12" in saying.finding(made)


def test_the_peers_drawn_are_the_meshs() -> None:
    made = service.plan(
        {**SMALL, "model": "llama-3-70b", "ranks": "64", "tensor": "4", "pipeline": "4", "context": "2"}
    )
    drawn = cluster.draw(made)
    assert drawn is not None
    mesh = Mesh(4, 2, made.form.data, 4)
    for axis in AXES:
        assert {rank for rank in range(64) if drawn.axis_of(rank) == axis} == set(mesh.group(axis, 0)) - {0}
    assert [axis.nodes for axis in drawn.axes] == [1, 1, 2, 4]


@pytest.mark.parametrize(
    "form",
    [
        {"model": "llama-3-70b", "ranks": "64", "tensor": "8", "zero": "1"},
        {"model": "mixtral-8x7b", "ranks": "64", "tensor": "2", "expert": "8", "pipeline": "2", "zero": "1"},
        SMALL,
    ],
    ids=lambda form: form["model"],
)
def test_every_step_and_advice_is_the_estimate_at_its_address(form: dict[str, str]) -> None:
    now = service.plan(form)
    steps = finding.steps_from(now)
    said = {
        finding.step_address(now, step, ""): (step.step_seconds, step.memory_bytes) for step in steps if step.request
    }
    advised = finding.advice(now, steps, "")
    assert len(said) > len(advised)
    assert advised or now.has_room, "where memory is short, there is what frees it"
    assert not any(each.frees for each in advised if now.has_room), "and none where it is not"
    said |= {
        each.address: (now.estimate.time.step_seconds + each.seconds, now.stage.total + each.bytes) for each in advised
    }
    work = {now.global_batch}
    for address, (seconds, held) in said.items():
        then = service.plan(dict(parse_qsl(urlsplit(address).query, keep_blank_values=True)))
        assert then.errors == {}
        assert (then.estimate.time.step_seconds, then.stage.total) == pytest.approx((seconds, held))
        work.add(then.global_batch)
    assert len(work) == 1, "a step does as many sequences as the plan it is a step from"


def test_nothing_is_advised_that_takes_more_than_one_plans_with() -> None:
    free = service.plan({"model": "llama-3-70b", "ranks": "64", "tensor": "8", "pipeline": "2", "zero": "1"})
    larger = max(each.bytes for each in finding.advice(free, finding.steps_from(free), ""))
    assert larger > 0, "more memory for a shorter step"
    limit = free.stage.total + larger / 2
    tight = service.plan({**free.typed, "search_memory": f"{limit / 1e9:.6f} GB"})
    advised = finding.advice(tight, finding.steps_from(tight), "")
    assert all(tight.stage.total + each.bytes <= tight.usable_bytes for each in advised)
    found = finding.choose(tight, finding.ANY)
    taken = service.plan(dict(parse_qsl(urlsplit(found.options[0].address).query)))
    assert beside.verdict(taken, found) == f"This is the fastest plan that fits in {bytes_text(limit)}"


def test_advice_says_all_that_it_changes() -> None:
    large = service.plan({"model": "llama-3-70b", "ranks": "64", "tensor": "8", "zero": "1"})
    steps = finding.steps_from(large)
    said = {(step.axis, step.value): finding.Advice(step, -0.0004, 2e9, 2.0) for step in steps}
    assert said["tensor", "16"].title == "Tensor 16 instead of 8, with sequence parallel"
    assert said["zero", "2"].title == "ZeRO-2 instead of ZeRO-1, as PyTorch FSDP2 does it"
    assert said["zero", "0"].title == "No sharding instead of ZeRO-1"
    assert said["zero", "2"].said == "a step takes as long, and the fullest GPU holds 2 GB more"
    freed = finding.Advice(steps[0], 0.1, -2e9, 2.0, frees=True)
    assert freed.said == "the fullest GPU holds 2 GB less, and a step is 100 ms (5 %) longer"
    second = finding.steps_from(service.plan({"model": "llama-3-8b", "zero": "2"}))
    besides = {step.value: step.besides for step in second if step.axis == "zero"}
    assert besides == {"1": ("as Megatron-Core does it",), "3": ()}


def test_the_page_has_the_front_and_forgets_it_when_the_form_asks_for_another_search(client: TestClient) -> None:
    query = "&".join(f"{name}={value}" for name, value in SMALL.items())
    html = client.get(f"/planner?{query}&find=any").text
    assert 'role="slider" data-front' in html
    assert len(html.encode()) < 150_000
    order = ["p-front", "p-groups", "p-why", "p-help", "p-find", "p-mem"]
    assert order == sorted(order, key=lambda each: html.index(f'<h2 id="{each}"'))
    numbers = r"\d[\d,]*"
    said = html.split('id="p-find"')[1].split('class="note">')[1].split("</span>")[0]
    counts = [int(each.replace(",", "")) for each in re.findall(numbers, said)]
    assert counts[0] == sum(counts[1:4]), "what is considered is left out or estimated"
    fit = re.search(rf'id="p-front".*?class="note">({numbers}) plans that fit', html, re.DOTALL)[1]
    assert counts[4] == int(fit.replace(",", "")), "one number of plans that fit, of all that were looked for"
    assert "<b>A tie</b>" in html
    assert re.search(r"leaves the most memory, [^.]+(\.\d+)? GB, and [^.]+ the simplest to set up; ", html)
    assert "a tie</span>" in html
    plans = unescape(re.search(r'href="(/planner/search.csv[^"]*)"', html)[1])
    rows = list(csv.DictReader(StringIO(client.get(plans).text)))
    assert {row["listed"] for row in rows} == {"best", "front"}
    for row in (rows[0], rows[-1]):
        again = service.plan(dict(parse_qsl(urlsplit(row["plan"]).query, keep_blank_values=True)))
        assert str(again.estimate.time.step_seconds) == row["step_seconds"]
        assert estimate(parse_estimate_request(json.loads(row["request"]))).time == again.estimate.time
    found = client.get(unescape(re.search(r'href="(/planner/search.json[^"]*)"', html)[1])).json()
    assert found["request"]["model"] == "llama-3-8b"
    assert found["considered"] == counts[0]
    one = client.get(unescape(re.search(r'href="(/planner/estimate.json[^"]*)"', html)[1])).json()
    assert estimate(parse_estimate_request(one["request"])).to_json() == one["estimate"]
    address = unescape(re.search(r'data-plan-at="([^"]*)"', html)[1])
    assert "data-front" in client.get(address, headers={"HX-Request": "true"}).text
    other = client.get(f"/planner?{query}&find=any&sequence=2048", headers={"HX-Request": "true"}).text
    assert "data-front" not in other
    assert "The form has changed since the search." in other
