"""Installs of two learners, and the files that go between them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.decks.drafts import Draft
from app.exchange import service
from app.exchange.findings import Findings
from app.exchange.models import ImportReport
from tests.conftest import NOW, moment_at

Take = Callable[..., ImportReport]


@pytest.fixture
def take(content: Catalogue) -> Take:
    """Import a file into a database, as the page and the command do."""

    def take(database: Database, path: Path, now: datetime = NOW, *, scheduling: bool = True) -> ImportReport:
        known = service.revisions_of(content)
        with path.open("rb") as file:
            found = service.read_file(path.name, file, known, moment_at(now))
        with database.write() as session:
            return service.store(session, 1, known, path.name, found, moment_at(now), scheduling=scheduling)

    return take


@pytest.fixture
def read() -> Callable[..., Findings]:
    """What a file brings, without storing it."""

    def read(data: bytes | str, name: str) -> Findings:
        file = BytesIO(data.encode() if isinstance(data, str) else data)
        return service.read_file(name, file, {}, moment_at(NOW))

    return read


def basic(question: str = "What is $N$?", answer: str = "Parameters.", **more: object) -> Draft:
    return Draft(sections={"Question": question, "Answer": answer}, **more)  # type: ignore[arg-type]
