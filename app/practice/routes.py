"""Problems as pages and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from app.content.catalogue import Catalogue
from app.content.concept_map import named
from app.content.problem_schemas import Problem
from app.content.rubric_schemas import in_groups
from app.content.web import Content
from app.core.errors import DomainError
from app.core.idempotency import once
from app.core.templating import page, wants_fragment
from app.core.web import CurrentMoment, Db, LearnerId, Now, ReadSession, WriteSession
from app.practice import service
from app.practice.desk import Desk, check_seed
from app.practice.export import graded_json, part_json
from app.practice.forms import read_form
from app.practice.models import Variant as VariantRow
from app.practice.pad import pad
from app.practice.topics import MASTERED, finding, weakest_first
from app.practice.variants import make_variant

OFFERED = 3

router = APIRouter()
problems = APIRouter(prefix="/api/v1/problems", tags=["problems"])


async def _fields(request: Request) -> list[tuple[str, str]]:
    """The fields of a form, in order; a name may come several times."""
    form = await request.form()
    return [(name, str(value)) for name, value in form.multi_items()]


FormFields = Annotated[list[tuple[str, str]], Depends(_fields)]


def _show(
    request: Request,
    content: Catalogue,
    problem: Problem,
    desk: Desk,
    history: Sequence[VariantRow],
    *,
    typed: dict[str, str] | None = None,
    error: DomainError | None = None,
) -> HTMLResponse:
    context = {
        "problem": problem,
        "desk": desk,
        "history": history,
        "typed": typed or {},
        "error": error,
        "related": content.related_links(problem.related),
        "counts_for": named(content.concepts, problem.concepts) if desk.is_settled and desk.is_issued else [],
    }
    return page(request, "practice/problem.html", context, status=422 if error else 200)


@router.get("/practice", response_class=HTMLResponse)
def practice(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    order: Literal["weakest", "taught"] = "weakest",
    show: Literal["all", "open"] = "all",
) -> HTMLResponse:
    every = service.list_topics(session, learner, content)
    offers = request.app.state.offers(session, learner, content, moment)
    weakest = weakest_first(every)
    tried = [topic for topic in weakest if topic.share.count]
    context = {
        "topics": every if order == "taught" else weakest,
        "finding": finding(every),
        "offered": offers.problems[:OFFERED],
        "weakest": tried[0].title if tried else "",
        "slips": offers.slips,
        "in_turn": [offer.item.id for offer in offers.problems],
        "order": order,
        "show": show,
        "mastered": MASTERED,
        "groups": in_groups(content.rubrics.values()),
        "code_labs": list(content.labs.values()),
    }
    return page(request, "practice/index.html", context)


@router.get("/practice/attempts", response_class=HTMLResponse)
def attempts(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    before: Annotated[int | None, Query(ge=1, le=2**31)] = None,
    problem: str | None = None,
) -> HTMLResponse:
    """Every variant that was answered, newest first."""
    chosen = service.find_problem(content, problem) if problem else None
    tried, following = service.list_tried(session, learner, content, before, chosen)
    context = {
        "tried": tried,
        "following": following,
        "before": before,
        "chosen": chosen,
        "problems": content.problems.values(),
    }
    return page(request, "practice/attempts.html", context)


@router.get("/practice/{key}", response_class=HTMLResponse)
def open_problem(request: Request, session: ReadSession, content: Content, learner: LearnerId, key: str) -> Response:
    """The variant under way. Without one, a page that asks for a variant by itself: only a POST issues one."""
    problem = service.find_problem(content, key)
    seed = service.find_seed_under_way(session, learner, problem)
    if seed is None:
        return page(request, "practice/start.html", {"problem": problem})
    return RedirectResponse(f"/practice/{problem.slug}/{seed}", 303)


@router.post("/practice/{key}/variants")
def new_variant(session: WriteSession, content: Content, learner: LearnerId, now: Now, key: str) -> Response:
    """The variant under way, or a fresh one."""
    problem = service.find_problem(content, key)
    return RedirectResponse(f"/practice/{problem.slug}/{service.start_variant(session, learner, problem, now)}", 303)


@router.get("/practice/{key}/{seed}", response_class=HTMLResponse)
def show_variant(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, key: str, seed: int
) -> HTMLResponse:
    problem = service.find_problem(content, key)
    desk = service.show(session, learner, problem, seed)
    return _show(request, content, problem, desk, service.history(session, learner, problem))


@router.post("/practice/{key}/{seed}")
def answer(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    seed: int,
    fields: FormFields,
) -> Response:
    problem = service.find_problem(content, key)
    answers = read_form(problem, fields)
    error, desk = None, None
    try:
        with database.write() as session:
            desk = service.answer(session, learner, problem, seed, answers, now)
    except DomainError as raised:
        error = raised
    if desk is not None and desk.is_issued and not wants_fragment(request):
        return RedirectResponse(f"/practice/{problem.slug}/{seed}", 303)
    with database.read() as session:
        desk = desk or service.show(session, learner, problem, seed)
        history = service.history(session, learner, problem)
    return _show(request, content, problem, desk, history, typed=answers, error=error)


@router.post("/practice/{key}/{seed}/hints")
def hint(
    request: Request, database: Db, content: Content, learner: LearnerId, key: str, seed: int, fields: FormFields
) -> Response:
    """Open the next hint; what was typed but not sent stays in its field."""
    problem = service.find_problem(content, key)
    answers = read_form(problem, fields)
    with database.write() as session:
        service.open_hint(session, learner, problem, seed)
    if not wants_fragment(request):
        return RedirectResponse(f"/practice/{problem.slug}/{seed}", 303)
    with database.read() as session:
        desk = service.show(session, learner, problem, seed)
        history = service.history(session, learner, problem)
    return _show(request, content, problem, desk, history, typed=answers)


@router.post("/practice/{key}/{seed}/solution")
def solution(session: WriteSession, content: Content, learner: LearnerId, now: Now, key: str, seed: int) -> Response:
    """Settle what is open for nothing and show the worked solution."""
    problem = service.find_problem(content, key)
    service.show_solution(session, learner, problem, seed, now)
    return RedirectResponse(f"/practice/{problem.slug}/{seed}", 303)


class AnswersRequest(BaseModel):
    """Answers by part, as free text with units."""

    answers: dict[str, str]


@problems.get("")
def list_problems(content: Content) -> list[dict[str, Any]]:
    """Every problem."""
    return [
        {
            "id": each.id,
            "slug": each.slug,
            "title": each.title,
            "about": each.about,
            "concepts": each.concepts,
            "minutes": each.minutes,
            "revision": each.revision,
        }
        for each in content.problems.values()
    ]


@problems.post("/{key}/variants", status_code=201)
def issue(
    session: WriteSession,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Issue a seed: only issued seeds count as evidence."""
    problem = service.find_problem(content, key)

    def work() -> dict[str, Any]:
        return {"id": problem.id, "seed": service.issue_variant(session, learner, problem, now).seed}

    path = f"/api/v1/problems/{problem.id}/variants"
    return once(session, learner, idempotency_key, path, now, work)[0]


@problems.get("/{key}/variants/{seed}")
def variant(content: Content, key: str, seed: int) -> dict[str, Any]:
    """A variant without its key."""
    check_seed(seed)
    made = make_variant(service.find_problem(content, key), seed)
    return {
        "id": made.problem.id,
        "seed": seed,
        "statement_html": str(made.statement),
        "parts": [part_json(part) for part in made.parts],
    }


@problems.post("/{key}/variants/{seed}/answers")
def grade(
    session: WriteSession,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    seed: int,
    given: AnswersRequest,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Grade answers. A part counts once; an invalid answer counts nothing."""
    problem = service.find_problem(content, key)

    def work() -> dict[str, Any]:
        return graded_json(service.answer(session, learner, problem, seed, given.answers, now))

    path = f"/api/v1/problems/{problem.id}/variants/{seed}/answers"
    return once(session, learner, idempotency_key, path, now, work, given.answers)[0]


api = APIRouter()
api.include_router(problems)
api.include_router(pad)
