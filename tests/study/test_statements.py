"""How often a review asks the database: what a review costs is mostly statements, so their number is held."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import event

from app.core.db import Database
from tests.conftest import Clock

MOST_STATEMENTS = 17  # SQLite's BEGIN among them; the bar is 25 ms of CPU, and a statement costs about 0.2 ms
MOST_TO_NOTE = 5  # more, at every sixteenth answer: which blocks of cards were met whole
_SHOWN = re.compile(r'data-card="(\w+)".*?data-version="(\d+)"')


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """The statements sent while the block runs."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def review(client: TestClient, page: str, level: int) -> str:
    """Answer the card on the page; returns the page with the next one."""
    found = _SHOWN.search(page)
    assert found, "no card is shown"
    form = {"card_id": found[1], "version": found[2], "level": str(level), "more": "100"}
    reply = client.post("/study/reviews", data=form, headers={"HX-Request": "true"})
    assert reply.status_code == 200
    assert "already answered" not in reply.text
    return reply.text


def must_be_few(sent: list[str]) -> None:
    is_noting = sum("met_block" in statement for statement in sent) > 1
    assert 6 <= len(sent) <= MOST_STATEMENTS + (MOST_TO_NOTE if is_noting else 0), "\n".join(sent)


def test_a_review_with_the_card_after_it_asks_the_database_few_times(
    client: TestClient, database: Database, clock: Clock
) -> None:
    page = client.get("/study?more=100").text
    for level in (5, 4, 3, 2, 1) * 6:  # new cards, and the first steps of those before
        with counted(database) as sent:
            page = review(client, page, level)
        must_be_few(sent)
        clock.advance(minutes=1)


def test_a_review_asks_no_more_often_when_many_cards_are_due(
    client: TestClient, database: Database, clock: Clock
) -> None:
    page = client.get("/study?more=100").text
    for _ in range(40):
        page = review(client, page, 5)
    clock.advance(days=60)
    page = client.get("/study?more=100").text  # the scan of the day's first look
    for level in (4, 1, 5, 4, 3, 4):  # cards known and due, more than are looked at
        with counted(database) as sent:
            page = review(client, page, level)
        must_be_few(sent)
