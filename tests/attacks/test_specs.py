"""Hostile requests for runs: what would cost the machine too much, and what no reader may stumble over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labs.spec import SpecError, Violation, parse_run_spec
from tests.attacks.conftest import ClientOf

SPEC = {"model": "gpt-mini", "parallel": {"data": 2}}


def refused(data: Any) -> list[Violation]:
    with pytest.raises(SpecError) as found:
        parse_run_spec(data)
    assert len(json.dumps([str(each) for each in found.value.violations])) < 5_000
    return found.value.violations


@pytest.mark.parametrize(
    ("field", "entries"),
    [
        ("faults", [{"kind": "kill"}] * 17),
        ("faults", [{"kind": "kill"}] * 100_000),
        ("probes", ["memory"] * 4),
        ("probes", ["memory"] * 100_000),
    ],
)
def test_a_list_without_end_is_refused_by_name(field: str, entries: list[Any]) -> None:
    (violation,) = refused({**SPEC, field: entries})
    assert violation.field == field
    assert "too many" in violation.message
    assert violation.accepted.startswith("at most")


@pytest.mark.parametrize("number", ["²", "-1", "1e3", "0x10", " 7", "٣", "9" * 400, "1\u00a0", "nan", "1;drop", "'"])
def test_a_place_in_the_stream_that_is_none_is_refused(client_of: ClientOf, number: str) -> None:
    client = client_of()
    assert client.post("/api/v1/lab/runs", json={"spec": SPEC}).status_code == 201
    headers = {"Last-Event-ID": number.encode()}
    for path in ("/api/v1/lab/runs/1/events", "/lab/runs/1/events"):
        reply = client.get(path, headers=headers)  # type: ignore[arg-type]
        assert reply.status_code == 422
        assert "Last-Event-ID" in reply.text


@pytest.mark.parametrize("number", ["-1", "2147483648", "9" * 400, "x", "1.5", ""])
def test_a_place_to_go_on_from_is_a_number_the_database_knows(client_of: ClientOf, number: str) -> None:
    client = client_of()
    client.post("/api/v1/lab/runs", json={"spec": SPEC})
    assert client.get("/api/v1/lab/runs/1/events", params={"after": number}).status_code == 422
