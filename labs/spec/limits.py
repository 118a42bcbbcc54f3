"""How large a run may be on what carries it out: somebody waits for it, and all ranks of a CPU share one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from labs.spec.run import RunSpec
from labs.spec.vocabulary import Model
from labs.violations import Violation

BYTE_VOCAB = 256
MAX_RUN_PARAMETERS = 50_000_000
MAX_RUN_FLOPS = 2e14  # about an hour of two laptop cores; a run has a deadline besides
MAX_RUN_BYTES = 6e9  # of all ranks together: they share one machine
MAX_RUN_LAYERS = 64  # each costs its own collectives and kernels, however narrow it is
MAX_RUN_VOCAB = 65_536
MAX_RUN_SEQUENCE = 1024
_GPU_LAYERS, _GPU_SEQUENCE = 128, 8192
_HOUR_SECONDS = 3600.0
_CORE_FLOPS_PER_SECOND = MAX_RUN_FLOPS / _HOUR_SECONDS / 2
_NEARLY_ALL = 0.9  # of free memory: the rest is the allocator's, the driver's and the libraries'
_STATE_BYTES = 16.0  # of a parameter: fp32 with a gradient and AdamW's two moments
_ALL_FORWARD_FIRST = ("gpipe", "looped-bfs")
_LOGITS = 3  # they, their logarithmic softmax and its gradient
_SCORES_AT_WORK = 3  # the scores, masked, and the gradient of the weights made of them


@dataclass(frozen=True)
class RunSize:
    """How large a run may be on `where`; what stands here fits a laptop, and is taken where nothing more is known."""

    parameters: float = MAX_RUN_PARAMETERS
    memory_bytes: float = MAX_RUN_BYTES  # of all ranks together
    flops: float = MAX_RUN_FLOPS
    layers: int = MAX_RUN_LAYERS
    sequence: int = MAX_RUN_SEQUENCE
    where: str = ""  # as "worker device-a-17"

    @property
    def on(self) -> str:
        return f" on {self.where}" if self.where else ""


LAPTOP = RunSize()
ANY_SIZE = RunSize(inf, inf, inf, _GPU_LAYERS, _GPU_SEQUENCE)  # judged by whoever asked for the run, or not of here
Sizes = Callable[[RunSpec], Sequence[RunSize]]  # how large a run may be on each device it could be put on


def cpu_size(free_bytes: float, cores: int, where: str = "") -> RunSize:
    """On a machine's CPU: a laptop's run if that leaves it a tenth, and half of what is free where that is more."""
    memory = min(_NEARLY_ALL * free_bytes, max(MAX_RUN_BYTES, free_bytes / 2))
    flops = max(MAX_RUN_FLOPS, _HOUR_SECONDS * cores * _CORE_FLOPS_PER_SECOND)
    return RunSize(MAX_RUN_PARAMETERS * memory / MAX_RUN_BYTES, memory, flops, where=where)


def gpu_size(free_bytes: float, ranks: int, flops_per_second: float, where: str = "") -> RunSize:
    """On `ranks` GPUs that have so much free and keep up so much each: what they can hold, and an hour."""
    memory = ranks * _NEARLY_ALL * free_bytes
    flops = max(MAX_RUN_FLOPS, _HOUR_SECONDS * ranks * flops_per_second)
    return RunSize(memory / _STATE_BYTES, memory, flops, _GPU_LAYERS, _GPU_SEQUENCE, where)


def check_size(spec: RunSpec, sizes: Sequence[RunSize] = (LAPTOP,)) -> list[Violation]:
    """Parameters, memory and arithmetic beyond what a run may have, each with the nearest that fits. Of several
    `sizes` one will do; what is beyond all is said of the largest."""
    if spec.mode == "dry":
        return []  # nothing is held, nothing is computed
    for size in sizes:
        if not _beyond(spec, size):
            return []
    return _beyond(spec, max(sizes or (LAPTOP,), key=lambda size: size.memory_bytes))


def _beyond(spec: RunSpec, size: RunSize) -> list[Violation]:
    model, found = spec.model, list[Violation]()
    if model.vocab < BYTE_VOCAB:
        message = "The lab's text is read byte by byte."
        found.append(Violation("model.vocab", model.vocab, message, f"{BYTE_VOCAB} or more"))
    if spec.training.sequence > size.sequence:
        message = f"{spec.training.sequence:,} tokens are longer than a run may have{size.on}."
        found.append(Violation("training.sequence", spec.training.sequence, message, f"2 to {size.sequence:,}"))
    for name, most in (("vocab", MAX_RUN_VOCAB), ("layers", size.layers)):
        value = getattr(model, name)
        if value > most:
            message = f"{value:,} is more than a run may have{size.on}."
            found.append(Violation(f"model.{name}", value, message, f"1 to {most:,}"))
    parameters = approximate_parameters(model, spec.training.sequence)
    if not found and parameters > size.parameters:
        message = (
            f"{model.layers} layers of width {model.hidden:,} are about {parameters / 1e6:,.0f}M parameters; "
            f"a run may have {size.parameters / 1e6:,.0f}M{size.on}."
        )
        found.append(_fewer_layers(model, message, size.parameters / parameters))
    return found or _check_memory(spec, parameters, size) or _check_duration(spec, parameters, size)


def _fewer_layers(model: Model, message: str, share: float) -> Violation:
    """A model of which only a share is possible."""
    if most := int(model.layers * share):
        return Violation("model.layers", model.layers, message, f"1 to {most:,} at this width")
    return Violation("model.hidden", model.hidden, message, "a narrower model, such as 256")


def _check_memory(spec: RunSpec, parameters: float, size: RunSize) -> list[Violation]:
    """State and activations of all ranks must fit: on a CPU beside everything else, on GPUs each its own share."""
    micro_batch = spec.training.micro_batch
    state = _state_bytes(spec, parameters)
    each = spec.parallel.world_size * _in_flight(spec) * approximate_activation_bytes(spec)  # with micro-batches of one
    if state + micro_batch * each <= size.memory_bytes:
        return []
    limit = f"a run may take {size.memory_bytes / 1e9:,.1f} GB{size.on}."
    if state > size.memory_bytes:
        message = f"Parameters, gradients and optimizer of all ranks are about {state / 1e9:,.1f} GB; {limit}"
        return [_fewer_layers(spec.model, message, size.memory_bytes / state)]
    most = int((size.memory_bytes - state) / each)
    message = (
        f"{spec.parallel.world_size} × {micro_batch} sequences of {spec.training.sequence} save about "
        f"{micro_batch * each / 1e9:,.1f} GB for backward; with the model state {limit}"
    )
    if most >= 1:
        return [Violation("training.micro_batch", micro_batch, message, f"1 to {most} for this model and sequence")]
    if spec.training.attention == "full":
        lighter = spec.model_copy(update={"training": spec.training.model_copy(update={"attention": "flash"})})
        if not _check_memory(lighter, parameters, size):
            message = f"Full attention holds a matrix of all pairs of tokens for every head. {message}"
            return [Violation("training.attention", "full", message, "flash, or a shorter sequence")]
    return [Violation("training.sequence", spec.training.sequence, message, "a shorter sequence or a smaller model")]


def _state_bytes(spec: RunSpec, parameters: float) -> float:
    """Parameters, gradients and optimizer of all ranks; what compression remembers; and a buffer to send from."""
    parallel = spec.parallel
    copies = 1 if parallel.zero == 3 else parallel.world_size // (parallel.tensor * parallel.pipeline)
    each = _STATE_BYTES + (8.0 if spec.compression.kind != "none" else 0.0)
    return each * parameters * copies


def _in_flight(spec: RunSpec) -> float:
    """Micro-batches whose activations a rank holds at once, in whole models: a pipeline's rank has a part of each."""
    stages, sent = spec.parallel.pipeline, spec.training.micro_batches
    if stages == 1:
        return 1.0
    held = sent if spec.parallel.schedule in _ALL_FORWARD_FIRST else min(sent, 2 * stages)
    return max(1.0, held / stages)


def _check_duration(spec: RunSpec, parameters: float, size: RunSize) -> list[Violation]:
    steps = spec.training.steps
    flops = 6.0 * parameters * spec.tokens_per_step * steps
    if flops <= size.flops:
        return []
    most = int(steps * size.flops / flops)
    message = (
        f"{steps} steps of {spec.tokens_per_step:,} tokens take {flops:.1e} FLOPs; "
        f"a run may use {size.flops:.2g}{size.on}."
    )
    accepted = f"1 to {most:,} for this model and batch" if most else "a smaller model or batch"
    return [Violation("training.steps", steps, message, accepted)]


def approximate_activation_bytes(spec: RunSpec) -> float:
    """fp32 bytes one sequence saves for backward, for limits only: never much below what app.theory says."""
    model, sequence = spec.model, spec.training.sequence
    wide = model.ffn_hidden * (2 if model.gated_mlp else 1)
    if model.experts > 1:
        routed = (model.expert_ffn_hidden or model.ffn_hidden) * (model.active_experts + model.shared_experts)
        wide = max(wide, routed * (2 if model.gated_mlp else 1))
    each_layer = (8 * model.hidden + 2 * wide) * sequence
    logits = _LOGITS * model.vocab * sequence
    return 4.0 * (model.layers * each_layer + logits) + _score_bytes(spec)


def _score_bytes(spec: RunSpec) -> float:
    """Full attention's matrices: one that each layer keeps for backward, and those of the layer at work."""
    if spec.training.attention != "full":
        return 0.0
    keeps = spec.training.recompute == "none" or spec.training.recompute_every > 1
    matrices = (spec.model.layers if keeps else 1) + _SCORES_AT_WORK
    return 4.0 * matrices * spec.model.heads * spec.training.sequence**2


def approximate_parameters(model: Model, sequence: int) -> float:
    """Matrix parameters, all experts included, for limits only; exact counts are in app.theory.transformer."""
    width = (model.expert_ffn_hidden or model.ffn_hidden) * (model.experts + model.shared_experts)
    dense = model.dense_layers / model.layers if model.experts > 1 else 1.0
    mlp = (3 if model.gated_mlp else 2) * model.hidden * (dense * model.ffn_hidden + (1 - dense) * width)
    attention = 2 * model.hidden**2 + 2 * model.hidden**2 * model.kv_heads / model.heads
    tables = model.vocab * (1 if model.tied_embeddings else 2) + sequence
    return model.layers * (mlp + attention) + tables * model.hidden
