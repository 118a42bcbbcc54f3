"""Generated sittings: any recipe fills its time with closed chains of questions, computes, and comes back the same."""

from __future__ import annotations

import json
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from app.content import recipes
from app.content.catalogue import Catalogue
from app.content.composed import Composed, borrowable, compose, concepts_by_question, needs_of
from app.content.formulas_asked import formulas_of
from app.content.problem_draws import LARGEST_SEED
from app.content.recipes import ANYTHING, TOLERANCE, WEAKEST, Recipe
from app.core.db import Database
from app.core.models import LOCAL_LEARNER
from app.interview import offers, service
from app.interview.drawing import values_of
from app.interview.parts import parts_of
from app.interview.prompts import prompt
from app.interview.questions import right_answer
from app.interview.scoring import scorecard
from tests.conftest import Clock
from tests.support.shipped import shipped

HTML, JSON = {"Accept": "text/html"}, {"Accept": "application/json"}
FOCI = [ANYTHING, *(each.id for each in recipes.foci(shipped()))]
ROLES = [ANYTHING, *(each.id for each in shipped().roles)]


@pytest.mark.parametrize(
    ("key", "formulas"),
    [
        ("M5.bubble", {("bubble", ())}),
        ("SP2.e", {("bubble", ())}),
        ("SP4.b", {("ring_all_reduce_bytes", ())}),
        ("M3.held", {("zero_state", ("stage=2",))}),
        ("M4.place", set()),
    ],
)
def test_a_key_is_known_by_its_formula_however_it_is_written(key: str, formulas: set[object]) -> None:
    assert formulas_of(borrowable(shipped())[key]) == formulas


def _generated(recipe: Recipe) -> tuple[dict[str, object], Composed]:
    drawn = json.loads(json.dumps(recipes.generate(shipped(), recipe)))  # as the database gives it back
    return drawn, recipes.composed_of(shipped(), drawn)


@settings(max_examples=4, deadline=None)
@given(
    st.builds(
        Recipe,
        minutes=st.integers(15, 60),
        focus=st.sampled_from([*FOCI, WEAKEST]),
        role=st.sampled_from(ROLES),
        seed=st.integers(0, LARGEST_SEED),
        concepts=st.lists(st.sampled_from(sorted(recipes.asked_concepts(shipped()))), max_size=3).map(tuple),
    )
)
def test_any_recipe_fills_its_time_with_closed_chains_and_every_figure_computes(recipe: Recipe) -> None:
    drawn, found = _generated(recipe)
    assert recipes.generate(shipped(), recipe) == drawn, "the same recipe is the same sitting"
    assert 0 <= recipe.minutes - sum(question.minutes for question in found.questions) <= TOLERANCE
    ids = [part.id for part in parts_of(found)]
    assert len(ids) == len(set(ids))
    formulas = [formula for question in found.questions for formula in formulas_of(question)]
    assert len(formulas) == len(set(formulas)), "none is asked for twice"
    asked, known = list(drawn["questions"]), borrowable(shipped())  # type: ignore[call-overload]
    for place, reference in enumerate(asked):
        assert set(needs_of(reference, known[reference])) & known.keys() <= set(asked[:place])
    assert {"text", "number"} <= {question.kind for question in found.questions}
    values, answers = values_of(found, drawn), dict[str, str]()
    for part in parts_of(found):
        said = prompt(part, values, answers)
        assert said is not None, part.id
        assert "data-live" not in said
        answers[part.id] = "words" if part.kind == "text" else right_answer(part, values, answers)
    wrong = [
        row.id for row in scorecard(found, values, answers, {}).rows if row.kind != "text" and row.verdict != "right"
    ]
    assert wrong == []


def test_it_is_about_what_its_follow_ups_are_about_too() -> None:
    """Each question that has one, with what it builds on alone."""
    known = borrowable(shipped())
    follows = {each: asked.follow_up for each, asked in known.items() if asked.follow_up and asked.follow_up.concepts}
    assert follows
    for reference, follow in follows.items():
        chain = [reference]
        while more := [each for one in chain for each in needs_of(one, known[one]) if each in known.keys() - {*chain}]:
            chain = [*dict.fromkeys(more), *chain]
        head = {"id": "Gabc", "slug": "anything-15-minutes-1", "title": "A bit", "about": "Some.", "minutes": 15}
        assert set(follow.concepts) <= set(compose(shipped(), chain, head).concepts)


def test_with_coding_it_ends_with_a_program_and_is_as_long() -> None:
    recipe = Recipe(30, "communication", ANYTHING, 5, coding=True)
    found = _generated(recipe)[1]
    program = found.questions[-1]
    assert program.kind == "coding"
    assert program.minutes <= 20
    assert 0 <= 30 - sum(question.minutes for question in found.questions) <= TOLERANCE
    assert {question.kind for question in found.questions[:-1]} >= {"text", "number"}
    assert Recipe.from_json(recipe.to_json()) == recipe
    plain = Recipe(30, "communication", ANYTHING, 5)
    assert plain.id != recipe.id
    assert "coding" not in plain.to_json(), "it is called what it was called before there was coding"
    read = recipes.composed_of(shipped(), recipes.generate(shipped(), recipe, "No judge here.")).questions
    assert read[-1].kind == "choice"
    assert 0 <= 30 - sum(question.minutes for question in read) <= TOLERANCE


def test_an_own_number_is_carried_under_the_name_it_has_where_it_stands() -> None:
    chain = ["M3.held", "M3.moved", "M3.accumulated"]
    drawn, _ = _generated(Recipe(15, "communication", ANYTHING, 1))
    found = recipes.composed_of(shipped(), {**drawn, "questions": chain})
    parts = {part.id: part for part in parts_of(found)}
    asked = prompt(parts["m3-accumulated"], values_of(found, {"values": {}}), {"m3-moved": "77 GB"})
    assert asked is not None
    assert "You said DDP sends 77" in asked.striptags()


def test_its_numbers_are_of_no_seed_of_practice_or_of_a_round() -> None:
    drawn, found = _generated(Recipe(60, "scaling-laws", ANYTHING, 3))
    assert recipes._FIRST_SEED > 2 * LARGEST_SEED
    assert any(name.startswith("SP") for name in found.sources)
    assert list(drawn["values"]) == list(found.sources)  # type: ignore[call-overload]


def test_a_focus_is_kept_to_as_long_as_there_is_something_on_it() -> None:
    for focus in recipes.foci(shipped())[::3]:
        recipe = Recipe(15, focus.id, ANYTHING, 5)
        on_it = recipes.minutes_on_focus(shipped(), recipe, _generated(recipe)[1])
        assert on_it is not None
        assert on_it >= 10, focus.id


def _recipe(client: TestClient, **fields: object) -> dict[str, str]:
    reply = client.get("/interview/generated", params={"minutes": 15, "focus": "memory", **fields})  # type: ignore[arg-type]
    assert reply.status_code == 303
    address = reply.headers["location"]
    assert "What to expect" in client.get(address).text
    return dict(parse_qsl(urlsplit(address).query))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # what a page says depends on no database
def test_a_form_is_refused_by_field(client: TestClient) -> None:
    wrong = {"minutes": "90", "focus": "luck", "role": "captain", "seed": "-1", "coding": "maybe"}
    shown = client.get("/interview/generated", params=wrong, headers=HTML)
    text = " ".join(shown.text.split())
    assert shown.status_code == 422
    for field, says in {
        "minutes": "too large. Accepted: a whole number from 15 to 60",
        "focus": "There is no such topic. Accepted: anything, weakest, ",
        "role": "There is no such role. Accepted: anything, training",
        "coding": "It is there or not. Accepted: yes, or nothing",
        "seed": "too small. Accepted: a whole number from 0 to 2,147,483,647",
    }.items():
        assert f'name="{field}" aria-describedby="gh-{field}" aria-invalid="true"' in text
        assert says in text
    assert 'value="90"' in text, "what was typed stays"
    quiet = client.post("/interview/generated", data=wrong, headers=JSON)
    assert quiet.status_code == 422
    assert {each["field"] for each in quiet.json()["errors"]} == set(wrong)
    assert client.post("/interview/generated", data={}, headers=HTML).status_code == 422
    assert "A sitting of your own" in client.get("/interview/generated").text


def test_it_is_sat_debriefed_and_compared_when_it_is_sat_again(
    client: TestClient, clock: Clock, database: Database, content: Catalogue
) -> None:
    recipe = _recipe(client, seed=7)
    sitting = client.post("/interview/generated", data=recipe).headers["location"]
    assert client.post("/interview/generated", data=recipe).headers["location"] == sitting, "one is open at a time"
    with database.read() as session:
        row = service.find_sitting(session, LOCAL_LEARNER, int(sitting.rpartition("/")[2]))
        found, identity = offers.interview_of(content, row), row.interview_id
        assert row.deadline_at - row.started_at == timedelta(minutes=15)
    first = next(part for part in parts_of(found) if part.kind == "number" and not part.builds_on)
    right = right_answer(first, values_of(found, row.drawn), {})
    assert found.title in client.get(sitting).text
    given = client.post(f"{sitting}/answers", data={"part": first.id, "answer": right, "final": "1"})
    assert given.is_success or given.is_redirect, given.text
    clock.advance(minutes=1)
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": "hire"})
    assert "Sit it again" in client.get(sitting).text
    assert found.title in client.get("/interview").text

    assert client.get(f"/interview/{identity.lower()}").is_success, "as older addresses call it"
    offer = f"/interview/{found.slug}"
    assert found.slug.endswith("-7")
    assert "You have sat this one" in client.get(offer).text
    assert "You have sat this one" in client.get("/interview/generated", params=recipe).text
    again = client.post(offer).headers["location"]
    assert again != sitting
    client.post(f"{again}/finish")
    client.post(f"{again}/expectation", data={"level": ""})
    assert "Beside your earlier sittings" in client.get(again).text
    with database.read() as session:
        evidence = service.list_evidence(session, LOCAL_LEARNER)
        closed_at = service.find_sitting(session, LOCAL_LEARNER, row.id).closed_at
        assert [(each.at, each.share) for each in evidence] == [(closed_at, 1.0)], "what was left blank says nothing"
        assert {each.item_id for each in evidence} <= concepts_by_question(content).keys()
        kept = service.list_records(session, LOCAL_LEARNER)
    assert [each["drawn"] for each in kept] == [row.drawn, row.drawn], "an export brings it back"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # what a page says depends on no database
def test_what_is_weakest_is_kept_in_the_recipe(client: TestClient, content: Catalogue) -> None:
    recipe = _recipe(client, focus=WEAKEST)
    assert "concepts" not in recipe, "there is no evidence yet"
    assert "Too little to know what is weakest" in client.get("/interview/generated", params=recipe).text

    def weakest(session: Session, learner: int, catalogue: Catalogue, now: object) -> tuple[str, ...]:
        return ("expert-parallel", "pipeline-bubble", "chinchilla")

    client.app.state.weakest = weakest  # type: ignore[attr-defined]
    reply = client.get("/interview/generated", params={"minutes": 20, "focus": WEAKEST, "seed": 3})
    address = reply.headers["location"]
    assert "concepts=pipeline-bubble&concepts=chinchilla&" in address, "those that something asks about"
    client.app.state.weakest = None  # type: ignore[attr-defined]
    shown = " ".join(client.get(address).text.split())
    assert "Where you are weakest" in shown
    assert "Weakest, by what you did: Pipeline bubble and Compute-optimal training." in shown


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # what a page says depends on no database
@pytest.mark.parametrize("key", ["g0123456789", "generated9"])
def test_a_generated_interview_that_nobody_sat_is_not_there(client: TestClient, key: str) -> None:
    assert client.get(f"/interview/{key}", headers=HTML).status_code == 404
    assert client.post(f"/interview/{key}", headers=HTML).status_code == 404
