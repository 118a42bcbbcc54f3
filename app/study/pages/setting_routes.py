"""The learner's study settings, and the placement test that starts known decks further along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.content.web import Content
from app.core.days import DAY_STARTS_HOUR
from app.core.errors import DomainError, Violation
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId, ReadSession
from app.study import policy
from app.study.fsrs import scheduling
from app.study.queue import placement

router = APIRouter()

LONGEST_FIELD = 20


async def _answers(request: Request) -> dict[str, str]:
    """What was said of each card of a test, by its id."""
    return {name: str(value) for name, value in (await request.form()).items()}


@router.get("/settings", response_class=HTMLResponse)
def settings(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    saved: bool = False,
) -> HTMLResponse:
    chosen, planned = policy.settings_and_plan(session, learner, moment)
    typed = {
        "new_per_day": str(chosen.new_per_day),
        "reviews_per_day": "" if chosen.reviews_per_day is None else str(chosen.reviews_per_day),
        "desired_retention": f"{100 * chosen.desired_retention:g}",
    }
    decks = placement.list_placeable(session, learner, content)
    return _page(request, typed, decks, planned, saved=saved)


@router.post("/settings")
def save(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    new_per_day: Annotated[str, Form(max_length=LONGEST_FIELD)],
    desired_retention: Annotated[str, Form(max_length=LONGEST_FIELD)],
    reviews_per_day: Annotated[str, Form(max_length=LONGEST_FIELD)] = "",
) -> Response:
    """Keep the settings; what cannot be kept is shown where it was typed."""
    typed = {"new_per_day": new_per_day, "reviews_per_day": reviews_per_day, "desired_retention": desired_retention}
    try:
        with database.write() as session:
            policy.save_settings(session, learner, moment.now, **_read(typed))
    except DomainError as error:
        wrong = {each.field: each for each in error.violations}
        with database.read() as session:
            decks = placement.list_placeable(session, learner, content)
            _, planned = policy.settings_and_plan(session, learner, moment)
        return _page(request, typed, decks, planned, wrong=wrong, status=422)
    return RedirectResponse("/settings?saved=true", 303)


@router.get("/study/placement/{deck_id}", response_class=HTMLResponse)
def show_test(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, deck_id: str
) -> HTMLResponse:
    """A few of a deck's new cards on one page."""
    cards = placement.sample(session, learner, content, deck_id)
    context: dict[str, Any] = {
        "cards": cards,
        "deck": cards[0].deck if cards else None,
        "placed": None,
    }
    return page(request, "study/placement.html", context)


@router.post("/study/placement/{deck_id}")
def take_test(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    deck_id: str,
    answers: Annotated[dict[str, str], Depends(_answers)],
) -> Response:
    """Move what is known further along, and say what was moved."""
    with database.write() as session:
        placed = placement.place(session, learner, content, deck_id, answers, moment)
    context: dict[str, Any] = {"cards": [], "deck": content.decks.get(deck_id), "placed": placed}
    return page(request, "study/placement.html", context)


def _page(
    request: Request,
    typed: dict[str, str],
    decks: list[placement.Placeable],
    planned: Mapping[str, Any],
    *,
    saved: bool = False,
    wrong: dict[str, Violation] | None = None,
    status: int = 200,
) -> HTMLResponse:
    context = {
        "typed": typed,
        "wrong": wrong or {},
        "saved": saved,
        "hour": DAY_STARTS_HOUR,
        "decks": decks,
        "planned": planned,
        "shorter": scheduling.interval_share(0.95, 0.90),
        "lowest": policy.LOWEST_RETENTION,
        "highest": policy.HIGHEST_RETENTION,
    }
    return page(request, "study/settings.html", context, status=status)


def _read(typed: dict[str, str]) -> dict[str, Any]:
    """The numbers that were typed, a percentage as a fraction. Raises DomainError naming what is none."""
    wrong: list[Violation] = []

    def number(name: str, kind: type[int] | type[float], accepted: str) -> Any:
        try:
            return kind(typed[name].strip().removesuffix("%").strip())
        except ValueError:
            wrong.append(Violation(name, typed[name], "It is no number.", accepted))
            return None

    counted = f"a whole number from 0 to {policy.MOST_PER_DAY}"
    share = f"{policy.LOWEST_RETENTION:.0%} to {policy.HIGHEST_RETENTION:.0%}"
    new = number("new_per_day", int, counted)
    reviews = number("reviews_per_day", int, f"{counted}, or empty") if typed["reviews_per_day"].strip() else None
    retention = number("desired_retention", float, share)
    if wrong:
        raise DomainError("The settings were not saved.", wrong)
    return {"new_per_day": new, "reviews_per_day": reviews, "desired_retention": round(retention / 100, 6)}
