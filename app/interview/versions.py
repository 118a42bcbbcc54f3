"""Two tabs, or two devices, at one answer: what it is called that is typed over, and what is not written over. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from app.codelabs import service as codelabs
from app.content.coding import TaskQuestion
from app.interview.boards import Board, board_id
from app.interview.models import SittingAnswer
from app.interview.parts import Part, has_board

_BESIDE = "\0"  # between the words and the board: no text that is kept has it

Saved = Mapping[str, SittingAnswer]


def answer_to(part: Part, saved: Saved) -> str:
    """What stands as the answer to a part: what was saved last, before that the program that its editor opens with."""
    if part.id in saved:
        return saved[part.id].answer
    return part.question.lab.starter if isinstance(part.question, TaskQuestion) and part.kind == "coding" else ""


def version_of(part: Part, saved: Saved) -> str:
    """What the answer to a part, and what is drawn beside it, is called by whoever types over it."""
    return codelabs.version_of(_whole(part, answer_to(part, saved), _drawn(part, saved)))


def must_not_be_another(part: Part, saved: Saved, text: str, board: Board | None, over: str | None) -> None:
    """Raises Stale where `text`, with its `board` if one came with it, was typed `over` another than what is there."""
    if over is None:
        return
    there = _drawn(part, saved)
    drawn = there if board is None else board.model_dump_json(exclude_defaults=True)
    codelabs.must_not_be_another(_whole(part, answer_to(part, saved), there), _whole(part, text, drawn), over)


def _drawn(part: Part, saved: Saved) -> str:
    """The board beside an answer, as it is kept."""
    row = saved.get(board_id(part.id))
    return (row.answer if row else "") or "{}"


def _whole(part: Part, text: str, drawn: str) -> str:
    return f"{text}{_BESIDE}{drawn}" if has_board(part) else text
