"""From a model and a cluster to a plan by rule of thumb, one decision at a time, each with the numbers it rests on.

The order is that of the reference page on decision frameworks: what state alone needs, what a step's activations add,
replicas, sharding, tensor groups inside a node, stages, then what long sequences and experts ask for, and at last what
the plan loses and how often it fails. A search looks at every plan; this looks at the few that a rule leads to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from app.theory.planner.asking import USABLE
from app.theory.planner.estimate import estimate
from app.theory.planner.requests import EstimateRequest, parse_estimate_request
from app.theory.planner.results import Estimate
from app.theory.reliability import FAILURE_RATES, mtbf_seconds
from app.theory.state import LAYOUTS
from app.theory.transformer import parameter_count
from app.units import bytes_text, count_text, factor_of, seconds_text
from app.words import capital
from labs.spec import Model, SpecError

LONG = 32_768  # tokens, from which a sequence is cut
TOKENS_OF_A_RANK = 16_384  # of a sequence, that one rank is left with
NOTABLE = 0.1  # of a step
WORTH = 0.95  # of the time: what a more elaborate plan must take at most
MOST_EXPERT_RANKS = 64  # more send tokens over more nodes than they save
INTERRUPTED = FAILURE_RATES["llama-3"]


@dataclass(frozen=True)
class Question:
    """One decision: what is asked, what the numbers say, and what follows; where it tried a plan, that one."""

    title: str
    says: str
    follows: str
    tried: tuple[EstimateRequest, Estimate] | None = None


@dataclass(frozen=True)
class Decision:
    """The way to a plan, and the plan; None where nothing the rules lead to fits."""

    questions: tuple[Question, ...]
    request: EstimateRequest | None
    estimate: Estimate | None

    @property
    def axes(self) -> str:
        """The plan's degrees in words."""
        return axes_text(self.request) if self.request else ""


@dataclass(frozen=True)
class Asked:
    """What is decided for: `model` as an EstimateRequest has it, `gpus` of `gpu` in nodes of `per_node`, and a batch in
    sequences."""

    model: Any
    gpu: str
    gpus: int
    per_node: int
    sequence: int
    global_batch: int
    precision: str = "bf16-mixed"
    layout: str = "zero-16"


@dataclass
class _Way:
    """The plan as far as it is decided."""

    asked: Asked
    axes: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    def request(self, **more: Any) -> dict[str, Any]:
        axes = {**self.axes, **{name: value for name, value in more.items() if name != "recompute"}}
        others = axes.get("tensor", 1) * axes.get("pipeline", 1) * axes.get("context", 1)
        axes["data"] = max(1, self.asked.gpus // others)
        asked = self.asked
        training = {
            "sequence": asked.sequence,
            "global_batch": asked.global_batch,
            "precision": asked.precision,
            "state_layout": asked.layout,
            "recompute": more.get("recompute", "none"),
        }
        profile = "fsdp2" if axes.get("zero") == 3 else "megatron-core"
        cluster = {"gpu": asked.gpu, "gpus_per_node": asked.per_node}
        return {
            "model": asked.model,
            "training": training,
            "parallel": axes,
            "cluster": cluster,
            "profile": profile,
        }

    def tried(self, **more: Any) -> tuple[EstimateRequest, Estimate] | None:
        """A plan that keeps the rules and uses every GPU, recomputing only if it must; else None."""
        data = self.request(**more)
        axes = data["parallel"]
        used = axes["data"] * axes.get("tensor", 1) * axes.get("pipeline", 1) * axes.get("context", 1)
        if used != self.asked.gpus:
            return None
        found = None
        for recompute in ("none", "full"):
            try:
                request = parse_estimate_request({**data, "training": {**data["training"], "recompute": recompute}})
            except SpecError:
                return None
            found = request, estimate(request)
            if fits(found[1]):
                return found
        return found


def fits(made: Estimate) -> bool:
    """With room for what allocators and libraries take."""
    return made.memory.per_rank_bytes.total <= USABLE * (made.memory.capacity_bytes or 0.0)


def decide(asked: Asked) -> Decision:
    """Raises SpecError where the model, the GPU or a size cannot be."""
    first = parse_estimate_request(_Way(asked).request() | {"parallel": {}, "training": {"sequence": asked.sequence}})
    model = first.model
    assert isinstance(model, Model), "the page offers models with a shape"
    way, questions = _Way(asked), list[Question]()
    questions.append(_state(asked, model, estimate(first)))
    questions += _cuts(way, model)
    tiers = list(_tiers(way, questions))
    chosen = _chosen(tiers, questions)
    if chosen is None:
        return Decision(tuple(questions), None, None)
    request, made = chosen
    questions += [_losses(request, made), _failures(asked)]
    return Decision(tuple(questions), request, made)


def _state(asked: Asked, model: Model, made: Estimate) -> Question:
    layout, capacity = LAYOUTS[asked.layout], made.memory.capacity_bytes or 1.0
    each = layout.parameters + layout.gradients + layout.optimizer
    count = parameter_count(model, asked.sequence)
    least = ceil(each * count / (USABLE * capacity))
    says = (
        f"{count_text(count)} parameters × {each:g} bytes are {bytes_text(each * count)}; "
        f"nine tenths of a GPU are {bytes_text(USABLE * capacity)}."
    )
    follows = (
        "One GPU holds all of it: the rest is speed."
        if least == 1
        else f"Without sharding it would fill {least:,} GPUs; ZeRO-1 shards its optimizer state, ZeRO-3 all of it."
    )
    if least > asked.gpus:
        follows = f"State alone needs {least:,} GPUs, and there are {asked.gpus:,}: nothing will fit."
    return Question("What does the whole state need, unsharded?", says, follows)


def _cuts(way: _Way, model: Model) -> Iterator[Question]:
    """What long sequences and experts ask for, before anything else is divided."""
    asked = way.asked
    if asked.sequence >= LONG:
        context = 1
        while asked.sequence // context > TOKENS_OF_A_RANK and asked.gpus % (2 * context) == 0:
            context *= 2
        way.axes["context"] = context
        yield Question(
            "Is the sequence long?",
            f"{asked.sequence:,} tokens a sequence, at or above {LONG:,}: activations and attention grow with them.",
            f"Context {context:,}: {asked.sequence // context:,} tokens a rank.",
        )
    if model.experts > 1:
        most = min(model.experts, MOST_EXPERT_RANKS)
        expert = max(each for each in range(1, most + 1) if model.experts % each == 0 and asked.gpus % each == 0)
        way.axes["expert"] = expert
        yield Question(
            "Are there experts?",
            f"{model.experts:,} experts, of which a token meets {model.active_experts:,}: else every rank holds all.",
            f"Expert {expert:,}: {model.experts // expert:,} a rank.",
        )


Tier = tuple[str, EstimateRequest, Estimate]


def _tiers(way: _Way, questions: list[Question]) -> Iterator[Tier]:
    """The plain plan of each kind that fits: replicas, sharded replicas, tensor groups, and stages of them."""
    for title, name, choices in _kinds(way.asked):
        best, tightest = None, None
        for more in choices:
            found = way.tried(**more)
            if found is None:
                continue
            if tightest is None or _held(found[1]) < _held(tightest[1]):
                tightest = found
            if fits(found[1]):
                best = found
                break
        questions.append(_asked_of(title, best, tightest))
        if best is not None:
            yield (name, *best)


def _kinds(asked: Asked) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    inside = [each for each in (2, 4, 8) if asked.per_node % each == 0]
    yield (
        "Does a replica fit on one GPU, unsharded or with ZeRO-1?",
        "replicas",
        [{"zero": 0}, {"zero": 1}],
    )
    yield "If all of the state is sharded over the replicas, with ZeRO-3?", "sharding", [{"zero": 3}]
    yield (
        "With tensor groups inside a node, and ZeRO-1?",
        "tensor groups",
        [{"zero": 1, "tensor": tensor, "sequence_parallel": True} for tensor in inside],
    )
    tensor = inside[-1] if inside else 1
    stages = [2**power for power in range(1, 7)]
    yield (
        "With stages of such groups, and ZeRO-1?",
        "stages",
        [{"zero": 1, "tensor": tensor, "sequence_parallel": tensor > 1, "pipeline": each} for each in stages],
    )


def _asked_of(
    title: str,
    best: tuple[EstimateRequest, Estimate] | None,
    tightest: tuple[EstimateRequest, Estimate] | None,
) -> Question:
    if tightest is None:
        why = "No plan of this kind shares out the GPUs, the batch and the model's sizes."
        return Question(title, why, "Not this way.")
    if best is None:
        least, capacity = tightest[1], tightest[1].memory.capacity_bytes or 0.0
        says = f"{axes_text(tightest[0])}: {bytes_text(_held(least))} a GPU even when everything is recomputed."
        return Question(title, says, f"Does not fit in nine tenths of {bytes_text(capacity)}.", tightest)
    request, made = best
    lost = (made.time.exposed_communication_seconds or 0.0) / (made.time.step_seconds or 1.0)
    says = (
        f"{axes_text(request)}: {bytes_text(_held(made))} a GPU, {seconds_text(made.time.step_seconds or 0.0)} a step, "
    )
    says += f"{100 * lost:.0f} % of it communication that nothing hides."
    zero = f" with ZeRO-{request.parallel.zero}" if request.parallel.zero else " without sharding"
    sharded = zero if request.parallel.data > 1 else ""
    recompute = ", if everything is recomputed" if request.training.recompute == "full" else ""
    return Question(title, says, f"It fits{sharded}{recompute}.", best)


def _held(made: Estimate) -> float:
    return made.memory.per_rank_bytes.total


def axes_text(request: EstimateRequest) -> str:
    """A plan's degrees in words."""
    parallel = request.parallel
    names = ("data", "tensor", "pipeline", "context", "expert")
    said = [f"{name} {getattr(parallel, name):,}" for name in names if getattr(parallel, name) > 1]
    said.append(f"ZeRO-{parallel.zero}" if parallel.zero else "no sharding")
    return capital(", ".join(said))


def _chosen(tiers: list[Tier], questions: list[Question]) -> tuple[EstimateRequest, Estimate] | None:
    """The simplest that fits, unless a more elaborate one saves enough time to be worth it."""
    if not tiers:
        questions.append(
            Question("Which of them?", "None of these fits.", "Take more GPUs, more memory, or a shorter sequence.")
        )
        return None
    name, request, made = tiers[0]
    for other, its_request, its_made in tiers[1:]:
        if (its_made.time.step_seconds or 0.0) < WORTH * (made.time.step_seconds or 0.0):
            name, request, made = other, its_request, its_made
    times = "; ".join(f"{each} {seconds_text(found.time.step_seconds or 0.0)}" for each, _, found in tiers)
    why = "it is the simplest that fits" if name == tiers[0][0] else "it saves more than it complicates"
    questions.append(Question("Which of them?", f"A step takes: {times}.", f"{name.capitalize()}: {why}."))
    return request, made


def _losses(request: EstimateRequest, made: Estimate) -> Question:
    step = made.time.step_seconds or 1.0
    bubble, shown = (made.time.bubble_seconds or 0.0) / step, (made.time.exposed_communication_seconds or 0.0) / step
    again = (made.time.recompute_seconds or 0.0) / step
    says = f"{made.pipeline.micro_batches:,} micro-batches a rank; bubble {100 * bubble:.0f} %, communication that "
    says += f"nothing hides {100 * shown:.0f} %, recomputation {100 * again:.0f} % of a step."
    lost = {"bubble": bubble, "communication": shown, "recomputation": again}
    worst = max(lost, key=lambda name: lost[name])
    advice = {
        "bubble": "more micro-batches, or chunks of stages in turn (virtual stages)",
        "communication": "larger micro-batches, or more of it beside compute (overlap)",
        "recomputation": "recompute by module, or shard further",
    }
    follows = (
        f"Work on the {worst} next: {advice[worst]}." if lost[worst] > NOTABLE else "Nothing of it is above a tenth."
    )
    return Question("What does it lose?", says, follows)


def _failures(asked: Asked) -> Question:
    each = mtbf_seconds(asked.gpus, INTERRUPTED.gpu_seconds_per_failure)
    job = "job on one GPU" if asked.gpus == 1 else f"job on {asked.gpus:,} GPUs"
    says = f"At the rate of {INTERRUPTED.title} ({INTERRUPTED.source}), a {job} stops every {seconds_text(each)}."
    day = factor_of("days")
    follows = "Checkpoints every hour are plenty." if each > 7 * day else "Plan checkpoints and restarts with it."
    return Question("How often will it fail?", says, follows)
