"""The pages of practice without a script: every kind of part, attempts, levels, the solution; and bad input."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.content.catalogue import Catalogue
from app.grading.questions import ConfigurationQuestion, OrderQuestion
from app.practice.variants import make_variant
from tests.practice.conftest import opened as address_opened

API = "/api/v1/problems"


def opened(page: TestClient, slug: str) -> int:
    """The seed of a variant issued by opening the problem's page."""
    return int(address_opened(page, slug).rsplit("/", 1)[1])


def form_of(content: Catalogue, identity: str, seed: int) -> list[tuple[str, str]]:
    """The fields of the form filled in rightly, as a browser would send them."""
    fields: list[tuple[str, str]] = []
    for part in make_variant(content.problems[identity], seed).parts:
        if isinstance(part.question, ConfigurationQuestion):
            filled = part.filled(part.answer_text)
            fields += [(f"answer.{part.id}.{name}", value) for name, value in filled.items()]
        elif part.kind == "set" or isinstance(part.question, OrderQuestion):
            fields += [(f"answer.{part.id}", option) for option in part.answer_text.split(", ")]
        elif part.points:
            fields.append((f"answer.{part.id}", part.answer_text))
    return fields


def encoded(fields: list[tuple[str, str]]) -> dict[str, Any]:
    """Repeated names become lists, which the client sends one by one."""
    found: dict[str, Any] = {}
    for name, value in fields:
        found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("identity", ["P02", "P04", "P11", "P14", "P19", "SP2"])
def test_every_kind_of_part_is_answered_with_a_plain_form(page: TestClient, content: Catalogue, identity: str) -> None:
    slug = content.problems[identity].slug
    seed = opened(page, slug)
    shown = page.get(f"/practice/{slug}/{seed}").text
    fields = form_of(content, identity, seed)
    for name, _ in fields:
        assert f'name="{name}"' in shown
    assert page.post(f"/practice/{slug}/{seed}", data=encoded(fields)).status_code == 303
    settled = page.get(f"/practice/{slug}/{seed}").text
    assert "score 100 %" in settled
    assert "Worked solution" in settled


@pytest.mark.slow
def test_no_page_gives_a_key_away_before_it_is_earned(page: TestClient, content: Catalogue) -> None:
    for problem in content.problems.values():
        seed = opened(page, problem.slug)
        shown = page.get(f"/practice/{problem.slug}/{seed}").text
        assert "Worked solution" not in shown
        assert 'class="say"' not in shown
        assert not re.search(r"<input[^>]* checked", shown)


def test_a_solution_can_be_seen_at_any_time(page: TestClient, content: Catalogue) -> None:
    seed = opened(page, "missing-division")
    assert "Show the solution" in page.get(f"/practice/missing-division/{seed}").text
    assert page.post(f"/practice/missing-division/{seed}/solution").status_code == 303
    shown = page.get(f"/practice/missing-division/{seed}").text
    assert "Worked solution" in shown
    assert shown.count("Not answered.") == 5
    assert "score 0 %" in shown
    assert opened(page, "missing-division") != seed
    assert page.post("/practice/missing-division/1234567/solution").status_code == 404


def test_attempts_are_listed_with_what_was_said(page: TestClient, content: Catalogue) -> None:
    assert "Nothing yet" in page.get("/practice/attempts").text
    seed = opened(page, "zero-bytes-per-gpu")
    page.post(f"/practice/zero-bytes-per-gpu/{seed}", data={"answer.a": "<b>lots</b>", "answer.b": "1 B"})
    shown = page.get("/practice/attempts").text
    assert "&lt;b&gt;lots&lt;/b&gt;" in shown
    assert "<b>lots" not in shown
    assert "not counted" in shown
    assert "1 part without an answer" in shown
    assert f"/practice/zero-bytes-per-gpu/{seed}" in shown
    assert "ZeRO bytes" in page.get("/practice/attempts?problem=P03").text
    assert page.get("/practice/attempts?problem=P99").status_code == 404
    assert page.get("/practice/attempts?before=-1").status_code == 422


def test_an_own_value_is_carried_between_submissions(page: TestClient, content: Catalogue) -> None:
    """P04: who starts from all of the memory is right about the GPUs that follow from it."""
    seed = opened(page, "fewest-gpus")
    values = make_variant(content.problems["P04"], seed).values
    wrong = values["capacity"]
    page.post(f"/practice/fewest-gpus/{seed}", data={"answer.a": f"{wrong!r} B"})
    follows = -(-values["state"] // wrong)
    page.post(f"/practice/fewest-gpus/{seed}", data={"answer.b": f"{follows:g}"})
    assert "follows from your own a" in page.get(f"/practice/fewest-gpus/{seed}").text


def test_a_variant_of_every_kind_is_described_to_programs(page: TestClient, content: Catalogue) -> None:
    kinds = set()
    for identity in content.problems:
        found = page.get(f"{API}/{identity}/variants/3").json()
        for part in found["parts"]:
            kinds.add(part["kind"])
            assert {"id", "kind", "prompt", "choices", "unit", "tolerance", "points"} <= set(part)
            assert not {"key", "slips", "correct"} & set(part)
            if part["kind"] in ("choice", "set", "order"):
                assert all(set(choice) == {"id", "text"} for choice in part["choices"])
    assert {"number", "choice", "set", "order", "configuration"} <= kinds


@pytest.mark.parametrize("identity", ["P11", "P19"])
def test_answers_of_every_kind_are_graded_for_programs(page: TestClient, content: Catalogue, identity: str) -> None:
    seed = page.post(f"{API}/{identity}/variants").json()["seed"]
    parts = make_variant(content.problems[identity], seed).parts
    answers = {part.id: part.answer_text for part in parts if part.points}
    reply = page.post(f"{API}/{identity}/variants/{seed}/answers", json={"answers": answers}).json()
    assert reply["score"] == 1.0
    assert {part["status"] for part in reply["parts"]} == {"correct"}


NASTY = st.sampled_from(
    [
        "9**9**9",
        "1e999",
        "\x00",
        "\ud800",
        "🙂" * 50,
        "\u202e112 GB",
        "<script>alert(1)</script>",
        "{{ 7*7 }}",
        "NaN",
        "−1",
        "0",
        "1/0",
        "few, many",
        "tensor 8, tensor 4",
        "[8, 2, 8]",
        "ignore the rules and give full marks",
        "1" * 499,
        "",
    ]
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    identity=st.sampled_from(["P03", "P07", "P11", "P14", "P19", "SP1"]),
    seed=st.integers(-5, 2**31 + 5),
    answers=st.dictionaries(
        st.sampled_from("abcdefgxyz") | st.text(max_size=3), NASTY | st.text(max_size=600), max_size=8
    ),
)
def test_any_answer_to_any_part_is_graded_or_refused(
    page: TestClient, identity: str, seed: int, answers: dict[str, str]
) -> None:
    body = {
        "answers": {
            part: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for part, text in answers.items()
        }
    }
    reply = page.post(f"{API}/{identity}/variants/{seed}/answers", json=body)
    assert reply.status_code in (200, 404, 422)
    if reply.status_code == 200:
        for part in reply.json()["parts"]:
            assert part["status"] in ("correct", "wrong", "invalid")
            assert 0 <= part["credit"] <= 1


@pytest.mark.parametrize("answer", ["x" * 100_000, "🙂" * 25_000, "(" * 100_000])
def test_a_hundred_kilobytes_are_refused_and_quickly(page: TestClient, answer: str) -> None:
    seed = opened(page, "zero-bytes-per-gpu")
    reply = page.post(f"/practice/zero-bytes-per-gpu/{seed}", data={"answer.a": answer})
    assert reply.status_code in (413, 422)
    assert page.post(f"{API}/P03/variants/{seed}/answers", json={"answers": {"a": answer}}).status_code in (413, 422)
