"""Own cards, reports and files in the browser's own terms: forms in, pages out, nothing typed is lost."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.decks.cards import deck_of
from app.exchange import uploads
from tests.exchange.test_bad_files import GOOD, HOSTILE, collection, package

CARD = {"kind": "basic", "deck": "My deck", "tags": "a b", "question": "What is $N$?", "answer": "**Parameters.**"}


def _add(client: TestClient, **fields: str) -> str:
    reply = client.post("/study/own", data={**CARD, **fields})
    assert reply.status_code == 303, reply.text
    return re.search(r"added=(OWN-\w+)", reply.headers["location"]).group(1)  # type: ignore[union-attr]


def _upload(client: TestClient, name: str, data: bytes, **fields: str):  # type: ignore[no-untyped-def]
    """The answer once the import is over: a redirect to its report, or the page with what was wrong."""
    reply = client.post("/study/exchange", files={"file": (name, data)}, data=fields)
    return settled(client, reply)


def settled(client: TestClient, reply: Any) -> Any:
    """What becomes of an import that was begun, as its page says once it is over."""
    deadline = time.monotonic() + 200  # the process is a nice one: a busy machine holds it up
    while reply.status_code == 303 and "/jobs/" in reply.headers["location"]:
        shown = client.get(reply.headers["location"])
        if shown.status_code != 200:
            return shown
        assert "Importing" in shown.text or "Opening" in shown.text
        assert time.monotonic() < deadline
        time.sleep(0.3)
    return reply


def test_a_card_goes_through_the_editor(client: TestClient) -> None:
    assert "Write the first one" in client.get("/study/own").text
    card_id = _add(client)
    assert "Change it" in client.get(f"/study/own/new?added={card_id}").text
    page = client.get(f"/study/own/{card_id}").text
    assert "What is $N$?" in page
    assert "<strong>Parameters.</strong>" in page
    saved = client.post(f"/study/own/{card_id}", data={**CARD, "question": "Changed?", "version": "1"})
    assert saved.headers["location"] == f"/study/own/{card_id}?saved=true"
    shown = client.get(f"/study/cards/{card_id}").text
    assert "Changed?" in shown
    assert f"/study/reports/new?card_id={card_id}" in shown
    assert f'href="/study/own/{card_id}">Edit' in shown
    assert ">Edit<" not in client.get("/study/cards/C27").text
    assert "Changed?" in client.get("/study/own?q=changed&deck=My+deck&tag=a").text
    assert client.post(f"/study/own/{card_id}/delete").status_code == 303
    assert client.get(f"/study/own/{card_id}").status_code == 404


def test_a_deck_of_ones_own_is_chosen_and_studied(client: TestClient) -> None:
    card_id = _add(client, question="Mine?", answer="Yes.")
    deck = deck_of("My deck").id
    assert card_id in client.get("/study/cards?deck=" + deck).text
    assert card_id in client.get("/study/cards?q=mine").text
    assert "Mine?" in client.get("/study?deck=" + deck).text
    done = client.post("/study/reviews", data={"card_id": card_id, "level": "4", "version": "0"})
    assert done.status_code == 303
    assert client.get(f"/study/cards/{card_id}").status_code == 200
    client.post(f"/study/own/{card_id}/delete")
    assert client.get("/study").status_code == 200
    assert "Mine?" not in client.get("/study/cards?q=mine").text


def test_what_is_wrong_is_said_beside_its_field_and_nothing_typed_is_lost(client: TestClient) -> None:
    typed = {**CARD, "kind": "cloze", "question": "no blank <b>", "deck": "x" * 201, "trap": "kept"}
    reply = client.post("/study/own", data=typed)
    assert reply.status_code == 422
    for kept in ("no blank &lt;b&gt;", "x" * 201, "kept", "**Parameters.**"):
        assert kept in reply.text
    for field in ("question", "deck"):
        assert re.search(rf'id="{field}-help">[^<]*Accepted', reply.text)
    assert 'id="answer-help">What' in reply.text


def test_a_stale_edit_keeps_what_was_typed_and_can_be_sent_again(client: TestClient) -> None:
    card_id = _add(client)
    client.post(f"/study/own/{card_id}", data={**CARD, "question": "First", "version": "1"})
    reply = client.post(f"/study/own/{card_id}", data={**CARD, "question": "Second", "version": "1"})
    assert reply.status_code == 409
    assert "Second" in reply.text
    version = re.search(r'name="version" value="(\d+)"', reply.text).group(1)  # type: ignore[union-attr]
    again = client.post(f"/study/own/{card_id}", data={**CARD, "question": "Second", "version": version})
    assert again.status_code == 303


def test_a_preview_stores_nothing_and_runs_nothing(client: TestClient) -> None:
    typed = {**CARD, "question": HOSTILE, "answer": "{{ 7 * 7 }} $\\frac{1}{2}$ <script>alert(1)</script>"}
    reply = client.post("/study/own/preview", data=typed, headers={"HX-Request": "true"})
    assert reply.status_code == 200
    part = reply.text.split('data-part="preview"')[1]
    assert "<mfrac>" in part
    assert "{{ 7 * 7 }}" in part
    assert not re.search(r"<(script|img|svg|iframe)", part)
    assert "Write the first one" in client.get("/study/own").text


def test_an_error_is_reported_listed_exported_and_removed(client: TestClient) -> None:
    page = client.get("/study/reports/new?card_id=C27").text
    revision = re.search(r'name="revision" value="(\d+)"', page).group(1)  # type: ignore[union-attr]
    empty = client.post("/study/reports", data={"card_id": "C27", "revision": revision, "text": " "})
    assert empty.status_code == 422
    client.post("/study/reports", data={"card_id": "C27", "revision": revision, "text": "<b>wrong</b>"})
    assert "&lt;b&gt;wrong&lt;/b&gt;" in client.get("/study/reports").text
    (line,) = client.get("/study/reports.jsonl").text.splitlines()
    assert json.loads(line)["card_id"] == "C27"
    assert json.loads(line)["revision"] == int(revision)
    assert client.get("/study/reports/new?card_id=nope").status_code == 404
    client.post("/study/reports/1/delete")
    assert "None so far" in client.get("/study/reports").text


def test_every_card_has_its_report_link(client: TestClient) -> None:
    assert "/study/reports/new?card_id=C62" in client.get("/study/cards/C62").text
    assert "Report an error" in client.get("/study").text


@pytest.mark.slow
def test_a_file_is_imported_with_a_report_and_comes_out_again(client: TestClient) -> None:
    data = package(collection([("g1", "Front <b>b</b>\x1fBack", " tag "), ("g2", '<img src="x">\x1fBack')]))
    reply = _upload(client, "deck.apkg", data, scheduling="on")
    assert reply.status_code == 303
    report = client.get(reply.headers["location"]).text
    assert "1 new card" in report
    assert "its front has no text" in report
    assert "Front **b**" in client.get("/study/exchange/rankzero.csv").content.decode("utf-8-sig")
    zipped = zipfile.ZipFile(io.BytesIO(client.get("/study/exchange/rankzero.zip").content))
    assert sorted(name.rsplit("/")[-1][:4] for name in zipped.namelist()) == ["OWN-", "deck"]
    anki = client.get("/study/exchange/rankzero.apkg?which=own&scheduling=true")
    assert anki.headers["content-disposition"] == 'attachment; filename="rankzero.apkg"'
    again = _upload(client, "again.apkg", anki.content)
    assert "Nothing new" in client.get(again.headers["location"]).text
    assert "again.apkg" in client.get("/study/exchange").text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("deck.apkg", b"no zip", "not a zip file"),
        ("deck.apkg", package(GOOD)[:300], "not a zip file"),
        ("notes.exe", b"x", "does not say what it is"),
        ("../../etc/passwd.csv", b"a,b", "columns"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # which one, no refusal gets to know
def test_a_bad_file_is_refused_on_the_page_and_changes_nothing(
    client: TestClient, name: str, data: bytes, says: str
) -> None:
    reply = _upload(client, name, data)
    assert reply.status_code == 422
    assert says in reply.text
    assert "Nothing was changed" in reply.text
    assert "What you imported" not in client.get("/study/exchange").text


def test_an_upload_that_is_too_large_is_refused_before_it_is_read(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_BYTES", -uploads.MB + 100)
    reply = _upload(client, "deck.apkg", package(GOOD))
    assert reply.status_code == 422
    assert "too large" in reply.text
    chunked = client.post("/study/exchange", content=iter([b"x" * 50]), headers={"Content-Type": "multipart/form-data"})
    assert chunked.status_code == 422


def test_nothing_chosen_and_unknown_downloads_are_said(client: TestClient) -> None:
    assert "No file was chosen" in client.post("/study/exchange", data={"scheduling": "on"}, files={}).text
    assert client.get("/study/exchange/rankzero.pdf").status_code == 422
    assert client.get("/study/exchange/99").status_code == 404
