"""What can be asked of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from labs.spec.programs import PROGRAMS, AnyOptions
from labs.spec.vocabulary import BUCKET_BYTES, Model, Parallel, Precision, Program, StateLayout, Strict, Training


class RunTraining(Training):
    """`Training` as a run takes it: `micro_batches` per step and data rank instead of a global batch."""

    sequence: Annotated[int, Field(ge=2, le=1_048_576)] = 128
    micro_batch: Annotated[int, Field(ge=1, le=64)] = 2
    micro_batches: Annotated[int, Field(ge=1, le=64)] = 1
    precision: Precision = "fp32"
    state_layout: StateLayout = "fp32"
    steps: Annotated[int, Field(ge=1, le=500)] = 40
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 3e-4
    bucket_bytes: Annotated[int, Field(ge=1024, le=2**31)] = BUCKET_BYTES
    reshard_after_forward: bool = True
    zero_implementation: Literal["flat-buffer", "ZeroRedundancyOptimizer"] = "flat-buffer"
    recompute_every: Annotated[int, Field(ge=1, le=10_000)] = 1
    loss_scaling: bool = False
    checkpoint_every: Annotated[int, Field(ge=1, le=500)] | None = None  # steps; none: no checkpoints
    checkpoint_mode: Literal["sync", "async"] = "sync"


class Compression(Strict):
    """How gradients are compressed before they are reduced."""

    kind: Literal["none", "fp16", "bf16", "top-k", "random-k", "one-bit", "powersgd"] = "none"
    density: Annotated[float, Field(gt=0, le=1)] = 0.01
    rank: Annotated[int, Field(ge=1, le=1024)] = 4
    error_feedback: bool = True


class Link(Strict):
    """How fast hosts are joined: what a local cluster's links are set to for the run (`rankzero cluster`)."""

    nodes: Annotated[int, Field(ge=1, le=8)] = 2
    bytes_per_second: Annotated[float, Field(gt=0)] = 25e6
    latency_seconds: Annotated[float, Field(ge=0)] = 0.0


class Fault(Strict):
    """Something that goes wrong on purpose on `rank` at the start of `step` (1-based)."""

    kind: Literal["kill", "slow", "hang", "nan", "uneven-data", "out-of-memory", "slow-loader"]
    rank: Annotated[int, Field(ge=0, le=1023)] = 0
    step: Annotated[int, Field(ge=1, le=500)] = 1


Probe = Literal["memory", "communication", "timeline", "allocator"]
USUAL_PROBES: tuple[Probe, ...] = ("memory", "communication", "timeline")  # the allocator's is for CUDA alone
MAX_HOSTS = 8  # as many as a run has ranks
MAX_RESTARTS = 3
MAX_FAULTS = 16  # two for each of a run's ranks


class RunSpec(Strict):
    """What can be asked of a run. Read it with `parse_run_spec`, which reports every violation at once."""

    model: Model
    training: RunTraining = RunTraining()
    parallel: Parallel = Parallel()
    program: Program = "train"
    mode: Literal["run", "dry"] = "run"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compression: Compression = Compression()
    hosts: Annotated[int, Field(ge=1, le=MAX_HOSTS)] = 1  # over which the ranks are spread evenly (labs.spec.hosts)
    link: Link | None = None
    faults: Annotated[tuple[Fault, ...], Field(max_length=MAX_FAULTS)] = ()
    restarts: Annotated[int, Field(ge=0, le=MAX_RESTARTS)] = 0  # of all ranks, when one has died
    probes: Annotated[tuple[Probe, ...], Field(max_length=len(get_args(Probe)))] = USUAL_PROBES
    options: AnyOptions | None = None  # of the programs that are not a training run

    @model_validator(mode="before")
    @classmethod
    def _options_follow_program(cls, data: Any) -> Any:
        """A program has its own options, defaults where none are given, and needs no model."""
        program = data.get("program") if isinstance(data, Mapping) else None
        if not isinstance(program, str) or program not in PROGRAMS:
            return data
        options = data.get("options") or {}
        if isinstance(options, Mapping):
            options = {**options, "program": program}
        return {"model": NO_MODEL, **data, "options": options}

    def fits(self, gpus: int, has_cpu: bool) -> Literal["cuda", "cpu"] | None:
        """What it runs on where a host has so many GPUs, and perhaps a CPU: `auto` takes GPUs when there is one for
        every rank on it. None: it cannot run there."""
        if self.device != "cpu" and gpus >= self.ranks_per_host:
            return "cuda"
        return "cpu" if has_cpu and self.device != "cuda" else None

    @property
    def ranks_per_host(self) -> int:
        return self.parallel.world_size // self.hosts

    @property
    def global_batch(self) -> int:
        """Sequences per optimizer step over all data ranks."""
        return self.parallel.data * self.training.micro_batches * self.training.micro_batch

    @property
    def tokens_per_step(self) -> int:
        return self.global_batch * self.training.sequence


# The models a laptop can train while one watches. Byte-level text, hence 256 tokens.
LAB_MODELS: Mapping[str, Model] = {
    "gpt-mini": Model(layers=2, hidden=128, heads=4, kv_heads=4, ffn_hidden=512, vocab=256),
    "gpt-small": Model(layers=4, hidden=256, heads=4, kv_heads=4, ffn_hidden=1024, vocab=256),
    "gpt-medium": Model(layers=8, hidden=256, heads=8, kv_heads=8, ffn_hidden=1024, vocab=256),
}
NO_MODEL = LAB_MODELS["gpt-mini"]  # stands where a program needs none

# Models no machine here could hold, which a dry run takes by name. As in app.theory.presets, which says where from.
_LLAMA: Mapping[str, Any] = {
    "kv_heads": 8,
    "vocab": 128256,
    "gated_mlp": True,
    "tied_embeddings": False,
    "positions": "rotary",
    "norm": "rms",
}
LARGE_MODELS: Mapping[str, Model] = {
    "llama-3-8b": Model(layers=32, hidden=4096, heads=32, ffn_hidden=14336, **_LLAMA),
    "llama-3-70b": Model(layers=80, hidden=8192, heads=64, ffn_hidden=28672, **_LLAMA),
    "llama-3-405b": Model(layers=126, hidden=16384, heads=128, ffn_hidden=53248, **_LLAMA),
}
