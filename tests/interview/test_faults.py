"""A sitting under faults: what was saved stays, what was refused is nowhere, and nothing is graded twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.errors import DomainError
from app.interview import answering, closing, pages, queries, scoring, service, stored
from app.interview.boards import board_id, saved_board
from app.interview.models import Sitting, SittingAnswer
from tests.conftest import NOW


class _KilledError(Exception):
    """The process ends where this is raised: nothing after it happens."""


@dataclass(frozen=True)
class _Kind:
    """A kind of answer that is being given when something fails: two texts of it, with what is drawn beside each."""

    interview: str
    part: str
    texts: tuple[str, str]
    boards: tuple[str | None, str | None] = (None, None)

    def board_of(self, text: str) -> str | None:
        return self.boards[self.texts.index(text)] if text in self.texts else None


def _board(label: str) -> str:
    return json.dumps({"items": [{"id": "b1", "x": 0, "y": 0, "label": label}]})


WORDS = _Kind("M9", "q3", ("first", "second"))
LAYOUT = _Kind("M4", "layout", ("tensor 16, pipeline 2, data 2", "tensor 1, pipeline 64, data 1"))
BOARD = _Kind("M4", "mlp", ("Drawn beside.", "Drawn again."), (_board("A by columns"), _board("B by rows")))
every_kind = pytest.mark.parametrize("kind", [WORDS, LAYOUT, BOARD], ids=lambda kind: kind.part)


def _start(database: Database, content: Catalogue, interview: str = "M9") -> Sitting:
    with database.write() as session:
        return service.start(session, 1, content, content.interviews[interview], NOW)


def _save(  # type: ignore[no-untyped-def]
    database: Database, content: Catalogue, sitting: Sitting, text: str, final: bool, now=NOW, kind: _Kind = WORDS
) -> None:
    with database.write() as session:
        found = _found(session, sitting)
        answering.save_answer(session, content, found, kind.part, text, final, now, kind.board_of(text))


def _is_kept(saved: Mapping[str, SittingAnswer], kind: _Kind, text: str, final: bool) -> bool:
    """Whether exactly this is there, and as final: a text, with what was drawn beside it."""
    rows = {kind.part: text, **({board_id(kind.part): kind.board_of(text)} if kind.board_of(text) else {})}
    same = {part: saved_board(row.answer) if part.endswith(".board") else row.answer for part, row in saved.items()}
    wanted = {part: saved_board(each or "") if part.endswith(".board") else each for part, each in rows.items()}
    return same == wanted and all(row.final is final for row in saved.values())


def _close(database: Database, content: Catalogue, sitting: Sitting, by: str, now=NOW) -> bool:  # type: ignore[no-untyped-def]
    with database.write() as session:
        return closing.close(session, content, _found(session, sitting), now, by)


def _found(session: Session, sitting: Sitting) -> Sitting:
    return service.find_sitting(session, 1, sitting.id)


def _together(*works: Callable[[], object]) -> list[object]:
    """What each came to, begun at once: its result, or the DomainError that refused it."""
    barrier, found = threading.Barrier(len(works)), dict[int, object]()

    def run(index: int, work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            found[index] = work()
        except DomainError as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(works), "one ended in an error of ours"
    return [found[index] for index in range(len(works))]


@every_kind
def test_killed_while_it_saves_the_draft_before_stays_and_the_next_is_taken(
    database: Database, content: Catalogue, kind: _Kind
) -> None:
    sitting, (first, second) = _start(database, content, kind.interview), kind.texts
    _save(database, content, sitting, first, final=False, kind=kind)
    with pytest.raises(_KilledError), database.write() as session:
        found = _found(session, sitting)
        answering.save_answer(session, content, found, kind.part, second, True, NOW, kind.board_of(second))
        raise _KilledError
    with database.read() as session:
        kept = stored.answers_of(session, sitting)
        assert _is_kept(kept, kind, first, final=False)
        assert kept[kind.part].reaction is None
    _save(database, content, sitting, second, final=True, kind=kind)
    with database.read() as session:
        kept = stored.answers_of(session, sitting)
        assert _is_kept(kept, kind, second, final=True)
        assert kept[kind.part].reaction is not None


def test_killed_while_it_closes_it_is_open_as_before_and_closes_once(
    database: Database, content: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    sitting = _start(database, content)
    _save(database, content, sitting, "freed after forward", final=True)

    def killed(*_: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "scorecard", killed)
        with pytest.raises(_KilledError):
            _close(database, content, sitting, "candidate")
    with database.read() as session:
        left = _found(session, sitting)
        assert (left.closed_at, left.closed_by, left.scorecard) == (None, None, None)
        assert service.list_evidence(session, 1) == []
    assert [_close(database, content, sitting, by) for by in ("candidate", "sweep")] == [True, False]


@every_kind
def test_of_two_tabs_that_give_an_answer_one_is_taken_and_is_reacted_to_once(
    database: Database, content: Catalogue, kind: _Kind
) -> None:
    sitting = _start(database, content, kind.interview)
    give = partial(_save, database, content, sitting, final=True, kind=kind)
    came = _together(*(partial(give, text) for text in kind.texts))
    refused = [each for each in came if isinstance(each, answering.AlreadyFinal)]
    assert len(refused) == 1
    with database.read() as session:
        kept = stored.answers_of(session, sitting)
    assert _is_kept(kept, kind, kind.texts[0 if came[0] is None else 1], final=True), "a text and its own board"
    assert kept[kind.part].reaction is not None


@every_kind
def test_at_the_deadline_what_was_taken_is_graded_and_what_was_refused_is_nowhere(
    database: Database, content: Catalogue, kind: _Kind
) -> None:
    """A draft in the last moment, the candidate's end, the touch after the deadline and the sweep, all at once."""
    sitting, text = _start(database, content, kind.interview), kind.texts[0]
    after = sitting.deadline_at + timedelta(seconds=1)

    def sweep() -> int:
        with database.write() as session:
            return closing.close_overdue(session, content, after)

    saved, ended, touched, swept = _together(
        lambda: _save(database, content, sitting, text, final=False, now=sitting.deadline_at, kind=kind),
        lambda: _close(database, content, sitting, "candidate", sitting.deadline_at),
        lambda: _close(database, content, sitting, "deadline", after),
        sweep,
    )
    assert sum([bool(ended), bool(touched), bool(swept)]) == 1, "one of them closed it"
    with database.read() as session:
        closed = _found(session, sitting)
        row = stored.scorecard_of(closed).row(kind.part)
        answers = session.scalars(select(SittingAnswer)).all()
        assert closed.closed_at == sitting.deadline_at
        assert bool(answers) == (saved is None) == (row.said != "")
        assert isinstance(saved, answering.TooLate | None)
        assert len(service.list_evidence(session, 1)) == sum(
            each.is_evidence for each in stored.scorecard_of(closed).rows
        )
        assert service.best_scores(session, 1).keys() == {kind.interview}


@every_kind
def test_a_clock_that_is_set_back_takes_nothing_back(database: Database, content: Catalogue, kind: _Kind) -> None:
    sitting, (first, second) = _start(database, content, kind.interview), kind.texts
    earlier = NOW - timedelta(hours=1)
    _save(database, content, sitting, first, final=False, kind=kind)
    _save(database, content, sitting, second, final=True, now=earlier, kind=kind)
    with database.read() as session:
        assert _is_kept(stored.answers_of(session, sitting), kind, second, final=True)
    assert _close(database, content, sitting, "candidate", earlier)
    with database.read() as session:
        closed = _found(session, sitting)
        closed.expected_level = ""
        assert closed.closed_at == closed.started_at, "it took no time, and not less"
        shown = pages.scorecard(session, content, closed)
        assert shown["minutes_used"] == 0.0
        assert [each.used_minutes for each in shown["debrief"].questions if each.used_minutes is not None] == [0.0]  # type: ignore[attr-defined]


def test_a_clock_that_jumped_ahead_and_back_leaves_what_it_closed_closed(
    database: Database, content: Catalogue
) -> None:
    sitting = _start(database, content)
    _save(database, content, sitting, "freed after forward", final=False)
    assert _close(database, content, sitting, "deadline", NOW + timedelta(days=1))
    with pytest.raises(answering.TooLate, match="closed; nothing was changed"):
        _save(database, content, sitting, "more", final=False, now=NOW)
    with database.read() as session:
        assert queries.find_open(session, 1) is None
        assert stored.scorecard_of(_found(session, sitting)).row("q3").said == "freed after forward"
