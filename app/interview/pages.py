"""What the interview's templates are handed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content import recipes
from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.content.coding import CodingRound, TaskQuestion
from app.content.concept_map import named
from app.content.interview_schemas import Interview
from app.content.rounds import Round
from app.core.errors import DomainError, NotFound, Stale
from app.grading import levels
from app.grading.hints import share_left
from app.grading.questions.choice import ChoiceQuestion
from app.grading.questions.configuration import ConfigurationQuestion
from app.grading.questions.layout import Layout, LayoutQuestion
from app.grading.questions.number import written_as
from app.grading.questions.order import OrderItem, OrderQuestion
from app.interview import drawing, offers, programs, queries, service, stored, timing, versions
from app.interview.boards import Board, board_id, heard, saved_board
from app.interview.debrief import debrief
from app.interview.earlier import MOST_EARLIER, Before, learned
from app.interview.expectation import NOT_SAID, compare, over_sittings
from app.interview.givens import GivenReply, replies_before, replies_to
from app.interview.hints import points_left, said_hints
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import (
    FOLLOW_UP_SHARE,
    PUSHED_SHARE,
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
from app.interview.scoring import NOT_ASKED, Scorecard
from app.theory.planner.groups import LaidCluster

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
            return {"again": "sure?", "own": "your layout"}.get(self.part.role, self.part.role)
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
    def is_typed(self) -> bool:
        """Whether it is written into a field, where two tabs may hold two texts that a person can choose between."""
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

    @property
    def all_final(self) -> bool:
        """Whether everything that is asked was answered."""
        return all(row.final for row in self.rows if row.prompt is not None)


def index(session: Session, learner_id: int, content: Catalogue, now: datetime) -> dict[str, object]:
    """The interviews there are, the one under way and the closed ones."""
    opened = queries.find_open(session, learner_id)
    if opened is not None and timing.is_over(opened.deadline_at, now):
        opened = None  # the next touch or sweep closes it
    closed = queries.list_closed(session, learner_id)
    expectations = service.list_expectations(session, learner_id)
    results = service.list_results(session, learner_id)
    return {
        "interviews": [_offer(content, each, results.get(each.id, [])) for each in _in_order(content)],
        "levels": levels.for_page(),
        "opened": opened,
        "left": timing.left_text(timing.seconds_left(opened.deadline_at, now)) if opened else "",
        "closed": [_closed(content, each) for each in closed],
        "expectations": over_sittings(expectations),
        "generate": generation(content, {}, None),
    }


def generation(content: Catalogue, said: Mapping[str, str], error: DomainError | None) -> dict[str, object]:
    """The form of a generated sitting as it was filled in, with what is wrong by field."""
    return {
        "said": {
            "minutes": "30",
            "focus": recipes.ANYTHING,
            "role": recipes.ANYTHING,
            "seed": "",
            "coding": "",
            **said,
        },
        "foci": recipes.foci(content),
        "roles": content.roles,
        "shortest": recipes.SHORTEST,
        "longest": recipes.LONGEST,
        "wrong": {each.field: each for each in error.violations} if error else {},
        "error": error,
    }


def _closed(content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """A closed sitting as the index lists it. Before its level was guessed it does not say it."""
    return {
        "sitting": sitting,
        "title": _title(content, sitting),
        "is_seen": sitting.expected_level is not None,
        "expectation": compare(sitting.expected_level, stored.scorecard_of(sitting).level),
    }


def _title(content: Catalogue, sitting: Sitting) -> str:
    """What a sitting is called; its interview's id alone where content no longer has it."""
    try:
        return f"{sitting.interview_id}, {offers.interview_of(content, sitting).title}"
    except NotFound:
        return sitting.interview_id


def _in_order(content: Catalogue) -> list[Interview]:
    return sorted(content.interviews.values(), key=lambda each: (each.id[0], int(each.id[1:])))


def _offer(content: Catalogue, interview: Interview, results: list[Sitting]) -> dict[str, object]:
    """An interview as the index shows it: what it probes, how long it is and how it went."""
    scores = [stored.scorecard_of(each).score for each in results]
    return {
        "interview": interview,
        "probes": named(content.concepts, interview.concepts),
        "parts": len(parts_of(interview)),
        "last": results[-1] if results else None,
        "best": max(scores) if len(scores) > 1 else None,
    }


def intro(content: Catalogue, interview: Interview, opened: Sitting | None) -> dict[str, object]:
    """What to expect of an interview."""
    return {
        "interview": interview,
        "opened": opened,
        "content": content,
        "parts": len(parts_of(interview)),
        "probes": named(content.concepts, interview.concepts),
        "words": sum(question.kind == "text" for question in interview.questions),
        "follow_ups": sum(question.follow_up is not None for question in interview.questions),
        "levels": levels.for_page(),
        "share": FOLLOW_UP_SHARE,
        "pushed_share": PUSHED_SHARE,
        "problems": _problems(interview) if isinstance(interview, Round) else [],
        "hint_share": share_left(1) if any(question.hints for question in interview.questions) else None,
        "givens": any(question.kind == "givens" for question in interview.questions),
        # of what was generated alone
        "recipe": (),
        "on_focus": None,
        "is_weakest": False,
        "was_sat": False,
        # of a coding round, where programs cannot be run
        "instead": "",
        "is_coding": isinstance(interview, CodingRound),
        "writes": any(question.kind == "coding" for question in interview.questions),
    }


def _problems(whole: Round) -> list[dict[str, object]]:
    """The problems of a round, with what of it they are."""
    asked = {name: [each for each in whole.questions if each.problem.id == name] for name in whole.problems}
    return [
        {
            "problem": whole.problems[name],
            "parts": len(questions),
            "minutes": sum(each.minutes for each in questions),
            "points": sum(each.points for each in questions),
        }
        for name, questions in asked.items()
    ]


def sitting(
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
        board=_board(saved, part.id) if has_board(part) else None,
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


def _board(saved: Mapping[str, SittingAnswer], part: str) -> Board:
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
    return {"again": part.id.removesuffix(".again"), "probe": part.question.id, "own": part.question.id}.get(part.role)


def _conversation(interview: Interview, saved: Mapping[str, SittingAnswer]) -> tuple[list[Part], Answers]:
    """Every part so far, with what the interviewer asked in between, and the answers that later ones go by."""
    reactions = stored.reactions_in(saved)
    given = heard({part: answer.answer for part, answer in saved.items() if answer.final})
    return parts_of(interview, reactions), built_on(given, reactions)


def _row(part: Part, number: int, values: Values, texts: Answers, saved: Mapping[str, SittingAnswer]) -> PartRow:
    given, asked = saved.get(part.id), prompt(part, values, texts)
    answer, final = versions.answer_to(part, saved), given is not None and given.final
    return PartRow(part, number, asked, answer, final=final, saved_at=given.saved_at if given else None)


def next_part(session: Session, content: Catalogue, sitting: Sitting, part_id: str) -> str:
    """The part behind `part_id` that is asked and still open; else the first open one; else `part_id`."""
    interview = offers.interview_of(content, sitting)
    values = drawing.values_of(interview, sitting.drawn)
    saved = stored.answers_of(session, sitting)
    parts, texts = _conversation(interview, saved)
    ids = [part.id for part in parts if prompt(part, values, texts) is not None]
    still_open = [each for each in ids if not (each in saved and saved[each].final)]
    behind = [each for each in still_open if ids.index(each) > ids.index(part_id)] if part_id in ids else []
    return (behind or still_open or [part_id])[0]


def expectation(content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """A closed sitting before its debrief."""
    return {
        "sitting": sitting,
        "interview": offers.interview_of(content, sitting),
        "choices": [{"id": each, "text": each.capitalize()} for each in levels.NAMES]
        + [{"id": NOT_SAID, "text": "I would rather not say"}],
        "closed_by": _closed_by(sitting),
    }


def judging(content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """A closed sitting whose programs are still with the judge."""
    return {"sitting": sitting, "interview": offers.interview_of(content, sitting), "closed_by": _closed_by(sitting)}


def _closed_by(sitting: Sitting) -> str:
    return "you ended it" if sitting.closed_by == "candidate" else "time was up"


def scorecard(session: Session, content: Catalogue, sitting: Sitting) -> dict[str, object]:
    """The scorecard of a closed sitting."""
    interview: Interview = offers.interview_of(content, sitting)
    saved = stored.answers_of(session, sitting)
    card = _with_questions(stored.scorecard_of(sitting), interview, sitting, saved)
    used = ((sitting.closed_at or sitting.deadline_at) - sitting.started_at).total_seconds()
    values = drawing.values_of(interview, sitting.drawn)
    scenes = {question.id: scene(question, values) for question in interview.questions}
    earlier = _earlier_sittings(session, content, interview, sitting)
    return {
        "sitting": sitting,
        "interview": interview,
        "scenes": scenes,
        "boards": {part.id: _board(saved, part.id) for part in parts_of(interview) if has_board(part)},
        "laid": _laid(interview, card, values, saved),
        "card": card,
        "debrief": debrief(content, interview, sitting, card, saved, stored.reactions_in(saved)),
        "earlier": earlier,
        "learned": learned(earlier[-1].card, card) if earlier else (),
        "levels": levels.for_page(),
        "minutes_used": used / 60,
        "counts_for": named(content.concepts, interview.concepts),
        "html": Markup,
        "closed_by": _closed_by(sitting),
        "expectation": compare(sitting.expected_level, card.level),
        "expectations": over_sittings(service.list_expectations(session, sitting.learner_id)),
    }


def _laid(
    interview: Interview, card: Scorecard, values: Values, saved: Mapping[str, SittingAnswer]
) -> dict[str, dict[str, LaidCluster]]:
    """The layout that was placed and the best one, as they lie on the cluster, by part."""
    texts = {part: answer.answer for part, answer in saved.items()}
    found: dict[str, dict[str, LaidCluster]] = {}
    for part in parts_of(interview):
        known = known_to(part, values, texts) if part.kind == "layout" else None
        if known is None or card.row(part.id).verdict == NOT_ASKED:
            continue
        question = layout_of(part, known)
        mine = question.filled(texts.get(part.id, ""))
        yours = {"Yours": question.figured(mine)} if mine else {}
        found[part.id] = yours | {f"The best the search finds: {question.key_text}": question.best().cluster}
    return found


def _earlier_sittings(session: Session, content: Catalogue, interview: Interview, sitting: Sitting) -> list[Before]:
    """The last sittings of this interview before this one, oldest first, of those whose debrief was opened."""
    results = service.list_results(session, sitting.learner_id).get(interview.id, [])
    before = [each for each in results if each.id < sitting.id and each.expected_level is not None]
    return [_before(session, content, each) for each in before[-MOST_EARLIER:]]


def _before(session: Session, content: Catalogue, sitting: Sitting) -> Before:
    card, saved = stored.scorecard_of(sitting), stored.answers_of(session, sitting)
    interview = offers.interview_of(content, sitting)  # of a coding round each has tasks of its own
    debriefed = debrief(content, interview, sitting, card, saved, stored.reactions_in(saved))
    return Before(sitting.id, sitting.started_at, card, debriefed.criteria)


def _with_questions(
    card: Scorecard, interview: Interview, sitting: Sitting, saved: Mapping[str, SittingAnswer]
) -> Scorecard:
    """The card with what was asked; one of an earlier version kept no questions, and is given today's."""
    if all(row.asked or row.verdict == NOT_ASKED for row in card.rows):
        return card
    values, texts = drawing.values_of(interview, sitting.drawn), {part: answer.answer for part, answer in saved.items()}
    asked = {part.id: str(prompt(part, values, texts) or "") for part in parts_of(interview)}
    return Scorecard(tuple(replace(row, asked=row.asked or asked.get(row.id, "")) for row in card.rows))
