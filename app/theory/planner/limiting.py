"""What the limits of a search take out of its space, and what each of them could be where they leave nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from app.theory.planner.limits import Axes, Limits
from app.theory.planner.space import GATHERS, Order, Shape, Sharding, Space
from labs.spec import Recompute, Violation

DEGREES = ("tensor", "context", "pipeline", "data", "micro_batch", "expert")
CHOSEN = ("precision", "overlap", "expert_nodes")  # as asked unless listed, so that a list of them takes nothing out
MOST_NAMED = 16  # of the values that would be accepted


def left_out(space: Space) -> dict[str, int]:
    """How many plans that would be looked at each limit takes out, by its field; one that several take out counts at
    the first of them."""
    limits, free, found = space.limits, without_limits(space), Counter[str]()
    if not limits.fields:
        return {}
    for shape in free.shapes(Counter()):
        orders = free.orders(shape.pipeline, free.micro_batches(shape), shape.profile)
        shardings = free.shardings_of(shape)
        if field := _excluding_shape(limits, shape):
            found[field] += len(orders) * len(shardings)
            continue
        by_order = [_excluding_order(limits, shape, order) for order in orders]
        found.update({field: by_order.count(field) * len(shardings) for field in set(by_order) if field})
        kept = by_order.count("")
        for field in filter(None, (_excluding_sharding(limits, shape, each) for each in shardings)):
            found[field] += kept
    return {field: count for field, count in found.items() if count}


def without_limits(space: Space, field: str = "") -> Space:
    """The space without its limits, or without one of them."""
    limits = space.limits
    if not field:
        kept = {name: getattr(limits.axes, name) for name in CHOSEN}
        return replace(space, limits=Limits(Axes().model_copy(update=kept)))
    part, _, axis = field.partition(".")
    freed = getattr(limits, part).model_copy(update={axis: None})
    return replace(space, limits=replace(limits, **{part: freed}))


def _excluding_shape(limits: Limits, shape: Shape) -> str:
    """The first limit that a shape breaks."""
    fields = [limits.excluding(axis, getattr(shape, axis)) for axis in DEGREES]
    if shape.expert > 1:
        fields.append(limits.excluding("expert_tensor", shape.expert_tensor or shape.tensor))
    by_kind = shape.recompute in get_args(Recompute)
    fields.append(limits.excluding("recompute", shape.recompute if by_kind else "selective"))
    if not by_kind:
        fields.append(limits.excluding("recompute_modules", tuple(shape.recompute.split("+"))))
    return next(filter(None, fields), "")


def _excluding_order(limits: Limits, shape: Shape, order: Order) -> str:
    if shape.pipeline == 1:
        return ""
    return limits.excluding("schedule", order.schedule) or limits.excluding("virtual_stages", order.virtual_stages)


def _excluding_sharding(limits: Limits, shape: Shape, sharding: Sharding) -> str:
    if field := limits.excluding("zero", sharding.zero):
        return field
    whole, shards = shape.data * shape.context, limits.axes.shard
    if sharding.zero and shards is not None and not {sharding.shard or None, sharding.shard or whole} & {*shards}:
        return "axes.shard"
    reshards, gathers = limits.axes.reshard_after_forward, sharding.reshard == GATHERS
    if sharding.zero == 3 and reshards is not None:
        by_itself = shape.pipeline == 1
        if not {gathers if sharding.reshard else by_itself, None if not sharding.reshard else gathers} & {*reshards}:
            return "axes.reshard_after_forward"
    return ""


def limit_violations(space: Space) -> Iterator[Violation]:
    """Of limits that leave no plan where without them there would be one: those of which another value would, the
    rest being kept; where no single one does, all of them, with what they could be by themselves."""
    if not space.limits.fields or _has_plans(space) or not _has_plans(without_limits(space)):
        return
    freed = {field: without_limits(space, field) for field in space.limits.fields}
    helping = {field: each for field, each in freed.items() if _has_plans(each)}
    message = "With the other limits no plan is left." if helping else "No plan keeps to all of these limits."
    for field in helping or freed:
        accepted = _accepted(field, helping.get(field) or without_limits(space))
        yield Violation(field, _given(space.limits, field), message, accepted)


def _has_plans(space: Space) -> bool:
    return any(space.plans_below(shape) for shape in space.shapes(Counter()))


def _given(limits: Limits, field: str) -> object:
    part, _, axis = field.partition(".")
    value = getattr(getattr(limits, part), axis)
    return list(value) if isinstance(value, tuple) else value


def _accepted(field: str, space: Space) -> str:
    """The values of the field's axis that plans of a space have."""
    axis = field.partition(".")[2]
    values = sorted({value for shape in space.shapes(Counter()) for value in _values(axis, space, shape)})
    if field.startswith("at_most"):
        return f"{values[0]} or more"
    if field.startswith("at_least"):
        return f"up to {values[-1]}"
    texts = [str(value) for value in values]
    return ", ".join(texts if len(texts) <= MOST_NAMED else [*texts[: MOST_NAMED - 1], f"… {texts[-1]}"])


def _values(axis: str, space: Space, shape: Shape) -> Iterator[int | str]:
    """What the plans of a shape have on an axis, as a request says it."""
    if axis in ("schedule", "virtual_stages"):
        for order in space.orders(shape.pipeline, space.micro_batches(shape), shape.profile):
            yield getattr(order, axis)
    elif axis in ("zero", "shard", "reshard_after_forward"):
        for sharding in space.shardings_of(shape):
            if axis == "zero":
                yield sharding.zero
            elif axis == "shard" and sharding.zero:
                yield sharding.shard or shape.data * shape.context
            elif sharding.zero == 3:
                yield str(sharding.gathers(shape.pipeline)).lower()
    elif axis == "recompute_modules":
        yield from [shape.recompute] if shape.recompute not in get_args(Recompute) else []
    elif axis == "recompute":
        yield shape.recompute if shape.recompute in get_args(Recompute) else "selective"
    elif axis == "overlap":
        yield str(space.overlaps[shape.overlap].model_dump(exclude_none=True))
    else:
        yield getattr(shape, axis) or (shape.tensor if axis == "expert_tensor" else 0)
