"""Code labs for a learner: what there is, a program handed in, a draft kept, a hint taken, what counts as evidence."""

from __future__ import annotations

import hashlib
import shutil
from datetime import datetime
from typing import TypedDict

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.codelabs import queries
from app.codelabs.film import film_of
from app.codelabs.folder import find_lab
from app.codelabs.models import ENDED, PUZZLE, RUNNING, WAITING, CodeDesk, CodeSubmission
from app.codelabs.outcome import PUZZLE_SHARE, Outcome, outcome
from app.codelabs.proof import Proof, make_proof
from app.codelabs.shown import (
    EventChunk,
    ListedLab,
    OpenedHints,
    SavedDraft,
    ShownLab,
    ShownProgress,
    ShownSolution,
    ShownSubmission,
    Standing,
    Traces,
)
from app.codelabs.words import checks_in_words, verdict_in_words
from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.content.evidence import Evidence
from app.content.film.shown import Film
from app.core.errors import DomainError, NotFound, Stale, Violation
from app.core.leases import changed
from app.core.records import as_record
from app.grading.hints import share_left
from labs.spec.code import (
    MOST_CODE_BYTES,
    CheckEvent,
    Mode,
    OutputEvent,
    PhaseEvent,
    Verdict,
    read_code_events,
)

MOST_WAITING = 4  # submissions of a learner
NOT_HERE = "Learners' code cannot be run here"  # how a worker begins to say so

__all__ = ["Outcome", "ShownProgress", "find_lab", "outcome"]


def list_labs(session: Session, learner_id: int, content: Catalogue) -> list[ListedLab]:
    """Every lab with where the learner stands: new, tried or passed."""
    tried = queries.labs_tried(session, learner_id)
    passed = {desk.lab_id for desk in queries.list_passed(session, learner_id)}
    puzzles_tried = queries.labs_tried(session, learner_id, puzzle=True)
    puzzles_passed = queries.list_passed_puzzles(session, learner_id)
    return [
        ListedLab(
            **_head(lab),
            status=standing(lab.id in passed, lab.id in tried),
            puzzle=standing(lab.id in puzzles_passed, lab.id in puzzles_tried) if lab.puzzle else None,
            puzzle_minutes=lab.puzzle.head.minutes if lab.puzzle else None,
        )
        for lab in content.labs.values()
    ]


def standing(passed: bool, tried: bool) -> Standing:
    return "passed" if passed else "tried" if tried else "new"


class _Head(TypedDict):
    id: str
    slug: str
    title: str
    about: str
    minutes: int
    signature: str
    concepts: tuple[str, ...]


def _head(lab: CodeLab) -> _Head:
    head = lab.head
    return {
        "id": head.id,
        "slug": head.slug,
        "title": head.title,
        "about": head.about,
        "minutes": head.minutes,
        "signature": head.signature,
        "concepts": tuple(head.concepts),
    }


def show_lab(session: Session, learner_id: int, content: Catalogue, lab: CodeLab) -> ShownLab:
    """A lab as its page needs it. Solutions only once it was passed."""
    desk = queries.find_desk(session, learner_id, lab.id)
    newest = queries.find_newest(session, learner_id, lab.id)
    passed = desk is not None and desk.passed_at is not None
    taken = desk.hints_taken if desk else 0
    styles = [ShownSolution(name=right.name, style=right.says, code=right.code) for right in lab.right]
    return ShownLab(
        **_head(lab),
        status=standing(passed, newest is not None),
        puzzle=_of_puzzle(session, learner_id, lab),
        puzzle_minutes=lab.puzzle.head.minutes if lab.puzzle else None,
        statement_html=str(lab.statement),
        starter=lab.starter,
        checks=lab.head.checks,
        interview_line=lab.head.interview_line,
        hints=_opened(lab, taken),
        hints_left=len(lab.hints) - taken,
        next_hint_leaves=share_left(taken + 1),
        draft=_draft(desk, lab),
        draft_version=version_of(_draft(desk, lab)),
        related=tuple(content.related_links(lab.related)),
        last_submission=show_submission(content, newest) if newest else None,
        reference=lab.reference if passed else None,
        right=tuple(styles) if passed else (),
    )


def _of_puzzle(session: Session, learner_id: int, lab: CodeLab) -> Standing | None:
    if lab.puzzle is None:
        return None
    tried = lab.id in queries.labs_tried(session, learner_id, puzzle=True)
    return standing(lab.id in queries.list_passed_puzzles(session, learner_id), tried)


def _opened(lab: CodeLab, taken: int) -> tuple[str, ...]:
    return tuple(str(hint) for hint in lab.hints[:taken])


def check_code(code: str) -> str:
    """A program that can be stored and judged. Raises DomainError naming what is wrong, and where."""
    try:
        size = len(code.encode())
    except UnicodeEncodeError as error:
        line = code[: error.start].count("\n") + 1
        raise _refused(f"line {line} has half of a surrogate pair, which is no text", "text in UTF-8") from None
    if size > MOST_CODE_BYTES:
        raise _refused(f"{size:,} bytes are too many", f"up to {MOST_CODE_BYTES:,} bytes")
    if "\0" in code:
        line = code[: code.index("\0")].count("\n") + 1
        raise _refused(f"line {line} has a NUL character", "text without it")
    return code.replace("\r\n", "\n")


def _refused(message: str, accepted: str) -> DomainError:
    return DomainError(f"The program was not taken: {message}.", [Violation("code", None, message, accepted)])


def submit(
    session: Session, learner_id: int, lab: CodeLab, code: str, mode: Mode, now: datetime, over: str | None = None
) -> CodeSubmission:
    """Queue a program. Raises DomainError where it cannot be one, or where too many wait, and Stale as `save_draft`
    does: what is handed in is kept as the draft as well."""
    code = check_code(code)
    _must_not_wait_for_more(session, learner_id)
    desk = _desk(session, learner_id, lab, now)
    must_not_be_another(_draft(desk, lab), code, over)
    desk.draft, desk.draft_at = code, now
    return _queued(session, learner_id, lab, code, mode, desk.hints_taken, now)


def hand_in(
    session: Session, learner_id: int, lab: CodeLab, code: str, mode: Mode, hints: int, now: datetime
) -> CodeSubmission:
    """Queue a program of another room, that was written there with so many hints: the lab's own draft stays. What is
    handed in to be judged is never refused for those that wait. Raises DomainError where it cannot be a program."""
    code = check_code(code)
    if mode == "run":
        _must_not_wait_for_more(session, learner_id)
    return _queued(session, learner_id, lab, code, mode, hints, now)


def hand_in_puzzle(session: Session, learner_id: int, lab: CodeLab, code: str, now: datetime) -> CodeSubmission:
    """Queue the program that a puzzle was put together to. Raises DomainError where too many wait."""
    _must_not_wait_for_more(session, learner_id)
    desk = queries.find_desk(session, learner_id, lab.id)
    return _queued(session, learner_id, lab, code, PUZZLE, desk.hints_taken if desk else 0, now)


def _must_not_wait_for_more(session: Session, learner_id: int) -> None:
    if queries.count_waiting(session, learner_id) >= MOST_WAITING:
        raise DomainError(f"{MOST_WAITING} of your submissions wait already; wait for one, or cancel it.")


def _queued(
    session: Session, learner_id: int, lab: CodeLab, code: str, mode: str, hints: int, now: datetime
) -> CodeSubmission:
    row = CodeSubmission(
        learner_id=learner_id,
        lab_id=lab.id,
        revision=lab.head.revision,
        mode=mode,
        code=code,
        hints_taken=hints,
        status=WAITING,
        created_at=now,
    )
    session.add(row)
    session.flush()
    return row


def _desk(session: Session, learner_id: int, lab: CodeLab, now: datetime) -> CodeDesk:
    desk = queries.find_desk(session, learner_id, lab.id)
    if desk is None:
        desk = CodeDesk(learner_id=learner_id, lab_id=lab.id, hints_taken=0, opened_at=now)
        session.add(desk)
        session.flush()
    return desk


def list_passed_labs(session: Session, learner_id: int) -> set[str]:
    """The labs that a learner has passed, and knows the solutions of."""
    return {desk.lab_id for desk in queries.list_passed(session, learner_id)}


def why_not_here(session: Session, configured: str) -> str:
    """Why learners' code cannot be run; nothing where it can. The newest submission that ended tells; before there was
    one, this machine."""
    if configured == "off":
        return "Running learners' code is switched off here (RANKZERO_CODE_LABS=off)."
    newest = queries.find_newest_ended(session)
    if newest is not None:
        return newest.detail if newest.status == "failed" and newest.detail.startswith(NOT_HERE) else ""
    if configured == "sandbox" and shutil.which("bwrap") is None:
        return f"{NOT_HERE}: bubblewrap is not installed."
    return ""


def find_submission(session: Session, learner_id: int, submission_id: int) -> CodeSubmission:
    """Raises NotFound."""
    row = queries.find_submission(session, learner_id, submission_id)
    if row is None:
        raise NotFound(f"There is no submission {submission_id}.")
    return row


def show_submission(content: Catalogue, row: CodeSubmission, queue_position: int | None = None) -> ShownSubmission:
    """Where a submission stands and, once it was judged, its verdict in words."""
    lab = content.labs.get(row.lab_id)
    verdict = Verdict.model_validate(row.verdict) if row.verdict is not None else None
    return ShownSubmission(
        id=row.id,
        lab=row.lab_id,
        mode=row.mode,
        status=row.status,
        detail=row.detail,
        created_at=row.created_at.isoformat(),
        ended_at=row.ended_at.isoformat() if row.ended_at else None,
        chunks=row.chunks,
        verdict=verdict_in_words(verdict, lab) if verdict is not None and lab is not None else None,
        queue_position=queue_position,
    )


def queue_position(session: Session, row: CodeSubmission) -> int | None:
    """How many are taken before it, and itself; None once it is taken."""
    ids = [each.id for each in queries.list_queue(session)]
    return ids.index(row.id) + 1 if row.id in ids else None


def show_standing(session: Session, learner_id: int, content: Catalogue, submission_id: int) -> ShownProgress:
    """A submission as a page shows it: while it is judged with the checks and the output that have come so far."""
    row = find_submission(session, learner_id, submission_id)
    lab = find_lab(content, row.lab_id)
    stored = [event for chunk in queries.list_chunks(session, row.id, 0) for event in chunk.events]
    events = read_code_events(stored)
    shown = show_submission(content, row, queue_position(session, row))
    so_far = [event.check for event in events if isinstance(event, CheckEvent)]
    return ShownProgress(
        **dict(shown),
        ended=has_ended(row),
        is_being_cancelled=row.status == RUNNING and row.cancel_requested_at is not None,
        code=row.code,
        checks=shown.verdict.checks if shown.verdict else checks_in_words(so_far, lab),
        output=tuple(event for event in events if isinstance(event, OutputEvent)),
        phase=next((event.detail for event in reversed(events) if isinstance(event, PhaseEvent)), ""),
    )


def events_after(session: Session, row: CodeSubmission, after: int) -> list[EventChunk]:
    """Chunks of events behind number `after`."""
    chunks = queries.list_chunks(session, row.id, after)
    return [EventChunk(sequence=chunk.sequence, events=tuple(chunk.events)) for chunk in chunks]


def has_ended(row: CodeSubmission) -> bool:
    return row.status in ENDED


def cancel(session: Session, learner_id: int, submission_id: int, now: datetime) -> CodeSubmission:
    """Take a submission back. One that waits is cancelled at once, one that runs by whoever has it."""
    row = find_submission(session, learner_id, submission_id)
    waits = update(CodeSubmission).where(CodeSubmission.id == row.id, CodeSubmission.status == WAITING)
    if not changed(session.execute(waits.values(status="cancelled", ended_at=now))):
        runs = update(CodeSubmission).where(CodeSubmission.id == row.id, CodeSubmission.status == RUNNING)
        session.execute(runs.values(cancel_requested_at=now))
    session.refresh(row)
    return row


def take_hint(session: Session, learner_id: int, lab: CodeLab, now: datetime) -> OpenedHints:
    """Open the next hint. Each leaves less of what passing counts; after passing they cost nothing more."""
    desk = _desk(session, learner_id, lab, now)
    if desk.hints_taken >= len(lab.hints):
        raise Stale(f"All {len(lab.hints)} hints of {lab.id} are open.")
    desk.hints_taken += 1
    session.flush()
    taken = desk.hints_taken
    return OpenedHints(hints=_opened(lab, taken), hints_left=len(lab.hints) - taken, share_left=share_left(taken))


def save_draft(
    session: Session, learner_id: int, lab: CodeLab, code: str, now: datetime, over: str | None = None
) -> SavedDraft:
    """Keep a program as it is being typed. `over` is the version it was typed over; Raises Stale where another text was
    saved since, and saves nothing over that."""
    code = check_code(code)
    desk = _desk(session, learner_id, lab, now)
    must_not_be_another(_draft(desk, lab), code, over)
    desk.draft, desk.draft_at = code, now
    session.flush()
    return SavedDraft(saved_at=now.isoformat(), version=version_of(code))


def version_of(draft: str) -> str:
    """What a draft is called by whoever types over it."""
    return hashlib.sha256(draft.encode()).hexdigest()[:16]


def _draft(desk: CodeDesk | None, lab: CodeLab) -> str:
    return desk.draft if desk and desk.draft is not None else lab.starter


def must_not_be_another(there: str, code: str, over: str | None) -> None:
    """Raises Stale where `code` was typed over another version than is `there`."""
    if over is not None and code != there and version_of(there) != over:
        raise Stale(
            "Another text of this was saved in the meantime, in another tab or on another device. Nothing was "
            "written over it."
        )


def traces_of(row: CodeSubmission) -> Traces:
    """The calls of the first case, and those of the reference; None each where there are none."""
    verdict = Verdict.model_validate(row.verdict) if row.verdict is not None else None
    return Traces(trace=verdict.trace if verdict else None, reference=verdict.beside if verdict else None)


def films_of(row: CodeSubmission, rank: int = 0) -> dict[str, Film]:
    """A run that passed and the reference's over one axis of time: `yours` and `reference`. Nothing before it passed,
    nor where nothing was sent."""
    found = traces_of(row)
    if row.passed is not True or row.mode == "run" or found.trace is None:
        return {}
    each = {"yours": (found.trace, "your"), "reference": (found.reference, "the reference’s")}
    end = max(trace.seconds for trace, _ in each.values() if trace is not None)
    films = {name: film_of(trace, rank, end, whose) for name, (trace, whose) in each.items() if trace is not None}
    return {name: film for name, film in films.items() if film is not None}


def proof_of(content: Catalogue, row: CodeSubmission) -> Proof:
    """The proof of a submission. Raises DomainError where there is none yet."""
    if row.verdict is None or row.mode != "submit":
        raise DomainError("There is a proof of a submission once it was judged with hidden inputs.")
    return make_proof(find_lab(content, row.lab_id), row.code, Verdict.model_validate(row.verdict), row.revision)


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Each lab's first pass, for what the hints left of it. Attempts before it say that somebody is at work. A puzzle
    is a lesser pass of its lab, and none any more once the lab was passed."""
    found = [
        Evidence("code lab", desk.lab_id, desk.passed_at, share_left(desk.passed_with_hints or 0))
        for desk in queries.list_passed(session, learner_id)
        if desk.passed_at is not None
    ]
    written = {each.item_id: each.at for each in found}
    for lab, at in queries.list_passed_puzzles(session, learner_id).items():
        if lab not in written or at < written[lab]:
            found.append(Evidence("puzzle", lab, at, PUZZLE_SHARE))
    return found


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Desks, submissions and their events as an export holds them."""
    rows = queries.list_submissions(session, learner_id)
    found = [as_record("code_submission", row, row.created_at, without=("lease", "worker")) for row in rows]
    chunks = [chunk for row in rows for chunk in queries.list_chunks(session, row.id, 0)]
    found += [as_record("code_chunk", chunk, chunk.created_at) for chunk in chunks]
    return found + [as_record("code_desk", desk, desk.opened_at) for desk in queries.list_desks(session, learner_id)]
