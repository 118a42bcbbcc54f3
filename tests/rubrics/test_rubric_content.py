"""The rubrics themselves, and what a mistake in one is answered with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.content.catalogue import Catalogue
from app.content.checks import check_content
from app.content.rubric_schemas import LEXICON, MISCONCEPTIONS
from app.core.settings import ROOT
from app.rubrics.checks import check_rubrics
from tests.support.shipped import graded


def test_evidence_is_quoted_from_the_answer(content: Catalogue) -> None:
    assert len(content.rubrics) >= 12  # that their exemplars grade as what they are, the content check looks at
    for rubric in content.rubrics.values():
        text = " ".join(rubric.exemplar("strong hire").split())
        found = graded(rubric.id, text)
        for point in found.points:
            assert all(said in text for said in point.evidence), (rubric.id, point.id)


TWO_NODES = (
    "I take tensor parallelism of 16 over two nodes: eight ranks on each side leave through eight network cards, so it "
    "is about 1.5 times slower than inside a node, and I measure it before I keep it."
)


@pytest.mark.parametrize("rubric", ["IQ3", "IQ4", "IQ7", "IQ9", "PC4", "PC5", "R05", "SP2"])
def test_tensor_parallelism_over_two_nodes_with_all_their_cards_is_slower_and_not_fatal(rubric: str) -> None:
    found = graded(rubric, TWO_NODES)
    assert found.critical == {}
    assert found.corrections == ()


def test_tensor_parallelism_over_eight_nodes_is_a_critical_mistake() -> None:
    assert graded("IQ7", "I take tensor parallelism of 64 over all nodes, because it is the simplest.").critical


def _with(folder: Path, old: str, new: str) -> list[str]:
    """What the content check says of R01 with one passage changed: of it alone, with what it is judged by."""
    (folder / "cards/rubrics").mkdir(parents=True)
    for name in ("concepts.yaml", LEXICON, MISCONCEPTIONS, "rubrics/R01-memory-walk.yaml"):
        shutil.copy(ROOT / "cards" / name, folder / "cards" / name)
    path = folder / "cards" / "rubrics" / "R01-memory-walk.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return [str(problem) for problem in check_content(folder / "cards", [check_rubrics])[1]]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[optimizer GB]", "[optimiser GB]", "a name in it is not known"),
        ("[state GB] & [optimizer GB]", "[state parsecs]", "no unit known here"),
        ("kind: no hire", "kind: hire", "one exemplar of every kind"),
        ("    needs: 3\n    half_at: 2", "    needs: 4\n    half_at: 2", "needs must be 1 to 3"),
        ("[state GB] & master", "@upward & master", "there is no set @upward"),
        ("concepts: [training-state", "concepts: [training-stat", "there is no concept 'training-stat'"),
    ],
)
def test_a_mistake_is_said_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = _with(tmp_path, old, new)
    assert any(said in each and "R01-memory-walk.yaml:" in each for each in found), found


def test_an_exemplar_that_grades_as_something_else_is_found(tmp_path: Path) -> None:
    plain = "Mixed precision training holds 16 bytes per parameter, so {{ state | GB }} with"
    better = f"Activations depend on the batch and come on top, so I choose stage 2. {plain}"
    found = _with(tmp_path, plain, better)
    assert any("and not as lean no hire" in each for each in found), found


def test_the_command_grades_a_file_and_standard_input(tmp_path: Path, content: Catalogue) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(content.rubrics["R07"].exemplar("strong hire"))
    graded = json.loads(CliRunner().invoke(app, ["grade", "R07", str(path)]).stdout)
    assert graded["level"] == "strong hire"
    again = CliRunner().invoke(app, ["grade", "hang-at-a-step", "-"], input=path.read_text())
    assert json.loads(again.stdout) == graded


def test_the_command_says_what_it_cannot_grade(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    for arguments in (["R07", str(tmp_path / "empty.txt")], ["R99", str(tmp_path / "empty.txt")]):
        result = CliRunner().invoke(app, ["grade", *arguments])
        assert result.exit_code == 2
        assert json.loads(result.stderr)["status"] in {404, 422}
