"""Every file, folder and name that the documentation names is there: what it tells cannot rot unseen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.core.settings import ROOT, Settings

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACE = re.compile(r"`((?:app|labs|worker|cards|tests|migrations|docs|\.ci)/[\w./<>*-]*)(?::(\w+))?`")
NAME_IN_PLACE = re.compile(r"`(\w+)` in\s+`((?:app|labs|worker|tests)/[\w/]+\.py)`")
LINK = re.compile(r"\]\((?!https?:|#|/)([^)#]+)")


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    missing = []
    for path, name in PLACE.findall(text):
        found = list(ROOT.glob(re.sub(r"<[^>]+>", "*", path).rstrip("/")))
        if not found:
            missing.append(path)
        elif name and not re.search(rf"\b{name}\b", found[0].read_text()):
            missing.append(f"{path}:{name}")
    missing += [
        f"{name} in {path}"
        for name, path in NAME_IN_PLACE.findall(text)
        if not (ROOT / path).exists() or not re.search(rf"\b{name}\b", (ROOT / path).read_text())
    ]
    missing += [link for link in LINK.findall(text) if not (page.parent / link.strip()).exists()]
    assert not missing


def test_the_check_sees_what_is_missing(tmp_path: Path) -> None:
    assert PLACE.findall("`app/nowhere.py:thing`") == [("app/nowhere.py", "thing")]
    assert not list(ROOT.glob("app/nowhere.py"))


@pytest.mark.slow
def test_the_examples_run_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/estimate.md").read_text(), re.DOTALL)
    assert len(examples) > 2
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/estimate.md", "exec"), names)  # noqa: S102 - our own page
        printed = capsys.readouterr().out
        assert printed, example
        assert "None" not in printed, example


def test_a_file_of_settings_is_read_alike_by_a_shell_and_by_systemd() -> None:
    """systemd takes what stands behind a value for part of it, and quotes otherwise than a shell."""
    page = (ROOT / "docs/operate/four-nodes.md").read_text()
    blocks = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if block.startswith("RANKZERO_")]
    assert blocks
    for line in "".join(blocks).splitlines():
        if not line.startswith("#"):
            name, _, value = line.partition("=")
            assert name.removeprefix("RANKZERO_").lower() in Settings.model_fields, line
            assert re.fullmatch(r"[\w:/@.-]+", value), line
