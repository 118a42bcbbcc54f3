"""Looking a formula up and evaluating it for whatever a learner types into its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose, nan
from typing import Any

from markupsafe import Markup

from app.content.markdown import mathml
from app.core.errors import NotFound
from app.grading.quantities import Unreadable, read_quantity
from app.theory.formulas import FORMULAS, SECTIONS
from app.theory.formulas.registry import Evaluation, Formula, Input, Value, evaluate
from app.units import SCALES, bytes_text, count_text, digits, scaled
from labs.spec import SpecError, Violation

# What an input is written in, by dimension, when a learner opens it.
_INPUT_UNITS = {"bytes_per_second": "GB/s", "flop_per_second": "TFLOP/s", "seconds": "s", "fraction": "%"}

# What reading a number in another unit may change in it: 99.9 % is 0.9990000000000001.
_NOISE = 1e-15


@dataclass(frozen=True)
class Section:
    """Formulas listed together. `anchor` is where a jump leads."""

    title: str
    anchor: str
    formulas: tuple[Formula, ...]

    @staticmethod
    def inputs(formula: Formula) -> str:
        """What a formula takes, in one line: labels as they stand inside a sentence, names and acronyms kept."""
        return "; ".join(_inside(each.label) for each in formula.inputs)


@dataclass(frozen=True)
class InputField:
    """One editable input of a derivation."""

    input: Input
    text: str
    error: str | None = None


@dataclass(frozen=True)
class Derivation:
    """Where a number comes from, ready to show: result, formula in symbols and with values, inputs, source."""

    formula: Formula
    fields: tuple[InputField, ...]
    unit: str
    evaluation: Evaluation | None

    @property
    def result(self) -> str:
        return scaled(self.evaluation.value, self.unit) if self.evaluation else "–"

    @property
    def math(self) -> Markup:
        """The formula in symbols, and with this point's values."""
        if self.evaluation is None:
            return Markup("")
        values = rf"= {self.evaluation.latex_values}" if self.evaluation.latex_values != self.evaluation.latex else ""
        return mathml(self.evaluation.latex) + Markup(" ") + (mathml(values) if values else Markup(""))


def _inside(label: str) -> str:
    first = label.split(maxsplit=1)[0]
    return label[0].lower() + label[1:] if first[1:].islower() else label


def find_formula(key: str) -> Formula:
    """The formula called `key`, by id or name. Raises NotFound."""
    formula = FORMULAS.find(key)
    if formula is None:
        known = ", ".join(dict.fromkeys(each.id for each in FORMULAS.by_name.values()))
        raise NotFound(f"Formula {key!r} is not known. Accepted: {known}, or their names.")
    return formula


def all_formulas() -> list[Formula]:
    return list(FORMULAS.by_name.values())


def sections() -> list[Section]:
    """All formulas as the reference lists them."""
    return [Section(title, title.lower().replace(" ", "-"), entries) for title, entries in SECTIONS.items()]


def derive(formula: Formula, typed: Mapping[str, str]) -> Derivation:
    """A derivation for inputs as they were typed (texts with or without units); mistakes stay at their field.

    A page that is opened with no input at all shows the formula's worked example; an input that was emptied is missing.
    """
    if not any(each.name in typed for each in formula.inputs):
        typed = {**typed, **{name: str(value) for name, value in formula.example.items()}}
    unit = typed.get("unit") or formula.unit
    if unit not in SCALES or not _fits(unit, formula):
        unit = formula.unit
    values: dict[str, object] = {}
    errors: dict[str, str] = {}
    for each in formula.inputs:
        text = typed.get(each.name, "")
        try:
            values[each.name] = _read(each, text)
        except Unreadable as error:
            errors[each.name] = str(error)
        except SpecError as error:
            errors[each.name] = f"{error.violations[0].message} Accepted: {each.accepted}."
    evaluation = None
    if not errors:
        try:
            evaluation = evaluate(formula, values)
        except SpecError as error:  # each input is fine, together they are not
            errors = {each.field: f"{each.message} Accepted: {each.accepted}." for each in error.violations}
    fields = tuple(
        InputField(each, _shown(each, typed.get(each.name, ""), each.name in errors), errors.get(each.name))
        for each in formula.inputs
    )
    return Derivation(formula, fields, unit, evaluation)


@dataclass(frozen=True)
class Evaluated:
    """The reply to evaluating a formula: its value in SI base units, and everything needed to show where it is from."""

    id: str
    name: str
    title: str
    value: float
    unit: str
    text: str
    latex: str
    latex_values: str
    where: Mapping[str, float]
    inputs: Mapping[str, Value]
    source: str
    note: str


@dataclass(frozen=True)
class SignatureInput:
    """An input of a formula as programs are told of it."""

    name: str
    label: str
    symbol: str
    unit: str
    minimum: float
    maximum: float
    integer: bool
    choices: tuple[str, ...]
    default: Value | None


@dataclass(frozen=True)
class Signature:
    """A formula as programs are told of it, with the point its page opens at."""

    id: str
    name: str
    title: str
    unit: str
    source: str
    example: Mapping[str, Value]
    inputs: tuple[SignatureInput, ...]


def evaluate_inputs(key: str, inputs: Mapping[str, object]) -> Evaluated:
    """The reply of the evaluate call. Raises NotFound or SpecError."""
    formula = find_formula(key)
    found = evaluate(formula, inputs)
    return Evaluated(
        id=formula.id,
        name=formula.name,
        title=formula.title,
        value=found.value,
        unit=formula.dimension,
        text=scaled(found.value, formula.unit),
        latex=found.latex,
        latex_values=found.latex_values,
        where=found.where,
        inputs=found.inputs,
        source=formula.source,
        note=formula.note,
    )


def describe(formula: Formula) -> Signature:
    """A formula's signature."""
    return Signature(
        id=formula.id,
        name=formula.name,
        title=formula.title,
        unit=formula.dimension,
        source=formula.source,
        example=formula.example,
        inputs=tuple(
            SignatureInput(
                name=each.name,
                label=each.label,
                symbol=each.symbol,
                unit=each.dimension,
                minimum=each.minimum,
                maximum=each.maximum,
                integer=each.integer,
                choices=each.choices,
                default=each.default,
            )
            for each in formula.inputs
        ),
    )


def _fits(unit: str, formula: Formula) -> bool:
    """A bytes formula may be read in any unit of bytes; a ratio of it also as a multiple."""
    dimension = SCALES[unit][0]
    plain = {"count", "fraction"}
    return dimension == formula.dimension or (dimension in plain and formula.dimension in plain)


def _read(parameter: Input, text: str) -> Any:
    if not text:
        if parameter.default is None:
            raise SpecError([Violation(parameter.name, None, "This is missing.", parameter.accepted)])
        return parameter.default
    if parameter.choices:
        return parameter.read(text)
    try:
        value = float(text)  # base units, as links carry them
    except ValueError:
        value = read_quantity(text, parameter.dimension).value
    limit = next(
        (edge for edge in (parameter.minimum, parameter.maximum) if isclose(value, edge, rel_tol=_NOISE)), value
    )
    return parameter.read(limit)


def _shown(parameter: Input, text: str, is_wrong: bool) -> str:
    """What was typed, or the default; a bare number from a link is written as a person would."""
    if not text:
        return _default(parameter)
    try:
        return text if is_wrong or parameter.choices else _written(parameter, float(text))
    except ValueError:
        return text


def _default(parameter: Input) -> str:
    if parameter.default is None:
        return ""
    return str(parameter.default) if parameter.choices else _written(parameter, float(parameter.default))


def _written(parameter: Input, value: float) -> str:
    """As a person would write it, with the fewest digits that read back as `value`: a form sends what it shows."""
    texts = [_rounded(parameter, value, significant) for significant in (4, 6, 9, 12)]
    exact = next((text for text in texts if isclose(_read_back(parameter, text), value, rel_tol=_NOISE)), repr(value))
    binary = next((u for u in ("GiB", "MiB") if value >= SCALES[u][1] and value % SCALES[u][1] == 0), None)
    if parameter.dimension != "bytes" or binary is None:
        return exact
    return min(exact, scaled(value, binary, 12), key=len)  # 25 MiB, but 14 GB


def _read_back(parameter: Input, text: str) -> float:
    try:
        return read_quantity(text, parameter.dimension).value
    except Unreadable:
        return nan


def _rounded(parameter: Input, value: float, significant: int) -> str:
    if parameter.dimension == "bytes":
        return bytes_text(value, significant)
    if parameter.dimension == "tokens":
        return f"{count_text(value, significant)} tokens"
    if parameter.dimension in _INPUT_UNITS:
        return scaled(value, _INPUT_UNITS[parameter.dimension], significant)
    return count_text(value, significant) if value >= 1e6 and not parameter.integer else digits(value, significant)
