"""Wiring only: settings, database, rooms, middleware and error pages become one application."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import structlog
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.content.catalogue import catalogue
from app.content.markdown import mathml
from app.core import times
from app.core.access import Access
from app.core.bodies import BodyLimit
from app.core.clock import utc_now
from app.core.db import Database, open_database
from app.core.disk import is_disk_full
from app.core.errors import PROBLEM_RESPONSES, DomainError, ProblemDetails, SpecError, Violation, problem_details
from app.core.latency import Latency, new_histogram
from app.core.logs import configure_logs
from app.core.models import LOCAL_LEARNER
from app.core.queue import Queue
from app.core.release import release, version
from app.core.security import RESPONSE_HEADERS, Guard
from app.core.settings import Settings, settings
from app.core.templating import STATIC, add_filters, page
from app.core.token import install_token
from app.core.web import moment_in, moment_of
from app.core.zone import learner_zone
from app.exchange.limits import MB, UPLOAD_BYTES
from app.lab.folds import Folds
from app.progress.evidence import weakest
from app.rubrics.second import second_grader
from app.search.service import build_index
from app.today.offers import begins_with, offers
from app.units import bytes_text, count_text, digits, scaled, seconds_text
from labs.spec import violation_of

ROOMS = (
    "today",
    "first",
    "study.pages",
    "decks",
    "exchange",
    "practice",
    "rubrics",
    "lab",
    "codelabs",
    "planner",
    "interview",
    "reference",
    "progress",
    "search",
    "operate",
)

FILTERS: Mapping[str, Callable[..., Any]] = {
    "bytes": bytes_text,
    "count": count_text,
    "seconds": seconds_text,
    "digits": digits,
    "scaled": scaled,
    "symbol": mathml,
    "day": times.day,
    "when": times.when,
    "clock": times.clock,
    "clock_seconds": times.clock_seconds,
}

log = structlog.get_logger()


@dataclass(frozen=True)
class Room:
    """An entry of the navigation. `desk` rooms move into "More" on a phone."""

    name: str
    href: str
    key: str
    icon: str
    counted: str = ""
    desk: bool = False


NAVIGATION = (
    Room("Today", "/", "t", "M3 8h2l2-5 3 10 2-5h2"),
    Room("Study", "/study", "s", "M3 4.5h8v9H3zM5.5 4.5v-2H13.5v8.5h-2.5", "due"),
    Room("Practice", "/practice", "p", "M3 13h10M4 10.5l6.8-6.8 1.8 1.8L5.8 12.3 3.6 12.7z"),
    Room("Lab", "/lab", "l", "M3 13V8M6.3 13V3M9.7 13V6M13 13V9.5", "under way"),
    Room("Planner", "/planner", "n", "M2.5 3.5h11M2.5 8h7M2.5 12.5h4.5M12 7v6M10 11l2 2 2-2", desk=True),
    Room("Interview", "/interview", "i", "M2.5 3h11v7.5H8L5 13.2v-2.7H2.5z", desk=True),
    Room("Progress", "/progress", "o", "M2.5 13.5h11M4 11V8.5M8 11V3.5M12 11V6", desk=True),
    Room(
        "Reference",
        "/reference",
        "r",
        "M8 4C6.5 3 4.5 2.8 2.5 3v9.5c2-.2 4 0 5.5 1 1.5-1 3.5-1.2 5.5-1V3c-2-.2-4 0-5.5 1zM8 4v9.5",
        desk=True,
    ),
)

WITHIN = {"/rubrics": "/practice", "/labs": "/practice"}  # pages of a room that has no entry of its own


def create_app(configuration: Settings | None = None, database: Database | None = None) -> FastAPI:
    """The application for `configuration`; tests pass their own and a database that is ready."""
    chosen = configuration or settings()
    configure_logs(chosen.log_format, chosen.log_level)
    app = FastAPI(title="RankZero", version=version(), docs_url=None, redoc_url=None, lifespan=_lifespan)
    app.state.catalogue = catalogue(chosen)  # a broken content file stops a production start here
    build_index(app.state.catalogue)  # the first search must not wait for it
    app.state.database = database or open_database(chosen.sqlalchemy_url, chosen.limits)
    app.state.clock, app.state.zone = utc_now, learner_zone(chosen.time_zone)
    app.state.queue = Queue(chosen.redis)
    app.state.folds = Folds()
    app.state.data_folder = chosen.data.resolve()
    app.state.run_folder = chosen.run_folder
    app.state.artifacts = chosen.artifacts
    app.state.second_grader = second_grader(chosen)
    app.state.code_labs = chosen.code_labs
    # what sums up all that the rooms know, which a room cannot ask for by itself
    app.state.weakest, app.state.offers, app.state.begins_with = weakest, offers, begins_with
    app.state.shell = _shell
    add_filters(FILTERS)
    app.mount("/static", GZipMiddleware(_Static(directory=STATIC), minimum_size=1000), name="static")
    app.router.routes.extend(_rooms())
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    # the last one added is asked first: how long it takes, whose pages ask, then who asks, then how much is sent
    app.add_middleware(BodyLimit, larger=dict.fromkeys(("/study/exchange", "/lab/open"), UPLOAD_BYTES + MB))
    app.add_middleware(Access, token=install_token(chosen))
    app.add_middleware(Guard, hosts=chosen.host_names)
    app.state.latency = new_histogram()
    app.add_middleware(Latency, seen=app.state.latency)
    return app


@cache
def _rooms() -> tuple[BaseRoute, ...]:
    """Every room's pages and its part of the API. Made once a process: to look through what each route depends on
    takes a fifth of a second, and a test makes an application in a hundredth of that."""
    every = APIRouter()
    modules = [importlib.import_module(f"app.{room}.routes") for room in ROOMS]
    # streams before all else: routes are looked through in order, and many viewers of a run may come at once
    for names in (("streams",), ("router", "api")):
        for routes in modules:
            for name in names:
                found = getattr(routes, name, None)
                if isinstance(found, APIRouter):
                    every.include_router(found, include_in_schema=name == "api", responses=PROBLEM_RESPONSES)
    return tuple(every.routes)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    from app.lab.service import note_release  # noqa: PLC0415
    from app.lab.stream import Hub  # noqa: PLC0415 - needs the running loop

    state = app.state
    try:
        with state.database.write() as session:
            note_release(session, release(), utc_now())
    except SQLAlchemyError as error:  # workers go by the last one that was noted
        log.warning("release not noted", error=str(error))
    state.hub = Hub(state.database, state.queue, state.catalogue, state.folds, lambda: moment_in(app))
    yield
    await app.state.hub.close()
    app.state.database.engine.dispose()


def _shell(request: Request) -> dict[str, object]:
    """What the frame around every page shows."""
    from app.lab import service as lab  # noqa: PLC0415
    from app.study import api as study  # noqa: PLC0415

    first = "/" + request.url.path.strip("/").split("/")[0]
    counts: dict[str, int] = {}
    if getattr(request.state, "stranger", False):
        return {"rooms": NAVIGATION, "here": WITHIN.get(first, first), "counts": counts}
    # a page that says the database does not answer must not need the database
    with suppress(SQLAlchemyError), request.app.state.database.read() as session:
        counts["Study"] = study.count_due(session, LOCAL_LEARNER, request.app.state.catalogue, moment_of(request))
        counts["Lab"] = lab.count_active(session, LOCAL_LEARNER)
    return {"rooms": NAVIGATION, "here": WITHIN.get(first, first), "counts": counts}


class _Static(StaticFiles):
    """Static files; those asked for with their digest may be kept for ever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        versioned = scope.get("query_string", b"").startswith(b"v=")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if versioned else "no-cache"
        return response


def _answer(request: Request, title: str, details: ProblemDetails, violations: list[Violation]) -> Response:
    """An error as problem details for programs and as a page for people."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", "*/*, text/html"):
        return JSONResponse(details, details["status"], media_type="application/problem+json")
    context = {"title": title, "message": details["detail"], "violations": violations}
    return page(request, "error.html", context, status=details["status"])


async def _on_domain_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, DomainError | SpecError)
    titles = {404: "There is no such page", 409: "This changed in the meantime", 403: "Not allowed"}
    details = problem_details(error)
    return _answer(request, titles.get(details["status"], "That cannot be done as asked"), details, error.violations)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    violations = [violation_of({**detail, "loc": detail["loc"][1:]}) for detail in error.errors()]
    return await _on_domain_error(request, SpecError(violations))


def _page_of_form(request: Request) -> str | None:
    """The page that an address belongs to which only takes what a form sends: the nearest one above it."""
    parts = request.url.path.strip("/").split("/")
    for length in range(len(parts) - 1, -1, -1):
        path = "/" + "/".join(parts[:length])
        scope = {**request.scope, "path": path, "raw_path": path.encode(), "method": "GET"}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes):
            return path
    return None


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_opened = request.method in ("GET", "HEAD") and not request.url.path.startswith("/api/")
    if error.status_code == 405 and is_opened and (above := _page_of_form(request)):
        return RedirectResponse(above, 303)
    details: ProblemDetails = {
        "type": "about:blank",
        "title": str(error.detail),
        "status": error.status_code,
        "detail": str(error.detail),
    }
    if error.status_code == 404:
        details["detail"] = f"{request.url.path} is not a page here."
    title = "There is no such page" if error.status_code == 404 else str(error.detail)
    return _answer(request, title, details, [])


def _details(code: str, title: str, status: int, detail: str) -> ProblemDetails:
    return {"type": f"urn:rankzero:{code}", "title": title, "status": status, "detail": detail}


async def _on_database_error(request: Request, error: Exception) -> Response:
    """The database is away, locked for too long or out of space: said so, and told apart from a mistake of ours."""
    assert isinstance(error, OperationalError)
    log.error("database failed", path=request.url.path, error=str(error.orig))
    if is_disk_full(error):
        detail = "The disk is full: nothing can be saved until there is room. What was saved before can be read."
        details = _details("disk-full", "disk full", 507, detail)
        return _answer(request, "The disk is full", details, [])
    detail = f"The database does not answer ({str(error.orig).splitlines()[0]}). Nothing was saved; try again."
    details = _details("database", "database unavailable", 503, detail)
    return _answer(request, "The database does not answer", details, [])


async def _on_crash(request: Request, error: Exception) -> Response:
    log.error("request failed", path=request.url.path, exc_info=error)
    detail = "Something broke on our side; the log says what. Nothing was half-saved: the transaction was rolled back."
    details = _details("internal", "internal error", 500, detail)
    response = _answer(request, "This did not work", details, [])
    response.headers.update(RESPONSE_HEADERS)  # Starlette answers crashes outside of all middleware
    return response


Handler = Callable[[Request, Exception], Response | Awaitable[Response]]
_HANDLERS: dict[int | type[Exception], Handler] = {
    DomainError: _on_domain_error,
    SpecError: _on_domain_error,
    RequestValidationError: _on_validation_error,
    HTTPException: _on_http_error,
    OperationalError: _on_database_error,
    Exception: _on_crash,
}
