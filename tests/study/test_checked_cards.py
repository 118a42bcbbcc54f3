"""Cards the machine checks, over HTTP: every kind, right and wrong, with what the log keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.content.asked import ask
from app.content.catalogue import Catalogue, load
from app.core.db import Database
from app.core.settings import Settings
from app.study import queries
from app.study.models import Review
from tests.conftest import Clock
from tests.support.kinds import write_kinds

AGAIN, GOOD, EASY = 1, 3, 4  # as FSRS counts
CHECKED = ["C11", "C12", "C13", "C14", "C15"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kinds(tmp_path_factory.mktemp("content") / "cards")


@pytest.fixture(scope="module")
def kinds(folder: Path) -> Catalogue:
    return load(folder)


@pytest.fixture
def study(
    database: Database, clock: Clock, settings_for: Callable[..., Settings], folder: Path
) -> Iterator[TestClient]:
    """The application over a catalogue with a card of every kind."""
    from app.main import create_app

    app = create_app(settings_for(cards=folder), database)
    app.state.clock = clock
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def come_to(study: TestClient, card: str) -> dict[str, Any]:
    """Answer what comes before `card`, and return its showing."""
    for _ in range(20):
        shown: dict[str, Any] = study.get("/api/v1/study/next").json()["card"]
        if shown["card_id"] == card:
            return shown
        body = {"card_id": shown["card_id"], "level": 5, "version": shown["version"]}
        assert study.post("/api/v1/study/reviews", json=body).status_code == 201
    raise AssertionError(f"{card} does not come")


def answers(kinds: Catalogue, card: str, seed: int) -> tuple[str, str]:
    """A right and a wrong answer to `card` at `seed`."""
    showing = ask(kinds.cards[card], seed)
    if showing.number:
        return showing.number.key_text, f"{showing.number.key * 3} B"
    if card in ("C12", "C13"):
        return {"C12": ("ring", "star"), "C13": ("weights,moments", "weights")}[card]
    wanted: list[Any] = [getattr(each, "right", each) for each in showing.card.asks]  # type: ignore[attr-defined]
    left = list(showing.choices)
    right = []
    for text in wanted:
        right.append(next(choice for choice in left if choice.text == text))
        left.remove(right[-1])
    keys = [choice.key for choice in right]
    return ",".join(keys), ",".join([keys[1], keys[0], *keys[2:]])


def last_review(database: Database) -> Review:
    with database.read() as session:
        review = queries.find_last_review(session, 1)
    assert review is not None
    return review


@pytest.mark.parametrize("card", CHECKED)
def test_what_is_asked_comes_with_a_seed_and_without_its_key(study: TestClient, kinds: Catalogue, card: str) -> None:
    shown = come_to(study, card)
    assert (shown["kind"], shown["seed"]) == (kinds.cards[card].head.kind, shown["seed"])
    assert list(shown["sections"]) == ["question"]
    right, _ = answers(kinds, card, shown["seed"])
    if card == "C11":
        assert shown["ask"]["unit"] == "GB"
        assert right not in str(shown)
    else:
        keys = [choice["key"] for choice in shown["ask"]["choices"]]
        assert sorted(right.split(",")) == sorted(keys) or set(right.split(",")) < set(keys)
        assert not {"correct", "message"} & set(shown["ask"]["choices"][0])
    assert study.get("/api/v1/study/next").json()["card"]["seed"] == shown["seed"], "the same until it is rated"


@pytest.mark.parametrize("card", CHECKED)
def test_a_right_answer_leaves_the_rating_to_the_learner(
    study: TestClient, database: Database, kinds: Catalogue, card: str
) -> None:
    shown = come_to(study, card)
    right, _ = answers(kinds, card, shown["seed"])
    found = study.post("/api/v1/study/check", json={"card_id": card, "seed": shown["seed"], "answer": right}).json()
    assert (found["status"], found["best_level"]) == ("correct", 5)
    assert "answer" in found["sections"]
    body = {"card_id": card, "level": 5, "version": 0, "seed": shown["seed"], "answer": right}
    reply = study.post("/api/v1/study/reviews", json=body).json()
    assert (reply["verdict"], reply["rating"]) == ("correct", EASY)
    review = last_review(database)
    assert (review.card_id, review.seed, review.answer, review.verdict) == (card, shown["seed"], right, "correct")


@pytest.mark.parametrize("card", CHECKED)
def test_a_wrong_answer_comes_again_whatever_the_learner_says(
    study: TestClient, database: Database, kinds: Catalogue, card: str
) -> None:
    shown = come_to(study, card)
    _, wrong = answers(kinds, card, shown["seed"])
    found = study.post("/api/v1/study/check", json={"card_id": card, "answer": wrong}).json()
    assert (found["status"], found["best_level"], found["seed"]) == ("wrong", 2, shown["seed"])
    body = {"card_id": card, "level": 5, "version": 0, "answer": wrong}
    reply = study.post("/api/v1/study/reviews", json=body).json()
    assert (reply["verdict"], reply["rating"]) == ("wrong", AGAIN)
    review = last_review(database)
    assert (review.level, review.rating, review.verdict) == (5, AGAIN, "wrong")
    assert (review.seed, review.answer) == (shown["seed"], wrong), "the seed of the showing, where none is sent"


def test_an_answer_that_cannot_be_read_counts_nothing(study: TestClient, database: Database) -> None:
    come_to(study, "C11")
    before = last_review(database).id
    found = study.post("/api/v1/study/check", json={"card_id": "C11", "answer": "12 apples"}).json()
    assert found["status"] == "invalid"
    assert "apples" in found["message"]
    assert "sections" not in found
    reply = study.post(
        "/api/v1/study/reviews", json={"card_id": "C11", "level": 4, "version": 0, "answer": "12 apples"}
    )
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["field"] == "answer"
    assert last_review(database).id == before


def test_an_answer_shown_without_trying_is_rated_as_on_any_card(study: TestClient, database: Database) -> None:
    come_to(study, "C11")
    reply = study.post("/api/v1/study/reviews", json={"card_id": "C11", "level": 4, "version": 0}).json()
    assert (reply["verdict"], reply["rating"]) == (None, GOOD)
    assert last_review(database).verdict is None


@pytest.mark.parametrize(("milliseconds", "rating"), [(270_000, EASY), (270_001, GOOD)])
def test_a_right_answer_that_took_three_times_as_long_as_expected_was_not_easy(
    study: TestClient, kinds: Catalogue, milliseconds: int, rating: int
) -> None:
    shown = come_to(study, "C11")  # numeric cards expect 90 s
    right, _ = answers(kinds, "C11", shown["seed"])
    body = {"card_id": "C11", "level": 5, "version": 0, "answer": right, "elapsed_milliseconds": milliseconds}
    assert study.post("/api/v1/study/reviews", json=body).json()["rating"] == rating


def test_undoing_a_wrong_answer_takes_its_lapse_back(
    study: TestClient, database: Database, kinds: Catalogue, clock: Clock
) -> None:
    shown = come_to(study, "C12")
    study.post("/api/v1/study/reviews", json={"card_id": "C12", "level": 5, "version": 0, "answer": "ring"})
    clock.advance(days=9)
    body = {"card_id": "C12", "level": 4, "version": 1, "answer": "star"}
    assert study.post("/api/v1/study/reviews", json=body).json()["rating"] == AGAIN
    with database.read() as session:
        state = queries.find_state(session, 1, "C12")
        assert state is not None
        assert state.lapses == 1
    study.post("/api/v1/study/undo")
    with database.read() as session:
        state = queries.find_state(session, 1, "C12")
        assert state is not None
        assert (state.lapses, state.reviews) == (0, 1)
    assert shown["version"] == 0


def test_another_showing_has_other_numbers(study: TestClient, clock: Clock) -> None:
    seeds = set()
    for version in range(4):
        shown = come_to(study, "C11") if version == 0 else study.get("/api/v1/study/next").json()["card"]
        assert (shown["card_id"], shown["version"]) == ("C11", version)
        seeds.add(shown["seed"])
        study.post("/api/v1/study/reviews", json={"card_id": "C11", "level": 1, "version": version})
        clock.advance(minutes=2)
    assert len(seeds) == 4


def test_a_card_the_learner_judges_is_not_checked(study: TestClient) -> None:
    reply = study.post("/api/v1/study/check", json={"card_id": "C01", "answer": "112 GB"})
    assert reply.status_code == 422
    assert "not checked by the machine" in reply.json()["detail"]
    shown = come_to(study, "C16")
    assert shown["ask"] is None
    assert '<span class="gap">' in shown["sections"]["question"]
    assert study.post("/api/v1/study/check", json={"card_id": "C99", "answer": "1"}).status_code == 404


def fields(html: str, form: str) -> dict[str, list[str]]:
    """The names and values a browser without script would send from the form with the attribute `form`."""
    inside = html.split(form)[1].split("</form>", maxsplit=1)[0]
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", inside):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and " disabled" not in tag and 'type="radio"' not in tag and 'type="checkbox"' not in tag:
            found.setdefault(name.group(1), []).append(value.group(1) if value else "")
    return found


@pytest.mark.parametrize("card", CHECKED)
@pytest.mark.parametrize("is_right", [True, False])
def test_the_page_checks_and_rates_without_script(
    study: TestClient, database: Database, kinds: Catalogue, card: str, is_right: bool
) -> None:
    shown = come_to(study, card)
    html = study.get("/study").text
    assert "data-rate" not in html, "it is rated once it is answered"
    form = {**fields(html, "data-check"), "answer": answers(kinds, card, shown["seed"])[not is_right].split(",")}
    page = study.get("/study/check", params=form).text
    assert ("<b>Correct.</b>" in page) == is_right
    assert 'id="verdict"' in page
    offered = re.findall(r'<button class="rating" name="level" value="(\d)"', page)
    assert offered == (["1", "2", "3", "4", "5"] if is_right else ["1", "2"]), "only what can be pressed"
    sent = {**fields(page, "data-rate"), "level": "2"}
    assert study.post("/study/reviews", data=sent).status_code == 303
    review = last_review(database)
    assert (review.card_id, review.verdict) == (card, "correct" if is_right else "wrong")
    assert review.seed == shown["seed"]


def test_the_page_asks_again_for_what_it_cannot_read(study: TestClient) -> None:
    come_to(study, "C11")
    page = study.get("/study/check", params={"card_id": "C11", "answer": '12 "apples"', "elapsed_milliseconds": 5}).text
    assert "Not counted." in page
    assert 'value="12 &#34;apples&#34;"' in page
    assert "data-rate" not in page


def test_a_slow_right_answer_says_that_it_was_not_easy(study: TestClient, kinds: Catalogue) -> None:
    shown = come_to(study, "C11")
    form = {"card_id": "C11", "answer": answers(kinds, "C11", shown["seed"])[0], "elapsed_milliseconds": 300_000}
    page = study.get("/study/check", params=form).text
    assert "took more than 270 s" in page
    assert re.findall(r'<button class="rating" name="level" value="(\d)"', page) == ["1", "2", "3", "4"]
    assert fields(page, "data-rate")["elapsed_milliseconds"] == ["300000"]


def test_a_check_of_a_card_that_is_gone_shows_the_next_one(study: TestClient) -> None:
    come_to(study, "C12")
    page = study.get("/study/check", params={"card_id": "C11", "answer": "1 GB"}).text
    assert "C11 was already answered" in page
    assert 'data-card="C12"' in page


@pytest.mark.parametrize("card", CHECKED)
def test_the_answer_is_shown_without_trying(study: TestClient, card: str) -> None:
    come_to(study, card)
    page = study.get(f"/study?reveal={card}").text
    assert "data-check" not in page
    assert 'class="solved' in page
    assert "data-rate" in page


@pytest.mark.parametrize("card", [*CHECKED, "C16", "C17"])
def test_every_kind_can_be_read_outside_the_schedule(study: TestClient, card: str) -> None:
    page = study.get(f"/study/cards/{card}")
    assert page.status_code == 200
    assert "data-check" not in page.text
