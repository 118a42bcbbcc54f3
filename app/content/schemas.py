"""The only definition of the content files' fields. Unknown keys are refused: a typo must not vanish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.units import SCALES


def _known_unit(unit: str) -> str:
    if unit not in SCALES:
        raise ValueError(f"{unit!r} is no unit known here, but {', '.join(filter(None, SCALES))}")
    return unit


Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
# Words that a sentence goes on with, or a title: not a sentence.
Phrase = Annotated[str, StringConstraints(strip_whitespace=True, max_length=110, pattern=r"^\S.*[^.!?\s]$")]
CardId = Annotated[str, StringConstraints(pattern=r"^[CX]\d{2,3}$")]
ProblemId = Annotated[str, StringConstraints(pattern=r"^(P|SP)\d{1,2}$")]
InterviewId = Annotated[str, StringConstraints(pattern=r"^[MT]\d{1,2}$")]
RubricId = Annotated[str, StringConstraints(pattern=r"^(R|IQ|PC|SP)\d{1,2}$")]
DeckId = Annotated[str, StringConstraints(pattern=r"^DK\d{1,2}$")]
ExperimentId = Annotated[str, StringConstraints(pattern=r"^L\d{2}$")]
Revision = Annotated[int, Field(ge=1)]
Unit = Annotated[str, AfterValidator(_known_unit)]
Fraction = Annotated[float, Field(gt=0, le=0.5)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Concept(Strict):
    """One idea that other content refers to. `group` is the heading it stands under on the concept map."""

    id: Slug
    group: Text = "Concepts"
    title: Text
    says: Text
    needs: tuple[Slug, ...] = ()


class GivenFigures(Strict):
    """Figures that any card may state although no formula gives them, each with where it is from."""

    given: dict[Text, Text]


class Deck(Strict):
    """Cards that belong together, in the order they are introduced."""

    id: DeckId
    title: Text
    about: Text
    needs: tuple[str, ...] = ()


class Related(Strict):
    """Where an item leads."""

    cards: tuple[CardId, ...] = ()
    problems: tuple[ProblemId, ...] = ()
    rubrics: tuple[RubricId, ...] = ()
    experiments: tuple[ExperimentId, ...] = ()
    pages: tuple[Slug, ...] = ()


class StateBars(Strict):
    """A figure: stacked bars of bytes, each component an expression in bytes."""

    title: Text
    finding: Text
    capacity_bytes: str | None = None
    capacity_label: str | None = None
    rows: Annotated[tuple[BarRow, ...], Field(min_length=1, max_length=8)]


class BarRow(Strict):
    """One bar of a figure."""

    label: Text
    parameters: str = "0"
    gradients: str = "0"
    optimizer: str = "0"
    activations: str = "0"
    temporary: str = "0"


def all_different(texts: Sequence[str], what: str) -> None:
    """Raises ValueError where two of `texts` are the same."""
    if len(set(texts)) < len(texts):
        raise ValueError(f"two of them have the same {what}")


class Slip(Strict):
    """A wrong answer people give, as a function of the variant, with what to say about it.

    `did` is what its maker did, as a sentence about them goes on (“ran the cluster at its peak”), and `learn` what to
    do instead, as one is told to: the same words wherever it is the same lesson. What an interview asks has both.
    """

    id: Slug
    value: Text
    title: Text
    did: Phrase | None = None
    learn: Phrase | None = None
    message: Text
    cure: CardId | None = None


class Figure(Strict):
    """A number on the way to another: `key` is an expression in base units, and `unit` what it is said in."""

    key: Text
    unit: Unit


class Doubt(Strict):
    """What the interviewer asks about a wrong number that no slip explains. Its expressions see the number as `yours`,
    in base units, and so say what it would come to. Where `ask` asks for a number on the way, `answered_by` is that
    one: who says it has answered, and not yet said the number itself."""

    ask: Text
    answered_by: Figure | None = None


class QuestionedSlip(Slip):
    """A slip with what the interviewer asks somebody who made it: it names the doubt, never what is right. Where that
    is a number on the way, it is `answered_by` one."""

    ask: Text | None = None
    answered_by: Figure | None = None


class Item(Strict):
    """What everything a learner can open says of itself."""

    slug: Slug
    revision: Revision = 1
    title: Text
    about: Text
    concepts: Annotated[tuple[Slug, ...], Field(min_length=1)]
    minutes: Annotated[int, Field(ge=1, le=90)]


class Anchor(Strict):
    """A mark on a quantity's slider that says how much a length of it is; `value` is an expression in base units."""

    says: Text
    value: Text


class Quantity(Strict):
    """Something a learner predicts about a run; `id` names what theory and measurement report.

    `most` is an expression, in base units: where the slider ends, rounded up. `cure` is the card for whoever missed it.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    says: Text
    unit: Unit
    most: Text
    anchor: Anchor
    explanation: Text
    cure: CardId


Setting = int | float | str | bool | tuple[int | float | str, ...]


class Knob(Strict):
    """A field of the RunSpec a learner may turn in an experiment, with the values offered.

    `along` are fields that turn with it: what each is at each of `values`. Where `is_named`, they are all there is:
    no single field tells the values apart, and `field` is a name for what is turned.
    """

    field: Text
    is_named: bool = False
    label: Text
    values: Annotated[tuple[Setting, ...], Field(min_length=1)]
    labels: tuple[Text, ...] = ()
    along: dict[str, tuple[Setting, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _labels_match(self) -> Knob:
        if self.labels and len(self.labels) != len(self.values):
            raise ValueError("labels need one entry for each value")
        if wrong := [field for field, values in self.along.items() if len(values) != len(self.values)]:
            raise ValueError(f"along: {', '.join(wrong)} needs one entry for each value")
        if len({self.text_of(value) for value in self.values}) < len(self.values):
            raise ValueError("a value is offered twice")
        if self.is_named and len(set(zip(*self.along.values(), strict=True))) < len(self.values):
            raise ValueError("along must tell the values apart, for the name of the knob is no field")
        return self

    def text_of(self, value: Any) -> str:
        """How a value is written in a form, whether it is 60 or 60.0: a list by its values with commas between."""
        if isinstance(value, tuple | list):
            return ",".join(map(self.text_of, value))
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)

    def label_of(self, value: Setting) -> str:
        return self.labels[self.values.index(value)] if self.labels else self.text_of(value)

    def settings_at(self, value: Setting) -> dict[str, Setting]:
        """Every field that it sets, at `value`."""
        at = self.values.index(value)
        own = {} if self.is_named else {self.field: value}
        return {**own, **{field: values[at] for field, values in self.along.items()}}


class Experiment(Item):
    """Predict, run, explain: a RunSpec, the knobs that vary it and the quantities to predict.

    `asks` is the question over the page; `{{ run }}` in it is what the run is called. `note` stands below the knobs,
    with live numbers as well.
    `names` says what its text calls a transfer, by the title theory gives it; `cures` has by the same title the card
    for whoever left it out.
    """

    id: ExperimentId
    minutes: Annotated[int, Field(ge=1, le=60)]
    asks: Text
    why: Text
    note: Text | None = None
    spec: dict[str, Any]
    knobs: tuple[Knob, ...]
    measures: Annotated[tuple[Text, ...], Field(min_length=1)]
    quantities: Annotated[tuple[Quantity, ...], Field(min_length=1)]
    names: dict[str, Text] = Field(default_factory=dict)
    cures: dict[str, CardId] = Field(default_factory=dict)
    interview_line: Text
    related: Related = Related()


StateBars.model_rebuild()
