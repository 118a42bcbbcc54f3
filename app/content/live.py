"""Expressions in content: a sandbox that knows the formula list and nothing else.

`{{ zero_state(parameters=7e9, ranks=8, stage=1) | GB }}` becomes a live number: the value, and with it the formula
and inputs it came from, so that one click shows and changes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import StrictUndefined, Template, TemplateError, Undefined, pass_context
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from app.content.compiled import CompiledTexts
from app.content.one_card import unplaced_call, unplaced_division
from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import Evaluation, Formula, evaluate
from app.theory.hardware import GPUS
from app.units import SCALES, count_text, digits, scaled
from labs.spec import SpecError

OPEN, CLOSE = "\ue000", "\ue001"  # private-use characters keep live numbers out of Markdown's reach

FILTER_UNITS = {
    "B": "B",
    "kB": "kB",
    "MB": "MB",
    "GB": "GB",
    "TB": "TB",
    "MiB": "MiB",
    "GiB": "GiB",
    "s": "s",
    "ms": "ms",
    "us": "µs",
    "minutes": "min",
    "hours": "h",
    "days": "days",
    "years": "years",
    "pct": "%",
    "times": "×",
    "tokens": "tokens",
    "FLOPs": "FLOPs",
    "number": "",
    "billion": "billion",
    "trillion": "trillion",
    "billion_tokens": "billion tokens",
    "trillion_tokens": "trillion tokens",
    "tokens_per_second": "tokens/s",
    "sequences": "sequences",
    "micro_batches": "micro-batches",
    "steps": "steps",
    "GPUs": "GPUs",
    "GPU_hours": "GPU-hours",
    "TFLOPs": "TFLOP/s",
    "GBs": "GB/s",
}


class ExpressionError(ValueError):
    """An expression of a content file that does not evaluate; `location` is the field it stands in, where known."""

    location: tuple[str | int, ...] = ()


# What evaluating a text can raise; NameError is what Jinja makes of a constant beyond any float.
_FAILURES = (TemplateError, TypeError, ValueError, ArithmeticError, NameError, AttributeError, LookupError)


class at:  # noqa: N801 - it reads as a word: `with at("key"):`
    """Say of an ExpressionError raised inside in which field it happened. (No generator: a content check enters a
    million of them.)"""

    __slots__ = ("location",)

    def __init__(self, *location: str | int) -> None:
        self.location = location

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, ExpressionError):
            error.location = (*self.location, *error.location)


class Computed(float):
    """A number that knows the evaluation it came from; arithmetic keeps all sources."""

    sources: tuple[Evaluation, ...]

    def __new__(cls, value: float, sources: tuple[Evaluation, ...]) -> Computed:
        made = super().__new__(cls, value)
        made.sources = sources
        return made

    def _with(self, other: object, value: float) -> Computed:
        return Computed(value, self.sources + (other.sources if isinstance(other, Computed) else ()))

    def __add__(self, other: Any) -> Computed:
        return self._with(other, float(self) + other)

    def __sub__(self, other: Any) -> Computed:
        return self._with(other, float(self) - other)

    def __mul__(self, other: Any) -> Computed:
        return self._with(other, float(self) * other)

    def __truediv__(self, other: Any) -> Computed:
        if reason := unplaced_division(self, other):
            raise ExpressionError(f"a collective's bytes over a bandwidth: {reason}")
        return self._with(other, float(self) / other)

    def __radd__(self, other: Any) -> Computed:
        return self._with(other, other + float(self))

    def __rsub__(self, other: Any) -> Computed:
        return self._with(other, other - float(self))

    def __rmul__(self, other: Any) -> Computed:
        return self._with(other, other * float(self))

    def __rtruediv__(self, other: Any) -> Computed:
        return self._with(other, other / float(self))


@dataclass(frozen=True)
class Shown:
    """A computed number as it stands in a text: what is read, and where a click leads."""

    text: str
    value: Computed
    unit: str

    @property
    def html(self) -> Markup:
        """A link to its derivation; a number calculated on from formulas names them instead."""
        sources = self.value.sources
        if len(sources) == 1 and sources[0].value == self.value:
            return live_link(self.text, sources[0], self.unit)
        ids = ", ".join(dict.fromkeys(source.formula.id for source in sources))
        return Markup('<span class="num" title="{}">{}</span>').format(f"computed from {ids}", self.text)


def live_link(text: str, source: Evaluation, unit: str) -> Markup:
    """A live number: a link that works without script and opens its derivation with it."""
    query = urlencode({**source.inputs, "unit": unit})
    address = f"/reference/formulas/{source.formula.name}?{query}"
    return Markup('<a class="live" href="{}" data-live>{}</a>').format(address, text)


def _caller(formula: Formula) -> Callable[..., Computed]:
    def call(**inputs: Any) -> Computed:
        if reason := unplaced_call(formula.name, inputs):
            raise ExpressionError(f"{formula.name} {reason}")
        try:
            result = evaluate(formula, inputs)
        except SpecError as error:
            raise ExpressionError(f"{formula.name}: " + "; ".join(str(v) for v in error.violations)) from None
        return Computed(result.value, (result,))

    return call


def ceiling(value: float) -> float:
    """The next whole number, keeping where the value came from."""
    whole = float(math.ceil(value - 1e-9))
    return Computed(whole, value.sources) if isinstance(value, Computed) else whole


# Everything an expression may call or name.
NAMES: Mapping[str, Any] = {
    **{formula.name: _caller(formula) for formula in FORMULAS.by_name.values()},
    "ceil": ceiling,
    "gpu": {gpu.name: gpu for gpu in GPUS.values()},
}


class Expressions:
    """Evaluates the expressions of one text with `values` and keeps the live numbers it shows."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self.values = dict(values or {})
        self.shown: list[Markup] = []
        self._context: Context | None = None  # made once: an expression of one name costs less than its making

    def let(self, name: str, expression: str) -> None:
        """Compute a value that the expressions after it may use. Raises ExpressionError."""
        self.values[name] = self.value(expression)
        if self._context is not None:
            self._context.parent[name] = self.values[name]

    def value(self, expression: str) -> Any:
        """The value of one expression: a number or a text. Raises ExpressionError."""
        if self._context is None:
            self._context = _OwnContext(_ENVIRONMENT, {**_ENVIRONMENT.globals, **self.values}, "", {})
        try:
            value = _compiled(expression)(self._context)
        except ExpressionError:
            raise
        except _FAILURES as error:
            raise ExpressionError(f"{expression!r}: {error}") from None
        if isinstance(value, Undefined):
            raise ExpressionError(f"{expression!r}: a name in it is not known")
        return value

    def number(self, expression: str) -> float:
        """The finite number an expression gives. Raises ExpressionError."""
        value = self.value(expression)
        try:
            number = value if isinstance(value, Computed) else float(value)
        except (TypeError, ValueError):
            raise ExpressionError(f"{expression!r} is {value!r}, not a number") from None
        if not math.isfinite(number):
            raise ExpressionError(f"{expression!r} is not finite")
        return number

    def truth(self, expression: str) -> bool:
        """Whether a condition on the values holds."""
        return bool(self.value(expression))

    def fill(self, text: str) -> str:
        """`text` with its expressions evaluated; live numbers are marks that `place` turns into HTML."""
        if is_plain(text):
            return text.removesuffix("\n")  # as Jinja does; making a template of a plain text takes a millisecond
        try:
            names = {**_ENVIRONMENT.globals, **self.values, _KEEPER: self}
            template = _template(text)
            return "".join(template.root_render_func(template.new_context(names, shared=True)))
        except ExpressionError:
            raise
        except _FAILURES as error:
            raise ExpressionError(str(error)) from None

    def place(self, html: str) -> Markup:
        """Put the live numbers into rendered HTML."""
        for index, shown in enumerate(self.shown):
            html = html.replace(f"{OPEN}{index}{CLOSE}", str(shown))
        return Markup(html)  # noqa: S704 - from our own renderer, which escapes

    def text(self, filled: str) -> str:
        """Put the live numbers into filled text as plain text."""
        for index, shown in enumerate(self.shown):
            filled = filled.replace(f"{OPEN}{index}{CLOSE}", shown.striptags())
        return filled

    def keep(self, html: Markup) -> str:
        """Remember a piece of HTML; returns the mark that stands for it."""
        self.shown.append(html)
        return f"{OPEN}{len(self.shown) - 1}{CLOSE}"


def names_in(text: str) -> set[str]:
    """The names that the expressions of a text go by, such as those of drawn parameters."""
    return set(find_undeclared_variables(_ENVIRONMENT.parse(text))) - NAMES.keys()


def is_plain(text: str) -> bool:
    """Whether nothing in `text` is computed."""
    return not any(mark in text for mark in _MARKS)


_MARKS = ("{{", "{%", "{#")  # of what Jinja would not leave as it is
_KEEPER = "keeper of this text"  # how a text's Expressions travel to the filters: no name an expression can spell


def _shower(unit: str) -> Callable[..., str]:
    """The filter that shows a number in `unit`."""

    @pass_context
    def show(context: Context, value: Any, significant: int = 4, unit_shown: bool = True) -> str:
        number = float(value)
        text = scaled(number, unit, significant) if unit_shown else digits(number / SCALES[unit][1], significant)
        html = Shown(text, value, unit).html if isinstance(value, Computed) else _NUMBER.format(text)
        return str(context[_KEEPER].keep(html))

    return show


@pass_context
def _show_count(context: Context, value: Any) -> str:
    return str(context[_KEEPER].keep(_NUMBER.format(count_text(float(value)))))


_NUMBER = Markup('<span class="num">{}</span>')


class _OwnContext(Context):
    """Remembers no set of the global names: only a template that is imported asks for it, and none is."""

    def __init__(self, environment: Any, parent: dict[str, Any], name: str | None, blocks: Any, **_: object) -> None:
        super().__init__(environment, parent, name, blocks)


def _make_environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, optimized=False)
    made.context_class = _OwnContext
    made.globals = dict(NAMES)
    made.filters = {"count": _show_count, **{name: _shower(unit) for name, unit in FILTER_UNITS.items()}}
    made.tests = {}
    return made


_ENVIRONMENT = _make_environment()
COMPILED = CompiledTexts(Path(__file__).with_name("__pycache__"), Path(__file__).read_bytes())


# Jinja hands every text a chain of mappings and copies it, name by name, each time the text is filled: most of the time
# of a content check. A plain dictionary with the same names is copied at once.


@lru_cache(maxsize=8192)  # a problem's expressions are evaluated for every seed anew
def _compiled(expression: str) -> Callable[[Context], Any]:
    root = _ENVIRONMENT.compile_expression(expression, undefined_to_none=False)._template.root_render_func

    def evaluated(context: Context) -> Any:
        for _ in root(context):  # an expression writes nothing
            pass
        return context.vars.pop("result")  # where Jinja puts it

    return evaluated


@lru_cache(maxsize=8192)
def _template(text: str) -> Template:
    code = COMPILED.code(text, lambda: _ENVIRONMENT.compile(text))
    return _ENVIRONMENT.template_class.from_code(_ENVIRONMENT, code, _ENVIRONMENT.globals)
