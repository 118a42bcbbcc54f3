"""The command line: variants, grades, estimates and the content check, for scripts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.core.settings import settings
from app.units import bytes_text, seconds_text
from tests.support.cards import edit, write_cards

RUNNER = CliRunner()


def run(*arguments: str, stdin: str = "", code: int = 0) -> Any:
    """What the command printed, as JSON: on standard output, or on standard error where it fails."""
    result = RUNNER.invoke(app, list(arguments), input=stdin)
    assert result.exit_code == code, result.output
    return json.loads(result.stderr if code else result.stdout)


def test_a_variant_is_printed_with_its_key() -> None:
    found = run("problem", "P03", "--seed", "7")
    assert {"id", "seed", "statement", "parts", "hints", "solution"} <= set(found)
    assert (found["id"], found["seed"]) == ("P03", 7)
    assert "3B model" in found["statement"]
    assert "<" not in found["statement"]
    for part in found["parts"]:
        assert {"id", "prompt", "unit", "tolerance", "key"} <= set(part)
    assert found["parts"][2]["key"] == {"value": 93_750_000.0, "unit": "bytes", "text": "0.09375 GB"}
    assert len(found["hints"]) == 3
    assert "0.09375 GB" in found["solution"]


def test_answers_are_graded_as_over_http() -> None:
    found = run("answer", "P03", "a=12.07 GB", "b=6.08GB", "c=93.75 MB", "--seed", "7")
    assert found["score"] == 1.0
    assert {part["status"] for part in found["parts"]} == {"correct"}
    found = run("answer", "zero-bytes-per-gpu", "a=93.75 MB", "b=6.08", "--seed", "7")
    assert found["score"] is None
    assert [(part["status"], part["misconception"]) for part in found["parts"]] == [
        ("wrong", "everything-sharded"),
        ("invalid", None),
        ("invalid", None),
    ]
    assert found["parts"][2]["message"] == "Not answered yet."
    assert {"id", "status", "credit", "message", "misconception"} <= set(found["parts"][0])


def test_every_kind_of_part_is_printed_with_what_would_answer_it() -> None:
    found = run("problem", "P19", "--seed", "7")
    by_kind = {part["kind"]: part for part in found["parts"]}
    assert {choice["id"] for choice in by_kind["order"]["choices"]} == set(by_kind["order"]["key"]["value"])
    assert set(by_kind["configuration"]["fields"]) == set(by_kind["configuration"]["key"]["value"])
    answers = [f"{part['id']}={part['key']['text']}" for part in found["parts"]]
    assert run("answer", "P19", *answers, "--seed", "7")["score"] == 1.0


def test_an_own_wrong_value_is_carried_forward_here_too() -> None:
    """P09 with half of the compute as the window instead of two thirds: what is hidden less is exposed more."""
    parts = {part["id"]: part for part in run("problem", "P09", "--seed", "7")["parts"]}
    window = next(slip["value"] for slip in parts["a"]["slips"] if slip["id"] == "half")
    more = parts["a"]["key"]["value"] - window  # less hides, so more is exposed
    exposed = parts["b"]["key"]["value"] + more
    found = run("answer", "P09", f"a={window} s", f"b={exposed} s", "--seed", "7")
    assert [part["status"] for part in found["parts"][:2]] == ["wrong", "correct"]


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (("problem", "P99", "--seed", "7"), 404, "P99"),
        (("problem", "P03", "--seed", "-1"), 404, "-1"),
        (("problem", "P03", "--seed", "99999999999999999999"), 404, "out of range"),
        (("answer", "P03", "z=1 GB", "--seed", "7"), 422, "answers cannot be graded"),
        (("answer", "P03", "a=1 GB", "--seed", "-1"), 404, "-1"),
        (("estimate", "/nowhere/at/all.json"), 422, "/nowhere/at/all.json"),
    ],
)
def test_what_cannot_be_done_is_problem_details_and_exit_2(arguments: tuple[str, ...], status: int, named: str) -> None:
    details = run(*arguments, code=2)
    assert details["status"] == status
    assert named in details["detail"]


def test_an_estimate_is_read_from_standard_input() -> None:
    found = run("estimate", "-", stdin='{"model": {"parameters": 7e9}, "parallel": {"data": 8, "zero": 3}}')
    assert found["memory"]["per_rank_bytes"]["total"] == 14e9


def test_an_estimate_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"model": "llama-3-8b"}')
    assert run("estimate", str(file))["parameters"]["total"] == 8_030_261_248


def test_an_estimate_is_written_as_a_table() -> None:
    plan = {
        "model": "llama-3-8b",
        "training": {"global_batch": 64},
        "parallel": {"data": 8, "zero": 3},
        "cluster": {"gpu": "h100-80gb"},
    }
    found = run("estimate", "-", stdin=json.dumps(plan))
    result = RUNNER.invoke(app, ["estimate", "-", "--format", "table"], input=json.dumps(plan))
    assert result.exit_code == 0
    lines = [re.split(r"  +", line.strip()) for line in result.stdout.splitlines()]
    assert ["total", "8.03B"] in lines
    assert ["total", bytes_text(found["memory"]["per_rank_bytes"]["total"])] in lines
    assert ["step", seconds_text(found["time"]["step_seconds"])] in lines
    names = [line[0] for line in lines]
    assert all(row["name"] in names for row in found["communication"])
    assert all(line in result.stdout for line in (*found["assumptions"], *found["warnings"]))


def test_a_table_says_what_is_not_estimated() -> None:
    result = RUNNER.invoke(app, ["estimate", "-", "--format", "table"], input='{"model": {"parameters": 7e9}}')
    assert re.search(r"activations +not estimated", result.stdout)
    assert "Communication" not in result.stdout
    wrong = RUNNER.invoke(app, ["estimate", "-", "--format", "table"], input='{"model": 5}')
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert json.loads(wrong.stderr)["errors"][0]["field"] == "model"


def test_a_bad_request_names_every_field() -> None:
    plan = {"model": {"parameters": "many"}, "parallel": {"zero": 9}, "cluster": {"gpu": "abacus"}}
    details = run("estimate", "-", stdin=json.dumps(plan), code=2)
    assert {error["field"] for error in details["errors"]} == {"model.parameters", "parallel.zero", "cluster.gpu"}
    assert all(error["accepted"] for error in details["errors"])


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[]", "7", "null", '{"model": {"parameters": 1e400}}', "NaN"])
def test_what_is_no_request_is_problem_details_that_any_program_can_read(text: str) -> None:
    result = RUNNER.invoke(app, ["estimate", "-"], input=text)
    assert result.exit_code == 2
    assert result.stdout == ""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert json.loads(result.stderr, parse_constant=refuse)["status"] == 422


def test_the_installed_command_exits_2_with_json_on_standard_error() -> None:
    command = [sys.executable, "-m", "app.cli", "estimate", "-"]
    result = subprocess.run(command, input='{"model": 5}', capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert json.loads(result.stderr)["errors"][0]["field"] == "model"


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small content folder this process reads."""
    monkeypatch.setenv("RANKZERO_CARDS", str(write_cards(tmp_path / "cards")))
    settings.cache_clear()
    yield tmp_path / "cards"
    settings.cache_clear()


def test_content_in_order_is_counted(cards: Path) -> None:
    result = RUNNER.invoke(app, ["content", "check"])
    assert result.exit_code == 0
    assert "2 cards, 1 problem, 1 interview, 1 experiment" in result.stdout


def test_a_mistake_in_content_is_exit_1_with_file_line_field_and_reason(cards: Path) -> None:
    edit(cards, "decks/first/C01.md", "kind: basic", "kind: basick")
    edit(cards, "problems/P01-state.yaml", "size: billions * 1e9", "size: billion * 1e9")
    result = RUNNER.invoke(app, ["content", "check"])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("cards/decks/first/C01.md:4 kind: Input should be 'basic'")
    assert any(line.startswith("cards/problems/P01-state.yaml:10 let.size: ") for line in lines)
