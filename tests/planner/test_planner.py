"""The planner's page and the estimate call."""

from __future__ import annotations

import json
import re
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.db import Database
from app.grading.quantities import evaluate_quantity
from app.main import create_app
from app.planner.fields import DEFAULTS
from app.planner.finding import choose
from app.planner.saying import finding
from app.planner.service import answer_request, plan
from app.planner.training import training_of
from app.reference.service import derive, find_formula
from app.theory.hardware import GPUS
from app.theory.planner import is_tie
from app.theory.presets import PRESETS
from app.theory.transformer import parameter_count
from app.units import NONE
from labs.spec import Precision, Schedule

OWN_7B = {"model": "own", "parameters": "7B", "ranks": "8"}


@pytest.fixture
def page(sqlite: Database, settings_for: Any) -> Any:
    """The application on SQLite alone: the planner keeps nothing."""
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def estimated(client: TestClient, body: str) -> Any:
    return client.post("/api/v1/estimate", content=body, headers={"content-type": "application/json"})


def test_seven_billion_on_eight_gpus_at_every_stage() -> None:
    """ZeRO (Rajbhandari et al. 2020), section 5: 16N, 4N + 12N/8, 2N + 14N/8, 16N/8."""
    made = plan(OWN_7B)
    assert [stage.total for stage in made.stages] == pytest.approx([112e9, 38.5e9, 26.25e9, 14e9])
    assert made.errors == {}
    assert made.title == "7B parameters on 8 GPUs"


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_is_planned_with_its_own_parameters(name: str) -> None:
    made = plan({"model": name})
    assert made.parameters == parameter_count(PRESETS[name].model, PRESETS[name].sequence)
    assert made.title.startswith(PRESETS[name].title)


def test_what_no_field_reads_is_named_with_the_field_it_may_have_meant(page: TestClient) -> None:
    shown = page.get("/planner?model=llama-3-8b&tensors=2&colour=<b>red</b>").text
    said = re.search(r"The address has more than is read here.*?</p>", shown, re.DOTALL)
    assert said is not None
    assert "<code>tensors=2</code> (<code>tensor</code>" in said[0]
    assert "<code>colour=&lt;b&gt;red&lt;/b&gt;</code>" in said[0]
    assert plan({"find": "any"}).form.unread == ()
    assert "The address has more" not in page.get("/planner?model=llama-3-8b&tensor=2").text


def test_an_empty_form_shows_the_defaults() -> None:
    made = plan({})
    assert made.errors == {}
    assert made.typed == DEFAULTS


@pytest.mark.parametrize(
    ("typed", "parameters", "ranks"),
    [
        ({"parameters": "1.3e9"}, 1.3e9, 8),
        ({"parameters": "350 million"}, 350e6, 8),
        ({"parameters": " 70 B "}, 70e9, 8),
        ({"parameters": "1,120M", "ranks": "1,024"}, 1.12e9, 1024),
        ({"ranks": "16 GPUs"}, 7e9, 16),
        ({"ranks": "8*4"}, 7e9, 32),
    ],
)
def test_numbers_are_read_as_people_write_them(typed: dict[str, str], parameters: float, ranks: int) -> None:
    made = plan(OWN_7B | typed)
    assert made.errors == {}
    assert (made.parameters, made.ranks) == (parameters, ranks)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("parameters", "many"),
        ("parameters", ""),
        ("parameters", "0"),
        ("parameters", "-7B"),
        ("parameters", "7 GB"),
        ("parameters", "1e16"),
        ("parameters", "1e400"),
        ("parameters", "9" * 10_000),
        ("ranks", "0"),
        ("ranks", "2.5"),
        ("ranks", "two"),
        ("ranks", "1e7"),
        ("layout", "zero-17"),
        ("gpu", "abacus"),
        ("zero", "4"),
        ("zero", "three"),
        ("model", "gpt-9"),
        ("model", ""),
    ],
)
def test_a_field_that_cannot_be_read_falls_back_and_says_so_at_its_place(name: str, text: str) -> None:
    made = plan(OWN_7B | {name: text})
    assert set(made.errors) == {name}
    assert made.errors[name].endswith(f"Showing {DEFAULTS[name]}.")
    assert "Accepted: " in made.errors[name]
    assert made.typed[name] == (text.strip() if name in ("parameters", "ranks") else DEFAULTS[name])
    if name in ("parameters", "ranks"):
        assert (made.parameters, made.ranks) == (7e9, 8)
    assert made.stage.total > 0


def test_every_unreadable_field_is_named() -> None:
    made = plan({"model": "own", "parameters": "x", "ranks": "x", "layout": "x", "gpu": "x", "zero": "x"})
    assert set(made.errors) == {"parameters", "ranks", "layout", "gpu", "zero"}


def test_parameters_of_ones_own_are_not_asked_for_where_a_preset_is_chosen() -> None:
    assert plan({"model": "llama-3-8b", "parameters": "x"}).errors == {}


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
        "state_layout": "zero-16",
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


@pytest.mark.parametrize(
    ("typed", "errors"),
    [
        ({"tensor": "3"}, {"tensor": "3 does not divide heads = 32. Accepted: 1, 2, 4, 8, 16. Showing 4."}),
        ({"ranks": "100", "tensor": "8"}, {"ranks": "Accepted: a multiple of 8, such as 96 or 104. Showing 96."}),
        ({"ranks": "4", "tensor": "8"}, {"ranks": "Showing 8."}),
        ({"pipeline": "99"}, {"pipeline": "There are only 32 layers. Accepted: 1 to 32. Showing 1."}),
        ({"pipeline": "4", "virtual_stages": "9"}, {"virtual_stages": "Accepted: 1 to 8. Showing 1."}),
        ({"pipeline": "4", "schedule": "dualpipev"}, {"virtual_stages": "Accepted: 2. Showing 2."}),
        ({"global_batch": "13"}, {"global_batch": "a multiple of 8, such as 8 or 16. Showing 8."}),
        ({"gpu": "a100-80gb", "precision": "fp8-mixed"}, {"precision": "Showing bf16-mixed."}),
        ({"expert": "2"}, {"expert": "2 does not divide experts = 1. Accepted: 1. Showing 1."}),
        ({"inter_node": "50 GB"}, {"inter_node": "Showing what is usual beside this GPU."}),
        ({"sequence": "long"}, {"sequence": "Showing the model's own."}),
        (
            {"tensor": "7", "ranks": "16", "context": "x", "global_batch": "13"},
            {"tensor": "Showing 8.", "context": "Showing 1.", "global_batch": "Showing 12."},
        ),
    ],
)
def test_what_does_not_go_together_is_replaced_and_said_at_its_field(
    typed: dict[str, str], errors: dict[str, str]
) -> None:
    made = plan(typed)
    assert set(made.errors) == set(errors)
    for name, says in errors.items():
        assert made.errors[name].endswith(says)
    assert made.estimate.time.step_seconds > 0


def test_a_size_of_ones_own_gets_a_shape_that_can_be_edited() -> None:
    """OPT-30B (Zhang et al. 2022): 48 layers of 7,168 with 56 heads; 30B over tensor 4 × pipeline 2, ZeRO-1 over 64
    ranks, are 7.5 + 7.5 + 12 × 3.75/64 GB (F27)."""
    sized = {"model": "sized", "architecture": "gpt", "parameters": "30B", "ranks": "512"}
    axes = {"tensor": "4", "pipeline": "2", "zero": "1", "recompute": "none", "global_batch": "4.2M tokens"}
    made = plan(sized | axes)
    assert made.errors == {}
    assert made.form.shape is not None
    assert (made.form.shape.layers, made.form.shape.hidden, made.form.shape.heads) == (48, 7168, 56)
    assert made.parameters == pytest.approx(30e9, rel=0.005)
    state = made.estimate.memory.per_rank_bytes
    assert state.parameters + state.gradients + state.optimizer == pytest.approx(15.7e9, rel=0.02)
    assert (made.global_batch, made.batch_tokens) == (1024, 4_194_304), "what was said in tokens"
    assert made.shape_text == "48 layers of 7,168, 56 heads, derived"
    edited = plan(sized | {"layers": "40", "hidden": "8192"})
    assert edited.form.shape is not None
    assert (edited.form.shape.layers, edited.form.shape.heads) == (40, 64)
    assert edited.parameters == pytest.approx(30e9, rel=0.005), "the MLP's width makes up for it"
    assert "kv_heads" in plan(sized | {"kv_heads": "5"}).errors
    assert "50M" in plan(sized | {"parameters": "3"}).errors["parameters"]


def test_a_batch_is_understood_and_said(page: TestClient) -> None:
    html = page.get("/planner", params={"global_batch": "4M"}).text
    assert "“4M” was understood as 4,000,000 sequences, 32.8B tokens a step." in html
    assert "was understood as" not in page.get("/planner", params={"global_batch": "4M tokens"}).text
    wide = {"ranks": "1M", "gpus_per_node": "1M"}
    assert len(page.get("/planner", params=wide).content) < 200_000, "no million GPUs are drawn"


def test_a_budget_becomes_a_model_its_tokens_days_and_money() -> None:
    """C = 120 N²: 1e21 FLOPs are 2.89B on 57.7B tokens, and 1B on 167B; 512 H100 at 40 % for 90 days are 1.575e24."""
    small = training_of(
        plan({"model": "sized", "parameters": "1B", "budget": "1e21 FLOPs", "mfu": "40 %", "price": "2"})
    )
    this, best = small.models
    assert this.tokens == pytest.approx(1e21 / 6 / this.parameters)
    assert (best.parameters, best.tokens) == pytest.approx((2.887e9, 57.7e9), rel=1e-3)
    assert best.cost == pytest.approx(1e21 / (989.4e12 * 0.4) / 3600 * 2, rel=1e-3)
    assert plan(dict(parse_qsl(urlsplit(best.address).query))).parameters == pytest.approx(2.89e9, rel=0.005)
    large = {"model": "sized", "architecture": "gpt", "parameters": "30B", "ranks": "512", "mfu": "40 %"}
    whole = training_of(plan(large | {"budget": "90 days"}))
    assert whole.models[0].flops == pytest.approx(1.575e24, rel=1e-3)
    assert whole.models[1].parameters == pytest.approx(114.6e9, rel=1e-3)
    assert whole.models[0].overtraining == pytest.approx(14.6, rel=5e-3)
    assert whole.models[0].seconds == pytest.approx(90 * 86400)
    assert whole.failures.mtbf_seconds / 3600 == pytest.approx(50677 / 512, rel=1e-3)
    assert whole.failures.interval_seconds / 60 == pytest.approx(109, rel=5e-3)
    hours = training_of(plan(large | {"budget": "1105920 GPU-hours"})).models[0]  # 512 × 90 × 24
    assert hours.flops == pytest.approx(1.575e24, rel=1e-3)
    for wrong in ("7", "2 TB", "soon"):
        assert "GPU-hours" in plan({"budget": wrong}).errors["budget"]


def test_gradients_over_a_nodes_one_port_take_what_a_ring_takes() -> None:
    """E033: 7B in bf16 on 64 GPUs are 27.56 GB each, 2.205 s over a port of 100 Gb/s a node; 16,384 tokens a GPU at
    half of an A100's peak are 4.41 s."""
    port = {"inter_node_bytes_per_second": 100e9 / 8 / 8}
    ddp = {"model": "sized", "architecture": "gpt", "parameters": "7B", "ranks": "64", "gpu": "a100-80gb", "zero": "0"}
    made = plan(
        ddp | {"profile": "zero-paper", "measured": json.dumps(port), "budget": "1048576 tokens", "mfu": "50 %"}
    )
    (row,) = made.estimate.communication
    assert row.wire_bytes_per_rank_per_step == pytest.approx(27.56e9, rel=1e-3)
    assert row.seconds == pytest.approx(2.205, rel=3e-3)
    assert training_of(made).models[0].seconds == pytest.approx(4.41, rel=3e-3)
    levels = plan(ddp | {"inter_node": "12.5 Gb/s"}).in_two_levels
    assert levels is not None
    assert (levels.node_bytes, levels.seconds) == pytest.approx((24.5e9, 1.96), rel=3e-3)


def test_scores_that_are_kept_are_counted() -> None:
    """Korthikanti et al. 2022: 34sbh and 5as/h more, 14.3 and 47.8 GB of 40 layers of 5,120 with 40 heads."""
    form = {"model": "gpt-3-13b", "profile": "zero-paper", "recompute": "none", "sequence": "2048", "gpu": "a100-80gb"}
    held = [
        plan(form | {"zero": "2", "attention": each}).estimate.memory.per_rank_bytes.activations
        for each in ("flash", "full")
    ]
    assert held == pytest.approx([14.3e9, 47.8e9], rel=0.035)  # with the head's logits on top


def test_the_nearest_values_go_together(page: TestClient) -> None:
    typed = {"tensor": "3", "pipeline": "7", "ranks": "100", "micro_batch": "3", "global_batch": "100"}
    made = plan(typed)
    assert made.form.mended == {"tensor": "4", "ranks": "84", "global_batch": "99"}
    again = plan(typed | made.form.mended)
    assert again.errors == {}
    assert again.estimate == made.estimate
    assert "Take these values" in page.get("/planner", params=typed).text
    assert "Take these values" not in page.get("/planner", params={"tensor": "3"}).text
    request = {"model": "llama-3-8b", "parallel": {"data": 5, "tensor": 4}, "cluster": {"gpu": "h100-80gb", "nodes": 3}}
    wrong = estimated(page, json.dumps(request)).json()["errors"]
    assert {each["field"]: each["accepted"] for each in wrong} == {
        "cluster.nodes": "2 with parallel.data = 4",
        "parallel.data": "6",
    }


SOME = st.integers(1, 300).map(str)


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {"model": st.sampled_from([*PRESETS, "sized"])},
        optional={
            **dict.fromkeys(("ranks", "tensor", "pipeline", "context", "expert", "virtual_stages"), SOME),
            **dict.fromkeys(("micro_batch", "global_batch", "sequence"), SOME),
            "schedule": st.sampled_from(get_args(Schedule)),
            "precision": st.sampled_from(get_args(Precision)),
            "gpu": st.sampled_from([*GPUS]),
            "zero": st.sampled_from("0123"),
            **dict.fromkeys(("layers", "heads", "hidden"), SOME),
            "sequence_parallel": st.just("on"),
        },
    )
)
def test_any_form_makes_a_plan_that_the_engine_takes(form: dict[str, str]) -> None:
    made = plan(form)
    assert made.estimate.memory.per_rank_bytes.total > 0
    assert answer_request(json.loads(made.request_text)) == made.estimate
    assert all("Showing" in says for says in made.errors.values())
    assert plan(form | made.form.mended).errors == {}, "what is shown in its place goes together"


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


def test_every_model_and_gpu_can_be_chosen_once_under_its_heading(page: TestClient) -> None:
    html = page.get("/planner", params={"model": "deepseek-v3", "gpu": "mi300x-192gb"}).text
    offered = re.findall(r'<option value="([^"]+)"( selected)?>', html)
    names = [name for name, _ in offered if name in PRESETS or name in GPUS]
    assert sorted(names) == sorted([*PRESETS, *GPUS])
    assert [name for name, selected in offered if selected and name in names] == ["deepseek-v3", "mi300x-192gb"]
    headings = re.findall(r'<optgroup label="([^"]+)">', html)
    assert headings == [
        "GPT-2",
        "GPT-3",
        "Llama 2",
        "Llama 3",
        "Mistral",
        "Qwen2.5",
        "DeepSeek",
        "Your own",
        "NVIDIA",
        "AMD",
        "Google",
    ]


def test_the_page_says_what_could_not_be_read_where_it_was_typed(page: TestClient) -> None:
    reply = page.get("/planner", params=OWN_7B | {"ranks": '0"><b>'})
    assert reply.status_code == 200
    assert 'id="e-ranks"' in reply.text
    assert "<b>" not in reply.text.split('id="e-ranks"')[1].split("</span>")[0]
    assert 'value="0&#34;&gt;&lt;b&gt;"' in reply.text


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


def test_the_defaults_are_values_of_the_form() -> None:
    assert DEFAULTS["model"] in PRESETS
    assert DEFAULTS["gpu"] in GPUS
    assert json.loads(plan({}).request_text)["model"] == DEFAULTS["model"]


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
        assert again.estimate == option.candidate.estimate
    html = page.get("/planner", params=LARGE | {"find": "1"}).text
    assert "Which configuration is fastest?" in html
    why = "The first and the second are a tie" if is_tie(*times[:2]) else "Why is the first faster than the second?"
    assert why in html
    assert "One step on every axis" in html
    beside = page.get(found.options[0].compare)
    assert beside.status_code == 200
    assert re.search(r"<h1>(A tie in time[^<]*|The \w+ one takes\s+[\d.]+&nbsp;(% longer|× as long))</h1>", beside.text)
    table = page.get("/planner/search.csv", params=LARGE)
    assert table.headers["content-type"].startswith("text/csv")
    assert table.text.count("\n") == 1 + len(found.options) + len(found.front)
    assert html.count(">Use this plan</a>") == len(found.options)


def test_a_list_never_shows_and_sends_on_what_nobody_chose(page: TestClient) -> None:
    """A model that is not there computes the default plan: the lists show that one, not their first."""
    shown = page.get("/planner", params={"model": "nonsense", "gpu": "h1000", "zero": "9"}).text
    for value in ("llama-3-8b", "h100-80gb"):
        assert re.search(rf'<option value="{value}"[^>]* selected', shown), value
    assert "“nonsense” is not known." in shown


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
    assert "None of them will do" in html
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
        "explanation"
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


def test_what_is_folded_in_the_form_says_what_was_changed_in_it_and_opens_where_it_is_wrong(page: TestClient) -> None:
    def folded(query: str) -> list[tuple[bool, str]]:
        found = re.findall(
            r'<details class="more wide"([^>]*)>.*?data-part="changed-\w+">([^<]*)<', page.get(query).text, re.S
        )
        return [("open" in attributes, said.strip()) for attributes, said in found]

    assert folded("/planner") == [(False, "as usual")] * 5
    assert [said for _, said in folded("/planner?ranks=16&context=2&shard=4")] == [
        "as usual",
        "as usual",
        "as usual",
        "context 2, shard over 4",
        "as usual",
    ]
    assert [is_open for is_open, _ in folded("/planner?context=many")] == [False, False, False, True, False]


def test_after_a_search_the_form_stays_and_the_plan_stands_in_the_table(page: TestClient) -> None:
    html = page.get("/planner?find=1").text
    assert "data-plan" in html
    table = html[html.index('id="p-find"') :]
    assert table.index("Your plan") < table.index("Use this plan")


def test_an_estimate_has_three_digits_and_a_column_one_unit(page: TestClient) -> None:
    html = page.get("/planner").text
    rate = re.search(r"([\d,.]+) <small[^>]*>tokens/s", html)
    assert rate is not None
    assert len(rate[1].replace(",", "").replace(".", "").strip("0")) <= 3
    assert re.search(r"<th[^>]*>Wire, [TGMk]?B</th>", html)


def test_addresses_that_are_no_plans_are_said_at_their_field_and_kept(page: TestClient) -> None:
    empty = page.get("/planner/compare")
    assert empty.status_code == 200
    assert "aria-invalid" not in empty.text
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
    assert "Where the second differs from the first" in both.text


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
