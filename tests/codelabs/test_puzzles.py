"""Puzzles of code labs: arrangements that become programs, what passing one counts, and files that are none.

That the right ones pass and wrong ones are named on real ranks is held by tests/labs/code/test_truth.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.codelabs import service
from app.codelabs.outcome import PUZZLE_SHARE
from app.content.catalogue import Catalogue
from app.content.code_puzzles import load_puzzle
from app.content.files import ContentError
from app.core.db import Database
from app.core.settings import ROOT
from tests.support.judged import judge_next
from tests.support.shipped import shipped

API = "/api/v1/labs"
PUZZLES = {lab.id: lab.puzzle for lab in shipped().labs.values() if lab.puzzle is not None}


def test_four_labs_have_one() -> None:
    assert list(PUZZLES) == ["CL01", "CL11", "CL13", "CL15"]
    assert {puzzle.head.kind for puzzle in PUZZLES.values()} == {"lines", "grid"}


def test_an_arrangement_is_judged_as_a_program_and_counts_half(client: TestClient, database: Database) -> None:
    shown = client.get(f"{API}/CL01/puzzle").json()
    assert (shown["status"], shown["arranged"], shown["counts"]) == ("new", [], PUZZLE_SHARE)
    lines = list("fjdcahg")
    number = client.post(f"{API}/CL01/puzzle/submissions", json={"arranged": lines}).json()["id"]
    judge_next(database, passed=True)
    found = client.get(f"{API}/submissions/{number}").json()
    assert (found["mode"], found["verdict"]["passed"]) == ("puzzle", True)
    assert client.get(f"{API}/submissions/{number}/proof").status_code == 422
    shown = client.get(f"{API}/CL01/puzzle").json()
    assert (shown["status"], shown["arranged"]) == ("passed", lines)
    lab = client.get(f"{API}/CL01").json()
    assert (lab["status"], lab["puzzle"], lab["reference"], lab["last_submission"]) == ("new", "passed", None, None)
    assert [each["puzzle"] for each in client.get(API).json() if each["puzzle"]] == ["passed", "new", "new", "new"]
    with database.read() as session:
        counted = [(each.kind, each.item_id, each.share) for each in service.list_evidence(session, 1)]
    assert counted == [("puzzle", "CL01", PUZZLE_SHARE)]
    assert "✓ solved" in client.get("/labs").text

    client.post(f"{API}/CL11/submissions", json={"code": "x = 1"})
    judge_next(database, passed=True)
    client.post(f"{API}/CL11/puzzle/submissions", json={"arranged": list("gedfca")})
    judge_next(database, passed=True)
    with database.read() as session:
        later = [each.kind for each in service.list_evidence(session, 1) if each.item_id == "CL11"]
    assert later == ["code lab"], "what was written already is not to be had again for less"


def test_a_puzzle_without_a_script(client: TestClient, database: Database) -> None:
    page = client.post("/labs/CL01/puzzle", data={"line": ["f", "d"], "move": "j:in"}).text
    assert page.index('data-letter="f"') < page.index('data-letter="d"') < page.index('data-letter="j"')
    page = client.post("/labs/CL01/puzzle", data={"line": ["f", "d", "j"], "move": "j:up"}).text
    assert page.index('data-letter="j"') < page.index('data-letter="d"') < page.index("data-spare")
    page = client.post("/labs/CL01/puzzle", data={"line": ["f", "d"], "move": "d:out"}).text
    assert page.index("data-spare") < page.index('data-letter="d"')
    reply = client.post("/labs/CL15/puzzle", data={"cell": ["3.1", "3.3", "3.5"]})
    assert reply.status_code == 303
    assert '"FBFBFB"' in client.get(reply.headers["location"]).text.replace("&#34;", '"')
    assert client.get("/api/v1/labs/CL15/puzzle").json()["arranged"] == ["FFFFFF"] * 3 + ["FBFBFB"]
    assert "Cancel" in client.get("/labs/CL15/puzzle").text
    cancelled = client.post("/labs/submissions/1/cancel")
    assert "Taken back" in client.get(cancelled.headers["location"]).text
    client.post("/labs/CL15/puzzle", data={"cell": ["3.1"]})
    judge_next(database, passed=False, mistake="gpipe")
    found = client.get("/labs/CL15/puzzle").text
    assert "GPipe" in found
    assert "The reference" not in found


@pytest.mark.parametrize(
    ("lab", "arranged", "says"),
    [
        ("CL01", ["f", "z"], "there is no line 'z'"),
        ("CL01", ["f", "f"], "line f is used more than once"),
        ("CL15", ["FFFFBF"] * 3, "it has 3 rows; 4 are wanted"),
        ("CL15", ["FFFFBX"] * 4, "6 letters F or B"),
    ],
)
def test_what_is_no_arrangement_is_refused_by_field(
    client: TestClient, lab: str, arranged: list[str], says: str
) -> None:
    reply = client.post(f"{API}/{lab}/puzzle/submissions", json={"arranged": arranged})
    assert reply.status_code == 422
    assert says in reply.json()["detail"]
    assert reply.json()["errors"][0]["field"] in ("order", "rows")
    assert client.get(f"{API}/{lab}").json()["last_submission"] is None


def test_somebody_looks_for_a_puzzle_that_is_not_there(client: TestClient) -> None:
    assert client.get("/labs/CL02/puzzle").status_code == 404
    assert client.post("/labs/CL02/puzzle", data={"line": ["a"]}).status_code == 404
    assert client.post("/labs/CL01/puzzle", data={"line": ["f", "f"]}).status_code == 422
    assert client.post(f"{API}/CL02/puzzle/submissions", json={"arranged": ["a"]}).status_code == 404


@pytest.mark.parametrize("lab", PUZZLES)
def test_every_arrangement_can_be_read_back_from_its_program(lab: str, content: Catalogue) -> None:
    puzzle = PUZZLES[lab]
    head = puzzle.head
    some = [()] if head.kind == "lines" else []
    for each in (head.right, *(wrong.arranged for wrong in head.wrong), *some):
        assert puzzle.arrangement(puzzle.program(each)) == tuple(each)
    assert puzzle.arrangement(content.labs[lab].reference) is None


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("puzzle.yaml", "right: [f, j,", "right: [f, z,", "there is no line 'z'"),
        ("puzzle.yaml", "pieces:", "columns: 3\nrows: [One]\npieces:", "either pieces, or rows and columns"),
        ("puzzle.yaml", "minutes: 5", "minutes: 500", "minutes"),
        ("puzzle.py", "  # arranged", "", "0 lines that end in"),
        ("puzzle.py", "step in range", "step im range", "not Python"),
    ],
)
def test_files_that_are_no_puzzle_are_named(tmp_path: Path, file: str, old: str, new: str, says: str) -> None:
    for each in ("puzzle.yaml", "puzzle.py"):
        shutil.copy(ROOT / "cards" / "labs" / "CL01" / each, tmp_path)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    with pytest.raises(ContentError, match=says):
        load_puzzle(tmp_path, "labs/CL01")
