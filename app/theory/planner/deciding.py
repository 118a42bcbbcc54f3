"""From a model and a cluster to a plan, one decision at a time, each with the numbers it rests on.

The order is that of the reference page on decision frameworks: what state alone needs, what long sequences and experts
ask for, replicas, sharding, tensor groups inside a node, stages, and at last what the plan loses and how often it
fails. Each kind of plan is looked through by a search (`kinds`); how far sequences and experts are divided is by rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from app.theory.hardware import GPUS
from app.theory.planner.asking import USABLE
from app.theory.planner.candidates import Candidate
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.kinds import (
    OTHERWISE,
    PROFILE,
    SHARDING,
    USUAL,
    Asked,
    Kind,
    Looked,
    kinds_of,
    look,
    look_leaner,
    look_otherwise,
)
from app.theory.planner.remarks import repeats
from app.theory.planner.requests import EstimateRequest, parse_estimate_request
from app.theory.planner.results import Estimate
from app.theory.planner.space import SAME
from app.theory.planner.ties import is_tie, tie_share
from app.theory.reliability import FAILURE_RATES, mtbf_seconds
from app.theory.state import LAYOUTS
from app.theory.transformer import parameter_count
from app.units import bytes_text, count_text, factor_of, seconds_text
from app.words import capital, counted, listed
from labs.spec import Model

LONG = 32_768  # tokens, from which a sequence is cut
TOKENS_OF_A_RANK = 16_384  # of a sequence, that one rank is left with
NOTABLE = 0.1  # of a step
WHICH = "Which of them?"
MOST_EXPERT_RANKS = 64  # more send tokens over more nodes than they save
INTERRUPTED = FAILURE_RATES["llama-3"]


@dataclass(frozen=True)
class Question:
    """One decision: what is asked, what the numbers say, and what follows; where it is about a kind of plans, which,
    and the one of them that it comes to."""

    title: str
    says: str
    follows: str
    kind: str = ""
    tried: Candidate | None = None


@dataclass(frozen=True)
class Decision:
    """The way to a plan, and the plan; None where no plan of any kind fits. `held` are the axes that a rule decided,
    `leaner` says, where the plan may not fit, which does."""

    questions: tuple[Question, ...]
    chosen: Candidate | None
    held: dict[str, int]
    leaner: str = ""

    @property
    def axes(self) -> str:
        """The plan's degrees in words."""
        return axes_text(self.chosen.request) if self.chosen else ""

    @property
    def reason(self) -> str:
        """Why this kind of plan and no other, or what to do where none fits."""
        return next(question.follows for question in self.questions if question.title == WHICH)

    @property
    def software(self) -> str:
        """As whose implementation plans are counted."""
        return PROFILES[PROFILE].title

    @property
    def sharding_software(self) -> str:
        """As whose those are that the other has no ZeRO stage for."""
        return PROFILES[SHARDING].title

    @property
    def held_text(self) -> str:
        """The axes that a rule decided, in words; empty where none did."""
        return _degrees(self.held)


def decide(asked: Asked) -> Decision:
    """Raises SpecError where the model, the GPU or a size cannot be."""
    model = parse_estimate_request(_alone(asked)).model
    assert isinstance(model, Model), "the page offers models with a shape"
    state, filled = _state(asked, model, GPUS[asked.gpu].capacity_bytes)
    questions, held = [state], {"context": 1}
    questions += _cuts(asked, model, held)
    looked = [look(asked, kind, held) for kind in kinds_of(asked)]
    if filled <= asked.gpus and not any(each.result.best for each in looked):
        looked.append(look_otherwise(asked))
    decided = {name: value for name, value in held.items() if value > 1}
    best = [each.result.best[0].step_seconds for each in looked if each.result.best]
    if not best:
        questions += [_unfit(each, asked, decided) for each in looked]
        advice = "Take more GPUs, more memory, or a shorter sequence."
        questions.append(Question(WHICH, "None of these fits.", advice))
        return Decision(tuple(questions), None, decided)
    plans = [(each, each.simplest(min(best)) if each.result.best else None) for each in looked]
    questions += [_fit(each, plan) if plan else _unfit(each, asked, decided) for each, plan in plans]
    which, chosen = _chosen([(each.kind, plan) for each, plan in plans if plan])
    questions += [which, _losses(chosen.estimate), _failures(asked)]
    held = {} if looked[-1].kind is OTHERWISE else held
    leaner = _leaner_text(asked, chosen, held) if _may_not_fit(chosen) else ""
    return Decision(tuple(questions), chosen, decided if held else {}, leaner)


def _leaner_text(asked: Asked, chosen: Candidate, held: dict[str, int]) -> str:
    """Which plan fits over the whole of its range, where that which was chosen does not."""
    between, memory = chosen.estimate.interval.memory_bytes, chosen.estimate.memory
    assert between is not None, "its range says that it may not fit"
    share = memory.per_rank_bytes.total / between[1]
    sure = [each for each in look_leaner(asked, held, share) if not _may_not_fit(each)]
    if not sure:
        return "No plan was found that fits over the whole of its range."
    plan = min(sure, key=lambda each: each.step_seconds)
    said = f"{axes_text(plan.request)}, {_in_time(plan.request)}{_again(plan.request)}"
    return f"{said}: fits over the whole of its range, {seconds_text(plan.step_seconds)} a step."


def _may_not_fit(plan: Candidate) -> bool:
    """Whether it holds more than there is at the upper end of its range."""
    between = plan.estimate.interval.memory_bytes
    return between is not None and between[1] > (plan.estimate.memory.capacity_bytes or 0.0)


def _alone(asked: Asked) -> dict[str, Any]:
    """The request of one GPU that holds everything."""
    return {
        "model": asked.model,
        "training": {"sequence": asked.sequence, "precision": asked.precision, "state_layout": asked.layout},
        "cluster": {"gpu": asked.gpu, "gpus_per_node": asked.per_node},
        "profile": PROFILE,
    }


def _state(asked: Asked, model: Model, capacity: float) -> tuple[Question, int]:
    """The question, and how many GPUs the state alone would fill."""
    layout = LAYOUTS[asked.layout]
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
        follows = f"State alone needs {least:,} GPUs: on {counted(asked.gpus, 'GPU')} nothing will fit."
    return Question("What does the whole state need, unsharded?", says, follows), least


def _cuts(asked: Asked, model: Model, held: dict[str, int]) -> Iterator[Question]:
    """What long sequences and experts ask for, before anything else is divided; `held` gets the axes."""
    if asked.sequence >= LONG:
        context = 1
        while asked.sequence // context > TOKENS_OF_A_RANK and asked.gpus % (2 * context) == 0:
            context *= 2
        held["context"] = context
        yield Question(
            "Is the sequence long?",
            f"{asked.sequence:,} tokens a sequence, at or above {LONG:,}: activations and attention grow with them.",
            f"Context {context:,}: {asked.sequence // context:,} tokens a rank.",
        )
    if model.experts > 1:
        most = min(model.experts, MOST_EXPERT_RANKS)
        expert = max(each for each in range(1, most + 1) if model.experts % each == 0 and asked.gpus % each == 0)
        held["expert"] = expert
        yield Question(
            "Are there experts?",
            f"{model.experts:,} experts, of which a token meets {model.active_experts:,}: else every rank holds all.",
            f"Expert {expert:,}: {model.experts // expert:,} a rank.",
        )


def _fit(looked: Looked, plan: Candidate) -> Question:
    request = plan.request
    zero = f" with ZeRO-{request.parallel.zero}" if request.parallel.zero else " without sharding"
    sharded = zero if request.parallel.data * request.parallel.context > 1 else ""
    of = f"{looked.result.considered:,} plans{_usual_text() if looked.is_usual else ''}"
    says = f"{axes_text(request)}, {_in_time(request)}. Of {of}, the simplest of the fastest."
    return Question(looked.kind.title, says, f"It fits{sharded}{_again(request)}.", looked.kind.name, plan)


def _usual_text() -> str:
    """What is looked at where there is most to look at."""
    chunks, sizes = ([f"{each}" for each in USUAL[name]] for name in ("virtual_stages", "micro_batch"))
    return f" with {listed(chunks, 'or')} chunks a stage and micro-batches of {listed(sizes, 'or')}"


def _again(request: EstimateRequest) -> str:
    """What is recomputed, to be said after what else is so; nothing where nothing is."""
    training = request.training
    if training.recompute == "selective":
        return f", recomputing {repeats(profile_of(request), training.recompute_modules)}"
    return ", recomputing everything" if training.recompute == "full" else ""


def _in_time(request: EstimateRequest) -> str:
    """How a rank works through its share of the batch."""
    parallel, size = request.parallel, f"micro-batches of {request.training.micro_batch:,}"
    if parallel.pipeline == 1:
        return size
    chunks = f", {parallel.virtual_stages:,} chunks a stage" if parallel.virtual_stages > 1 else ""
    return f"{size}, {parallel.schedule}{chunks}"


def _unfit(looked: Looked, asked: Asked, held: dict[str, int]) -> Question:
    kind, least = looked.kind, looked.leanest
    if least is None:
        return Question(kind.title, _why_none(looked, asked, held), "Not this way.", kind.name)
    says = f"The leanest with everything recomputed: {axes_text(least.request)}, {_in_time(least.request)}."
    follows = f"None of {looked.result.considered:,} plans fits in nine tenths of a GPU."
    return Question(kind.title, says, follows, kind.name, least)


def _why_none(looked: Looked, asked: Asked, held: dict[str, int]) -> str:
    """Why no plan of a kind will do."""
    beside = f" beside {_degrees(held)}" if held and looked.kind is not OTHERWISE else ""
    reasons = "; ".join(reason for reason, count in looked.result.rejected.items() if count and reason != SAME)
    if reasons:
        return f"Of {looked.result.considered:,} plans{beside} none will do: {reasons}."
    if asked.gpus == 1:
        return "There is one GPU."
    return f"{asked.gpus:,} GPUs in nodes of {asked.per_node:,} cannot be divided so{beside}."


def _degrees(held: dict[str, int]) -> str:
    return listed([f"{name} {value:,}" for name, value in held.items()])


def axes_text(request: EstimateRequest) -> str:
    """A plan's degrees in words."""
    parallel = request.parallel
    names = ("data", "tensor", "pipeline", "context", "expert")
    said = [f"{name} {getattr(parallel, name):,}" for name in names if getattr(parallel, name) > 1]
    if parallel.expert_tensor:
        said.append("whole experts" if parallel.expert_tensor == 1 else f"experts cut over {parallel.expert_tensor:,}")
    said.append(f"ZeRO-{parallel.zero}" if parallel.zero else "no sharding")
    said[-1] += f" over {parallel.shard:,}" if parallel.shard else ""
    return capital(", ".join(said))


def _chosen(plans: Sequence[tuple[Kind, Candidate]]) -> tuple[Question, Candidate]:
    """The simplest kind that is a tie with the fastest."""
    fastest = min((plan for _, plan in plans), key=lambda plan: plan.step_seconds)
    tied = [(kind, plan) for kind, plan in plans if is_tie(fastest.step_seconds, plan.step_seconds)]
    kind, chosen = tied[0]
    simpler = [plan for _, plan in plans[: plans.index(tied[0])]]
    if len(plans) == 1:
        why = "the only one that fits"
    elif simpler:
        least = min(plan.step_seconds for plan in simpler)
        why = f"{100 * (1 - chosen.step_seconds / least):.0f} % shorter step than anything simpler"
    elif chosen is fastest:
        why = "the simplest that fits, and none is faster"
    else:
        why = "the simplest that fits, and what is faster is so by less than a tie"
    first = next(each for each, plan in plans if plan is fastest)
    beside = [f"{each.name} {_beside(plan, fastest)}" for each, plan in plans if plan is not fastest]
    says = f"The fastest are {first.name}; a step of {', '.join(beside)} longer. "
    says += f"Up to {100 * tie_share():.1f} % is a tie, which the simpler wins."
    follows = f"{capital(kind.name)}: {why}."
    return Question(WHICH, says if plans[1:] else "There is nothing to weigh.", follows), chosen


def _beside(plan: Candidate, fastest: Candidate) -> str:
    return f"is {100 * (plan.step_seconds / fastest.step_seconds - 1):.1f} %"


def _losses(made: Estimate) -> Question:
    step = made.time.step_seconds or 1.0
    bubble, shown = (made.time.bubble_seconds or 0.0) / step, (made.time.exposed_communication_seconds or 0.0) / step
    again = (made.time.recompute_seconds or 0.0) / step
    batches = counted(made.pipeline.micro_batches or 0, "micro-batch", "micro-batches")
    says = f"{batches} a rank; bubble {100 * bubble:.0f} %, communication that nothing hides {100 * shown:.0f} %, "
    says += f"recomputation {100 * again:.0f} % of a step."
    lost = {"bubble": bubble, "communication": shown, "recomputation": again}
    worst = max(lost, key=lambda name: lost[name])
    advice = {
        "bubble": "a larger global batch, for more micro-batches",
        "communication": "a faster network, or more of it beside compute (overlap)",
        "recomputation": "more GPUs or more memory, to hold more",
    }
    follows = (
        f"Most is lost to {worst}: what is left to try is {advice[worst]}."
        if lost[worst] > NOTABLE
        else "Bubble, waiting and recomputation each take less than a tenth of the step."
    )
    return Question("Where does time go that is not compute?", says, follows)


def _failures(asked: Asked) -> Question:
    each = mtbf_seconds(asked.gpus, INTERRUPTED.gpu_seconds_per_failure)
    job = "job on one GPU" if asked.gpus == 1 else f"job on {asked.gpus:,} GPUs"
    says = f"At the rate of {INTERRUPTED.title} ({INTERRUPTED.source}), a {job} stops every {seconds_text(each)}."
    day = factor_of("days")
    follows = "Checkpoints every hour are plenty." if each > 7 * day else "Plan checkpoints and restarts with it."
    return Question("How often will it fail?", says, follows)
