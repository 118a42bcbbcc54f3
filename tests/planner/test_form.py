"""The planner's form: what is read, what is replaced, and what is said of it."""

from __future__ import annotations

import json
import re
from typing import get_args
from urllib.parse import parse_qsl

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app.planner import deciding
from app.planner.fields import DEFAULTS, FIELDS, query_text
from app.planner.service import answer_request, plan
from app.theory.hardware import GPUS
from app.theory.presets import PRESETS
from labs.spec import Precision, Schedule
from tests.planner.asking import OWN_7B, estimated


def test_what_no_field_reads_is_named_with_the_field_it_may_have_meant(page: TestClient) -> None:
    shown = page.get("/planner?model=llama-3-8b&tensors=2&colour=<b>red</b>").text
    said = re.search(r"The address has more than is read here.*?</p>", shown, re.DOTALL)
    assert said is not None
    assert "<code>tensors=2</code> (the field is <code>tensor</code>)" in said[0]
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
    assert made.errors[name].endswith(f"Showing {DEFAULTS[name] or FIELDS[name].absent}.")
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


@pytest.mark.parametrize(
    ("typed", "errors"),
    [
        ({"tensor": "3"}, {"tensor": "3 does not divide heads = 32. Accepted: 1, 2, 4, 8. Showing 4."}),
        ({"ranks": "100", "tensor": "8"}, {"ranks": "Accepted: a multiple of 8, such as 96 or 104. Showing 96."}),
        ({"ranks": "4", "tensor": "8"}, {"ranks": "Showing 8."}),
        ({"pipeline": "99"}, {"pipeline": "There are only 32 layers. Accepted: 1, 2, 4, 8. Showing 8."}),
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


def test_a_batch_is_understood_and_said(page: TestClient) -> None:
    html = page.get("/planner", params={"global_batch": "4M"}).text
    assert "“4M” was understood as 4,000,000 sequences, 32.8B tokens a step." in html
    assert "was understood as" not in page.get("/planner", params={"global_batch": "4M tokens"}).text
    wide = {"ranks": "1M", "gpus_per_node": "1M"}
    assert len(page.get("/planner", params=wide).content) < 200_000, "no million GPUs are drawn"


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


def test_the_defaults_are_values_of_the_form() -> None:
    assert DEFAULTS["model"] in PRESETS
    assert DEFAULTS["gpu"] in GPUS
    assert json.loads(plan({}).request_text)["model"] == DEFAULTS["model"]


def test_a_list_never_shows_and_sends_on_what_nobody_chose(page: TestClient) -> None:
    """A model that is not there computes the default plan: the lists show that one, not their first."""
    shown = page.get("/planner", params={"model": "nonsense", "gpu": "h1000", "zero": "9"}).text
    for value in ("llama-3-8b", "h100-80gb"):
        assert re.search(rf'<option value="{value}"[^>]* selected', shown), value
    assert "“nonsense” is not known." in shown


def test_what_is_folded_in_the_form_says_what_was_changed_in_it_and_opens_where_it_is_wrong(page: TestClient) -> None:
    def folded(query: str) -> list[tuple[bool, str]]:
        found = re.findall(
            r'<details class="more wide"([^>]*)>.*?data-part="changed-\w+">([^<]*)<', page.get(query).text, re.S
        )
        return [("open" in attributes, said.strip()) for attributes, said in found]

    assert folded("/planner") == [(False, "as usual")] * 6
    assert [said for _, said in folded("/planner?ranks=16&context=2&shard=4")] == [
        "as usual",
        "as usual",
        "context 2, shard over 4",
        "as usual",
        "as usual",
        "as usual",
    ]
    assert [is_open for is_open, _ in folded("/planner?context=many")] == [False, False, True, False, False, False]


def test_a_batch_in_tokens_is_the_nearest_that_shares_out_and_says_so() -> None:
    """4,000,000 tokens are 488.3 sequences of 8,192; 61 for each of 8 ranks are 488."""
    made = plan({"global_batch": "4M tokens"})
    assert (made.global_batch, made.errors) == (488, {})
    assert "488.3 sequences of 8,192; taken are 488, 3,997,696 tokens" in made.batch_remark
    assert plan({"global_batch": f"{8192 * 64} tokens"}).batch_remark == ""
    staged = plan({"global_batch": "100 tokens", "pipeline": "4", "schedule": "zbv", "virtual_stages": "2"})
    assert staged.errors == {}
    assert "multiples of 2" in staged.batch_remark
    path = deciding.path({"ranks": "24", "global_batch": "4M tokens"})
    assert "480 sequences" in path.title, "by the same rule: 20 for each of 24 GPUs are nearer than 21"


def test_an_address_leaves_out_what_the_form_opens_with_and_means_the_same_plan(page: TestClient) -> None:
    assert query_text(plan({}).typed) == "model=llama-3-8b"
    chosen = {
        "model": "llama-3-70b",
        "ranks": "64",
        "tensor": "8",
        "zero": "1",
        "sequence_parallel": "on",
        "price": "2",
    }
    made = plan(chosen)
    short = dict(parse_qsl(query_text(made.typed)))
    assert short == chosen
    assert plan(short) == plan(made.typed) == made
    html = page.get("/planner", params=chosen).text
    assert max(map(len, re.findall(r'href="(/planner[^"]*)"', html))) < 400


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("llama-3.1-405b", "llama-3-405b is nearest"),
        ("Llama-2-70B", "llama-2-70b is nearest"),
        ("llama-3-9b", "is not known."),  # none is that large
        ("abacus", "is not known."),
    ],
)
def test_a_model_that_is_not_there_is_like_none_of_another_size(typed: str, nearest: str) -> None:
    assert nearest in plan({"model": typed}).errors["model"]


def test_sizes_that_cannot_make_the_parameters_that_were_asked_say_so() -> None:
    sized = {"model": "sized", "parameters": "7B"}
    assert "not the 7B that were asked" in plan(sized | {"vocab": "10000000"}).shape_text
    assert "asked" not in plan(sized).shape_text
    assert "asked" not in plan(sized | {"heads": "7"}).shape_text


def test_a_rate_of_a_node_is_not_taken_as_one_gpus() -> None:
    for text in ("400 Gb/s per node", "400 Gb/s/node", "50 GB/s a node"):
        assert "6.25 GB/s of 400 Gb/s for a node of 8" in plan({"inter_node": text}).errors["inter_node"]
    assert plan({"inter_node": "6.25 GB/s per GPU"}).form.values["inter_node"] == 6.25e9
