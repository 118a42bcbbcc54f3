"""What is shown of code labs and submissions, to programs as JSON and to pages: the fields are the keys."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from app.content.code_labs import LabCheck
from labs.spec.code import Autopsy, Check, CodeError, OutputEvent, Trace

Standing = Literal["new", "tried", "passed"]


class _Shown(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ShownCheck(Check):
    """A check with what it is called."""

    title: str


class MistakeWords(_Shown):
    """A mistake in words, and the card that cures it."""

    title: str
    says: str
    cure: str | None


class ShownVerdict(_Shown):
    """A `Verdict` in words, without what only a proof and a trace need."""

    lab: str
    passed: bool
    score: float
    checks: tuple[ShownCheck, ...]
    mistake: str | None
    autopsy: Autopsy | None
    error: CodeError | None
    seed: int | None
    mode: str
    seconds: float
    mistake_says: MistakeWords | None


class ShownSubmission(_Shown):
    """Where a submission stands and, once it was judged, its verdict."""

    id: int
    lab: str
    mode: str
    status: str
    detail: str
    created_at: str
    ended_at: str | None
    chunks: int
    verdict: ShownVerdict | None
    queue_position: int | None = None


class ShownProgress(ShownSubmission):
    """A submission as far as it has come, also while it is judged."""

    ended: bool
    is_being_cancelled: bool
    code: str
    checks: tuple[ShownCheck, ...]
    output: tuple[OutputEvent, ...]
    phase: str


class ListedLab(_Shown):
    """A lab in the list, with where the learner stands."""

    id: str
    slug: str
    title: str
    about: str
    minutes: int
    signature: str
    concepts: tuple[str, ...]
    status: Standing
    puzzle: Standing | None = None
    puzzle_minutes: int | None = None


class ShownSolution(_Shown):
    """A right program in another style."""

    name: str
    style: str
    code: str


class ShownLab(ListedLab):
    """A lab as its page needs it. `reference` and `right` are there only once it was passed."""

    statement_html: str
    starter: str
    checks: tuple[LabCheck, ...]
    interview_line: str
    hints: tuple[str, ...]
    hints_left: int
    next_hint_leaves: float
    draft: str
    draft_version: str
    related: tuple[dict[str, str], ...]
    last_submission: ShownSubmission | None
    reference: str | None = None
    right: tuple[ShownSolution, ...] = ()


class ShownPiece(_Shown):
    """A line, or several that belong together, by its letter."""

    letter: str
    code: str


class ShownPuzzle(_Shown):
    """A lab's short form: lines to arrange between `before` and `after`, or `rows` of so many `columns` to fill.
    `arranged` is what was handed in last: letters in their order, or rows of F and B. `wanted` is how many lines are
    needed, of a grid 0; `rules` and `example`, its words and its cells, say how a grid is read."""

    lab: str
    slug: str
    title: str
    kind: Literal["lines", "grid"]
    asks: str
    rules: tuple[str, ...]
    example: tuple[str, str] | None
    wanted: int
    minutes: int
    status: Standing
    counts: float
    before: str
    after: str
    pieces: tuple[ShownPiece, ...]
    rows: tuple[str, ...]
    columns: int
    arranged: tuple[str, ...]
    last_submission: ShownSubmission | None


class OpenedHints(_Shown):
    """The hints that are open, and what they have left of what passing counts."""

    hints: tuple[str, ...]
    hints_left: int
    share_left: float


class SavedDraft(_Shown):
    saved_at: str
    version: str


class Traces(_Shown):
    """The calls of the first case, and those of the reference; none where there are none."""

    trace: Trace | None
    reference: Trace | None


class EventChunk(_Shown):
    """Events of a submission as they were stored, behind the chunk before."""

    sequence: int
    events: tuple[dict[str, JsonValue], ...]
