"""Code labs over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel
from sqlalchemy.orm import Session
from sse_starlette import EventSourceResponse, ServerSentEvent

from app.codelabs import puzzles, service
from app.codelabs.models import CodeSubmission
from app.codelabs.pages import router
from app.codelabs.proof import Proof
from app.codelabs.shown import (
    EventChunk,
    ListedLab,
    OpenedHints,
    SavedDraft,
    ShownLab,
    ShownPuzzle,
    ShownSubmission,
    Traces,
)
from app.content.web import Content
from app.core.db import Database
from app.core.idempotency import once
from app.core.queue import WARM_JUDGE, Queue
from app.core.web import Db, LearnerId, Now, ReadSession, RowId, SeenChunk, WorkQueue, WriteSession
from labs.spec.code import Mode

__all__ = ["api", "router"]

POLL_SECONDS = 0.2  # a submission is over in seconds, and few look on

api = APIRouter(prefix="/api/v1/labs", tags=["code labs"])


class CodeRequest(BaseModel):
    """A program; `run` tries the visible checks, `submit` all of them with hidden inputs. `over` is the version of the
    draft it was typed over: where another was saved since, the reply is 409 and nothing is handed in."""

    code: str
    mode: Mode = "submit"
    over: str | None = None


class DraftRequest(BaseModel):
    """A program as it is being typed, and the version of the draft it was typed over: where another was saved since,
    the reply is 409 and nothing is saved."""

    code: str
    over: str | None = None


class ArrangementRequest(BaseModel):
    """What a puzzle was put together to: letters of lines in their order, or rows of F and B."""

    arranged: tuple[str, ...]


@api.get("")
def list_labs(session: ReadSession, content: Content, learner: LearnerId) -> list[ListedLab]:
    """Every code lab with where you stand."""
    return service.list_labs(session, learner, content)


@api.get("/submissions/{submission_id}")
def get_submission(session: ReadSession, content: Content, learner: LearnerId, submission_id: RowId) -> ShownSubmission:
    """Where a submission stands; its verdict once it was judged."""
    row = service.find_submission(session, learner, submission_id)
    return service.show_submission(content, row, service.queue_position(session, row))


@api.post("/submissions/{submission_id}/cancel")
def cancel(
    session: WriteSession, content: Content, learner: LearnerId, now: Now, submission_id: RowId
) -> ShownSubmission:
    """Take a submission back."""
    return service.show_submission(content, service.cancel(session, learner, submission_id, now))


@api.get("/submissions/{submission_id}/proof")
def proof(session: ReadSession, content: Content, learner: LearnerId, submission_id: RowId) -> Proof:
    """A file that `rankzero labs verify` checks on another machine."""
    return service.proof_of(content, service.find_submission(session, learner, submission_id))


@api.get("/submissions/{submission_id}/trace")
def trace(session: ReadSession, learner: LearnerId, submission_id: RowId) -> Traces:
    """When each rank called what in the first case, and the reference beside it once the program has passed."""
    return service.traces_of(service.find_submission(session, learner, submission_id))


@api.get("/submissions/{submission_id}/events", response_class=EventSourceResponse)
async def events(request: Request, learner: LearnerId, submission_id: RowId, start: SeenChunk) -> EventSourceResponse:
    """Events while a submission is judged, in chunks; `Last-Event-ID` or `?after=` resumes behind a chunk."""
    database: Database = request.app.state.database
    await asyncio.to_thread(_look, database, learner, submission_id, start)  # 404 before the stream begins
    messages = _follow(database, learner, submission_id, start)
    return EventSourceResponse(messages, ping=15, headers={"Cache-Control": "no-store"})


async def _follow(database: Database, learner: int, submission_id: int, after: int) -> AsyncIterator[ServerSentEvent]:
    while True:
        chunks, status = await asyncio.to_thread(_look, database, learner, submission_id, after)
        for chunk in chunks:
            after = chunk.sequence
            yield ServerSentEvent(chunk.model_dump_json(), event="chunk", id=str(after))
        if status is not None:
            yield ServerSentEvent(json.dumps({"status": status}), event="end")
            return
        await asyncio.sleep(POLL_SECONDS)


def _look(database: Database, learner: int, submission_id: int, after: int) -> tuple[list[EventChunk], str | None]:
    """New chunks and, once it is over, the status; that is read first, for the chunks precede the end."""
    with database.read() as session:
        row = service.find_submission(session, learner, submission_id)
        status = row.status if service.has_ended(row) else None
        return service.events_after(session, row, after), status


@api.get("/{key}")
def get_lab(session: ReadSession, queue: WorkQueue, content: Content, learner: LearnerId, key: str) -> ShownLab:
    """A code lab: statement, starter, your draft; the reference once you have passed it. Whoever asks will submit
    soon, so the judge is told to get ready."""
    lab = service.show_lab(session, learner, content, service.find_lab(content, key))
    queue.nudge_judges(WARM_JUDGE)
    return lab


@api.post("/{key}/submissions", status_code=201)
def submit(
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    asked: CodeRequest,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Hand a program in to be run and judged."""
    lab = service.find_lab(content, key)
    path = f"/api/v1/labs/{lab.id}/submissions"

    def work(session: Session) -> dict[str, Any]:
        row = service.submit(session, learner, lab, asked.code, asked.mode, now, asked.over)
        return {**_queued(session, row), "draft_version": service.version_of(row.code)}

    return _handed_in(database, queue, learner, idempotency_key, path, now, work, asked)


def _handed_in(
    database: Database,
    queue: Queue,
    learner: int,
    idempotency_key: str | None,
    path: str,
    now: datetime,
    work: Callable[[Session], dict[str, Any]],
    asked: BaseModel,
) -> dict[str, Any]:
    """What `work` replies, done once for a key; judges look at once where something new waits."""
    with database.write() as session:
        body = asked.model_dump(mode="json")
        reply, repeated = once(session, learner, idempotency_key, path, now, lambda: work(session), body)
    if not repeated:
        queue.nudge_judges()
    return reply


def _queued(session: Session, row: CodeSubmission) -> dict[str, Any]:
    return {"id": row.id, "status": row.status, "queue_position": service.queue_position(session, row)}


@api.get("/{key}/puzzle")
def get_puzzle(session: ReadSession, content: Content, learner: LearnerId, key: str) -> ShownPuzzle:
    """A lab's short form: lines to arrange, or a grid to fill."""
    return puzzles.show_puzzle(session, learner, content, service.find_lab(content, key))


@api.post("/{key}/puzzle/submissions", status_code=201)
def submit_puzzle(
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    asked: ArrangementRequest,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Hand an arrangement in: the program that it makes is run and judged as one that is submitted."""
    lab = service.find_lab(content, key)
    path = f"/api/v1/labs/{lab.id}/puzzle/submissions"

    def work(session: Session) -> dict[str, Any]:
        return _queued(session, puzzles.submit(session, learner, lab, asked.arranged, now))

    return _handed_in(database, queue, learner, idempotency_key, path, now, work, asked)


@api.post("/{key}/hints")
def take_hint(session: WriteSession, content: Content, learner: LearnerId, now: Now, key: str) -> OpenedHints:
    """Open the next hint; each costs a quarter of what passing counts."""
    return service.take_hint(session, learner, service.find_lab(content, key), now)


@api.put("/{key}/draft")
def save_draft(
    session: WriteSession, content: Content, learner: LearnerId, now: Now, key: str, typed: DraftRequest
) -> SavedDraft:
    """Keep what is being typed."""
    return service.save_draft(session, learner, service.find_lab(content, key), typed.code, now, typed.over)
