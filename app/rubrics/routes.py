"""Free-text questions as pages and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Header, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.rubric_schemas import RubricFile, in_groups
from app.content.schemas import Related
from app.content.web import Content
from app.core.errors import DomainError
from app.core.idempotency import once
from app.core.templating import page
from app.core.web import Db, LearnerId, Now, ReadSession, RowId, WriteSession
from app.grading import levels
from app.rubrics import service
from app.rubrics.grading import LONGEST_ANSWER, find_rubric
from app.rubrics.models import RubricAnswer
from app.rubrics.offers import offers
from app.rubrics.pages import readable, result_view, rubric_view
from app.rubrics.rows import JUDGEMENTS
from app.rubrics.second import SecondGrader

router = APIRouter()
api = APIRouter(prefix="/api/v1/rubrics", tags=["rubrics"])


async def _decisions(request: Request) -> dict[str, str]:
    """The judged points of a form: `point.a` is met, half met or missed."""
    form = await request.form()
    return {name.removeprefix("point."): str(value) for name, value in form.items() if name.startswith("point.")}


async def _second(request: Request) -> SecondGrader | None:
    found: SecondGrader | None = request.app.state.second_grader
    return found


Second = Annotated[SecondGrader | None, Depends(_second)]
Decisions = Annotated[dict[str, str], Depends(_decisions)]


@router.get("/rubrics", response_class=HTMLResponse)
def rubrics(request: Request, session: ReadSession, content: Content, learner: LearnerId) -> HTMLResponse:
    answers = service.marks(session, learner)
    groups = in_groups(content.rubrics.values())
    context = {
        "groups": groups,
        "count": len(content.rubrics),
        "answers": answers,
        "next": next((each for group in groups for each in group.rubrics if each.id not in answers), None),
    }
    return page(request, "rubrics/index.html", context)


@router.get("/rubrics/{key}", response_class=HTMLResponse)
def show(request: Request, session: ReadSession, content: Content, learner: LearnerId, key: str) -> HTMLResponse:
    rubric = find_rubric(content, key)
    return _ask(request, content, rubric, service.history(session, learner, rubric))


def _ask(
    request: Request,
    content: Catalogue,
    rubric: RubricFile,
    history: Sequence[RubricAnswer],
    *,
    typed: str = "",
    error: DomainError | None = None,
) -> HTMLResponse:
    context = {
        "rubric": rubric,
        "view": rubric_view(rubric),
        "history": history,
        "typed": typed,
        "error": error,
        "longest": LONGEST_ANSWER,
        "second": request.app.state.second_grader,
        "related": content.related_links(rubric.related),
    }
    return page(request, "rubrics/rubric.html", context, status=422 if error else 200)


@router.post("/rubrics/{key}")
def answer(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    second: Second,
    key: str,
    text: Annotated[str, Form()] = "",
) -> Response:
    rubric = find_rubric(content, key)
    try:
        with database.write() as session:
            kept = service.submit_answer(session, learner, rubric, text, now, second).id
    except DomainError as raised:
        with database.read() as session:
            history = service.history(session, learner, rubric)
        return _ask(request, content, rubric, history, typed=text[:LONGEST_ANSWER], error=raised)
    if second is not None:
        service.ask_second(database, learner, rubric, kept, second)
    return RedirectResponse(f"/rubrics/{rubric.slug}/{kept}", 303)


@router.get("/rubrics/{key}/{answer_id}", response_class=HTMLResponse)
def result(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, key: str, answer_id: RowId
) -> HTMLResponse:
    rubric = find_rubric(content, key)
    row = service.find_answer(session, learner, rubric, answer_id)
    return _result(request, content, rubric, row, readable(service.rubric_then(session, rubric, row), rubric))


def _result(
    request: Request, content: Catalogue, rubric: RubricFile, row: RubricAnswer, then: RubricFile
) -> HTMLResponse:
    result = result_view(then, row, row.revision == rubric.revision)
    near = [id_ for id_, each in content.cards.items() if not set(each.head.concepts).isdisjoint(rubric.concepts)]
    cards = {f"/study/cards/{id_}": content.cards[id_] for id_ in {*near, *rubric.related.cards} & set(content.cards)}
    chosen, besides = offers(
        result,
        content.related_links(rubric.related),
        {href: " ".join(each.striptags() for each in card.sections.values()) for href, card in cards.items()},
        content.related_links(Related(cards=tuple(near))),
    )
    context = {
        "rubric": rubric,
        "view": rubric_view(then),
        "result": result,
        "answer": row,
        "levels": levels.for_page(),
        "following": levels.above(row.level),
        "judgements": JUDGEMENTS,
        "chosen": chosen,
        "besides": besides,
        "counts_for": named(content.concepts, rubric.concepts),
    }
    return page(request, "rubrics/result.html", context)


@router.post("/rubrics/{key}/{answer_id}/judgements")
def judge(
    session: WriteSession, content: Content, learner: LearnerId, key: str, answer_id: RowId, judged: Decisions
) -> Response:
    rubric = find_rubric(content, key)
    service.judge(session, learner, rubric, answer_id, judged)
    return RedirectResponse(f"/rubrics/{rubric.slug}/{answer_id}#own", 303)


class GradeRequest(BaseModel):
    """An answer in words."""

    text: str


@api.get("")
def list_rubrics(content: Content) -> list[dict[str, Any]]:
    """Every question that is answered in free text, with its points."""
    return [
        {
            "id": each.id,
            "slug": each.slug,
            "title": each.title,
            "about": each.about,
            "concepts": each.concepts,
            "minutes": each.minutes,
            "revision": each.revision,
            "question": rubric_view(each).question_plain,
            "points": [{"id": point.id, "weight": point.weight} for point in each.points],
            "critical": [mistake.id for mistake in each.critical],
        }
        for each in content.rubrics.values()
    ]


@api.post("/{key}/grade")
def grade(
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    second: Second,
    key: str,
    given: GradeRequest,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Grade an answer with the built-in grader and keep it. Without a person, unsure counts as missed.

    `second_opinion` is what a second grader made of it, where one is set; it never counts.
    """
    rubric = find_rubric(content, key)
    path = f"/api/v1/rubrics/{rubric.id}/grade"
    with database.write() as session:

        def work() -> dict[str, Any]:
            return {"id": service.submit_answer(session, learner, rubric, given.text, now, second).id}

        kept, repeated = once(session, learner, idempotency_key, path, now, work, given.text)
    return service.answer_json(service.ask_second(database, learner, rubric, kept["id"], None if repeated else second))
