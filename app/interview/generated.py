"""Sittings put together on request: the form, what it comes to, and the start. A recipe is an address."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content import recipes
from app.content.catalogue import Catalogue
from app.content.recipes import Recipe
from app.content.web import Content
from app.core.errors import DomainError, problem_details
from app.core.queue import WARM_JUDGE
from app.core.templating import page
from app.core.web import Db, LearnerId, Now, ReadSession, WorkQueue
from app.interview import offers, pages, service

router = APIRouter()

Fields = Sequence[tuple[str, str]]


async def _form(request: Request) -> Fields:
    return [(name, str(value)) for name, value in (await request.form()).multi_items()]


@router.get("/interview/generated", response_class=HTMLResponse)
def generated(request: Request, session: ReadSession, content: Content, learner: LearnerId, now: Now) -> Response:
    """The form; with its fields, what to expect of the sitting. What was drawn is put into the address."""
    fields = request.query_params.multi_items()
    if not fields:
        return _shown(request, content, {}, None)
    try:
        recipe = _recipe(request, session, content, learner, now, fields)
    except DomainError as error:
        return _refused(request, content, fields, error)
    named = _fields(recipe)
    if sorted(fields) != sorted(named):
        return RedirectResponse(f"/interview/generated?{urlencode(named)}", 303)
    why = _why_not_run(request, session, recipe)
    composed = recipes.composed_of(content, recipes.generate(content, recipe, why))
    about = {
        "instead": why,
        "recipe": named,
        "seed": recipe.seed,
        "on_focus": recipes.minutes_on_focus(content, recipe, composed),
        "is_weakest": recipe.focus == recipes.WEAKEST,
        "was_sat": offers.was_sat(session, learner, recipe.id),
    }
    opened = service.find_running(session, learner, now)
    return page(request, "interview/intro.html", pages.intro(content, composed, opened) | about)


@router.post("/interview/generated")
def start(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    fields: Annotated[Fields, Depends(_form)],
) -> Response:
    """Start the sitting of a recipe, or go on with the one that is open."""
    try:
        with database.read() as session:
            recipe = _recipe(request, session, content, learner, now, fields)
            why = _why_not_run(request, session, recipe)
    except DomainError as error:
        return _refused(request, content, fields, error)
    drawn = recipes.generate(content, recipe, why)
    if recipe.coding and not why:
        queue.nudge_judges(WARM_JUDGE)  # its sandboxes are there when the first program comes
    with database.write() as session:
        sitting = service.start(session, learner, content, recipes.composed_of(content, drawn), now, drawn)
    return RedirectResponse(f"/interview/sittings/{sitting.id}", 303)


def _why_not_run(request: Request, session: Session, recipe: Recipe) -> str:
    """Why a program that the recipe asks for cannot be run; empty where it can, or none is asked for."""
    return codelabs.why_not_here(session, request.app.state.code_labs) if recipe.coding else ""


def _recipe(
    request: Request, session: Session, content: Catalogue, learner: int, now: datetime, fields: Fields
) -> Recipe:
    """The recipe that is asked for, with what is weakest now where it does not say. Raises DomainError."""
    said = dict(fields)
    concepts: Sequence[str] = [value for name, value in fields if name == "concepts" and value]
    if said.get("focus") == recipes.WEAKEST and not concepts:
        asked = recipes.asked_concepts(content)
        concepts = [each for each in request.app.state.weakest(session, learner, content, now) if each in asked]
    return recipes.read_recipe(content, said, concepts, secrets.randbelow(recipes.LARGEST_SEED + 1))


def _fields(recipe: Recipe) -> list[tuple[str, str]]:
    """A recipe as the fields of its form."""
    plain = [("minutes", str(recipe.minutes)), ("focus", recipe.focus), ("role", recipe.role)]
    coding = [("coding", recipes.YES)] if recipe.coding else []
    return [*plain, *coding, *(("concepts", each) for each in recipe.concepts), ("seed", str(recipe.seed))]


def _refused(request: Request, content: Catalogue, fields: Fields, error: DomainError) -> Response:
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse(problem_details(error), error.status, media_type="application/problem+json")
    return _shown(request, content, dict(fields), error)


def _shown(request: Request, content: Catalogue, said: Mapping[str, str], error: DomainError | None) -> Response:
    context: dict[str, Any] = {"generate": pages.generation(content, said, error)}
    return page(request, "interview/generated.html", context, status=error.status if error else 200)
