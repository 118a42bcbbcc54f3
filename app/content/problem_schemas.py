"""The fields of a problem's file, `cards/problems/<id>-<name>.yaml`.

`parameters` are drawn by seed, `let` names what is computed from them, `where` refuses draws. Expressions see both and
every formula by its name; texts hold them in double braces with a unit filter. `parts` are asked in order; each has a
`kind`:

- `number` (what a part without `kind` is): `key` and every slip's `value` are expressions in base units. A part that
  builds on earlier ones names them in `carries`; its expressions then see them as `answer.<part>`: the right value,
  and, when a learner's own earlier value was wrong, that one for the error carried forward. Expressions in hints and
  solution see the right values.
- `choice` (one right option) and `set` (several): `correct` is true, false or a condition on the variant.
- `order`: items with a `value` expression each, to be put in ascending or descending order of it.
- `configuration`: `fields` of a training plan that the learner fills in, each with the values worth trying; the theory
  library judges them against the best combination of these values that fits. `plan` is an EstimateRequest whose text
  values in `${…}` are expressions.
- `text`: argued in words against the rubric `rubric`, on the rubric's own page; it has no points here.

`points` weigh parts against each other. `levels`, easiest first, narrow the draws; a streak of right answers leads to
the next one. A seed's level is the seed modulo their number, so that a seed alone still names a variant.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from app.content.schemas import (
    CardId,
    Doubt,
    Fraction,
    Item,
    Phrase,
    ProblemId,
    QuestionedSlip,
    Related,
    Slug,
    StateBars,
    Strict,
    Text,
    Unit,
)

RubricId = Annotated[str, StringConstraints(pattern=r"^(R|SP|IQ|PC)\d{1,2}$")]
Points = Annotated[int, Field(ge=1, le=20)]
Condition = bool | Text
Choices = Annotated[tuple[int | float | str, ...], Field(min_length=1)]


class Asked(Strict):
    """What every part has. `slips` are a number's; other kinds say what is wrong in their own way. `learn` is what to
    learn of who got it wrong, as one is told to, of what a round asks; a number has it in its slips."""

    id: Slug
    prompt: Text
    points: Points = 1
    learn: Phrase | None = None
    slips: tuple[QuestionedSlip, ...] = ()


class NumberPart(Asked):
    """One number a learner answers, in any unit of the right dimension. What a round asks has a `doubt`."""

    kind: Literal["number"] = "number"
    key: Text
    unit: Unit = Field(description="unit the key is shown in")
    tolerance: Fraction = 0.02
    carries: tuple[Slug, ...] = ()
    doubt: Doubt | None = None


class PartOption(Strict):
    """One thing to tick, with what to say to somebody who was wrong about it. `ask` is what an interviewer asks then:
    who ticked it where it is wrong, who left it out where it is right. `did` is what the chooser of a wrong one did, as
    a sentence about them goes on."""

    id: Slug
    text: Text
    correct: Condition = False
    message: Text
    ask: Text | None = None
    did: Phrase | None = None
    cure: CardId | None = None

    def may_be_misjudged(self, several: bool) -> bool:
        """Whether an answer can be wrong by it: of one choice only by an option that is chosen and wrong."""
        return several or self.correct is not True


class ChoicePart(Asked):
    """One right option (`choice`), or those of several that are right (`set`)."""

    kind: Literal["choice", "set"]
    options: Annotated[tuple[PartOption, ...], Field(min_length=2, max_length=10)]


class OrderItem(Strict):
    """One thing to put in its place: the place is decided by `value`."""

    id: Slug
    text: Text
    value: Text


class OrderPart(Asked):
    """Things to put in order; equal values may stand either way. `message` is said of a wrong order."""

    kind: Literal["order"]
    items: Annotated[tuple[OrderItem, ...], Field(min_length=2, max_length=8)]
    direction: Literal["ascending", "descending"] = "ascending"
    unit: Unit | None = None
    message: Text


class ConfigurationPart(Asked):
    """Fields of a plan, such as tensor or micro_batch, judged by the theory library.

    Every combination of the values in `fields` is tried for the best one that fits; `within` is how much slower (or
    larger) than it still counts as right.
    """

    kind: Literal["configuration"]
    plan: dict[str, Any]
    fields: Annotated[dict[str, Annotated[tuple[int | str, ...], Field(min_length=1)]], Field(min_length=1)]
    objective: Literal["step_seconds", "memory"] = "step_seconds"
    within: Annotated[float, Field(gt=0, le=1)] = 0.1


class TextPart(Asked):
    """A part to argue in words, against a rubric."""

    kind: Literal["text"]
    rubric: RubricId


AnyPart = NumberPart | ChoicePart | OrderPart | ConfigurationPart | TextPart
_KINDS: dict[str, type[Asked]] = {
    "number": NumberPart,
    "choice": ChoicePart,
    "set": ChoicePart,
    "order": OrderPart,
    "configuration": ConfigurationPart,
    "text": TextPart,
}


def _by_kind(data: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Validate a part as what its `kind` says: a mistake is then named by its field alone."""
    if not isinstance(data, dict):
        return handler(data)
    kind = data.get("kind", "number")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"{kind!r} is no kind of part, but {', '.join(_KINDS)}")
    return _KINDS[kind].model_validate(data)


Part = Annotated[AnyPart, WrapValidator(_by_kind)]


class Given(Strict):
    """A value of the variant shown beside the statement."""

    label: Text
    text: Text


class Level(Strict):
    """One degree of difficulty: which of the problem's draws belong to it."""

    title: Text
    where: Text


class Problem(Item):
    """A seeded problem."""

    id: ProblemId
    minutes: Annotated[int, Field(ge=1, le=60)]
    parameters: dict[str, Choices]
    where: str | None = None
    let: dict[str, str] = Field(default={})
    levels: tuple[Level, ...] = ()
    statement: Text
    given: tuple[Given, ...] = ()
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    hints: Annotated[tuple[Text, ...], Field(min_length=3, max_length=3)]
    solution: Text
    figure: StateBars | None = None
    related: Related = Related()

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Problem:
        numbers: list[str] = []
        seen: set[str] = set()
        for part in self.parts:
            if part.id in seen:
                raise ValueError(f"there are two parts {part.id!r}")
            seen.add(part.id)
            if isinstance(part, NumberPart):
                if missing := [each for each in part.carries if each not in numbers]:
                    raise ValueError(f"part {part.id} carries {', '.join(missing)}: no earlier number part")
                numbers.append(part.id)
        if all(part.kind == "text" for part in self.parts):
            raise ValueError("there must be a part that is graded here")
        return self
