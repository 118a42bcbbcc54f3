"""A folder with a card of every kind, to break; and the same read once, to ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.catalogue import Catalogue, load
from tests.support.kinds import write_kinds


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    return write_kinds(tmp_path / "cards")


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return load(write_kinds(Path(tmp_path_factory.mktemp("content")) / "cards"))
