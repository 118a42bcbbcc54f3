"""What the page of a sitting under way is handed: one part of it, and how far all are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.content.coding import TaskQuestion
from app.content.interview_schemas import Interview
from app.core.errors import DomainError, Stale
from app.grading.hints import share_left
from app.grading.questions.choice import ChoiceQuestion
from app.grading.questions.configuration import ConfigurationQuestion
from app.grading.questions.layout import Layout, LayoutQuestion
from app.grading.questions.number import written_as
from app.grading.questions.order import OrderItem, OrderQuestion
from app.interview import drawing, offers, programs, stored, timing, versions
from app.interview.boards import Board, board_id, heard, saved_board
from app.interview.givens import GivenReply, replies_before, replies_to
from app.interview.hints import points_left, said_hints
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import (
    Answers,
    Part,
    Values,
    built_on,
    has_board,
    known_to,
    parts_of,
    scope_of,
)
from app.interview.prompts import prompt
from app.interview.questions import Scene, configuration_of, layout_of, offered, scene, to_arrange
from app.words import capital

# What an answer is called that is not told in a few words.
_AS_GIVEN = {
    "layout": "your layout",
    "order": "your order",
    "choice": "your choice",
    "set": "your ticks",
    "configuration": "your plan",
}


@dataclass(frozen=True)
class PartRow:
    """A part of a sitting: what it asks (None where it is not asked), and what was answered. `number` counts what is
    certain to be asked; what the interviewer asks in between has that of the part before."""

    part: Part
    number: int
    prompt: Markup | None
    answer: str
    final: bool
    saved_at: datetime | None

    @property
    def short(self) -> str:
        if self.part.role != "asked":
            return {"again": "sure?", "challenge": "sure?", "own": "your layout"}.get(self.part.role, self.part.role)
        return "follow-up" if self.part.is_follow_up else self.part.question.title

    @property
    def brief(self) -> str:
        """Where there are many: its number, or that the interviewer asks in between."""
        return str(self.number) if self.part.role == "asked" else "?"


@dataclass(frozen=True)
class SittingPage:
    """A sitting under way, with the part that is shown. `left` says the time in words, `written_as` how to answer.

    `earlier` is the answer that the interviewer asks about, where the part comes of one; `replies`, what there is to
    compute with that had to be asked for; `scene`, the problem that it is a part of; `plan`, the configuration that it
    asks for; `order`, the items that it has arranged; `layout`, the cluster to lay axes on; `board`, what is drawn
    beside the words; `question`, what was asked at first where its answer is asked about. `hints` are open, and leave
    `points` of the part's. `version` is that of the answer that is typed over, and `other` that answer itself where
    what was typed was typed over another.
    """

    sitting: Sitting
    interview: Interview
    rows: Sequence[PartRow]
    current: PartRow
    error: DomainError | None
    seconds_left: int
    left: str
    written_as: str
    choice: ChoiceQuestion | None
    replies: tuple[GivenReply, ...]
    earlier: str
    hints: tuple[str, ...]
    points: float
    scene: Scene | None
    plan: ConfigurationQuestion | None
    lab: CodeLab | None
    run: codelabs.ShownProgress | None
    instead: str
    order: OrderQuestion | None
    layout: LayoutQuestion | None
    board: Board | None
    question: Markup | None
    version: str
    other: str | None

    @property
    def certain(self) -> int:
        """How many parts are asked whatever is answered."""
        return sum(row.part.role == "asked" for row in self.rows)

    @property
    def laid(self) -> Layout | None:
        """The layout as it was placed, or as it was that is asked about; None where nothing was placed yet."""
        return self.layout.filled(self.current.answer or self.earlier) if self.layout else None

    @property
    def kind(self) -> str:
        return self.current.part.kind

    @property
    def other_said(self) -> str | None:
        """The other answer as a person reads it."""
        if not self.other:
            return self.other
        if self.choice:
            return self.choice.said(self.other)
        if self.order and (placed := self.order.placed(self.other)):
            return "\n".join(f"{place}. {item.text.striptags()}" for place, item in enumerate(placed, 1))
        return capital(self.layout.said(self.other)) if self.layout else self.other

    @property
    def is_typed(self) -> bool:
        """Whether it is written into a field."""
        return self.kind in ("text", "coding", "number", "configuration")

    @property
    def next_hint(self) -> int | None:
        """The hint that may be opened now, from 1."""
        part, following = self.current.part, len(self.hints) + 1
        is_hinted = part.role == "asked" and not part.is_follow_up and not self.current.final
        return following if is_hinted and following <= len(part.question.hints) else None

    @property
    def points_then(self) -> float:
        """What the next hint leaves of the points."""
        return self.current.part.points * share_left(len(self.hints) + 1)

    @property
    def chosen(self) -> list[str]:
        """The options that are ticked."""
        found = self.choice.chosen(self.current.answer or self.earlier) if self.choice else None
        return [option.id for option in found or ()]

    @property
    def arranged(self) -> list[OrderItem] | None:
        """The items as they were put, or as the order was that is asked about; None where nobody moved one yet."""
        return self.order.placed(self.current.answer or self.earlier) if self.order else None

    @property
    def earlier_text(self) -> str:
        """The answer that is asked about, as a person reads it."""
        return _AS_GIVEN.get(self.kind, self.earlier)


def show_part(
    session: Session,
    content: Catalogue,
    sitting: Sitting,
    wanted: str,
    now: datetime,
    *,
    typed: str | None = None,
    error: DomainError | None = None,
) -> SittingPage:
    """One part of a sitting under way: the `wanted` one, else the first that is open, with what was `typed`."""
    interview = offers.interview_of(content, sitting)
    values = drawing.values_of(interview, sitting.drawn)
    saved = stored.answers_of(session, sitting)
    parts, texts = _conversation(interview, saved)
    numbers = accumulate(int(part.role == "asked") for part in parts)
    rows = [_row(part, number, values, texts, saved) for number, part in zip(numbers, parts, strict=True)]
    asked = [row for row in rows if row.prompt is not None]
    still_open = next((row for row in asked if not row.final), asked[-1])
    current = next((row for row in asked if row.part.id == wanted), still_open)
    if current.part.question is still_open.part.question and still_open.part.reaction:
        current = still_open  # what was asked about the answer waits for a reply
    if typed is not None:
        current = replace(current, answer=typed)
    seconds, part = timing.seconds_left(sitting.deadline_at, now), current.part
    plan = configuration_of(part, known_to(part, values, texts) or values) if part.kind == "configuration" else None
    return SittingPage(
        sitting=sitting,
        interview=interview,
        rows=rows,
        current=current,
        error=error,
        seconds_left=seconds,
        left=timing.left_text(seconds),
        written_as=written_as(part.source.unit) if part.source.unit is not None else plan.written_as if plan else "",
        choice=offered(part, values, texts, sitting.id) if part.kind in ("choice", "givens", "set") else None,
        replies=_replies(part, parts, values, current if current.final else None, texts),
        earlier=_earlier(part, saved),
        hints=said_hints(part, {each: answer.answer for each, answer in saved.items()}),
        points=points_left(part, saved),
        scene=scene(part.question, values),
        plan=plan,
        lab=part.question.lab if isinstance(part.question, TaskQuestion) and part.kind == "coding" else None,
        run=programs.standing(session, content, sitting, saved.get(part.id)),
        instead=sitting.drawn.get("instead", ""),
        order=to_arrange(part, values, texts, sitting.id) if part.kind == "order" else None,
        layout=_cluster_of(part, values, texts),
        board=board_of(saved, part.id) if has_board(part) else None,
        question=_asked_at_first(part, rows),
        version=versions.version_of(part, saved),
        other=versions.answer_to(part, saved) if isinstance(error, Stale) else None,
    )


def _asked_at_first(part: Part, rows: Sequence[PartRow]) -> Markup | None:
    """The question whose answer the interviewer asks about."""
    about = _about(part)
    return next((row.prompt for row in rows if row.part.id == about), None)


def _cluster_of(part: Part, values: Values, texts: Answers) -> LayoutQuestion | None:
    """The cluster that a part has axes laid on."""
    if part.kind != "layout":
        return None
    return layout_of(part, known_to(part, values, texts) or scope_of(part.question, values))


def board_of(saved: Mapping[str, SittingAnswer], part: str) -> Board:
    """What is drawn beside the words of a part."""
    row = saved.get(board_id(part))
    return saved_board(row.answer if row else "")


def _replies(
    part: Part, parts: list[Part], values: Values, given: PartRow | None, texts: Answers
) -> tuple[GivenReply, ...]:
    """What the interviewer said to what was asked for: at once where this was `given`, then where it is needed."""
    if given and part.kind == "givens":
        return replies_to(part, scope_of(part.question, values), given.answer)
    return replies_before(part, parts, values, texts)


def _earlier(part: Part, saved: Mapping[str, SittingAnswer]) -> str:
    """The answer that is asked about; nothing where the part asks something new."""
    of = _about(part)
    return saved[of].answer if of else ""


def _about(part: Part) -> str | None:
    """The part whose answer `part` is asked about."""
    of_words = dict.fromkeys(("probe", "challenge", "own"), part.question.id)
    return {"again": part.id.removesuffix(".again"), **of_words}.get(part.role)


def _conversation(interview: Interview, saved: Mapping[str, SittingAnswer]) -> tuple[list[Part], Answers]:
    """Every part so far, with what the interviewer asked in between, and the answers that later ones go by."""
    reactions = stored.reactions_in(saved)
    given = heard({part: answer.answer for part, answer in saved.items() if answer.final})
    return parts_of(interview, reactions), built_on(given, reactions)


def _row(part: Part, number: int, values: Values, texts: Answers, saved: Mapping[str, SittingAnswer]) -> PartRow:
    given, asked = saved.get(part.id), prompt(part, values, texts)
    answer, final = versions.answer_to(part, saved), given is not None and given.final
    return PartRow(part, number, asked, answer, final=final, saved_at=given.saved_at if given else None)


def next_part(session: Session, content: Catalogue, sitting: Sitting, part_id: str) -> str | None:
    """The part behind `part_id` that is asked and still open; else the first open one; None where all is answered."""
    interview = offers.interview_of(content, sitting)
    values = drawing.values_of(interview, sitting.drawn)
    saved = stored.answers_of(session, sitting)
    parts, texts = _conversation(interview, saved)
    ids = [part.id for part in parts if prompt(part, values, texts) is not None]
    still_open = [each for each in ids if not (each in saved and saved[each].final)]
    behind = [each for each in still_open if ids.index(each) > ids.index(part_id)] if part_id in ids else []
    return next(iter(behind or still_open), None)
