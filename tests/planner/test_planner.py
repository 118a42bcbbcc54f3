"""The planner's page and the estimate call."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi.testclient import TestClient

from app.grading.quantities import evaluate_quantity
from app.planner.finding import choose
from app.planner.offering import READY
from app.planner.saying import finding
from app.planner.service import plan
from app.planner.training import training_of
from app.reference.service import derive, find_formula
from app.theory.hardware import GPUS
from app.theory.planner import is_tie
from app.theory.presets import PRESETS
from app.theory.transformer import parameter_count
from app.units import NONE
from labs.spec import parse_run_spec
from tests.planner.asking import OWN_7B, estimated


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_is_planned_with_its_own_parameters(name: str) -> None:
    made = plan({"model": name})
    assert made.parameters == parameter_count(PRESETS[name].model, PRESETS[name].sequence)
    assert made.title.startswith(PRESETS[name].title)


def test_the_request_that_is_shown_gives_the_estimate_that_is_shown(page: TestClient) -> None:
    made = plan(OWN_7B | {"zero": "2", "gpu": "a100-80gb"})
    assert estimated(page, made.request_text).json() == made.estimate.to_json()


LARGE = {
    "model": "llama-3-70b",
    "ranks": "128",
    "tensor": "4",
    "pipeline": "4",
    "zero": "1",
    "global_batch": "128",
    "sequence": "4096",
    "recompute": "none",
    "sequence_parallel": "on",
}


def test_a_large_plan_is_what_the_command_line_estimates(page: TestClient) -> None:
    made = plan(LARGE)
    assert made.errors == {}
    assert estimated(page, made.request_text).json() == made.estimate.to_json()
    request = json.loads(made.request_text)
    assert request["parallel"]["data"] == 8, "what tensor and pipeline leave of 128 GPUs"
    assert request["training"] == {
        "sequence": 4096,
        "global_batch": 128,
        "micro_batch": 1,
        "precision": "bf16-mixed",
        "recompute": "none",
    }
    assert [stage.zero for stage in made.stages] == [0, 1, 2, 3]
    assert made.stage.total == made.estimate.memory.per_rank_bytes.total
    assert len(made.pipeline) == 4
    assert max(stage.total for stage in made.pipeline) == made.stage.total
    assert finding(made).startswith("Tensor 4, pipeline 4, data 8, ZeRO-1. Fits with ")


@pytest.mark.parametrize("form", [{}, LARGE, {"model": "deepseek-v3", "ranks": "2048", "expert": "64", "zero": "1"}])
def test_the_lanes_add_up_to_the_step(form: dict[str, str]) -> None:
    made = plan(form)
    time = made.estimate.to_json()["time"]
    assert sum(lane.seconds for lane in made.lanes) == pytest.approx(time["step_seconds"])
    assert sum(lane.share for lane in made.lanes) == pytest.approx(1)
    hidden = sum(row.exposed_seconds for row in made.estimate.communication)
    assert sum(lane.seconds for lane in made.lanes if lane.kind == "communication") == pytest.approx(hidden)
    ends = [lane.start_seconds + lane.seconds for lane in made.lanes]
    assert [lane.start_seconds for lane in made.lanes] == pytest.approx([0, *ends[:-1]])


def test_a_plan_is_for_h100_until_somebody_chooses_otherwise(page: TestClient) -> None:
    """A100 is the older hardware, in the list and in nobody's way."""
    shown = page.get("/planner").text
    chosen = re.search(r'<select[^>]*name="gpu".*?<option[^>]*selected[^>]*>([^<]+)', shown, re.DOTALL)
    assert chosen is not None
    assert "H100" in chosen[1]
    assert "A100" in shown


def test_the_finding_says_what_is_left_or_what_is_missing() -> None:
    assert "At stage 3 each GPU holds 14 GB" in finding(plan(OWN_7B))
    assert "left for activations" in finding(plan(OWN_7B))
    small = plan(OWN_7B | {"zero": "0"})
    assert "Without sharding each GPU would hold 112 GB" in finding(small)
    assert "no number of GPUs is enough" in finding(small)
    # 70B at stage 3 takes 1,120 GB, and an H100 has 84.9 GB in the driver's count: 14 GPUs
    assert "14 GPUs would be enough" in finding(plan({"model": "own", "parameters": "70B", "ranks": "2"}))


def test_the_page_shows_the_plan_in_its_address(page: TestClient) -> None:
    html = page.get("/planner", params=OWN_7B).text
    assert "7B parameters on 8 GPUs" in html
    assert "14 GB" in html


@pytest.mark.parametrize(
    "form",
    [
        {"model": "gpt-2-124m", "ranks": "24", "layout": "megatron-18"},
        {"model": "gpt-2-124m", "ranks": "24", "layout": "zero-17"},
        {"model": "llama-3-70b", "ranks": "64", "tensor": "8", "context": "2"},
        {"model": "gpt-3-6.7b", "ranks": "64", "zero": "0"},
        {"model": "sized", "parameters": "30B", "ranks": "512", "budget": "90 days", "mfu": "40 %", "price": "2"},
        OWN_7B,
    ],
)
def test_live_numbers_of_the_page_open_on_what_they_show(page: TestClient, form: dict[str, str]) -> None:
    html = page.get("/planner", params=form).text
    links = re.findall(r'<a class="live" data-live href="([^"]+)">([^<]+)</a>', html)
    assert len(links) >= 4
    for address, shown in links:
        parts = urlsplit(address.replace("&amp;", "&"))
        found = derive(find_formula(parts.path.rpartition("/")[2]), dict(parse_qsl(parts.query)))
        assert found.evaluation is not None
        assert found.evaluation.value == pytest.approx(evaluate_quantity(shown, wanted=NONE).value, rel=6e-3)


def test_the_estimate_call_answers(page: TestClient) -> None:
    reply = estimated(
        page, '{"model": "llama-3-70b", "parallel": {"data": 8, "zero": 3}, "cluster": {"gpu": "h200-141gb"}}'
    )
    assert reply.status_code == 200
    found = reply.json()
    assert found["parameters"]["total"] == 70_553_706_496
    memory = found["memory"]["per_rank_bytes"]
    assert memory["parameters"] + memory["gradients"] + memory["optimizer"] == pytest.approx(2 * 70_553_706_496)
    assert found["memory"]["capacity_bytes"] == GPUS["h200-141gb"].capacity_bytes
    assert found["memory"]["fits"] is False  # the state does, with activations of 8,192 tokens on top it does not


def test_the_estimate_call_names_every_bad_field(page: TestClient) -> None:
    reply = estimated(page, '{"model": {"layers": 0}, "parallel": {"zero": 9}, "cluster": {"gpu": "abacus"}}')
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    errors = {error["field"]: error for error in reply.json()["errors"]}
    assert {"model.layers", "model.hidden", "parallel.zero", "cluster.gpu"} <= set(errors)
    assert errors["parallel.zero"]["value"] == 9
    assert errors["parallel.zero"]["accepted"] == "at most 3"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "[1]",
        "7",
        "null",
        '"llama-3-8b"',
        "{}",
        '{"model": 5}',
        '{"model": null}',
        '{"model": []}',
        '{"model": {"parameters": NaN}}',
        '{"model": {"parameters": Infinity}}',
        '{"model": {"parameters": 1e400}}',
        '{"model": {"parameters": -Infinity}, "cluster": {"memory_bytes": NaN}}',
        '{"model": "\\ud800"}',
        '{"model": "llama-3-8b", "training": {"\\ud800": "\\ud800"}}',
        '{"model": "llama-3-8b", "parallel": {"data": %s}}' % ("9" * 400),
        "[" * 100_000,
        '{"model": {"layers": 2, "hidden": 64, "heads": 4, "vocab": 9, "experts": 1000000000}}',
    ],
    ids=lambda body: body[:40],
)
def test_no_body_is_answered_with_anything_but_problem_details(page: TestClient, body: str) -> None:
    reply = estimated(page, body)
    assert reply.status_code in (400, 422)
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["status"] == reply.status_code


@pytest.mark.slow
def test_the_search_finds_nothing_slower_than_what_it_is_compared_with(page: TestClient) -> None:
    made = plan(LARGE)
    found = choose(made)
    assert found.result.considered > 500
    assert found.global_batch == 128
    times = [option.candidate.step_seconds for option in found.options]
    assert times == sorted(times)
    assert times[0] <= made.estimate.time.step_seconds
    for option in found.options:
        assert option.candidate.memory_bytes <= 0.9 * made.capacity
        form = dict(parse_qsl(urlsplit(option.address).query, keep_blank_values=True))
        again = plan(form)
        assert again.errors == {}, "its address is a plan as it stands"
        # its address leaves the software open, which is said of it
        assert set(option.candidate.estimate.assumptions) < set(again.estimate.assumptions)
        assert replace(again.estimate, assumptions=()) == replace(option.candidate.estimate, assumptions=())
    html = page.get("/planner", params=LARGE | {"find": "1"}).text
    assert "Which configuration is fastest?" in html
    why = "The first and the second are a tie" if is_tie(*times[:2]) else "Why is the first faster than the second?"
    assert why in html
    assert "One step on every axis" in page.get("/planner/changes", params=LARGE).text
    beside = page.get(found.options[0].compare)
    assert beside.status_code == 200
    title = r"<h1>[^<]+(are a tie|is [\d.]+\s% faster than [^<]+|is [\d.]+\s× as fast as [^<]+)</h1>"
    assert re.search(title, beside.text)
    table = page.get("/planner/search.csv", params=LARGE)
    assert table.headers["content-type"].startswith("text/csv")
    rows = [row for each in (*found.options, *found.front) for row in (each, *each.others)]  # what is folded, too
    assert table.text.count("\n") == 1 + len(rows)
    assert html.count(">Use this plan</a>") == len(found.options)


@pytest.mark.parametrize("query", [{"model": "own", "parameters": "30B"}, {"tensor": "3"}, {"model": "nonsense"}])
def test_no_table_of_plans_is_made_of_what_is_no_plan(page: TestClient, query: dict[str, str]) -> None:
    refused = page.get("/planner/search.csv", params=query)
    assert refused.status_code == 422
    assert next(iter(query)) in refused.text
    assert "Showing" not in refused.text, "there is nothing in its place here"


def test_a_search_that_cannot_be_says_why_on_the_page(page: TestClient) -> None:
    html = page.get("/planner", params={"ranks": "100", "find": "1"}).text
    assert "100 GPUs are no whole nodes of 8." in html
    html = page.get("/planner", params={"model": "llama-3-405b", "ranks": "8", "find": "1"}).text
    assert "Llama 3.1, 405B on 8 GPUs: no plan fits</h1>" in html
    assert "The plan that holds least takes" in html
    assert "Which configuration" not in page.get("/planner", params=OWN_7B | {"find": "1"}).text


@pytest.mark.slow
def test_the_search_call_answers_and_names_every_bad_field(page: TestClient) -> None:
    request = {
        "model": "llama-3-8b",
        "training": {"sequence": 4096, "global_batch": 64},
        "cluster": {"gpu": "h100-80gb", "gpus_per_node": 8, "nodes": 1},
        "limit": 3,
    }
    found = page.post("/api/v1/search", json=request).json()
    assert set(found) == {"considered", "decided", "pruned", "evaluated", "seconds", "best", "rejected"} | {
        "explanation",
        "left_out_by_limits",
    }
    assert found["explanation"]["next_bottleneck"]
    assert [flags["framework"] for flags in found["best"][0]["flags"]] == ["Megatron-LM", "torchtitan"]
    assert found["considered"] == found["decided"] + found["pruned"] + found["evaluated"]
    assert len(found["best"]) == 3
    assert found["considered"] - sum(found["rejected"].values()) >= 3
    least = page.post("/api/v1/search", json=request | {"objective": "memory"}).json()["best"][0]
    sizes = [each["estimate"]["memory"]["per_rank_bytes"]["total"] for each in (least, found["best"][0])]
    assert sizes[0] < sizes[1]
    wrong = {
        "model": "gpt-9",
        "training": {"sequence": 4096, "micro_batch": 1},
        "cluster": {"nodes": 99999},
        "limit": 0,
    }
    reply = page.post("/api/v1/search", json=wrong)
    assert reply.status_code == 422
    fields = {error["field"] for error in reply.json()["errors"]}
    assert {"training.global_batch", "training.micro_batch", "cluster.gpu", "limit"} <= fields
    reply = page.post("/api/v1/search", json=request | {"model": "gpt-9"})
    assert [error["field"] for error in reply.json()["errors"]] == ["model"]
    for part, value in (
        ("training", {"sequence": 4096, "global_batch": "x"}),
        ("model", None),
        ("model", {"parameters": 7e9}),
    ):
        assert page.post("/api/v1/search", json=request | {part: value}).status_code == 422
    odd = {"layers": 7560, "hidden": 7560, "heads": 7560, "vocab": 100, "ffn_hidden": 7560}
    many = {
        "cluster": {"gpu": "h100-80gb", "gpus_per_node": 7560, "nodes": 1},
        "model": odd,
        "axes": {"virtual_stages": [1, 2], "context": [1], "micro_batch": [1]},
    }
    reply = page.post("/api/v1/search", json=request | many)
    assert reply.status_code == 200
    assert reply.json()["best"], "a number with many divisors is searched as any other"


def test_after_a_search_the_form_stays_and_the_plan_stands_in_the_table(page: TestClient) -> None:
    html = page.get("/planner?find=1").text
    assert "data-plan" in html
    table = html[html.index('id="p-find"') :]
    assert table.index("Your plan") < table.index("Use this plan")
    found = choose(plan({}))
    assert len(found.seen) > len(found.result.seen), "the searches for less memory see plans that this one need not"
    assert found.result.considered == found.result.decided + found.pruned + found.estimated


def test_an_estimate_has_three_digits_and_a_column_one_unit(page: TestClient) -> None:
    html = page.get("/planner").text
    rate = re.search(r"([\d,.]+) <small[^>]*>tokens/s", html)
    assert rate is not None
    assert len(rate[1].replace(",", "").replace(".", "").strip("0")) <= 3
    assert re.search(r"<th[^>]*>Wire, [TGMk]?B</th>", html)


def test_addresses_that_are_no_plans_are_said_at_their_field_and_kept(page: TestClient) -> None:
    empty = page.get("/planner/compare", params={"a": "", "b": " "})
    assert empty.status_code == 422
    assert empty.text.count("There is nothing in it. Accepted: an address of the planner") == 2
    size = page.get("/planner/compare", params={"a": "model=own&parameters=7B", "b": "a good plan"})
    assert size.status_code == 422
    assert "only the size is known" in size.text.split('id="ce-a"')[1].split("</span>")[0]
    assert "There is no plan in it." in size.text.split('id="ce-b"')[1].split("</span>")[0]
    assert 'value="a good plan"' in size.text
    pasted = {"a": "http://127.0.0.1/planner?model=llama-3-8b&tensor=3#p-find", "b": "model=llama-3-8b&tensors=4"}
    both = page.get("/planner/compare", params=pasted)
    assert both.status_code == 200
    assert "tensor: 3 does not divide heads = 32." in both.text
    assert "tensors=4: no field of the planner, left out. Did it mean tensor?" in both.text
    assert "Where data 8, ZeRO-3 differs" in " ".join(both.text.split())
    cluster = "model=llama-3-8b&gpu=h100-80gb&ranks=8"
    unlike = {"a": f"{cluster}&zero=3", "b": f"{cluster}&zero=1&tensor=2&recompute=none&profile=megatron-core"}
    said = " ".join(page.get("/planner/compare", params=unlike).text.split())
    assert re.search(r"<h1>Tensor 2, data 4, ZeRO-1 trains 4\d % more tokens a second than data 8, ZeRO-3</h1>", said)
    assert "A step of the first trains 65,536 tokens, one of the second 32,768. Their batches differ" in said
    assert '<span class="sub">8&nbsp;×&nbsp;8,192 tokens</span></td>' in said


def test_one_plan_is_offered_others_and_the_same_twice_says_so(page: TestClient) -> None:
    query = "model=llama-3-8b&gpu=h100-80gb&ranks=8&zero=3"
    alone = page.get("/planner/compare", params={"a": query})
    assert alone.status_code == 200
    assert 'class="error"' not in alone.text
    links = re.findall(r'href="(/planner/compare[^"]*)"', alone.text)
    assert len(links) >= 4, "the fastest, and the other ZeRO stages"
    for link in map(unescape, links):
        offered = page.get(link, follow_redirects=True)
        assert offered.status_code == 200
        assert "What the fullest GPU holds" in offered.text
    twice = page.get("/planner/compare", params={"a": query, "b": f"{query}&micro_batch=1"}).text
    assert "These two are the same plan" in twice
    assert "What the fullest GPU holds" not in twice
    assert "Compare with" in twice
    unread = " ".join(page.get("/planner/compare", params={"a": query, "b": f"{query}&zero=9"}).text.split())
    assert "<h1>The second plan could not be read whole</h1>" in unread
    assert "<b>Second plan.</b> zero: “9” is not known. Accepted: 0, 1, 2, 3." in unread


def test_a_comparison_without_plans_is_of_the_one_looked_at_last_and_has_pairs_that_are_ready(page: TestClient) -> None:
    first = page.get("/planner/compare")
    assert first.status_code == 200
    assert "aria-invalid" not in first.text
    assert "With the plan that the planner opens with" in first.text
    page.get("/planner", params={"model": "llama-3-8b", "tensor": "3"})
    page.get("/planner", params=OWN_7B)
    assert "opens with" in page.get("/planner/compare").text, "neither is a plan that could be compared as it was asked"
    page.get("/planner", params=LARGE)
    shown = page.get("/planner/compare").text
    assert "With the plan you looked at last" in shown
    links = [
        dict(parse_qsl(urlsplit(unescape(each)).query)) for each in re.findall(r'"(/planner/compare\?a=[^"]+)"', shown)
    ]
    of_plan = [each for each in links if dict(parse_qsl(each["a"])).get("sequence")]
    assert len(of_plan) >= 4
    assert len(links) == len(of_plan) + len(READY)
    for question, one, other in READY:
        pair = page.get("/planner/compare", params={"a": one, "b": other})
        assert question in shown
        assert re.search(r"<h1>([^<]+)</h1>", pair.text)[1] in shown, "its finding stands beside the question"
        assert "too much" not in pair.text
        assert 'class="help">tensor' not in pair.text
    page.cookies.clear()
    page.cookies.set("planner_last", "no plan", path="/planner/compare")
    assert "opens with" in page.get("/planner/compare").text


def test_the_front_of_time_memory_and_gpus_is_answered(page: TestClient) -> None:
    request = {
        "model": "llama-3-8b",
        "training": {"sequence": 4096, "global_batch": 64},
        "cluster": {"gpu": "h100-80gb", "nodes": 2},
        "axes": {"micro_batch": [1], "context": [1]},
    }
    points = page.post("/api/v1/search/front", json=request).json()["front"]
    assert {point["gpus"] for point in points} == {8, 16}
    assert all(point["step_seconds"] == point["estimate"]["time"]["step_seconds"] for point in points)


@pytest.mark.parametrize("part", ["textbook", "changes", "run"])
def test_a_part_of_the_page_is_fetched_when_it_is_looked_at_and_is_a_page_without_a_script(
    page: TestClient, part: str
) -> None:
    whole = page.get("/planner", params=LARGE).text
    address = unescape(re.search(rf'data-(?:later|soon)="(/planner/{part}[^"]*)"', whole)[1])
    assert f'<a href="{address}">'.replace("&", "&amp;") in whole, "a link leads there without a script"
    alone, inside = page.get(address).text, page.get(address, headers={"HX-Request": "true"}).text
    assert "<h1>" in alone
    assert "<h1>" not in inside
    assert len(inside) > 500
    assert "<html" not in inside


def test_the_shape_of_a_plan_is_started_from_its_page_and_the_plan_itself_is_a_file_for_a_dry_run(
    page: TestClient,
) -> None:
    html = page.get("/planner/run", params=LARGE).text
    assert re.search(r'<form[^>]*method="post" action="/lab/runs">', html)
    spec = json.loads(unescape(re.search(r'name="spec" value="([^"]*)"', html)[1]))
    assert parse_run_spec(spec).parallel.tensor == 2
    file = page.get("/planner/dryrun.json", params=LARGE)
    assert file.headers["content-disposition"] == 'attachment; filename="dryrun.json"'
    assert parse_run_spec(file.json(), dry=True).parallel.data == 8
    assert page.get("/planner/dryrun.json", params={"model": "mixtral-8x7b"}).status_code == 422
    assert page.get("/planner/run", params=OWN_7B).status_code == 422


def test_one_field_that_is_wrong_is_said_at_the_top_too_by_what_it_is_called(page: TestClient) -> None:
    html = " ".join(page.get("/planner", params={"micro_batch": "3", "global_batch": "8"}).text.split())
    top = html.split('data-part="mended">')[1].split("</div>")[0]
    assert "One field cannot be used as typed. Global batch: 8 sequences are no multiple of micro-batch × data" in top
    assert "Take this value" in top


def test_a_failure_rate_of_ones_own_takes_the_place_of_a_record(page: TestClient) -> None:
    shown = " ".join(page.get("/planner", params=LARGE).text.split())
    assert "Llama 3 405B, 16,384 H100: one in 50,677 GPU-hours" in shown, "the list says the rates"
    own = " ".join(page.get("/planner", params=LARGE | {"failure_rate": "8,090 GPU-hours"}).text.split())
    assert "With one in 8,090 GPU-hours, one of 128 GPUs fails every" in own
    assert "(63.2 h)" in own, "a day and more is said in hours too"
    assert training_of(plan(LARGE | {"failure_rate": "8090 h"})).failures.mtbf_seconds == pytest.approx(
        8090 * 3600 / 128
    )


def test_the_title_says_whether_it_fits_and_one_name_has_one_bubble(page: TestClient) -> None:
    html = page.get("/planner", params=LARGE).text
    assert re.search(r"<h1>Fits, with [\d.]+ GB to spare</h1>", html)
    assert html.count("over a link of its own for each GPU") == 1
    said = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    shown, ideal = re.search(r"Bubble ([\d.]+) % idle, of the whole step; ideal bubble ([\d.]+) %", said).groups()
    made = plan(LARGE)
    assert float(shown) == pytest.approx(
        100 * made.estimate.time.bubble_seconds / made.estimate.time.step_seconds, abs=0.1
    )
    assert float(ideal) == pytest.approx(100 * 3 / (16 + 3), abs=0.05), "(p - 1) / (m + p - 1)"
    counted = " ".join(re.sub(r"<[^>]+>", " ", page.get("/planner/textbook", params=LARGE).text).split())
    assert f"Ideal bubble, of compute and idle time {100 * 3 / 19:.2f} %" in counted
    assert page.get("/planner", params={"model": "llama-3-8b", "zero": "0"}).text.count("<h1>Does not fit: ") == 1


def test_more_than_one_plans_with_is_said_in_the_table_of_stages_as_at_the_head(page: TestClient) -> None:
    tight = {"model": "llama-3-8b", "zero": "3", "search_memory": "30 GB"}
    assert "Fits, but takes" in finding(plan(tight))
    assert "over 30 GB" in page.get("/planner", params=tight).text
