"""The fields of an interview's file, `cards/interviews/<name>.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from app.content.challenges import Challenge, Misbelief, Questioned, about
from app.content.claim_schemas import InterviewClaimsFile
from app.content.live import is_plain
from app.content.problem_schemas import OrderItem
from app.content.rubric_schemas import RubricPointFile
from app.content.schemas import (
    CardId,
    Doubt,
    Fraction,
    InterviewId,
    Item,
    Phrase,
    QuestionedSlip,
    Slug,
    Strict,
    Text,
    Unit,
)
from app.grading.levels import Level
from app.grading.questions.layout import Mistake
from app.grading.rubrics.likeness import Claim, read_claim
from app.grading.rubrics.reading import NO_WORDINGS
from app.grading.rubrics.wordings import Wordings

Criterion = Literal["correctness", "depth", "trade-offs", "structure"]

PROBED_FROM = 2  # the weight from which a point that was not said is asked for
FEWEST_ITEMS = 4  # that are worth arranging


class Offered(Strict):
    """Something to choose, with what to say to somebody who chose it."""

    id: Slug
    text: Text
    correct: bool = False
    message: Text


class Option(Offered):
    """One answer to a choice. `ask` is what the interviewer asks who chose a wrong one: it names the doubt, never what
    is right; `did` is what its chooser did, as a sentence about them goes on."""

    ask: Text | None = None
    did: Phrase | None = None


class Given(Offered):
    """One thing a candidate may ask to be told. It is `correct` where it is needed; then `reply` says what it is."""

    reply: Text | None = None

    @model_validator(mode="after")
    def _is_told_where_it_is_needed(self) -> Given:
        if self.correct != (self.reply is not None):
            raise ValueError(f"{self.id}: what is needed has a reply, and nothing else has one")
        return self


class FollowUp(Strict):
    """A second number asked about the candidate's own first answer, which expressions see as `answer`. `concepts` are
    those of its interview that it is about, where they are others than its question's."""

    prompt: Text
    concepts: tuple[Slug, ...] = ()
    key: Text
    unit: Unit
    tolerance: Fraction = 0.02
    slips: tuple[QuestionedSlip, ...] = ()
    doubt: Doubt | None = None
    explanation: Text


class OwnLayout(FollowUp):
    """A number asked about the layout that an answer in words commits to. Expressions see it as `layout`: its degrees
    `tensor`, `pipeline`, `data` and `context`, the stage `zero` and the product `gpus`.

    It is asked `when` that is so, and is worth no points; the point that it goes on from is not asked for as well
    (`instead_of`). `example` says in words a layout that leads to it, for the
    content check.
    """

    id: Slug
    when: Text
    example: Text
    instead_of: Slug | None = None


class LaidOut(Strict):
    """A layout that is known, for the content check and the debrief: the `level` that it comes to, and if it is wrong
    the `mistake` it is, by its name in grading, with the card to read."""

    said: Text
    level: Level
    mistake: Mistake | None = None
    cure: CardId | None = None

    @model_validator(mode="after")
    def _is_cured(self) -> LaidOut:
        if (self.mistake is None) != (self.cure is None):
            raise ValueError(f"{self.said}: a wrong layout, and no other, has a mistake and its cure")
        return self


class ProbedPoint(RubricPointFile):
    """A point of an answer in words. `ask` is what the interviewer asks who did not say it; the heavy ones have one.

    `topic` is what it is about in a few words, as a sentence names it (“recovery from failures”); `criterion` is what
    a debrief counts it for; `shown_by` is how an answer shows it beside its evidence: by going through an order, by
    asking for something, or in figures.
    """

    topic: Phrase
    ask: Text | None = None
    criterion: Criterion = "correctness"
    shown_by: Literal["order", "asking", "figures"] | None = None

    @model_validator(mode="after")
    def _is_asked_for(self) -> ProbedPoint:
        if self.weight >= PROBED_FROM and not self.ask:
            raise ValueError(f"a point of weight {PROBED_FROM} or more needs ask, the question for who left it out")
        return self


class ArrangedItem(OrderItem):
    """One thing to put in its place. `ask` is what the interviewer asks who put it too early; the first need none.
    `learn` is what who did has to do instead, where that is not what the question as a whole teaches."""

    ask: Text | None = None
    learn: Phrase | None = None


class Question(Strict):
    """One question of an interview; which fields it needs depends on its kind.

    It is asked once the questions it builds on are answered; its expressions see the candidate's own numbers as
    `said.<question>`, in base units. An answer in words is graded by the evidence of its rubric's points: `exemplar`
    must come out as a strong one, `weak` as none. `harder` is asked of who got every number of it right at once; it
    sees `answer` as a follow-up does and is worth no points. `own` is asked about a layout that an answer in words
    commits to, the first that holds of it. `cure` is the card to read for what an answer in words
    the choice of `givens` or an order lacks.

    `exhibit` is an expression for the text of a log that stands behind its prompt.

    `concepts` are those of its interview that it is about; all of them where it names none. `follows` are earlier
    questions that its prompt goes on with: whoever borrows it borrows them too.

    `hints` to its first number are opened one by one, each at a price; the content check lets none say the number.

    `learn` is what to learn of who got it wrong, as one is told to; a number has it in its slips.

    A question of the kind `order` is arranged: its `items` by their values, the lowest first where `direction` does not
    say otherwise. `criterion` is what a debrief counts it, or a choice, for.

    In a question of the kind `layout` axes are placed on the cluster of its `plan`, a request without degrees: right is
    what takes a step `within` that of the best. `layouts` are known ones, wrong ones among them; `own` is asked about
    the answer, whose `layout` has besides over how many nodes an axis reaches (`tensor_nodes`) and with how many GPUs
    on each (`tensor_per_node`).

    With `board` a whiteboard stands beside an answer in words, and is heard with it.

    A question of the kind `givens` offers what may be asked for; those that build on it are computed from the replies.
    The kinds `set` (all that are right) and `configuration` are parts of problems, which rounds ask (`rounds`), and
    `coding` is a code lab.
    """

    id: Slug
    kind: Literal["number", "choice", "text", "givens", "order", "layout", "set", "configuration", "coding"]
    title: Text
    prompt: Text
    minutes: Annotated[int, Field(ge=1, le=30)]
    points: Annotated[int, Field(ge=1, le=100)]
    explanation: str
    learn: Phrase | None = None
    exhibit: str | None = None
    concepts: tuple[Slug, ...] = ()
    builds_on: tuple[Slug, ...] = ()
    follows: tuple[Slug, ...] = ()
    key: str | None = None
    unit: Unit | None = None
    tolerance: Fraction = 0.02
    slips: tuple[QuestionedSlip, ...] = ()
    doubt: Doubt | None = None
    follow_up: FollowUp | None = None
    harder: FollowUp | None = None
    own: tuple[OwnLayout, ...] = ()
    hints: Annotated[tuple[Text, ...], Field(max_length=3)] = ()
    options: tuple[Option, ...] = ()
    givens: tuple[Given, ...] = ()
    items: Annotated[tuple[ArrangedItem, ...], Field(max_length=8)] = ()
    direction: Literal["ascending", "descending"] = "ascending"
    board: bool = False
    own_story: bool = False  # about what only its candidate knows: no word of it need be known here
    message: str = ""
    plan: dict[str, Any] | None = None
    within: Annotated[float, Field(gt=0, le=1)] = 0.1
    layouts: tuple[LaidOut, ...] = ()
    criterion: Criterion | None = None
    rubric: tuple[ProbedPoint, ...] = ()
    exemplar: str | None = None
    weak: str | None = None
    cure: CardId | None = None

    @property
    def name(self) -> str:
        """What expressions call it in `said`."""
        return self.id

    @model_validator(mode="after")
    def _is_arranged(self) -> Question:
        is_order = self.kind == "order"
        if is_order != bool(self.items) or (is_order and not self.criterion):
            raise ValueError("an order question, and no other, has items; it needs a criterion")
        if self.criterion and self.kind not in ("order", "choice"):
            raise ValueError("only an order or a choice has a criterion of its own")
        if (self.kind == "layout") != (self.plan is not None) or (self.kind == "layout") != bool(self.layouts):
            raise ValueError("a layout question, and no other, has a plan and layouts")
        if self.layouts and all(each.mistake for each in self.layouts):
            raise ValueError("a layout question needs a layout without a mistake among its layouts")
        if is_order and len(self.items) < FEWEST_ITEMS:
            raise ValueError(f"{len(self.items)} items are soon guessed: at least {FEWEST_ITEMS}")
        return self

    @model_validator(mode="after")
    def _is_questioned(self) -> Question:
        followed = self.follow_up.slips if self.follow_up else ()
        if unasked := [slip.id for slip in (*self.slips, *followed) if not slip.ask]:
            raise ValueError(f"{', '.join(unasked)}: a slip of a question needs ask, what its maker is asked")
        if untold := [slip.id for slip in (*self.slips, *followed) if not (slip.did and slip.learn)]:
            raise ValueError(f"{', '.join(untold)}: a slip of a question needs did and learn, for the debrief")
        if untold := [option.id for option in self.options if not option.correct and not option.did]:
            raise ValueError(f"{', '.join(untold)}: a wrong option needs did, what its chooser did, for the debrief")
        if self.kind in ("choice", "givens", "order", "layout") and not self.learn:
            raise ValueError(f"a {self.kind} question needs learn, for the debrief")
        if unasked := [option.id for option in self.options if not option.correct and not option.ask]:
            raise ValueError(f"{', '.join(unasked)}: a wrong option needs ask, what is asked who chose it")
        return self

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Question:
        if self.kind in ("set", "configuration", "coding"):
            raise ValueError(f"a {self.kind} question is a part of a problem or a code lab, which a round asks")
        if not self.explanation.strip():
            raise ValueError("a question needs an explanation")
        if self.kind == "number" and (not self.key or self.unit is None):
            raise ValueError("a number question needs key and unit")
        if self.kind != "number" and (self.follow_up or self.harder):
            raise ValueError("only a number question has a follow_up or a harder variant")
        if (self.kind != "number" and self.hints) or (self.kind not in ("text", "layout") and self.own):
            raise ValueError("only a number question has hints, and only a text or a layout one asks about the layout")
        if self.board and self.kind != "text":
            raise ValueError("only a text question has a board")
        if self.kind == "choice" and sum(option.correct for option in self.options) != 1:
            raise ValueError("a choice question needs exactly one correct option")
        if self.kind == "text" and not (self.rubric and self.exemplar and self.weak):
            raise ValueError("a text question needs a rubric, an exemplar and a weak answer")
        if self.kind in ("text", "givens", "order", "layout") and not self.cure:
            raise ValueError(f"a {self.kind} question needs cure, the card to read for what was not said")
        if (self.kind == "givens") != bool(self.givens):
            raise ValueError("a givens question, and no other, has givens")
        needed = sum(given.correct for given in self.givens)
        if self.givens and not 2 <= needed <= len(self.givens) / 2:
            raise ValueError(f"{needed} of {len(self.givens)} givens are needed: at least 2, and at most half")
        return self


def _read(claims: Iterable[Claim], wordings: Wordings) -> tuple[Claim, ...]:
    return tuple(read_claim(each, wordings) if is_plain(each.text) else each for each in claims)


class Interview(Item):
    """A timed sitting. The server owns its clock.

    `recordings` gives the recorded runs that it hands out a name in expressions, each with the parameter that says
    which run it is.
    """

    id: InterviewId
    parameters: dict[str, Annotated[tuple[int | float | str, ...], Field(min_length=1)]]
    recordings: dict[str, str] = Field(default_factory=dict)
    let: dict[str, str] = Field(default_factory=dict)
    questions: Annotated[tuple[Question, ...], Field(min_length=1)]
    _wordings: Wordings = PrivateAttr(default=NO_WORDINGS)
    _challenges: tuple[Challenge, ...] = PrivateAttr(default=())
    _misbeliefs: tuple[Misbelief, ...] = PrivateAttr(default=())
    _claims: InterviewClaimsFile | None = PrivateAttr(default=None)
    _claims_read: Mapping[str, tuple[Claim, ...]] = PrivateAttr(default_factory=dict)

    def read_with(
        self,
        wordings: Wordings,
        challenges: tuple[Challenge, ...] = (),
        claims: InterviewClaimsFile | None = None,
        misbeliefs: tuple[Misbelief, ...] = (),
    ) -> None:
        """Read answers with these; the catalogue gives every interview the same wordings, challenges and misbeliefs,
        and the claims about its own points."""
        self._wordings, self._challenges, self._claims = wordings, challenges, claims
        self._misbeliefs = misbeliefs
        if claims is not None:
            self._claims_read = {question: _read(claims.of(question), wordings) for question in claims.questions}

    def hand_out(self, recorded: Mapping[str, Mapping[str, Any]]) -> Interview:
        """The interview with what its recordings say among its `let`, from what all recordings say, by their ids.

        Raises ValueError for one that there is not.
        """
        runs = {}
        for name, choice in self.recordings.items():
            chosen = [str(each) for each in self.parameters.get(choice, ())]
            if unknown := [each for each in chosen or [choice] if each not in recorded]:
                known = ", ".join(recorded) or "none"
                raise ValueError(f"recordings.{name}: there is no recording {', '.join(unknown)}. Accepted: {known}")
            runs[name] = json.dumps({each: recorded[each] for each in chosen}) + f"[{choice}]"
        return self.model_copy(update={"let": {**runs, **self.let}})

    @property
    def is_round(self) -> bool:
        """Whether its questions are parts of problems."""
        return False

    @property
    def sort(self) -> str:
        """What a page calls it before its id."""
        return "Round" if self.is_round else "Mock"

    @property
    def label(self) -> str:
        """What a page calls it in short."""
        return self.id

    @property
    def wordings(self) -> Wordings:
        """The words of the field that mean the same, as answers are read."""
        return self._wordings

    @property
    def challenges(self) -> tuple[Challenge, ...]:
        """What is asked about whatever was asked."""
        return self._challenges

    @property
    def misbeliefs(self) -> tuple[Misbelief, ...]:
        """What else is known to be false whatever was asked."""
        return self._misbeliefs

    @property
    def claims(self) -> InterviewClaimsFile | None:
        """What is known to be said about its points; None where nothing is."""
        return self._claims

    def claims_about(self, question: str) -> tuple[Claim, ...]:
        """Known claims about the points of one of its questions, by the name it has here; those without numbers of a
        sitting are read."""
        return self._claims_read.get(question, ())

    def challenges_about(self, question: Question) -> tuple[Questioned, ...]:
        """What does not pass in an answer to a question."""
        return about(self._challenges, self._misbeliefs, question.concepts or self.concepts, self.concepts)

    @model_validator(mode="after")
    def _builds_on_what_came_before(self) -> Interview:
        before: list[str] = []
        for question in self.questions:
            if question.id in before:
                raise ValueError(f"there are two questions {question.id!r}")
            if missing := [each for each in (*question.builds_on, *question.follows) if each not in before]:
                raise ValueError(f"question {question.id} builds on {', '.join(missing)}: no earlier question")
            before.append(question.id)
        return self

    @model_validator(mode="after")
    def _asks_for_its_concepts(self) -> Interview:
        """Where questions name concepts, they are the interview's, and each of those is asked for."""
        named = {concept for question in self.questions for concept in question.concepts}
        named |= {each for question in self.questions if question.follow_up for each in question.follow_up.concepts}
        if strange := sorted(named - set(self.concepts)):
            raise ValueError(f"questions are about {', '.join(strange)}, which the interview does not name")
        if all(question.concepts for question in self.questions) and (left := set(self.concepts) - named):
            raise ValueError(f"no question is about {', '.join(sorted(left))}")
        return self
