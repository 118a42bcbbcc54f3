"""The short form of a lab for a learner: what there is to arrange, and an arrangement handed in as its program.

It is judged by the lab's own judge. Passing it is a lesser pass of the lab (`service.list_evidence`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.codelabs import queries, service
from app.codelabs.models import CodeSubmission
from app.codelabs.outcome import PUZZLE_SHARE
from app.codelabs.shown import ShownPiece, ShownPuzzle
from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.content.code_puzzles import Puzzle
from app.core.errors import NotFound


def find_puzzle(lab: CodeLab) -> Puzzle:
    """Raises NotFound."""
    if lab.puzzle is None:
        raise NotFound(f"{lab.id} has no puzzle.")
    return lab.puzzle


def show_puzzle(
    session: Session, learner_id: int, content: Catalogue, lab: CodeLab, arranged: Sequence[str] | None = None
) -> ShownPuzzle:
    """A puzzle as its page needs it, with what was handed in last, or with `arranged`."""
    puzzle = find_puzzle(lab)
    head = puzzle.head
    newest = queries.find_newest(session, learner_id, lab.id, puzzle=True)
    passed = lab.id in queries.list_passed_puzzles(session, learner_id)
    kept = puzzle.arrangement(newest.code) if newest is not None else None
    if arranged is None:
        arranged = kept if kept is not None else untouched(puzzle)
    return ShownPuzzle(
        lab=lab.id,
        slug=lab.slug,
        title=lab.title,
        kind=head.kind,
        asks=head.asks,
        rules=head.rules,
        example=(head.example.says, head.example.cells) if head.example else None,
        wanted=len(head.right) if head.kind == "lines" else 0,
        minutes=head.minutes,
        status=service.standing(passed, newest is not None),
        counts=PUZZLE_SHARE,
        before=puzzle.before,
        after=puzzle.after,
        pieces=tuple(ShownPiece(letter=letter, code=code) for letter, code in head.pieces.items()),
        rows=head.rows,
        columns=head.columns,
        arranged=tuple(arranged),
        last_submission=service.show_submission(content, newest) if newest else None,
    )


def untouched(puzzle: Puzzle) -> tuple[str, ...]:
    """What a puzzle begins with: no line, or forward passes alone."""
    head = puzzle.head
    return () if head.kind == "lines" else ("F" * head.columns,) * len(head.rows)


def submit(session: Session, learner_id: int, lab: CodeLab, arranged: Sequence[str], now: datetime) -> CodeSubmission:
    """Queue the program that an arrangement makes. Raises DomainError where it is none, or where too many wait."""
    code = find_puzzle(lab).program(arranged)
    return service.hand_in_puzzle(session, learner_id, lab, code, now)


def moved(lines: Sequence[str], move: str) -> tuple[str, ...]:
    """The lines with one of them moved: `a:up`, `a:down`, `a:in` (to the end) or `a:out`."""
    letter, _, way = move.partition(":")
    found = list(lines)
    if way == "in" and letter not in found:
        return (*found, letter)
    if letter not in found:
        return tuple(found)
    at = found.index(letter)
    found.pop(at)
    if way != "out":
        found.insert(max(0, at + {"up": -1, "down": 1}.get(way, 0)), letter)
    return tuple(found)


def rows_of(puzzle: Puzzle, backward: Sequence[str]) -> tuple[str, ...]:
    """The rows of a grid of which these cells, `row.column`, are backward passes."""
    head = puzzle.head
    return tuple(
        "".join("B" if f"{row}.{column}" in backward else "F" for column in range(head.columns))
        for row in range(len(head.rows))
    )
