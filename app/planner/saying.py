"""A plan in sentences: how it divides the GPUs, whether it fits, what it loses, and whose implementation counts."""

from __future__ import annotations

from dataclasses import dataclass

from app.planner.limits import memory_text
from app.planner.made import Plan
from app.theory.planner import CollectiveEstimate
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.remarks import repeats
from app.theory.state import LAYOUTS
from app.units import bytes_text, scaled
from app.words import capital, counted

NO_BYTES = 1e6  # the same room
NOTABLE = 0.05  # of a step: what is lost to one thing and worth a word


def title(made: Plan) -> str:
    """Whether it fits, and by how much: the finding of a page on which nothing was searched."""
    held, whole = made.stage.total, "The state" if made.form.is_own else ""
    if held > made.capacity:
        return f"{f'{whole} does' if whole else 'Does'} not fit: {held / made.capacity:.2f} × the memory"
    if made.form.is_own:
        return f"{whole} fits, with {scaled(made.capacity - held, 'GB', 3)} left"
    if made.may_not_fit:
        return "Fits as estimated, but may not"
    room = made.usable_bytes - held
    spare = f", with {scaled(room, 'GB', 3)} to spare" if room >= 0 else ", but with less room than one plans with"
    return f"Fits{spare}"


def finding(made: Plan, is_titled: bool = False) -> str:
    """What the plan says in a sentence or two. `is_titled` where `title` stands above it: then what that counts to."""
    if made.form.is_own:
        return _finding_of_state(made)
    said, total = division(made), made.stage.total
    asked = made.form.asked_ranks
    if made.ranks < asked:
        said += (
            f", on {made.ranks:,} of the {asked:,} GPUs, for tensor × pipeline × context = {made.form.divisor:,} does"
            f" not divide {asked:,}"
        )
    if total > made.capacity:
        over = f"{scaled(total, 'GB', 3)}, {total / made.capacity:.2f} × what it has"
        return f"{capital(said)}. {'T' if is_titled else 'Does not fit: t'}he fullest GPU needs {over}."
    is_short = is_titled and not made.may_not_fit
    room = f"{capital(said)}{_counted_to(made) if is_short else f'. {_room(made)}'}"
    loss = max(made.lanes, key=lambda lane: lane.seconds if lane.is_loss else 0.0, default=None)
    if loss is None or not loss.is_loss or loss.share < NOTABLE:
        return f"{room}."
    return f"{room}; {100 * loss.share:.0f} % of every step is {loss.loss}."


def division(made: Plan) -> str:
    """How a plan divides the GPUs: "tensor 2, data 4, ZeRO-1"."""
    values = made.form.values
    axes = [f"{name} {values[name]:,}" for name in ("tensor", "pipeline", "context", "expert") if values[name] > 1]
    axes += [f"data {made.form.data:,}"] if made.form.data > 1 else []
    return ", ".join([*axes, made.stage.label if made.chosen or values["zero"] else "no sharding"])


def _room(made: Plan) -> str:
    """Whether a plan that fits as estimated does so surely, and with what one leaves free."""
    usable, limit = made.usable_bytes, memory_text(made.form.values)
    if made.may_not_fit:
        most = scaled(made.most_bytes, "GB", 3)
        return (
            f"Close: fits as estimated, but may not, for the range ends at {most} of {scaled(made.capacity, 'GB', 3)}"
        )
    if made.stage.total > usable:
        over = scaled(made.stage.total - usable, "GB", 3)
        return f"Fits, but takes {over} more than {limit}, which one plans with"
    return f"Fits with {scaled(usable - made.stage.total, 'GB', 3)} to spare below {limit}"


def _counted_to(made: Plan) -> str:
    """What the fullest GPU holds, and of how much one plans with."""
    held, usable, limit = made.stage.total, bytes_text(made.usable_bytes), memory_text(made.form.values)
    share = "" if limit == usable else f", {limit}"
    return f": {bytes_text(held)} of the {usable} that one plans with{share}"


def counted_as(made: Plan) -> str:
    """Whose implementation the plan is counted as, and whether anybody asked for it."""
    if made.form.is_own:
        return ""
    if made.form.values["profile"]:
        return f"Counted as {made.stage.profile} does it."
    said = f"Counted as {made.stage.profile} does it, which its ZeRO stage suggests"
    own = made.estimate.memory.software_default
    if made.form.values["layout"] or own is None:
        return f"{said}."
    counted, default = (LAYOUTS[name].bytes_each for name in (made.layout, own.state_layout))
    said += f", with {counted} bytes a parameter; its own default is {default}"
    return f"{said}, {bytes_text(own.more_bytes)} more." if own.more_bytes > NO_BYTES else f"{said}."


def selects(made: Plan) -> str:
    """What selective recomputation repeats in the plan's implementation."""
    return repeats(profile_of(made.request), made.request.training.recompute_modules)


@dataclass(frozen=True)
class OverLink:
    """What goes over one link between the same GPUs: which, and the places of its rows among the estimate's."""

    said: str
    rows: tuple[int, ...]


def by_link(made: Plan) -> tuple[OverLink, ...]:
    """The communication of a plan by what it goes over, in the order in which that is first met."""
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(made.estimate.communication):
        groups.setdefault(f"{made.link_text(row.link)}: {ports(row)}", []).append(place)
    return tuple(OverLink(capital(said), tuple(rows)) for said, rows in groups.items())


def ports(row: CollectiveEstimate) -> str:
    """Which ranks of a collective's group share a node, and through which network cards they leave it."""
    beside = row.ranks_per_node
    if row.cards_per_node == 0:
        return "inside a node, over a link of its own for each GPU"
    if row.operation == "send":
        return "from node to node, each GPU through its own card"
    nodes = counted(row.group_size // beside, "node")
    if beside == 1:
        return f"one GPU in each of {nodes}, through its own card"
    if row.operation == "all_to_all":
        return f"{beside} GPUs in each of {nodes}, each through its own card"
    cards = "one card" if row.cards_per_node == 1 else f"the cards of all {row.cards_per_node}"
    return f"{beside} GPUs in each of {nodes}; the ring leaves a node through {cards}"


def egress(made: Plan) -> str:
    """What the GPUs of a node share on the way out of it; empty where nothing leaves one."""
    if not any(row.cards_per_node for row in made.estimate.communication):
        return ""
    each, gpus = made.link_rates[1], made.form.gpus_per_node
    if gpus == 1:
        return ""
    rate, whole = scaled(each, "GB/s", 3), scaled(each * gpus, "GB/s", 3)
    return (
        f"The {gpus} GPUs of a node leave it at {rate} each, {whole} together. Where they share fewer ports than they"
        " are, type one GPU's share of a port under Between nodes."
    )


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
