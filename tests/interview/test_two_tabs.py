"""Two tabs at one answer, whatever is answered: what another saved since is not written over."""

from __future__ import annotations

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient

JSON, HTML = {"Accept": "application/json"}, {"Accept": "text/html"}
OVER = re.compile(r'name="over" value="([^"]*)"')


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("interview", "part", "answers", "read"),
    [
        ("M9", "q2", ("half", "memory-alone"), "A reduce-scatter moves half"),
        ("M4", "layout", ("tensor 8, data 8", "tensor 4, data 16"), "Tensor 8"),
        ("M9", "q4", ("fsdp, zero-2, zero-1, ddp", "ddp, zero-1, zero-2, fsdp"), "1. FSDP"),
        ("M5", "ask-time", ("tokens", "peak"), "How many tokens"),
    ],
    ids=["choice", "layout", "order", "givens"],
)
def test_what_another_tab_saved_stands_beside(
    client: TestClient, interview: str, part: str, answers: tuple[str, str], read: str
) -> None:
    sitting = client.post(f"/interview/{interview}").headers["location"]
    version = OVER.search(client.get(f"{sitting}?part={part}").text)
    assert version, "it is told what is typed over"
    theirs, mine = answers
    assert client.post(f"{sitting}/answers", data={"part": part, "answer": theirs}, headers=JSON).status_code == 200
    stale = {"part": part, "answer": mine, "over": version[1]}
    assert client.post(f"{sitting}/answers", data=stale, headers=JSON).status_code == 409
    shown = unescape(client.post(f"{sitting}/answers", data=stale | {"final": "true"}, headers=HTML).text)
    other = shown[shown.index("data-other") :]
    assert read in other, "as a person reads it"
    again = stale | {"over": OVER.search(shown)[1]}  # type: ignore[index]
    assert client.post(f"{sitting}/answers", data=again, headers=JSON).status_code == 200, "sent over what is there"
