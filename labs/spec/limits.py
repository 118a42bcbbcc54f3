"""How large a run may be: all of its ranks share one machine, and somebody waits for it."""

from __future__ import annotations

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
_ALL_FORWARD_FIRST = ("gpipe", "looped-bfs")
_LOGITS = 3  # they, their logarithmic softmax and its gradient
_SCORES_AT_WORK = 3  # the scores, masked, and the gradient of the weights made of them


def check_size(spec: RunSpec) -> list[Violation]:
    """Parameters, memory and arithmetic beyond what a run may have, each with the nearest that fits."""
    if spec.mode == "dry":
        return []  # nothing is held, nothing is computed
    model, found = spec.model, list[Violation]()
    if model.vocab < BYTE_VOCAB:
        message = "The lab's text is read byte by byte."
        found.append(Violation("model.vocab", model.vocab, message, f"{BYTE_VOCAB} or more"))
    if spec.training.sequence > MAX_RUN_SEQUENCE:
        message = f"{spec.training.sequence:,} tokens are longer than a run may have."
        found.append(Violation("training.sequence", spec.training.sequence, message, f"2 to {MAX_RUN_SEQUENCE:,}"))
    for name, most in (("vocab", MAX_RUN_VOCAB), ("layers", MAX_RUN_LAYERS)):
        value = getattr(model, name)
        if value > most:
            found.append(Violation(f"model.{name}", value, f"{value:,} is more than a run may have.", f"1 to {most:,}"))
    parameters = approximate_parameters(model, spec.training.sequence)
    if not found and parameters > MAX_RUN_PARAMETERS:
        most = int(model.layers * MAX_RUN_PARAMETERS / parameters)
        message = (
            f"{model.layers} layers of width {model.hidden:,} are about {parameters / 1e6:,.0f}M parameters; "
            f"a run may have {MAX_RUN_PARAMETERS / 1e6:.0f}M."
        )
        if most:
            found.append(Violation("model.layers", model.layers, message, f"1 to {most:,} at this width"))
        else:
            found.append(Violation("model.hidden", model.hidden, message, "a narrower model, such as 256"))
    return found or _check_memory(spec, parameters) or _check_duration(spec, parameters)


def _check_memory(spec: RunSpec, parameters: float) -> list[Violation]:
    """All ranks share a machine: state and activations of all of them must fit beside everything else."""
    micro_batch = spec.training.micro_batch
    state = _state_bytes(spec, parameters)
    each = spec.parallel.world_size * _in_flight(spec) * approximate_activation_bytes(spec)  # with micro-batches of one
    if state + micro_batch * each <= MAX_RUN_BYTES:
        return []
    most = int((MAX_RUN_BYTES - state) / each)
    message = (
        f"{spec.parallel.world_size} × {micro_batch} sequences of {spec.training.sequence} save about "
        f"{micro_batch * each / 1e9:,.1f} GB for backward; with the model state a run may take "
        f"{MAX_RUN_BYTES / 1e9:.0f} GB."
    )
    if most >= 1:
        return [Violation("training.micro_batch", micro_batch, message, f"1 to {most} for this model and sequence")]
    if spec.training.attention == "full":
        lighter = spec.model_copy(update={"training": spec.training.model_copy(update={"attention": "flash"})})
        if not _check_memory(lighter, parameters):
            message = f"Full attention holds a matrix of all pairs of tokens for every head. {message}"
            return [Violation("training.attention", "full", message, "flash, or a shorter sequence")]
    return [Violation("training.sequence", spec.training.sequence, message, "a shorter sequence or a smaller model")]


def _state_bytes(spec: RunSpec, parameters: float) -> float:
    """Parameters, gradients and optimizer of all ranks; what compression remembers; and a buffer to send from."""
    parallel = spec.parallel
    copies = 1 if parallel.zero == 3 else parallel.world_size // (parallel.tensor * parallel.pipeline)
    each = 16.0 + (8.0 if spec.compression.kind != "none" else 0.0)
    return each * parameters * copies


def _in_flight(spec: RunSpec) -> float:
    """Micro-batches whose activations a rank holds at once, in whole models: a pipeline's rank has a part of each."""
    stages, sent = spec.parallel.pipeline, spec.training.micro_batches
    if stages == 1:
        return 1.0
    held = sent if spec.parallel.schedule in _ALL_FORWARD_FIRST else min(sent, 2 * stages)
    return max(1.0, held / stages)


def _check_duration(spec: RunSpec, parameters: float) -> list[Violation]:
    steps = spec.training.steps
    flops = 6.0 * parameters * spec.tokens_per_step * steps
    if flops <= MAX_RUN_FLOPS:
        return []
    most = max(1, int(steps * MAX_RUN_FLOPS / flops))
    message = (
        f"{steps} steps of {spec.tokens_per_step:,} tokens take {flops:.1e} FLOPs; a run may use {MAX_RUN_FLOPS:.0e}."
    )
    return [Violation("training.steps", steps, message, f"1 to {most:,} for this model and batch")]


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
