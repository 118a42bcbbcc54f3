"""The search of the planner's page: the fastest plan of every way to divide the GPUs, each with its address."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from app.core.errors import SpecError, Violation
from app.planner import service
from app.planner.fields import ANY, PLAIN, SEARCH, THIS_PLANS, fields_of, query_text
from app.planner.labels import schedule_name
from app.planner.limits import limits_of, searched_profile
from app.planner.made import Plan
from app.planner.rows import plans_csv
from app.theory.planner import (
    Candidate,
    EstimateRequest,
    Profile,
    SearchResult,
    Step,
    is_tie,
    next_bottleneck,
    one_step_away,
    parse_search_request,
    search,
)
from app.theory.planner.asking import usable_bytes
from app.theory.planner.candidates import notably_faster
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.remarks import repeats
from app.theory.planner.space import GATHERS, KEEPS
from app.theory.planner.unmet import leanest
from app.units import bytes_text, seconds_text
from app.words import capital

MOST_OPTIONS = 8
MOST_LAYOUTS = 20  # that are looked for: some differ in context parallelism alone, and are shown in one row
SMALLER = (0.6, 0.4)  # of a GPU's memory: where the fastest plan is looked for besides, for the front to reach there
MOST_REMEMBERED = 8  # searches
MOST_ADVICE = 3
AXES = ("tensor", "pipeline", "context", "expert", "data")
AXIS_NAMES = {"micro_batch": "micro-batch", "virtual_stages": "virtual stages"}
ALIKE_SECONDS = 0.5e-3  # less is the same step time
ALIKE_BYTES = 0.5e6  # and less is the same memory


@dataclass(frozen=True)
class Option:
    """A plan the search found, and the address of its page; `others` differ from it in context parallelism alone."""

    candidate: Candidate
    address: str
    compare: str
    others: tuple[Option, ...] = ()

    @property
    def also(self) -> str:
        """The others in words: "also with context 2, 1.43 s"."""
        plans = [each.candidate for each in self.others]
        said = "; ".join(f"{each.parallel.context}, {seconds_text(each.step_seconds)}" for each in plans)
        return f"also with context {said}" if said else ""

    @property
    def axes(self) -> str:
        """How it divides the GPUs."""
        parallel = self.candidate.parallel
        said = [f"{name} {getattr(parallel, name):,}" for name in AXES if getattr(parallel, name) > 1]
        return ", ".join(said).capitalize() or "One GPU"

    @property
    def choices(self) -> str:
        """What it chooses besides."""
        parallel, training = self.candidate.parallel, self.candidate.training
        software = PROFILES[profile_of(self.candidate.request)].title
        said = [software, f"ZeRO-{parallel.zero}" if parallel.zero else "no sharding"]
        if parallel.shard:
            said[-1] += f" over {parallel.shard:,}"
        if parallel.reshard_after_forward is not None:
            said.append(f"{GATHERS if parallel.reshard_after_forward else KEEPS} weights")
        said.append(f"micro-batch {training.micro_batch}")
        if parallel.pipeline > 1:
            chunks = f", {parallel.virtual_stages} chunks a stage" if parallel.virtual_stages > 1 else ""
            said.append(f"{schedule_name(parallel.schedule)}{chunks}")
        again = f"recompute {training.recompute}"
        if training.recompute == "selective":
            again += f" ({repeats(profile_of(self.candidate.request), training.recompute_modules)})"
        return ", ".join([*said, again])


@dataclass(frozen=True)
class Choice:
    """The fastest plan of each way to divide the GPUs, the best first, and the search they came from. `seen` has
    (seconds, bytes) of every plan that was estimated and fits, by it or by the searches for less memory. Where none
    fits, what the `leanest` holds, and the room there is."""

    options: tuple[Option, ...]
    result: SearchResult
    global_batch: int
    csv: str
    json: str
    front: tuple[Option, ...]
    seen: tuple[tuple[float, float], ...]
    leanest: Candidate | None = None
    room_bytes: float = 0.0

    @property
    def estimated(self) -> int:
        """Plans that were estimated, by whichever of the searches. What only those for less memory saw fits."""
        return self.result.evaluated + len(self.seen) - len(self.result.seen)

    @property
    def pruned(self) -> int:
        """Plans that a bound left out of all of them."""
        return self.result.considered - self.result.decided - self.estimated

    @property
    def bottleneck(self) -> str:
        """What costs the first most besides the model's own compute."""
        return next_bottleneck(self.options[0].candidate.estimate)


def steps_from(made: Plan) -> tuple[Step, ...]:
    """One step on every axis from the form's plan."""
    return tuple(one_step_away(made.request, made.by_zero))


@dataclass(frozen=True)
class Advice:
    """One thing changed, what a step takes more (negative: less) and the fullest GPU holds more, of a step of
    `step_seconds`, and the address of the plan with it. `frees` where it is offered for its memory."""

    step: Step
    seconds: float
    bytes: float
    step_seconds: float
    address: str = ""
    is_tie: bool = False
    frees: bool = False

    @property
    def title(self) -> str:
        """What it changes, into what, and what has to change with it."""
        return change_of(self.step)

    @property
    def said(self) -> str:
        """What is gained by it, and what that costs."""
        return f"{self._memory}, and {self._time}" if self.frees else f"{self._time}, and {self._memory}"

    @property
    def _time(self) -> str:
        return time_said(self.seconds, self.step_seconds) + (", which is a tie" if self.is_tie else "")

    @property
    def _memory(self) -> str:
        return memory_said(self.bytes)


def time_said(more_seconds: float, step_seconds: float) -> str:
    """How much longer, or shorter, a step is than one of `step_seconds`: "a step is 157 ms (11 %) shorter"."""
    if abs(more_seconds) < ALIKE_SECONDS:
        return "a step takes as long"
    percent = f" ({100 * abs(more_seconds) / step_seconds:.0f} %)" if step_seconds else ""
    return f"a step is {seconds_text(abs(more_seconds))}{percent} {'shorter' if more_seconds < 0 else 'longer'}"


def memory_said(more_bytes: float) -> str:
    """How much more, or less, is held."""
    if abs(more_bytes) < ALIKE_BYTES:
        return "the fullest GPU holds as much"
    return f"the fullest GPU holds {bytes_text(abs(more_bytes))} {'less' if more_bytes < 0 else 'more'}"


def change_of(step: Step) -> str:
    """What a step changes, into what, and what has to change with it: "Tensor 16 instead of 8, with …"."""
    what = named(step.axis, step.value)
    if (step.axis, step.value) == ("recompute", "selective") and step.request is not None:
        what += f" ({repeats(profile_of(step.request), step.request.training.recompute_modules)})"
    return ", ".join([capital(f"{what} instead of {_instead(step)}"), *step.besides])


def named(axis: str, value: str) -> str:
    """An axis of a plan at a value, as it is called: "tensor 8", "ZeRO-2"."""
    if axis == "zero":
        return f"ZeRO-{value}" if value != "0" else "no sharding"
    if axis == "schedule":
        return schedule_name(value)
    return f"{AXIS_NAMES.get(axis, axis)} {value}"


def _instead(step: Step) -> str:
    return named(step.axis, step.instead) if step.axis in ("zero", "schedule") else step.instead


def advice(made: Plan, steps: tuple[Step, ...], scope: str) -> tuple[Advice, ...]:
    """The changes that save most time and fit in what one plans with, and where memory is scarce the one that frees it
    at the least time a byte. What is too close in time to count as faster is a tie."""
    now, held = made.estimate.time.step_seconds or 0.0, made.stage.total
    every = [
        Advice(step, step.step_seconds - now, step.memory_bytes - held, now, is_tie=is_tie(step.step_seconds, now))
        for step in steps
        if step.step_seconds is not None and step.memory_bytes is not None
    ]
    every = list({(each.seconds, each.bytes): each for each in reversed(every)}.values())  # of two alike the plainer
    usable = made.usable_bytes if made.stage.total <= made.usable_bytes else made.capacity
    fitting = [each for each in every if each.step.fits and held + each.bytes <= usable]
    faster = [each for each in fitting if each.seconds <= -ALIKE_SECONDS or not made.stage.fits]
    chosen = sorted(faster, key=lambda each: each.seconds)[: MOST_ADVICE - 1]
    if not made.has_room:
        smaller = [replace(each, frees=True) for each in every if each.bytes < 0 and each not in chosen]
        chosen += sorted(smaller, key=lambda each: each.seconds / -each.bytes)[: MOST_ADVICE - len(chosen)]
    return tuple(replace(each, address=step_address(made, each.step, scope)) for each in chosen)


def step_address(made: Plan, step: Step, scope: str) -> str:
    """Where the page shows the plan one step away, with the global batch of the plan it is a step from."""
    assert step.request is not None, "a step that was timed has a request"
    batch = step.request.training.global_batch
    assert batch is not None, "a step keeps the batch of its plan"
    return f"/planner?{_query(made, step.request, batch, made.typed['profile'], scope)}"


def is_remembered(made: Plan, scope: str) -> bool:
    """Whether this search was just done, so that it costs nothing to show it again."""
    return _key(made, scope) in _remembered


def choose(made: Plan, scope: str = "1") -> Choice:
    """The best plans of the form's GPUs at its model, sequence, precision, batch and implementation, or another or any
    implementation by `scope`. Raises SpecError."""
    key = _key(made, scope)
    found, seen, front, least, room = _remembered[key] = _remembered.get(key) or _searched(key)
    _remembered.move_to_end(key)
    if len(_remembered) > MOST_REMEMBERED:
        _remembered.popitem(last=False)
    batch = made.global_batch
    options, on_front = ([_option(made, each, batch, scope) for each in every] for every in (found.best, front))
    csv, json_ = (f"/planner/search.{kind}?{query_text({**made.typed, SEARCH: scope})}" for kind in ("csv", "json"))
    return Choice(_folded(options), found, batch, csv, json_, tuple(on_front), seen, least, room)


def _folded(options: list[Option]) -> tuple[Option, ...]:
    """The fastest of those that differ in context parallelism alone, and data ranks with it, with the others beside."""
    groups: dict[tuple[int, ...], list[Option]] = {}
    for option in options:
        parallel = option.candidate.parallel
        groups.setdefault((parallel.tensor, parallel.pipeline, parallel.expert), []).append(option)
    return tuple(replace(first, others=tuple(others)) for first, *others in groups.values())[:MOST_OPTIONS]


def plans_of(made: Plan, scope: str) -> str:
    """The plans of the table and of the front, as comma-separated values. Raises SpecError."""
    found = choose(made, scope)
    every = [one for each in (*found.options, *found.front) for one in (each, *each.others)]
    addresses = {id(each.candidate): each.address for each in every}
    lists = [
        (name, [one.candidate for each in options for one in (each, *each.others)])
        for name, options in (("best", found.options), ("front", found.front))
    ]
    return plans_csv(lists, lambda each: addresses[id(each)])


def searched(made: Plan, scope: str) -> dict[str, Any]:
    """The search that was asked and all it found, as JSON data. Raises SpecError."""
    found = choose(made, scope)
    return {"request": json.loads(_key(made, scope)), **found.result.to_json()}


Outcome = tuple[SearchResult, tuple[tuple[float, float], ...], tuple[Candidate, ...], Candidate | None, float]
_remembered: OrderedDict[str, Outcome] = OrderedDict()


def _searched(key: str) -> Outcome:
    """The search, and those for plans with less memory: what they saw together and what nothing of it beats; where no
    plan fits, the leanest, and the room there is."""
    request = parse_search_request(json.loads(key), may_be_empty=True)
    found = service.searched(request)
    smaller = [
        search(
            request.model_copy(update={"memory_bytes": share * usable_bytes(request), "limit": 1, "distinct": "plan"})
        )
        for share in SMALLER
    ]
    seen = {plan: figures for each in (found, *smaller) for plan, figures in each.seen.items()}
    candidates = [one for each in (found, *smaller) for one in each.front]
    candidates.sort(key=lambda each: (each.memory_bytes, each.step_seconds))
    front = notably_faster(candidates, lambda each: each.step_seconds)
    least = None if found.best else leanest(request)
    return found, tuple(seen.values()), tuple(front), least, usable_bytes(request)


def _option(made: Plan, candidate: Candidate, batch: int, scope: str) -> Option:
    query = _query(made, candidate.request, batch, _software(made, scope) or "", scope)
    beside = urlencode({"a": query_text(made.typed), "b": query})
    return Option(candidate, f"/planner?{query}", f"/planner/compare?{beside}")


def _key(made: Plan, scope: str) -> str:
    """The search as the JSON of its request. Raises SpecError."""
    return json.dumps(_request(made, _software(made, scope)))


def _software(made: Plan, scope: str) -> str | None:
    """Whose software is looked at; None: that which each plan's ZeRO stage suggests."""
    named: tuple[str, ...] = get_args(Profile)
    if not made.form.values["search_software"] and scope in (*named, ANY):
        return None if scope == ANY else scope
    return searched_profile(made.form.values)


def _request(made: Plan, profile: str | None) -> dict[str, Any]:
    ranks, per_node = made.form.asked_ranks, made.form.asked_per_node
    if ranks % per_node:
        message = f"{ranks:,} GPUs are no whole nodes of {per_node:,}."
        raise SpecError([Violation("ranks", ranks, message, f"a multiple of {per_node:,}")])
    request = json.loads(made.request_text)
    kept = ("sequence", "precision", "state_layout")
    fixed = {name: value for name, value in request["training"].items() if name in kept}
    schedules = made.form.values["schedules"]
    return {
        "model": request["model"],
        "training": {**fixed, "global_batch": made.global_batch},
        "cluster": {**request["cluster"], "gpus_per_node": per_node, "nodes": ranks // per_node},
        "profile": profile,
        "schedules": "software" if schedules in (THIS_PLANS, PLAIN) else schedules,
        **limits_of(made.form.values),
        "distinct": "layout",
        "limit": MOST_LAYOUTS,
    }


def _query(made: Plan, request: EstimateRequest, batch: int, profile: str, scope: str) -> str:
    ranks = request.parallel.world_size
    chosen = fields_of(request) | {"profile": profile, "global_batch": str(batch), "ranks": str(ranks)}
    return query_text({**made.typed, **chosen, **({SEARCH: scope} if scope else {})})
