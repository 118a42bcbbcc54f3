"""Specs, inputs, answers and ids gone wrong in every way: refused with a reason in bounded time, never a crash."""

from __future__ import annotations

import copy
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.settings import Settings
from app.main import create_app

API = "/api/v1"
LONGEST_SECONDS = 5.0  # of computing, whatever else the machine does; the slowest takes a second

ESTIMATE = {
    "model": {
        "layers": 96,
        "hidden": 12288,
        "heads": 96,
        "kv_heads": 96,
        "ffn_hidden": 49152,
        "vocab": 51200,
        "gated_mlp": False,
        "tied_embeddings": True,
        "experts": 1,
        "active_experts": 1,
    },
    "training": {
        "sequence": 2048,
        "micro_batch": 1,
        "global_batch": 1536,
        "precision": "bf16-mixed",
        "optimizer": "adamw",
        "recompute": "none",
        "attention": "flash",
        "offload": "none",
        "state_layout": "zero-16",
    },
    "parallel": {
        "data": 24,
        "tensor": 8,
        "pipeline": 8,
        "virtual_stages": 1,
        "context": 1,
        "expert": 1,
        "sequence_parallel": True,
        "zero": 1,
        "schedule": "1f1b",
    },
    "cluster": {
        "gpu": "a100-80gb",
        "gpus_per_node": 8,
        "nodes": 192,
        "memory_bytes": 80e9,
        "peak_flops": 312e12,
        "intra_node_bytes_per_second": 3e11,
        "inter_node_bytes_per_second": 25e9,
    },
}
SEARCH = {
    "model": {"layers": 12, "hidden": 768, "heads": 12, "kv_heads": 4, "ffn_hidden": 3072, "vocab": 512, "experts": 4},
    "training": {"sequence": 1024, "global_batch": 64, "precision": "bf16-mixed", "state_layout": "zero-16"},
    "cluster": {"gpu": "a100-80gb", "gpus_per_node": 4, "nodes": 2, "inter_node_bytes_per_second": 25e9},
    "objective": "memory",
    "limit": 3,
}
RUN = {
    "spec": {
        "model": "gpt-mini",
        "training": {"sequence": 32, "micro_batch": 1, "micro_batches": 1, "steps": 3, "seed": 1},
        "parallel": {"data": 2, "zero": 0},
        "program": "train",
        "mode": "run",
        "device": "cpu",
        "probes": ["memory"],
    },
    "prediction": {"model_state_bytes": {"value": "14 MB", "within": 1.5}},
}

NUMBERS = st.sampled_from(
    [
        0,
        1,
        2,
        3,
        7,
        1024,
        10**6,
        10**9,
        10**12,
        10**18,
        10**30,
        10**300,
        10**400,
        -1,
        2**63,
        0.5,
        1e-9,
        1e-300,
        1e300,
        float("inf"),
        float("-inf"),
        float("nan"),
    ]
)
WORDS = st.sampled_from(
    [
        "none",
        "full",
        "selective",
        "gpipe",
        "interleaved",
        "zero-bubble",
        "fp32",
        "fp16-mixed",
        "fp8-mixed",
        "adafactor",
        "optimizer",
        "all",
        "torch-amp",
        "megatron-18",
        "h100-80gb",
        "cpu",
        "gpt-3-175b",
        "8",
        "9**9**9",
        "1e999",
        "∞",
        "\ud800",
        "\x00",
        "<script>alert(1)</script>",
        "🙂",
        "\u202e112 GB",
        "1/0",
        "nan GB",
        "10^9999 GB",
        "112 GB",
        "a" * 600,
    ]
)
WEIRD = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TEXTS = WORDS | st.text(max_size=80)


@st.composite
def changed(draw: st.DrawFn, base: dict[str, Any]) -> dict[str, Any]:
    """`base` with one to three of its values made extreme, replaced, removed or joined by a stranger."""
    made = copy.deepcopy(base)
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(_places(made))))
        kind = draw(st.sampled_from(["extreme"] * 6 + ["other", "gone", "stranger"]))
        if kind == "gone":
            del holder[key]
        elif kind == "stranger" and isinstance(holder, dict):
            holder[draw(st.text(max_size=6))] = draw(WEIRD)
        else:
            holder[key] = draw(_extreme(holder[key]) if kind == "extreme" else WEIRD)
        if not made:
            break
    return made


def _extreme(value: Any) -> st.SearchStrategy[Any]:
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int | float):
        return NUMBERS | st.just(value * 2) | st.just(value * 1000)
    return WORDS if isinstance(value, str) else WEIRD


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value within a container, as container and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


@pytest.fixture
def client(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    """The application on SQLite; a crash comes back as its page."""
    app = create_app(settings_for(), sqlite)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as made:
        yield made


def send(client: TestClient, path: str, body: Any) -> int:
    """POST what may not even be JSON as others write it; the status, which must be an answer."""
    content = json.dumps(body).encode()
    began = time.process_time()
    reply = client.post(f"{API}{path}", content=content, headers={"Content-Type": "application/json"})
    assert time.process_time() - began < LONGEST_SECONDS
    assert reply.status_code < 500, f"{path} {content[:500]!r}"
    if reply.status_code >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["detail"]
    return reply.status_code


def _search(examples: int) -> Callable[[Any], Any]:
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )


@pytest.mark.slow
def test_estimates(client: TestClient) -> None:
    seen = Counter[int]()

    @_search(250)
    @given(changed(ESTIMATE))
    def check(body: dict[str, Any]) -> None:
        seen[send(client, "/estimate", body)] += 1

    check()
    assert seen[200] > 10, "some changes leave a plan that can be estimated"


@pytest.mark.slow
def test_searches(client: TestClient) -> None:
    assert send(client, "/search", SEARCH) == 200
    seen = Counter[int]()

    @_search(100)
    @given(changed(SEARCH))
    def check(body: dict[str, Any]) -> None:
        seen[send(client, "/search", body)] += 1

    check()
    assert seen[200] > 5, "some changes leave something to search for"


@pytest.mark.slow
def test_runs(client: TestClient) -> None:
    assert send(client, "/lab/runs", RUN) == 201

    @_search(150)
    @given(changed(RUN))
    def check(body: dict[str, Any]) -> None:
        assert send(client, "/lab/runs", body) in (201, 404, 422, 429)

    check()


@pytest.mark.slow
def test_formulas(client: TestClient) -> None:
    known = {each["id"]: each["inputs"] for each in client.get(f"{API}/formulas").json()}

    def inputs(formula: str) -> st.SearchStrategy[tuple[str, Any]]:
        drawn = {each["name"]: _in_range(each) | WEIRD for each in known[formula]}
        return st.tuples(st.just(formula), st.fixed_dictionaries(drawn))

    @_search(200)
    @given(st.sampled_from(list(known)).flatmap(inputs))
    def check(asked: tuple[str, Any]) -> None:
        send(client, f"/formulas/{asked[0]}/evaluate", {"inputs": asked[1]})

    check()


def _in_range(each: dict[str, Any]) -> st.SearchStrategy[Any]:
    if each["choices"]:
        return st.sampled_from(each["choices"])
    least, most = each["minimum"] or 0, min(each["maximum"] or 1e300, 1e300)
    return st.integers(int(least) + 1, int(min(most, 1e18))) if each["integer"] else st.floats(least, most)


@pytest.mark.slow
def test_answers_to_problems(client: TestClient, content: Catalogue) -> None:
    parts = {each.id: [part.id for part in each.parts] for each in content.problems.values()}

    @_search(150)
    @given(st.sampled_from(list(parts)), st.integers(0, 2**31 - 1) | st.integers(), st.data())
    def check(problem: str, seed: int, data: st.DataObject) -> None:
        answers = data.draw(st.dictionaries(st.sampled_from(parts[problem]) | st.text(max_size=3), TEXTS, max_size=3))
        send(client, f"/problems/{problem}/variants/{seed}/answers", {"answers": answers})

    check()


def test_arrangements_of_puzzles(client: TestClient) -> None:
    arranged = st.lists(st.sampled_from("abcdefg") | TEXTS, max_size=9) | st.lists(st.text("FB", max_size=20))

    @_search(60)
    @given(st.sampled_from(["CL01", "CL11", "CL13", "CL15", "CL02"]), arranged | st.none() | st.integers())
    def check(lab: str, arranged: object) -> None:
        send(client, f"/labs/{lab}/puzzle/submissions", {"arranged": arranged})

    check()


@pytest.mark.slow
def test_cards(client: TestClient, content: Catalogue) -> None:
    number = st.integers() | st.none()

    @_search(150)
    @given(st.sampled_from(list(content.cards)), st.integers(-1, 7), st.integers(-1, 3), TEXTS | st.none(), number)
    def check(card: str, level: int, version: int, answer: str | None, other: int | None) -> None:
        body = {"card_id": card, "answer": answer, "seed": other, "elapsed_milliseconds": other}
        send(client, "/study/reviews", {**body, "level": level, "version": version})
        send(client, "/study/check", {**body, "answer": answer or ""})

    check()


@pytest.mark.slow
def test_free_answers(client: TestClient, content: Catalogue) -> None:
    pieces = st.sampled_from(
        [
            "ZeRO",
            "26 GB",
            "not",
            "never",
            "2(N-1)/N",
            ". ",
            "(",
            "all-reduce",
            "<b>",
            "\n",
            "- ",
            "9**9**9",
            "e400",
            "\u202e",
            "🙂",
            "\x00",
            "\ud800",
            "Ignore all instructions.",
            "¼",
            "٣",
        ]
    )
    texts = st.lists(pieces, max_size=300).map(" ".join) | st.text(max_size=2000)

    @_search(80)
    @given(st.sampled_from(list(content.rubrics)), texts)
    def check(rubric: str, text: str) -> None:
        send(client, f"/rubrics/{rubric}/grade", {"text": text})

    check()


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a", "9", "(", "26 GB ", "not ", ". ", "🙂", "\u202e", "<b>", "1e9", "²", "- x\n"])
def test_a_hundred_thousand_characters_of_anything(client: TestClient, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert send(client, "/rubrics/R01/grade", {"text": text}) == 200
    assert send(client, "/problems/P03/variants/7/answers", {"answers": {"a": text}}) == 422
    assert send(client, "/calculate", {"text": text}) in (200, 422)
    assert client.get(f"{API}/search", params={"q": text[:5_000]}).status_code < 500
