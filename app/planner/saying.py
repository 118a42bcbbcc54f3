"""A plan in sentences: how it divides the GPUs, whether it fits, what it loses, and whose implementation counts."""

from __future__ import annotations

from app.planner.made import Plan
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.remarks import repeats
from app.units import scaled
from app.words import capital

NOTABLE = 0.05  # of a step: what is lost to one thing and worth a word


def finding(made: Plan) -> str:
    """What the plan says in a sentence or two."""
    if made.form.is_own:
        return _finding_of_state(made)
    values, total = made.form.values, made.stage.total
    axes = [f"{name} {values[name]:,}" for name in ("tensor", "pipeline", "context", "expert") if values[name] > 1]
    axes += [f"data {made.form.data:,}"] if made.form.data > 1 else []
    axes += [made.stage.label if made.chosen or values["zero"] else "no sharding"]
    said = ", ".join(axes)
    asked = made.form.asked_ranks
    if made.ranks < asked:
        said += (
            f", on {made.ranks:,} of the {asked:,} GPUs, for tensor × pipeline × context = {made.form.divisor:,} does"
            f" not divide {asked:,}"
        )
    if total > made.capacity:
        over = f"{scaled(total, 'GB', 3)}, {total / made.capacity:.2f} × what it has"
        return f"{capital(said)}. Does not fit: the fullest GPU needs {over}."
    room = f"{capital(said)}. Fits with {scaled(made.capacity - total, 'GB', 3)} to spare"
    loss = max(made.lanes, key=lambda lane: lane.seconds if lane.is_loss else 0.0, default=None)
    if loss is None or not loss.is_loss or loss.share < NOTABLE:
        return f"{room}."
    return f"{room}; {100 * loss.share:.0f} % of every step is {loss.loss}."


def counted_as(made: Plan) -> str:
    """Whose implementation the plan is counted as, and whether anybody asked for it."""
    if made.form.is_own:
        return ""
    suggested = "" if made.form.values["profile"] else ", which its ZeRO stage suggests"
    return f"Counted as {made.stage.profile} does it{suggested}."


def selects(made: Plan) -> str:
    """What selective recomputation repeats in the plan's implementation."""
    return repeats(profile_of(made.request), made.request.training.recompute_modules)


def _finding_of_state(made: Plan) -> str:
    stage, capacity = made.stage, made.capacity
    name = "Without sharding" if made.chosen == 0 else f"At stage {made.chosen}"
    room = capacity - stage.total
    if room >= 0:
        held, left = scaled(stage.total, "GB", 3), scaled(room, "GB", 3)
        return f"{name} each GPU holds {held} of model state and has {left} left for activations and buffers."
    fewest = stage.fewest_ranks
    enough = f"{fewest:,} GPUs would be enough for the state" if fewest else "no number of GPUs is enough at this stage"
    return f"{name} each GPU would hold {scaled(stage.total, 'GB', 3)} of model state, more than it has; {enough}."
