"""What a sitting asks: its questions and follow-ups, what the interviewer asks on account of an answer, and which of
the candidate's own numbers each goes by. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from app.content.challenges import Questioned
from app.content.coding import TaskQuestion
from app.content.composed import FOLLOW_UP, ChosenQuestion
from app.content.interview_schemas import FollowUp, Interview, OwnLayout, ProbedPoint, Question
from app.content.live import Computed, Expressions
from app.content.questions import make_layout
from app.content.rounds import BorrowedQuestion
from app.grading.quantities import Unreadable
from app.grading.questions import carried_values, read_number
from app.grading.rubrics.likeness import Claim
from app.grading.rubrics.reading import NO_WORDINGS
from app.grading.rubrics.wordings import Wordings
from app.interview.layouts import read_layout

FOLLOW_UP_SHARE = 0.4  # of a number question's points
PUSHED_SHARE = 0.5  # of what was lost, for who puts it right when asked

NO_LONGER_STORED = ("picked_last", "before")  # of what earlier versions kept of a reaction

Values = Mapping[str, Any]
Answers = Mapping[str, str]
Role = Literal["asked", "again", "probe", "challenge", "harder", "own"]


@dataclass(frozen=True)
class Reaction:
    """What the interviewer asks on account of an answer, decided once, when it was given, and stored with it.

    `asks` is the part that comes of it. A wrong number is `said` back, with the `slip` that led to it; of a wrong
    order, the item that stands too early; of a wrong layout or plan, what is wrong with it and, of a plan, what it
    `comes_to`; of a choice, the option that is wrong, or `slip` alone where one is missing. Where it was asked in this
    sitting before, `same_as` is the question it was asked about, and `was_put_right` what came of it there; `yours` is
    a wrong number in base units. An answer in words is quoted where it said the opposite (`quote`), and brought back
    where none of its points was heard (`astray`). A probe goes on from what was `picked` up of it, and from what was
    `noted` of the reply before, which may have said what it was asked for; what was picked `is_near` where it may say
    the point already; what is quoted is the answer to the question behind it where that `is_answered`. Something false
    is read back (`quote`) where it is challenged. A `remark` comes first: which of the candidate's own numbers it goes
    by although that was changed since, that a board says something else than the words, or what a number about the own
    layout is.
    """

    asks: str
    said: str = ""
    slip: str | None = None
    quote: str = ""
    astray: bool = False
    picked: str = ""
    noted: str = ""
    noted_as_said: bool = False
    is_near: bool = False
    is_answered: bool = False
    comes_to: str = ""
    same_as: str = ""
    was_put_right: bool = False
    yours: float | None = None
    remark: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Reaction:
        """What `to_json` stored, now or in an earlier version."""
        return cls(**{name: value for name, value in stored.items() if name not in NO_LONGER_STORED})


Reactions = Mapping[str, Reaction]  # by the part whose answer they follow
NOTHING_ASKED: Reactions = {}


@dataclass(frozen=True)
class Part:
    """One thing to answer in a sitting: a question, the follow-up to it, or what the interviewer asks in between.

    What is not in words and is asked `again` is worth half of what it was; a `probe` asks for one `point` of an answer
    in words, for half of it, and a `challenge` about something false in it, for half of what that contradicts; a
    `harder` variant, and a number that follows from the candidate's `own` layout, are worth nothing. `challenges` are
    all that its answer in words is heard for, `claims` what it is compared with.
    """

    id: str
    question: Question
    is_follow_up: bool
    points: float
    builds_on: tuple[Question, ...] = ()
    leads_up: tuple[Question, ...] = ()  # the numbers that it builds on, and that these do, in order
    let: Mapping[str, str] = field(default_factory=dict)  # what the interview computes, to explain a wrong number
    wordings: Wordings = NO_WORDINGS  # through which an answer in words is read
    role: Role = "asked"
    reaction: Reaction | None = None  # that it comes of
    point: ProbedPoint | None = None
    own: OwnLayout | None = None
    challenge: Questioned | None = None
    challenges: tuple[Questioned, ...] = ()
    claims: tuple[Claim, ...] = ()
    home: str = ""  # the interview that its question stands in

    @property
    def source(self) -> Question | FollowUp:
        """Where its prompt, key and slips stand."""
        if self.own:
            return self.own
        if self.role == "harder" and self.question.harder:
            return self.question.harder
        return self.question.follow_up if self.is_follow_up and self.question.follow_up else self.question

    @property
    def kind(self) -> str:
        return "number" if self.own else self.question.kind

    @property
    def title(self) -> str:
        said = {
            "again": ", asked again",
            "probe": ", probe",
            "challenge": ", questioned",
            "harder": ", harder",
            "own": ", your layout",
        }.get(self.role, "")
        return self.question.title + (", follow-up" if self.is_follow_up else "") + said

    @property
    def builds_on_own(self) -> bool:
        """Whether it is about the candidate's own number of its question."""
        return self.is_follow_up or self.role == "harder"

    @property
    def goes_by_own_numbers(self) -> bool:
        """Whether the candidate's own numbers decide what is right."""
        return self.builds_on_own or self.own is not None or any(earlier.kind == "number" for earlier in self.builds_on)


def parts_of(interview: Interview, reactions: Reactions = NOTHING_ASKED) -> list[Part]:
    """Every part in order; follow-ups and what `reactions` ask come right behind what they are about."""
    found: list[Part] = []
    by_id = {question.id: question for question in interview.questions}
    for question in interview.questions:
        earlier = tuple(by_id[each] for each in question.builds_on)
        following = question.points * FOLLOW_UP_SHARE if question.follow_up else 0.0
        let = _let_of(question, interview)
        numbers = _numbers_before(question, by_id)
        whole = Part(question.id, question, False, float(question.points), earlier, numbers, let, interview.wordings)
        if question.kind == "text":
            home = _home_of(question, interview)
            whole = replace(
                whole,
                challenges=home.challenges_about(question),
                claims=home.claims_about(question.name),
                home=home.id,
            )
        found += _with_reactions(replace(whole, points=question.points - following), reactions)
        if question.follow_up:
            follow = replace(whole, id=f"{question.id}.{FOLLOW_UP}", is_follow_up=True, points=following)
            found += _with_reactions(follow, reactions)
    return found


def _home_of(question: Question, interview: Interview) -> Interview:
    return question.source if isinstance(question, ChosenQuestion) else interview


def _numbers_before(question: Question, by_id: Mapping[str, Question]) -> tuple[Question, ...]:
    found: list[Question] = []
    for earlier in (by_id[each] for each in question.builds_on):
        found += [each for each in (*_numbers_before(earlier, by_id), earlier) if each.kind == "number"]
    return tuple(dict.fromkeys(found))


def _let_of(question: Question, interview: Interview) -> Mapping[str, str]:
    if isinstance(question, BorrowedQuestion):
        return question.problem.let
    return question.source.let if isinstance(question, ChosenQuestion) else interview.let


def scope_of(question: Question, values: Values) -> Values:
    """Those of a sitting's values that a question of an interview goes by: in a generated sitting its source's, of a
    number that is asked about a program its own."""
    if isinstance(question, TaskQuestion):
        return {**values, **question.drawn}
    return values[question.source.id] if isinstance(question, ChosenQuestion) else values


def _with_reactions(part: Part, reactions: Reactions) -> list[Part]:
    """A part, and what is asked on account of its answer, and of the answer to that."""
    found = [part]
    while (reaction := reactions.get(found[-1].id)) and (following := _part_of(part, reaction)):
        found.append(following)
    return found


def _part_of(part: Part, reaction: Reaction) -> Part | None:
    """What `reaction` to `part` asks; None where today's content no longer has it."""
    about = replace(part, id=reaction.asks, reaction=reaction)
    if reaction.asks == again_id(part.id):
        return replace(about, role="again", points=part.points * PUSHED_SHARE)
    if reaction.asks == harder_id(part):
        return replace(about, role="harder", points=0.0, is_follow_up=False) if part.question.harder else None
    if own := next((each for each in part.question.own if own_id(part, each) == reaction.asks), None):
        return replace(about, role="own", own=own, points=0.0)
    challenge = next((each for each in part.challenges if challenge_id(part, each) == reaction.asks), None)
    if challenge is not None:
        worth = sum(_worth(part, each) for each in part.question.rubric if each.id in contradicted_by(challenge, part))
        return replace(about, role="challenge", challenge=challenge, points=worth * PUSHED_SHARE)
    point = next((each for each in part.question.rubric if probe_id(part, each) == reaction.asks and each.ask), None)
    if point is None:
        return None
    return replace(about, role="probe", point=point, points=_worth(part, point) * PUSHED_SHARE)


def _worth(part: Part, point: ProbedPoint) -> float:
    return part.points * point.weight / sum(each.weight for each in part.question.rubric)


def contradicted_by(challenge: Questioned, part: Part) -> frozenset[str]:
    """The points of the question of `part` that cannot stand beside what is false."""
    points = (each.rsplit(".", 1) for each in challenge.contradicts)
    return frozenset(point for question, point in points if question == f"{part.home}.{part.question.name}")


def has_board(part: Part) -> bool:
    """Whether a whiteboard stands beside it."""
    return part.question.board and part.role == "asked"


def again_id(part: str) -> str:
    """The part that questions the wrong number said in `part`."""
    return f"{part}.again"


def harder_id(part: Part) -> str:
    """The part that asks a harder variant of a question."""
    return f"{part.question.id}.harder"


def own_id(part: Part, own: OwnLayout) -> str:
    """The part that asks about the layout that an answer in words commits to."""
    return f"{part.question.id}.own.{own.id}"


def probe_id(part: Part, point: ProbedPoint) -> str:
    """The part that asks for a point of an answer in words."""
    return f"{part.question.id}.probe.{point.id}"


def challenge_id(part: Part, challenge: Questioned) -> str:
    """The part that asks about something false in an answer in words."""
    return f"{part.question.id}.challenge.{challenge.id}"


def built_on(answers: Answers, reactions: Reactions) -> dict[str, str]:
    """What later parts go by: the number said last. One that is questioned leads nowhere until that is answered; it is
    kept beside, for the parts of problems, which are all asked at once."""
    found = dict(answers)
    for part, reaction in reactions.items():
        if reaction.asks == again_id(part) and part in found:
            said = answers.get(reaction.asks, "").strip()
            if said:
                found[part] = said
            else:
                found[_questioned_id(part)] = found.pop(part)
    return found


def _questioned_id(part: str) -> str:
    return f"{part}.questioned"


def known_to(part: Part, values: Values, answers: Answers) -> dict[str, object] | None:
    """What a part's expressions see: the values, and the candidate's own numbers; None where one is missing.

    What was not asked for is given, so a missing question for givens keeps nothing from being computed. A part of a
    problem sees the values of that problem alone, and what was said in its earlier parts as `own`.
    """
    if isinstance(part.question, BorrowedQuestion):
        mine: dict[str, float] = {}
        for id_, carried in part.question.carries.items():
            text = answers.get(id_) or answers.get(_questioned_id(id_), "")
            if (value := read(text, carried.unit)) is not None:
                mine[carried.id] = value
        return {**values[part.question.problem.id], "own": mine}
    values = scope_of(part.question, values)
    if any(not answers.get(each.id, "").strip() for each in part.builds_on if each.kind != "givens"):
        return None
    numbers = [each for each in (*part.builds_on, part.question) if each.kind == "number"]
    own = {each.id: value for each in numbers if (value := _own(each, answers)) is not None}
    said = carried_values((each.id for each in part.builds_on if each.kind == "number"), own)
    if said is not None:
        said = {each.name: said[each.id] for each in part.builds_on if each.id in said}
    if said is None or (part.builds_on_own and part.question.id not in own):
        return None
    known = {**values, "said": said, **({"answer": own[part.question.id]} if part.builds_on_own else {})}
    if part.own is None:
        return known
    layout = layout_said(part, known, answers.get(part.question.id, ""))
    return {**known, "layout": layout} if layout else None


def by_theory(part: Part, known: Values) -> dict[str, object]:
    """`known` with what is right in the place of the candidate's own numbers. Raises ExpressionError."""
    right: dict[str, object] = {**known, "said": {}}
    for each in part.leads_up:
        right["said"] = {**right["said"], each.name: _key(each, right)}  # type: ignore[dict-item]
    if part.builds_on_own:
        right["answer"] = _key(part.question, right)
    return right


def _key(question: Question, known: Values) -> float:
    assert question.key is not None, "asked of numbers alone"
    return float(Expressions(known).number(question.key))


def layout_said(part: Part, known: Values, text: str) -> Mapping[str, int] | None:
    """What expressions see as `layout` of an answer: the one that was placed, or that words commit to."""
    if part.question.kind == "layout":
        return make_layout(part.question, known).values(text)
    read = read_layout(text)
    return read.values() if read else None


def _own(question: Question, answers: Answers) -> float | None:
    """The candidate's own number, in base units."""
    assert question.unit is not None, "asked of numbers alone"
    return read(answers.get(question.id, ""), question.unit)


def read(text: str, unit: str) -> float | None:
    """The number in `text`, in base units; None where there is none."""
    try:
        return read_number(text, unit)
    except Unreadable:
        return None


def unlinked(known: Values) -> dict[str, object]:
    """The same values without the formulas they come from: a prompt must not lead to its own answer."""
    return {name: float(value) if isinstance(value, Computed) else value for name, value in known.items()}
