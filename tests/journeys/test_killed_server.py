"""The server is killed while reviews are on their way: each is there once or not at all, and it says which.

A sitting as well: what is typed meanwhile is saved once a server is back, and a close that was killed is done once.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import shutil
import sqlite3
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.product import environment, free_port
from tests.support.warm_cli import Forked, WarmCli, warm_cli

KILLS = 5


@pytest.fixture(scope="module")
def cli() -> Iterator[WarmCli]:
    with warm_cli() as cli:
        yield cli


@pytest.fixture
def data(sqlite_template: Path, tmp_path: Path) -> Path:
    """The data folder of an install with the newest schema."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "rankzero.sqlite3")
    return folder


@contextlib.contextmanager
def serving(cli: WarmCli, data: Path, port: int) -> Iterator[Forked]:
    """The web server alone, up and answering; gone afterwards."""
    server = cli.start(["serve", "--port", str(port)], environment(data))
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10):
                break
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield server
    finally:
        server.kill()
        server.wait()


def _ask(port: int, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        data = json.dumps(body) if body is not None else None
        connection.request(method, path, data, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status < 300, text[:300]
        return json.loads(text)
    finally:
        connection.close()


def _post_until_gone(port: int, sent: list[tuple[str, int]], replied: set[tuple[str, int]], on_its_way: Any) -> None:
    """Answer cards one after another; notes which got a reply. Ends when the server does."""
    with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
        card = _ask(port, "GET", "/api/v1/study/next?more=500")["card"]
        while card is not None:
            shown = (card["card_id"], card["version"])
            sent.append(shown)
            body = {"card_id": shown[0], "version": shown[1], "level": 1}
            if len(sent) % 7 == 0:
                on_its_way.set()
            _ask(port, "POST", "/api/v1/study/reviews", body)
            replied.add(shown)
            card = _ask(port, "GET", "/api/v1/study/next?more=500")["card"]


def test_every_answer_is_there_once_or_not_at_all(cli: WarmCli, data: Path) -> None:
    draw, port = random.Random(3), free_port()
    sent: list[tuple[str, int]] = []
    replied: set[tuple[str, int]] = set()
    for _ in range(KILLS):
        on_its_way = threading.Event()
        with serving(cli, data, port) as server:
            poster = threading.Thread(target=_post_until_gone, args=(port, sent, replied, on_its_way))
            poster.start()
            assert on_its_way.wait(60)
            time.sleep(draw.random() * 0.008)
            server.kill()  # SIGKILL: nothing is tidied up
            poster.join(60)
    with serving(cli, data, port), sqlite3.connect(data / "rankzero.sqlite3") as database:
        rows = database.execute("SELECT card_id, version FROM review").fetchall()
        assert len(rows) == len(set(rows)), "nothing is there twice"
        assert replied <= set(rows), "what was said to be counted is there"
        for card_id, version in set(sent):
            found = _ask(port, "GET", f"/api/v1/study/reviews/{card_id}/{version}")
            assert found["recorded"] is ((card_id, version) in rows)
    assert len(sent) > len(replied), "no kill met an answer on its way"
    assert cli.start(["study", "replay", "--verify"], environment(data)).wait() == 0


def test_the_page_says_what_became_of_an_answer_whose_server_was_killed(
    browser: Browser, cli: WarmCli, data: Path
) -> None:
    port = free_port()
    page = browser.new_page(base_url=f"http://127.0.0.1:{port}")
    with serving(cli, data, port) as server:
        page.goto("/study")
        first = page.locator("[data-card]").get_attribute("data-card")
        page.keyboard.press("Space")
        server.kill()
        server.wait()
        page.keyboard.press("4")
        expect(page.locator(".notice")).to_contain_text(f"Looking whether your answer to {first} was counted")
    with serving(cli, data, port):
        expect(page.locator(".notice")).to_contain_text(f"Your answer to {first} was not counted. Rate it again.")
        page.keyboard.press("4")
        expect(page.locator(f'[data-card="{first}"]')).to_have_count(0)
        assert _ask(port, "GET", "/api/v1/study/next")["progress"]["done"] == 1
    page.close()


def test_a_sitting_goes_on_after_its_server_was_killed_and_is_closed_once(
    browser: Browser, cli: WarmCli, data: Path
) -> None:
    port = free_port()
    page = browser.new_page(base_url=f"http://127.0.0.1:{port}")
    said = "FSDP frees the gathered weights after forward"
    with serving(cli, data, port) as server:
        page.goto("/interview/M9")
        page.get_by_role("button", name="Start, 10 min").click()
        page.get_by_role("link", name="Explain").click()
        page.get_by_label("Your answer").fill(f"{said}.")
        expect(page.locator("[data-saved]")).to_contain_text("Saved")
        server.kill()
        server.wait()
        page.get_by_label("Your answer").fill(f"{said}, and backward needs them again.")
        expect(page.locator("[data-saved]")).to_contain_text("Not saved: the server does not answer. Trying again.")
    with serving(cli, data, port) as server:
        expect(page.locator("[data-saved]")).to_contain_text("Saved", timeout=120_000)
        sitting = page.url.partition("?")[0].removeprefix(f"http://127.0.0.1:{port}")
        closing = threading.Thread(target=_finish_until_gone, args=(port, sitting))
        closing.start()
        time.sleep(random.Random(5).random() * 0.02)
        server.kill()
        closing.join(60)
    with serving(cli, data, port):
        for _ in range(2):  # again, as a second tab would
            _finish_until_gone(port, sitting)
        page.goto(sitting)
        page.get_by_label("I would rather not say").check()
        page.get_by_role("button", name="See the debrief").click()
        expect(page.locator("#part-q3 .ans")).to_contain_text("backward needs them again")
    with sqlite3.connect(data / "rankzero.sqlite3") as database:
        ((by, card),) = database.execute("SELECT closed_by, scorecard FROM sitting").fetchall()
        assert (by, len(json.loads(card)["rows"])) == ("candidate", 5)
        assert len(database.execute("SELECT * FROM sitting_answer").fetchall()) == 1
    page.close()


def _finish_until_gone(port: int, sitting: str) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", f"{sitting}/finish", "", {"Content-Type": "application/x-www-form-urlencoded"})
        assert connection.getresponse().status == 303
