"""What is hung on cards, filters, limits, leeches, burying, cramming and placement, on both databases."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError, NotFound
from app.study import policy, queries, service
from app.study.log import replay
from app.study.models import Review
from app.study.pages import around
from app.study.queue import browsing, placement
from app.study.queue.agenda import Filter, checked_filter
from tests.conftest import NOW, moment_at


def answer(database: Database, content: Catalogue, card_id: str, level: int = 4, now: datetime = NOW) -> Review:
    with database.write() as session:
        state = queries.find_state(session, 1, card_id)
        return service.submit_review(
            session,
            1,
            content,
            card_id=card_id,
            level=level,
            version=state.version if state else 0,
            moment=moment_at(now),
        )


def mark(database: Database, content: Catalogue, card_id: str, action: str, now: datetime = NOW, note: str = "") -> str:
    with database.write() as session:
        return service.mark(session, 1, content, card_id, action, moment_at(now), note)


def look(database: Database, content: Catalogue, now: datetime = NOW, **more: Any) -> service.Desk:
    with database.read() as session:
        return service.study(session, 1, content, moment_at(now), **more)


def shown(desk: service.Desk) -> str:
    assert desk.card is not None
    return desk.card.card.id


def learn(database: Database, content: Catalogue, card_id: str, now: datetime = NOW) -> datetime:
    """Answer a card as easy; returns when it is due."""
    return answer(database, content, card_id, 5, now).due_at


def test_a_suspended_new_card_is_passed_over_until_it_is_brought_back(database: Database, content: Catalogue) -> None:
    first, second = list(content.cards)[:2]
    assert "suspended" in mark(database, content, first, "suspend")
    assert shown(look(database, content)) == second
    assert look(database, content, NOW + timedelta(days=30)).card is not None
    mark(database, content, first, "unsuspend")
    assert shown(look(database, content)) == first


def test_a_suspended_known_card_keeps_its_date_and_comes_when_brought_back(
    database: Database, content: Catalogue
) -> None:
    due = learn(database, content, "C27")
    mark(database, content, "C27", "suspend")
    later = due + timedelta(days=3)
    desk = look(database, content, later)
    assert desk.progress.left == policy.NEW_PER_DAY
    mark(database, content, "C27", "unsuspend", later)
    assert shown(look(database, content, later)) == "C27"
    with database.read() as session:
        state = queries.find_state(session, 1, "C27")
        assert state is not None
        assert state.due_at == due


def test_a_buried_card_comes_tomorrow(database: Database, content: Catalogue) -> None:
    due = learn(database, content, "C27")
    mark(database, content, "C27", "bury", due)
    assert shown(look(database, content, due)) != "C27"
    assert shown(look(database, content, due + timedelta(days=1))) == "C27"
    mark(database, content, "C27", "unbury", due)
    assert shown(look(database, content, due)) == "C27"


def test_a_flag_and_a_note_leave_the_showing_as_it_is(database: Database, content: Catalogue) -> None:
    card = look(database, content).card
    assert card is not None
    mark(database, content, card.card.id, "flag")
    mark(database, content, card.card.id, "note", note="<b>mine</b>\x00\r\nsecond line ")
    again = look(database, content).card
    assert again is not None
    assert (again.card.id, again.version) == (card.card.id, card.version)
    assert again.marks == service.Marks(is_flagged=True, note="<b>mine</b>?\nsecond line")
    answer(database, content, card.card.id, 4)
    mark(database, content, card.card.id, "note", note="  ")
    with database.read() as session:
        assert service.show(session, 1, content, card.card.id, moment_at(NOW)).marks == service.Marks(is_flagged=True)


def test_what_cannot_be_hung_on_a_card_is_refused_by_name(database: Database, content: Catalogue) -> None:
    with pytest.raises(NotFound, match="C999"):
        mark(database, content, "C999", "flag")
    for action, note, field in (("burn", "", "action"), ("note", "x" * 2001, "note")):
        with pytest.raises(DomainError) as caught:
            mark(database, content, "C27", action, note=note)
        assert caught.value.violations[0].field == field


def test_a_card_near_to_one_answered_today_waits_until_tomorrow(database: Database, content: Catalogue) -> None:
    cluster = [card.id for card in content.cards.values() if card.head.cluster == "reduce-scatter-use"]
    assert len(cluster) >= 2
    due = max(learn(database, content, cluster[0]), learn(database, content, cluster[1]))
    assert look(database, content, due).progress.left == 2 + policy.NEW_PER_DAY
    answered = shown(look(database, content, due))
    answer(database, content, answered, 4, due)
    desk = look(database, content, due + timedelta(minutes=1))
    assert desk.buried == 1
    assert desk.progress.left == policy.NEW_PER_DAY
    assert shown(desk) not in cluster
    tomorrow = look(database, content, due + timedelta(days=1))
    assert shown(tomorrow) == next(card for card in cluster if card != answered)
    with database.write() as session:
        service.undo(session, 1, due)
    assert look(database, content, due).progress.left == 2 + policy.NEW_PER_DAY


def test_settings_bound_what_a_day_brings(database: Database, content: Catalogue) -> None:
    ids = [card.id for card in content.cards.values() if card.head.cluster is None][:6]
    due = max(learn(database, content, card_id) for card_id in ids)
    with database.write() as session:
        policy.save_settings(session, 1, NOW, new_per_day=2, reviews_per_day=3, desired_retention=0.9)
    desk = look(database, content, due)
    assert desk.progress.left == 5
    for _ in range(3):
        answer(database, content, shown(look(database, content, due)), 4, due)
    desk = look(database, content, due)
    assert desk.progress == service.Progress(done=3, new=2, again=0)
    assert desk.card is not None
    assert desk.card.is_new
    with database.write() as session:
        policy.save_settings(session, 1, NOW, new_per_day=0, reviews_per_day=0, desired_retention=0.9)
    assert look(database, content, due).card is None


def test_a_higher_retention_brings_cards_back_sooner(database: Database, content: Catalogue) -> None:
    plain = learn(database, content, "C27")
    with database.write() as session:
        service.undo(session, 1, NOW)
        policy.save_settings(session, 1, NOW, new_per_day=12, reviews_per_day=None, desired_retention=0.97)
    assert learn(database, content, "C27") < plain
    with database.read() as session:
        assert queries.find_last_review(session, 1).desired_retention == 0.97  # type: ignore[union-attr]
        assert replay.verify(session, 1).mismatches == 0


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"new_per_day": -1}, "new_per_day"),
        ({"reviews_per_day": 10_000}, "reviews_per_day"),
        ({"desired_retention": 0.69}, "desired_retention"),
        ({"desired_retention": 0.98}, "desired_retention"),
        ({"desired_retention": float("nan")}, "desired_retention"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(sqlite: Database, values: dict[str, Any], field: str) -> None:
    good: dict[str, Any] = {"new_per_day": 5, "reviews_per_day": None, "desired_retention": 0.9}
    with sqlite.write() as session, pytest.raises(DomainError) as caught:
        policy.save_settings(session, 1, NOW, **{**good, **values})
    assert [each.field for each in caught.value.violations] == [field]
    with sqlite.read() as session:
        assert policy.policy_for(session, 1, moment_at(NOW)) == policy.PLAIN


def test_the_policys_order_comes_first(database: Database, content: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = policy.Policy(new_per_day=3, order=("C62", "C999", "C27"))
    monkeypatch.setattr("app.study.service.policy_for", lambda *_: chosen)
    assert shown(look(database, content)) == "C62"
    answer(database, content, "C62")
    assert shown(look(database, content)) == "C27"


def test_filters_show_what_they_name_and_nothing_else(database: Database, content: Catalogue) -> None:
    deck = list(content.decks)[3]
    assert look(database, content, wanted=Filter(deck=deck)).card.card.deck.id == deck  # type: ignore[union-attr]
    concept = next(iter(content.cards.values())).head.concepts[0]
    found = look(database, content, wanted=Filter(concept=concept)).card
    assert found is not None
    assert concept in found.card.head.concepts
    assert look(database, content, wanted=Filter(state="due")).card is None
    due = learn(database, content, "C27")
    assert shown(look(database, content, due, wanted=Filter(state="due"))) == "C27"
    assert look(database, content, due, wanted=Filter(state="due")).progress.left == 1
    assert look(database, content, due, wanted=Filter(state="flagged")).card is None
    mark(database, content, "C27", "flag")
    assert shown(look(database, content, due, wanted=Filter(state="flagged"))) == "C27"
    answer(database, content, "C62", 1, due)
    minute = due + timedelta(minutes=2)
    assert shown(look(database, content, minute, wanted=Filter(state="learning"))) == "C62"
    assert shown(look(database, content, minute, wanted=Filter(state="new"))) not in ("C27", "C62")


def test_a_filter_of_nothing_we_have_is_refused_by_name(content: Catalogue) -> None:
    with pytest.raises(DomainError) as caught:
        checked_filter(content, "DK999", "no-such", "odd")
    assert [each.field for each in caught.value.violations] == ["deck", "concept", "state"]


def test_a_card_forgotten_eight_times_is_said_with_what_helps(database: Database, content: Catalogue) -> None:
    now, said = NOW, []
    now = learn(database, content, "C61", now)
    for lapse in range(1, 13):
        with database.write() as session:
            state = queries.find_state(session, 1, "C61")
            assert state is not None
            review = service.submit_review(
                session, 1, content, card_id="C61", level=1, version=state.version, moment=moment_at(now)
            )
            notice = around.warn_of_leech(session, content, review)
        if notice.text:
            said.append(lapse)
            assert f"forgotten {lapse} times" in notice.text
            assert {link.href.split("/")[1] for link in notice.links} == {"reference", "lab"}
        now = learn(database, content, "C61", now + timedelta(minutes=11))
    assert said == [8, 12]
    desk = look(database, content, now, wanted=Filter(state="hard"))
    assert shown(desk) == "C61"
    assert desk.card is not None
    assert desk.card.is_hard


def test_cramming_starts_with_the_least_known_and_changes_nothing(database: Database, content: Catalogue) -> None:
    learn(database, content, "C27")
    later = learn(database, content, "C62", NOW + timedelta(days=4)) + timedelta(days=1)
    with database.read() as session:
        cards = browsing.cram(session, 1, content, moment_at(later), Filter())
        version = queries.find_state(session, 1, "C27").version  # type: ignore[union-attr]
    assert [each.card.id for each in cards[:2]] == ["C27", "C62"]
    assert len(cards) == len(content.cards)
    assert cards[2].recall is None
    with database.read() as session:
        assert queries.find_state(session, 1, "C27").version == version  # type: ignore[union-attr]
        assert session.query(Review).count() == 2


def test_the_list_says_where_each_card_stands(database: Database, content: Catalogue) -> None:
    due = learn(database, content, "C27")
    answer(database, content, "C62", 1, due)
    for card_id, action in (("C61", "suspend"), ("C63", "bury"), ("C64", "note")):
        mark(database, content, card_id, action, due, note="mine")
    with database.read() as session:
        for state, expected in (
            ("due", ["C27"]),
            ("learning", ["C62"]),
            ("suspended", ["C61"]),
            ("buried", ["C63"]),
            ("noted", ["C64"]),
            ("known", []),
        ):
            shelf = browsing.browse(session, 1, content, moment_at(due), Filter(state=state))
            assert [each.card.id for each in shelf.cards] == expected, state
        every = browsing.browse(session, 1, content, moment_at(due), Filter(), page=99)
        assert every.count == len(content.cards)
        assert every.page == every.pages
        found = browsing.browse(session, 1, content, moment_at(due), Filter(), among=["C62", "gone", "C27"])
        assert [each.card.id for each in found.cards] == ["C62", "C27"]


def _answers(database: Database, content: Catalogue, deck: str, told: str) -> dict[str, str]:
    with database.read() as session:
        cards = placement.sample(session, 1, content, deck)
    assert len(cards) == placement.SAMPLE
    return {card.id: told for card in cards}


def test_a_known_deck_starts_further_along_and_one_undo_takes_it_back(database: Database, content: Catalogue) -> None:
    deck = "DK7"
    size = sum(card.deck.id == deck for card in content.cards.values())
    answers = _answers(database, content, deck, "known")
    with database.write() as session:
        placed = placement.place(session, 1, content, deck, answers, moment_at(NOW))
    assert placed == placement.Placed(known=1.0, moved=size, new=size)
    with database.read() as session:
        assert replay.verify(session, 1).mismatches == 0
        states = queries.list_states(session, 1)
        dues = {state.due_at for state in states}
        assert placement.sample(session, 1, content, deck) == []
    assert len(states) == size
    assert 3 <= len(dues) <= 6, "spread over the days that are as good"
    desk = look(database, content)
    assert desk.progress == service.Progress(done=0, new=policy.NEW_PER_DAY, again=0), "no answers were given"
    with database.write() as session:
        service.undo(session, 1, NOW)
    with database.read() as session:
        assert replay.verify(session, 1).mismatches == 0
        assert len(placement.sample(session, 1, content, deck)) == placement.SAMPLE


def test_a_deck_that_is_not_known_starts_at_the_beginning(database: Database, content: Catalogue) -> None:
    answers = _answers(database, content, "DK7", "unknown")
    some = dict(zip(answers, ["known", "partly", *["unknown"] * 4], strict=True))
    with database.write() as session:
        placed = placement.place(session, 1, content, "DK7", some, moment_at(NOW))
    assert placed.moved == 2, "only what was known itself"
    with database.write() as session:
        service.undo(session, 1, NOW)
        assert placement.place(session, 1, content, "DK7", answers, moment_at(NOW)).moved == 0


def test_a_placement_takes_only_new_cards_of_its_deck(database: Database, content: Catalogue) -> None:
    with database.write() as session:
        for answers in ({}, {"C27": "known"}, {"C62": "well"}):
            with pytest.raises(DomainError):
                placement.place(session, 1, content, "DK7", answers, moment_at(NOW))
        with pytest.raises(NotFound, match="DK999"):
            placement.sample(session, 1, content, "DK999")
        assert session.query(Review).count() == 0


def test_two_catalogues_in_one_process_have_their_own_days(database: Database, content: Catalogue) -> None:
    first = next(iter(content.cards))
    without = dataclasses.replace(content, cards={k: v for k, v in content.cards.items() if k != first})
    assert shown(look(database, content)) == first
    assert shown(look(database, without)) != first
    assert shown(look(database, content)) == first
