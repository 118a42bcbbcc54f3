"""Items as they were asked: every shipped one comes back as it went in, and history keeps its words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.content.problem_schemas import Problem
from app.content.sources import digest_of, item_then, keep_source
from app.core.db import Database
from app.core.errors import Stale
from app.core.models import ItemSource
from app.practice import service
from app.practice.variants import make_variant
from tests.conftest import NOW


def reworded(problem: Problem, **changed: object) -> Problem:
    """The problem with other words in its statement, hints, and prompts."""
    parts = tuple(part.model_copy(update={"prompt": f"NEW {part.prompt}"}) for part in problem.parts)
    return problem.model_copy(update={"statement": f"NEW {problem.statement}", "parts": parts, **changed})


def test_every_item_is_read_back_as_it_was(sqlite: Database, content: Catalogue) -> None:
    with sqlite.write() as session:
        for item in (*content.problems.values(), *content.rubrics.values()):
            digest = keep_source(session, item, NOW)
            session.expire_all()
            kept = session.get_one(ItemSource, digest)
            back = type(item).model_validate(kept.source)
            assert back.model_dump() == item.model_dump()
            assert list(getattr(back, "let", {})) == list(getattr(item, "let", {})), "what it names builds up"


def test_the_same_words_are_kept_once(database: Database, content: Catalogue) -> None:
    problem = content.problems["P03"]
    with database.write() as session:
        assert len({keep_source(session, problem, NOW) for _ in range(2)}) == 1
        other = reworded(problem)
        assert keep_source(session, other, NOW) != digest_of(problem)
        assert session.query(ItemSource).count() == 2
        assert item_then(session, other, digest_of(problem)) == problem
        assert item_then(session, other, None) is other
        assert item_then(session, other, "0" * 64) is other, "never kept"


@pytest.fixture
def settled(database: Database, content: Catalogue) -> tuple[Database, Problem, int]:
    """A problem answered to the end."""
    problem = content.problems["P03"]
    with database.write() as session:
        seed = service.issue_variant(session, 1, problem, NOW).seed
        answers = {part.id: part.answer_text for part in make_variant(problem, seed).parts}
        service.answer(session, 1, problem, seed, {**answers, "a": "1 GB"}, NOW)
    return database, problem, seed


def rendered(desk: service.Desk) -> list[object]:
    variant = desk.variant
    graded = [(state.part.prompt, state.part.answer_text, state.text, state.grade) for state in desk.parts]
    return [variant.statement, variant.given, variant.hints, variant.solution, *graded]


@pytest.mark.parametrize("revision", [1, 2])
def test_an_answered_variant_stays_as_it_was_asked(settled: tuple[Database, Problem, int], revision: int) -> None:
    database, problem, seed = settled
    with database.read() as session:
        before = service.show(session, 1, problem, seed)
        later = reworded(problem, revision=problem.revision + revision - 1, parameters={"other": (1, 2)}, let={})
        after = service.show(session, 1, later, seed)
    assert rendered(after) == rendered(before)
    assert (after.score, after.right) == (before.score, before.right)
    assert after.is_revised is (revision == 2)
    assert not after.in_todays_words


def test_what_is_under_way_is_asked_in_todays_words(database: Database, content: Catalogue) -> None:
    problem = content.problems["P03"]
    with database.write() as session:
        seed = service.issue_variant(session, 1, problem, NOW).seed
        mended = reworded(problem)
        assert "NEW" in service.show(session, 1, mended, seed).variant.statement
        part = make_variant(problem, seed).parts[0]
        service.answer(session, 1, mended, seed, {part.id: part.answer_text}, NOW)
        service.show_solution(session, 1, mended, seed, NOW)
        assert "NEW" in service.show(session, 1, problem, seed).variant.statement, "as it was when it was answered"
        other = service.issue_variant(session, 1, problem, NOW).seed
        revised = reworded(problem, revision=2)
        assert "NEW" not in service.show(session, 1, revised, other).variant.statement
        with pytest.raises(Stale):
            service.answer(session, 1, revised, other, {part.id: part.answer_text}, NOW)


def test_words_that_cannot_be_read_any_more_are_todays(settled: tuple[Database, Problem, int]) -> None:
    database, problem, seed = settled
    revised = reworded(problem, revision=2)
    for broken in ({"id": "P03"}, {**problem.model_dump(mode="json"), "statement": "{{ gone(1) | GB }}"}):
        with database.write() as session:
            session.get_one(ItemSource, digest_of(problem)).source = broken
        with database.read() as session:
            shown = service.show(session, 1, revised, seed)
        assert "NEW" in shown.variant.statement
        assert shown.in_todays_words


def test_a_graded_answer_is_shown_beside_the_rubric_of_then(client: TestClient, content: Catalogue) -> None:
    rubric = content.rubrics["R01"]
    where = client.post("/rubrics/memory-walk", data={"text": rubric.exemplar("hire")}).headers["location"]
    before = client.get(where).text
    point = rubric.points[0].model_copy(update={"text": "Something else altogether.", "id": "another"})
    revised = rubric.model_copy(update={"revision": 2, "points": (point, *rubric.points[1:])})
    catalogue: Catalogue = client.app.state.catalogue  # type: ignore[attr-defined]
    client.app.state.catalogue = replace(catalogue, rubrics={**catalogue.rubrics, "R01": revised})  # type: ignore[attr-defined]
    after = client.get(where).text
    assert "Something else altogether" not in after
    assert "The rubric was revised since you answered" in after
    notes = [html.split('<ol class="notes"')[1].split("</ol>")[0].count("<li") for html in (before, after)]
    assert notes[0] == notes[1] > 0
