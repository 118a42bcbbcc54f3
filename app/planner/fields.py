"""The fields of the planner's form: what each is called in an address, reads, opens with, and means in a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args
from urllib.parse import urlencode

from app.planner.readers import (
    Choice,
    Reader,
    batch,
    budget,
    choice,
    flag,
    gathers,
    measured,
    memory,
    modules,
    number,
    rate_of_a_gpu,
    span,
)
from app.theory.hardware import GPUS
from app.theory.planner import EstimateRequest, Profile
from app.theory.planner.asking import Schedules
from app.theory.planner.attention_kernels import AttentionKernel
from app.theory.planner.own_models import SIZES
from app.theory.planner.space import GATHERS, KEEPS
from app.theory.presets import ARCHITECTURES, PRESETS
from app.theory.reliability import FAILURE_RATES
from app.units import factor_of
from labs.spec import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, Attention, Precision, Recompute, Schedule, StateLayout

OWN = "own"  # a size of which model state alone is asked
SIZED = "sized"  # a size that gets a shape
SEARCH = "find"  # of an address besides the form's fields: which search is to be shown
ANY = "any"  # implementation
THIS_PLANS = "plan"  # of a search's schedules: the plan's own alone
PLAIN = "1f1b"  # the same: 1F1B alone, whatever the plan has
SEARCHED = ("tensor", "pipeline", "context", "micro_batch")  # what a search on the page can be limited in


@dataclass(frozen=True)
class Field:
    """A field of the form. `path` is its place in a request; `start` is what the form opens with.

    `neutral` takes the place of a value that can be read, but does not go with the others; `absent` says in words what
    an empty field stands for.
    """

    read: Reader
    start: str
    path: str = ""
    neutral: str = ""
    absent: str = ""

    @property
    def known(self) -> tuple[str, ...]:
        """What a list offers, which shows a field that takes nothing else."""
        return self.read.known if isinstance(self.read, Choice) else ()


FIELDS: Mapping[str, Field] = {
    "model": Field(choice(*PRESETS, SIZED, OWN), "llama-3-8b"),
    "parameters": Field(number(1, 1e15, is_whole=False), "7B"),
    "architecture": Field(choice(*ARCHITECTURES), "llama"),
    "layers": Field(number(1, MAX_LAYERS), "", "model.layers", absent="derived"),
    "hidden": Field(number(1, MAX_HIDDEN), "", "model.hidden", absent="derived"),
    "heads": Field(number(1, MAX_HEADS), "", "model.heads", absent="derived"),
    "kv_heads": Field(number(1, MAX_HEADS), "", "model.kv_heads", absent="derived"),
    "ffn_hidden": Field(number(1, 8 * MAX_HIDDEN), "", "model.ffn_hidden", absent="derived"),
    "vocab": Field(number(1, 1e7), "", "model.vocab", absent="derived"),
    "layout": Field(
        choice(*get_args(StateLayout)), "", "training.state_layout", absent="2 + 2 + 12, or as the software you name"
    ),
    "sequence": Field(number(1, 1e8), "", "training.sequence", absent="the model's own"),
    "global_batch": Field(batch, "", "training.global_batch", absent="as many as keep the stages busy"),
    "micro_batch": Field(number(1, 1e5), "1", "training.micro_batch"),
    "precision": Field(choice(*get_args(Precision)), "bf16-mixed", "training.precision"),
    "recompute": Field(choice(*get_args(Recompute)), "full", "training.recompute"),
    "recompute_modules": Field(modules, "", "training.recompute_modules", absent="what its implementation repeats"),
    "attention": Field(choice(*get_args(Attention)), "flash", "training.attention"),
    "attention_kernel": Field(choice(*get_args(AttentionKernel)), "auto", "training.attention_kernel"),
    "profile": Field(choice(*get_args(Profile)), "", "profile", absent="as the ZeRO stage suggests"),
    # What a search may look at.
    "schedules": Field(choice(*get_args(Schedules), THIS_PLANS, PLAIN), "software"),
    "search_software": Field(choice(ANY), "", absent="the plan's, or where it names none, as the ZeRO stage suggests"),
    "search_recompute": Field(choice(*get_args(Recompute)), "", absent="any"),
    "search_zero": Field(span(0, 3), "", absent="any"),
    "search_memory": Field(memory, "", absent="90 %"),
    **{f"search_{axis}": Field(span(1, 1_000_000), "", absent="any") for axis in SEARCHED},
    "ranks": Field(number(1, 1e6), "8"),
    "zero": Field(Choice(("0", "1", "2", "3"), int), "3", "parallel.zero"),
    "shard": Field(number(1, 1e6), "", "parallel.shard", absent="all replicas"),
    "reshard": Field(Choice((GATHERS, KEEPS), gathers), "", "parallel.reshard_after_forward", absent="as usual"),
    "tensor": Field(number(1, 1e5), "1", "parallel.tensor"),
    "sequence_parallel": Field(flag, "off", "parallel.sequence_parallel"),
    "pipeline": Field(number(1, 1e5), "1", "parallel.pipeline"),
    "schedule": Field(choice(*get_args(Schedule)), "1f1b", "parallel.schedule"),
    "virtual_stages": Field(number(1, 1e4), "1", "parallel.virtual_stages"),
    "context": Field(number(1, 1e5), "1", "parallel.context"),
    "expert": Field(number(1, 1e5), "1", "parallel.expert"),
    "expert_tensor": Field(number(1, 1e5), "", "parallel.expert_tensor", absent="as the rest"),
    "expert_nodes": Field(number(1, 1e3), "", "parallel.expert_nodes", absent="any number"),
    "gpu": Field(choice(*GPUS), "h100-80gb", "cluster.gpu"),
    "memory": Field(
        number(1e9, 1e13, "bytes", is_whole=False), "", "cluster.memory_bytes", absent="as its driver reports"
    ),
    "gpus_per_node": Field(number(1, 1e6), "", "cluster.gpus_per_node", absent="what its link joins"),
    "inter_node": Field(
        rate_of_a_gpu,
        "",
        "cluster.inter_node_bytes_per_second",
        absent="what is usual beside this GPU",
    ),
    "measured": Field(measured, "", "cluster.measured", absent="the data sheet"),
    "budget": Field(budget, "", absent="20 tokens a parameter"),
    "mfu": Field(number(0.01, 1, "fraction", is_whole=False), "", absent="as estimated"),
    "price": Field(number(0, 1e6, is_whole=False), "", absent="none"),
    "served": Field(number(1, 1e20, "tokens", is_whole=False), "", absent="none"),
    "failures": Field(choice(*FAILURE_RATES), "llama-3"),
    "failure_rate": Field(number(factor_of("hour"), 1e13, "seconds", is_whole=False), "", absent="as in"),
    "deadline": Field(number(factor_of("hour"), 1e10, "seconds", is_whole=False), "30 days"),
    "checkpoint": Field(number(1e-3, 1e6, "seconds", is_whole=False), "60 s"),
}
DEFAULTS: Mapping[str, str] = {name: field.start for name, field in FIELDS.items()}
SHAPE = SIZES  # of a model of one's own: what may be given instead of derived
# A model of which only the size is known asks for little besides.
OF_STATE = ("model", "parameters", "layout", "ranks", "zero", "gpu", "memory", "budget", "mfu", "price", "served")
BY_PATH: Mapping[str, str] = {field.path: name for name, field in FIELDS.items() if field.path}


def query_text(values: Mapping[str, str]) -> str:
    """The part of an address that says a plan, without what the form opens with by itself; the model always."""
    return urlencode({name: text for name, text in values.items() if name == "model" or text != DEFAULTS.get(name)})


def is_listed(name: str, text: str) -> bool:
    """Whether the form can show what was typed: a list that lacks it would show, and send on, its first."""
    field = FIELDS[name]
    return not field.known or text in field.known or (not text and bool(field.absent))


def is_asked(name: str, model: str) -> bool:
    """Whether the form shows a field for such a model."""
    if name in (*SHAPE, "architecture"):
        return model == SIZED
    if name == "parameters":
        return model in (OWN, SIZED)
    return model != OWN or name in OF_STATE or name in ("failures", "failure_rate", "deadline", "checkpoint")


def fields_of(request: EstimateRequest) -> dict[str, str]:
    """How a request divides the work and what it keeps for backward, as the form's fields say it. One that is left as
    it is by itself is empty."""
    parallel, training = request.parallel, request.training
    names = ("tensor", "pipeline", "virtual_stages", "schedule", "context", "expert", "zero")
    reshard = {None: "", True: GATHERS, False: KEEPS}[parallel.reshard_after_forward]
    return {name: str(getattr(parallel, name)) for name in names} | {
        "shard": str(parallel.shard or ""),
        "reshard": reshard,
        "expert_tensor": str(parallel.expert_tensor or ""),
        "expert_nodes": str(parallel.expert_nodes or ""),
        "profile": request.profile or "",
        "micro_batch": str(training.micro_batch),
        "recompute": training.recompute,
        "recompute_modules": "+".join(training.recompute_modules or ()),
        "sequence_parallel": "on" if parallel.sequence_parallel else "off",
    }
