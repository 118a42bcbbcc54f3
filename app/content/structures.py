"""The tree of sums, products and formulas that a key is, as `app.grading.omissions` takes it.

A key is an expression over drawn parameters, what `let` computes from them and registered formulas. Names of `let` are
looked into, and so are formulas whose parts have names of their own; any other formula is a leaf that may be taken for
another case of itself.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping

from app.content.live import ExpressionError, Expressions
from app.grading.omissions import Change, Node
from app.theory.activations import activation_layer_bytes
from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import Evaluation, Formula, evaluate
from app.theory.state import LAYOUTS
from labs.spec import SpecError

MAX_DEPTH = 8
_SIGNS: Mapping[type[ast.operator], int] = {ast.Add: 1, ast.Sub: -1, ast.Mult: 1, ast.Div: -1}
# Counts whose absence has a name: what a quantity is divided or multiplied by.
_COUNTS = ("ranks", "tensor", "stages", "gpus", "layers", "micro_batches", "micro_batch", "accumulation", "units")
_CHOICES = ("stage", "strategy", "part", "passes", "sequence_parallel", "flash", "recompute", "schedule", "asked")


def structure_of(key: str, let: Mapping[str, str], values: Mapping[str, object]) -> Node | None:
    """The tree of `key` at `values`; None for a key that is no arithmetic."""
    try:
        return _Builder(let, values).node(ast.parse(key.strip(), mode="eval").body, 0)
    except (SyntaxError, ExpressionError, ArithmeticError, ValueError, TypeError):
        return None


class _Builder:
    def __init__(self, let: Mapping[str, str], values: Mapping[str, object]) -> None:
        self.let = let
        self.expressions = Expressions(values)

    def node(self, tree: ast.expr, depth: int) -> Node:
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add | ast.Sub):
            return Node(_label(tree), self._value(tree), terms=tuple(self._parts(tree, (ast.Add, ast.Sub), depth)))
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult | ast.Div):
            return Node(_label(tree), self._value(tree), factors=tuple(self._parts(tree, (ast.Mult, ast.Div), depth)))
        if isinstance(tree, ast.Name) and tree.id in self.let and depth < MAX_DEPTH:
            below = ast.parse(self.let[tree.id].strip(), mode="eval").body
            found = self.node(below, depth + 1)
            return Node(_label(tree), found.value, found.terms, found.factors, found.changes)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in FORMULAS.by_name:
            return self._formula(tree, FORMULAS.by_name[tree.func.id])
        return Node(_label(tree), self._value(tree))

    def _value(self, tree: ast.expr) -> float:
        return float(self.expressions.number(ast.unparse(tree)))

    def _parts(
        self, tree: ast.expr, operators: tuple[type[ast.operator], ...], depth: int, sign: int = 1
    ) -> Iterator[tuple[int, Node]]:
        """Terms or factors of a chain of operators, each with its sign or exponent."""
        if not (isinstance(tree, ast.BinOp) and isinstance(tree.op, operators)):
            yield sign, self.node(tree, depth)
            return
        yield from self._parts(tree.left, operators, depth, sign)
        yield from self._parts(tree.right, operators, depth, sign * _SIGNS[type(tree.op)])

    def _formula(self, tree: ast.Call, formula: Formula) -> Node:
        given = {each.arg: self.expressions.value(ast.unparse(each.value)) for each in tree.keywords if each.arg}
        try:
            found = evaluate(formula, given)
        except SpecError as error:
            raise ExpressionError(str(error)) from None
        changes = tuple(_other_cases(found))
        parts = _PARTS.get(formula.name, _no_parts)(found)
        label = formula.title if formula.title[:2].isupper() else formula.title[0].lower() + formula.title[1:]
        return Node(label, found.value, parts.terms, parts.factors, changes)


def _label(tree: ast.expr) -> str:
    said = ast.unparse(tree).replace("_", " ").replace("micro batch", "micro-batch")
    said = said.replace(" * ", " × ").replace("answer.", "your answer to ")
    return "your number before" if said == "answer" else said


def _other_cases(evaluation: Evaluation) -> Iterator[Change]:
    """The formula with one input taken for another: a count forgotten, or a case that was not asked for."""
    for parameter in evaluation.formula.inputs:
        now = evaluation.inputs[parameter.name]
        if parameter.name in _COUNTS and parameter.integer and isinstance(now, int) and now > 1:
            yield Change(f"you left out the {parameter.label.lower()} ({now})", _with(evaluation, parameter.name, 1))
        if parameter.name not in _CHOICES:
            continue
        others: tuple[str | int, ...] = parameter.choices or tuple(
            range(int(parameter.minimum), min(int(parameter.maximum), 3) + 1)
        )
        for other in others:
            if other != now:
                yield Change(
                    f"you took “{other}” for “{now}” ({parameter.label.lower()})",
                    _with(evaluation, parameter.name, other),
                )


def _with(evaluation: Evaluation, name: str, value: object) -> Callable[[], float | None]:
    def other() -> float | None:
        try:
            return float(evaluation.formula.function(**{**evaluation.inputs, name: value}))
        except (SpecError, ArithmeticError, ValueError):
            return None

    return other


def _no_parts(evaluation: Evaluation) -> Node:
    return Node("", evaluation.value)


def _leaf(label: str, value: float) -> Node:
    return Node(label, value)


def _product(label: str, *factors: tuple[int, Node]) -> Node:
    value = 1.0
    for exponent, factor in factors:
        value = operator.mul(value, factor.value) if exponent > 0 else operator.truediv(value, factor.value)
    return Node(label, value, factors=factors)


def _sum(*terms: Node) -> Node:
    return Node("", sum(term.value for term in terms), terms=tuple((1, term) for term in terms))


def _state(evaluation: Evaluation) -> Node:
    """Weights, gradients, master copy and moments, each whole or over the ranks."""
    inputs = evaluation.inputs
    if inputs.get("part", "all") != "all":
        return _no_parts(evaluation)
    layout = LAYOUTS[str(inputs["layout"])]
    stage, ranks = int(inputs.get("stage", 0)), int(inputs.get("ranks", 1))
    model = float(inputs["parameters"]) / (int(inputs.get("tensor", 1)) * int(inputs.get("stages", 1)))
    master = 4.0 if str(inputs["layout"]) in ("zero-16", "megatron-18", "mixed-20", "sgd-12") else 0.0
    pieces = (
        ("the weights", layout.parameters, 3),
        ("the gradients", layout.gradients, 2),
        ("the fp32 master copy", master, 1),
        ("the optimizer's moments" if master else "the optimizer", layout.optimizer - master, 1),
    )
    terms = []
    for name, size, sharded_from in pieces:
        if size:
            label = f"{name}, {size:g} of {layout.total:g} bytes a parameter"
            whole = _leaf("the parameters", size * model)
            over = ((-1, _leaf(f"the {ranks} ranks for {name}", float(ranks))),) if stage >= sharded_from else ()
            terms.append(_product(label, (1, whole), *over) if over else _leaf(label, size * model))
    return _sum(*terms)


def _ring(passes: int, size: float, ranks: int) -> Node:
    around = _leaf(f"(n − 1)/n, {ranks - 1}/{ranks} here", (ranks - 1) / ranks)
    twice = ((1, _leaf("2: reduce-scatter and all-gather", 2.0)),) if passes == 2 else ()
    return _product("the bytes sent", (1, _leaf("the tensor's bytes", size)), *twice, (1, around))


def _ring_bytes(passes: int) -> Callable[[Evaluation], Node]:
    return lambda evaluation: _ring(passes, float(evaluation.inputs["size_bytes"]), int(evaluation.inputs["ranks"]))


def _ring_seconds(passes: int) -> Callable[[Evaluation], Node]:
    def parts(evaluation: Evaluation) -> Node:
        inputs, ranks = evaluation.inputs, int(evaluation.inputs["ranks"])
        sent = _ring(passes, float(inputs["size_bytes"]), ranks)
        travel = _product("the time of the bytes", (1, sent), (-1, _leaf("B", float(inputs["bytes_per_second"]))))
        latency = passes * (ranks - 1) * float(inputs["latency_seconds"])
        if not latency:
            return Node("", evaluation.value, factors=travel.factors)
        halved = Change("you counted n − 1 messages for 2(n − 1)", lambda: latency / 2)
        waiting = Node("the latency of the messages", latency, changes=(halved,) if passes == 2 else ())
        return _sum(waiting, travel)

    return parts


def _peak_weights(evaluation: Evaluation) -> Node:
    inputs = evaluation.inputs
    size = float(inputs["parameters"]) * float(inputs["bytes_each"])
    gathered = size / int(inputs["units"]) * int(inputs["live_units"])
    return _sum(_leaf("the rank's own shard", size / int(inputs["ranks"])), _leaf("the gathered units", gathered))


def _activations(evaluation: Evaluation) -> Node:
    inputs = evaluation.inputs
    if inputs["recompute"] != "full":
        return _no_parts(evaluation)
    shape = {name: int(inputs[name]) for name in ("sequence", "micro_batch", "hidden", "heads", "tensor")}
    live = activation_layer_bytes(
        **shape, flash=inputs["flash"] == "yes", sequence_parallel=inputs["sequence_parallel"] == "yes"
    )
    return _sum(
        _leaf("the layers' inputs", evaluation.value - live), _leaf("the live layer, recomputed in backward", live)
    )


def _lost_time(evaluation: Evaluation) -> Node:
    writing, interval, between, restart = (
        float(evaluation.inputs[f"{name}_seconds"]) for name in ("checkpoint", "interval", "mtbf", "restart")
    )
    return _sum(
        _leaf("writing checkpoints", writing / interval),
        _leaf("repeated work", interval / 2 / between),
        _leaf("restarts", restart / between),
    )


_PARTS: Mapping[str, Callable[[Evaluation], Node]] = {
    "training_state": _state,
    "zero_state": _state,
    "parallel_state": _state,
    "ring_all_reduce_bytes": _ring_bytes(2),
    "half_ring_bytes": _ring_bytes(1),
    "ring_all_reduce_seconds": _ring_seconds(2),
    "half_ring_seconds": _ring_seconds(1),
    "fsdp_peak_weights": _peak_weights,
    "activations": _activations,
    "lost_time": _lost_time,
}
