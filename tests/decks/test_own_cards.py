"""Own cards on a real database: checked by field, never lost, found by the study room, stale changes refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.content.asked import ask
from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError, NotFound, Stale
from app.decks import service
from app.decks.cards import card_id_of, make_own_card
from app.decks.drafts import Draft, DraftOption, mend, parse_options, parse_tags, tidy, title_of
from app.decks.queries import Filter
from app.decks.shelf import find_own_card, own_cards
from app.study import queries
from tests.conftest import NOW

DRAFT = Draft(sections={"Question": "What is $N$?", "Answer": "Parameters."})


def _add(database: Database, draft: Draft = DRAFT, guid: str | None = None, now=NOW) -> str:  # type: ignore[no-untyped-def]
    with database.write() as session:
        return service.add(session, 1, draft, now, guid).card_id


def _cards(database: Database) -> dict[str, str]:
    with database.read() as session:
        return {card_id: str(card.sections["Question"]) for card_id, card in own_cards(session, 1).items()}


def test_a_card_is_added_edited_and_deleted(database: Database) -> None:
    card_id = _add(database)
    assert "math" in _cards(database)[card_id]
    with database.write() as session:
        service.edit(session, 1, card_id, Draft(sections={"Question": "New?", "Answer": "Yes."}), 1, NOW)
    assert _cards(database) == {card_id: "<p>New?</p>\n"}
    with database.write() as session:
        assert service.remove(session, 1, card_id) == "New?"
    assert _cards(database) == {}
    with database.read() as session, pytest.raises(NotFound):
        service.find(session, 1, card_id)


def test_the_same_card_sent_twice_is_there_once(database: Database) -> None:
    first, second = _add(database, guid="once"), _add(database, guid="once")
    assert first == second == card_id_of("once")
    other = Draft(sections={"Question": "Other?", "Answer": "x"})
    with pytest.raises(Stale):
        _add(database, other, guid="once")
    assert len(_cards(database)) == 1


def test_a_change_of_an_older_state_is_refused(database: Database) -> None:
    card_id = _add(database)
    with database.write() as session:
        service.edit(session, 1, card_id, Draft(sections={"Question": "First", "Answer": "x"}), 1, NOW)
    with pytest.raises(Stale), database.write() as session:
        service.edit(session, 1, card_id, Draft(sections={"Question": "Second", "Answer": "x"}), 1, NOW)
    assert _cards(database)[card_id] == "<p>First</p>\n"


def test_a_process_sees_what_changed_even_where_a_change_was_taken_back(sqlite: Database) -> None:
    card_id = _add(sqlite)
    with pytest.raises(RuntimeError), sqlite.write() as session:
        service.edit(session, 1, card_id, Draft(sections={"Question": "Gone", "Answer": "x"}), 1, NOW)
        assert own_cards(session, 1)[card_id].sections["Question"] == "<p>Gone</p>\n"
        raise RuntimeError
    assert "math" in _cards(sqlite)[card_id]
    with sqlite.write() as session:
        service.edit(
            session, 1, card_id, Draft(sections={"Question": "Kept", "Answer": "x"}), 1, NOW + timedelta(seconds=1)
        )
    assert _cards(sqlite)[card_id] == "<p>Kept</p>\n"


def test_cards_that_did_not_change_are_not_made_again(sqlite: Database) -> None:
    first = _add(sqlite)
    with sqlite.read() as session:
        before = own_cards(session, 1)[first]
    _add(sqlite, Draft(sections={"Question": "b", "Answer": "c"}))
    with sqlite.read() as session:
        assert own_cards(session, 1)[first] is before
        assert find_own_card(session, 1, first) is before
        assert own_cards(session, 2) == {}


@pytest.mark.parametrize(
    ("draft", "fields"),
    [
        (Draft(), {"question", "answer"}),
        (Draft("quiz", sections={"Question": "q", "Answer": "a"}), {"kind"}),
        (Draft("cloze", sections={"Question": "no blank"}), {"question"}),
        (Draft("cloze", sections={"Question": "[[a]]"}), set()),
        (Draft(sections={"Question": "# heading", "Answer": "```\nopen"}), {"question", "answer"}),
        (Draft(sections={"Question": "x" * 10_001, "Answer": r"$\frac{$"}), {"question", "answer"}),
        (Draft(deck="d" * 201, title="t" * 201, sections=DRAFT.sections), {"deck", "title"}),
        (Draft(tags=("a b",), sections=DRAFT.sections), {"tags"}),
        (Draft("choose", sections=DRAFT.sections), {"options"}),
        (Draft("choose", sections=DRAFT.sections, options=(DraftOption("a"), DraftOption("a"))), {"options"}),
        (Draft("choose", sections={"Question": "q"}, options=(DraftOption("a", True), DraftOption("b"))), set()),
        (Draft(sections=DRAFT.sections, options=(DraftOption("a"),)), {"options"}),
    ],
)
def test_what_is_wrong_is_said_by_field(sqlite: Database, draft: Draft, fields: set[str]) -> None:
    if not fields:
        _add(sqlite, draft)
        return
    with pytest.raises(DomainError) as raised:
        _add(sqlite, draft)
    assert {each.field for each in raised.value.violations} == fields
    assert all(each.accepted for each in raised.value.violations)
    assert _cards(sqlite) == {}


def test_an_own_card_is_studied_like_any_other(sqlite: Database, content: Catalogue) -> None:
    card_id = _add(sqlite, Draft("choose", sections={"Question": "2 + 2?"}, options=parse_options("[x] 4\n5 | no")))
    with sqlite.read() as session:
        cards = queries.all_cards(session, 1, content)
        card = queries.find_card(session, 1, content, card_id)
    assert list(cards)[1] == card_id, "own cards and the catalogue's take turns"
    assert len(cards) == len(content.cards) + 1
    asked = ask(card, 1)
    assert asked.check("o1").status == "correct"
    assert asked.check("o2").message == "no"
    with sqlite.write() as session:
        service.remove(session, 1, card_id)
    with sqlite.read() as session:
        assert card_id not in queries.all_cards(session, 1, content)
        with pytest.raises(NotFound):
            queries.find_card(session, 1, content, card_id)


def test_searching_finds_words_decks_and_tags(database: Database) -> None:
    _add(database, Draft(deck="One", tags=("x",), sections={"Question": "Ring all-reduce 100%", "Answer": "a"}))
    _add(database, Draft(deck="Two", sections={"Question": "Pipeline", "Answer": "the BUBBLE"}))
    with database.read() as session:
        for wanted, titles in (
            (Filter("bubble pipe"), ["Pipeline"]),
            (Filter("100%"), ["Ring all-reduce 100%"]),
            (Filter("%"), ["Ring all-reduce 100%"]),
            (Filter(deck="Two"), ["Pipeline"]),
            (Filter(tag="x"), ["Ring all-reduce 100%"]),
            (Filter("nothing"), []),
        ):
            listing = service.list_cards(session, 1, wanted)
            assert [card.title for card in listing.cards] == titles, wanted
            assert (listing.matching, listing.total) == (len(titles), 2)
            assert listing.decks == {"One": 1, "Two": 1}


def test_a_deck_is_deleted_only_as_it_was_shown(sqlite: Database) -> None:
    _add(sqlite)
    _add(sqlite, Draft(deck="Other", sections=DRAFT.sections))
    with pytest.raises(Stale), sqlite.write() as session:
        service.remove_deck(session, 1, "Other", 2)
    with sqlite.write() as session:
        assert service.remove_deck(session, 1, "Other", 1) == 1
    assert len(_cards(sqlite)) == 1


def test_there_is_a_limit_to_what_one_learner_can_have(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_CARDS", 1)
    _add(sqlite)
    with pytest.raises(DomainError, match="too many"):
        _add(sqlite, Draft(sections={"Question": "b", "Answer": "c"}))


def test_an_error_in_a_card_is_noted_with_its_revision(database: Database) -> None:
    with database.write() as session:
        service.report_error(session, 1, "C27", 3, "  It is 18.\0 ", NOW)
    with database.read() as session:
        (report,) = service.list_reports(session, 1)
        assert (report.card_id, report.revision, report.text) == ("C27", 3, "It is 18.?")
        assert '"card_id": "C27", "revision": 3' in service.reports_text([report])
        assert service.list_reports(session, 2) == []
    for text in ("", " \n", "x" * 4001):
        with pytest.raises(DomainError), database.write() as session:
            service.report_error(session, 1, "C27", 1, text, NOW)
    with pytest.raises(NotFound), database.write() as session:
        service.remove_report(session, 2, report.id)
    with database.write() as session:
        service.remove_report(session, 1, report.id)


def test_small_things_an_author_types() -> None:
    assert parse_tags(" a, b  c,a ") == ("a", "b", "c")
    assert parse_options("- [X] r\n\n[ ] w | why | more") == (
        DraftOption("r", True),
        DraftOption("w", False, "why | more"),
    )
    assert title_of("**What** is $N$, `x`?") == "What is N, x?"
    assert title_of(r"\$5 for {{ 7\*7 }} \| training\_memory?") == "$5 for {{ 7*7 }} | training_memory?"
    assert title_of("word " * 30) == "word " * 12 + "…"
    assert mend("# a\n```\n# b") == "## a\n```\n# b\n```"
    assert tidy(Draft(sections={"Question": " a \r\n\x07b "})).sections == {"Question": "a\nb", "Answer": ""}
    card = make_own_card(service.preview(DRAFT)[0])
    assert card.head.source == "Own card"
    assert card.expected_seconds == 30
