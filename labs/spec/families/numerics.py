"""In which numbers a step is computed and kept, what is computed twice, and which optimizer updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from labs.spec.families.data import deals_out_tensors
from labs.spec.families.row import EXACT, WHOLE_BACKWARD, Row, one_of
from labs.spec.run import RunSpec
from labs.spec.vocabulary import Precision, StateLayout
from labs.violations import Violation

# What a rank really holds when it computes in a precision. See labs/parallel/precision.py.
LAYOUTS_OF: Mapping[Precision, tuple[StateLayout, ...]] = {
    "fp32": ("fp32",),
    "bf16-mixed": ("torch-amp", "zero-16", "megatron-18"),
    "fp16-mixed": ("torch-amp", "zero-16"),
    "bf16": ("bf16",),
}

_PLACES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "ddp": ("DDP", {"data": 2}),
    "zero-1": ("ZeRO-1", {"data": 2, "zero": 1}),
    "zero-2": ("ZeRO-2", {"data": 2, "zero": 2}),
    "fsdp": ("FSDP2", {"data": 2, "zero": 3}),
    "hsdp": ("HSDP", {"data": 4, "zero": 3, "shard": 2}),
}
BF16_AMP = {"precision": "bf16-mixed", "state_layout": "torch-amp"}
FP16_AMP = {"precision": "fp16-mixed", "state_layout": "torch-amp", "loss_scaling": True}
ZERO_16 = {"precision": "bf16-mixed", "state_layout": "zero-16"}
FP16_ZERO_16 = {"precision": "fp16-mixed", "state_layout": "zero-16", "loss_scaling": True}
MEGATRON_18 = {"precision": "bf16-mixed", "state_layout": "megatron-18"}
BF16 = {"precision": "bf16", "state_layout": "bf16"}
_LAMB_ON_WHOLE_TENSORS = {"optimizer": "lamb", "zero_implementation": "ZeroRedundancyOptimizer"}
BF16_DIGITS = "bf16 has 8 bits of fraction: each product is off by up to 2^-9, or 0.2 %."
FP16_DIGITS = "fp16 has 11 bits of fraction: each product is off by up to 2^-12."
NO_MASTER = BF16_DIGITS + " Without a master copy small steps are rounded away besides."


def _rows(
    of: str, title: str, places: str, training: Mapping[str, object], tolerance: float = EXACT, why: str = ""
) -> Iterator[Row]:
    """The same numerics under each of `places`."""
    for place in places.split():
        strategy, layout = _PLACES[place]
        yield Row(f"{of}-{place}", f"{title} ({strategy})", "numerics", (layout,), training, {}, {}, tolerance, why)


ROWS: tuple[Row, ...] = (
    *_rows("bf16-amp", "bf16 by autocast", "ddp zero-2", BF16_AMP, 5e-4, BF16_DIGITS),
    *_rows("bf16-amp", "bf16 by FSDP2's policy", "fsdp hsdp", BF16_AMP, 5e-4, BF16_DIGITS),
    *_rows("fp16-amp", "fp16 by autocast, loss scaled", "ddp", FP16_AMP, 1e-4, FP16_DIGITS),
    *_rows("fp16-amp", "fp16 by FSDP2's policy, loss scaled", "fsdp", FP16_AMP, 1e-4, FP16_DIGITS),
    *_rows("zero-16", "bf16 with a master copy", "ddp zero-1 zero-2 fsdp", ZERO_16, 5e-4, BF16_DIGITS),
    *_rows("zero-16-fp16", "fp16 with a master copy, loss scaled", "ddp zero-2 fsdp", FP16_ZERO_16, 1e-4, FP16_DIGITS),
    *_rows(
        "zero-16-host",
        "bf16, master copy and moments on the host",
        "zero-2 fsdp",
        {**ZERO_16, "offload": "optimizer"},
        5e-4,
        BF16_DIGITS,
    ),
    *_rows(
        "zero-16-file",
        "bf16, master copy and moments in a file",
        "zero-1",
        {**ZERO_16, "offload": "file"},
        5e-4,
        BF16_DIGITS,
    ),
    *_rows(
        "megatron-18", "bf16 with a master copy, gradients in fp32", "zero-1 zero-2", MEGATRON_18, 5e-4, BF16_DIGITS
    ),
    *_rows("bf16-pure", "bf16 throughout", "ddp zero-1 fsdp", BF16, 1e-3, NO_MASTER),
    *_rows("sgd", "SGD with momentum", "ddp zero-2 fsdp", {"optimizer": "sgd", "learning_rate": 0.1}),
    *_rows("lars", "LARS", "ddp", {"optimizer": "lars", "learning_rate": 1.0}),
    *_rows("lamb", "LAMB", "ddp", {"optimizer": "lamb"}),
    *_rows("lamb-on-whole-tensors", "LAMB by ZeroRedundancyOptimizer", "zero-1", _LAMB_ON_WHOLE_TENSORS),
    *_rows("recompute-full", "Full recomputation", "ddp zero-2 fsdp", {"recompute": "full"}),
    *_rows("recompute-selective", "Selective recomputation", "ddp fsdp", {"recompute": "selective"}),
    *_rows("recompute-every", "Every second block recomputed", "ddp fsdp", {"recompute": "full", "recompute_every": 2}),
    *_rows(
        "recompute-bf16", "Full recomputation in bf16", "fsdp", {**BF16_AMP, "recompute": "full"}, 5e-4, BF16_DIGITS
    ),
)


def check_numerics(spec: RunSpec) -> Iterator[Violation]:
    """Which precisions, layouts, optimizers and recomputations there are."""
    yield from one_of("training.precision", spec.training.precision, tuple(LAYOUTS_OF))
    yield from _check_layout(spec)
    yield from _check_loss_scaling(spec)
    yield from _check_optimizer(spec)
    yield from _check_recompute(spec)


def _check_layout(spec: RunSpec) -> Iterator[Violation]:
    precision, layout = spec.training.precision, spec.training.state_layout
    fitting = LAYOUTS_OF.get(precision)
    if fitting is None:
        return
    if layout not in fitting:
        message = f"A run in {precision} does not hold its state as {layout}."
        yield Violation("training.state_layout", layout, message, ", ".join(fitting), ("training.precision",))
    elif layout == "megatron-18" and (spec.parallel.zero not in (1, 2) or deals_out_tensors(spec)):
        message = "Gradients are kept in fp32 beside bf16 weights only in the flat buffers of ZeRO-1 and 2."
        yield Violation("training.state_layout", layout, message, "torch-amp, zero-16", ("parallel.zero",))
    elif layout == "zero-16" and deals_out_tensors(spec):
        message = "ZeroRedundancyOptimizer keeps no master copy."
        yield Violation("training.state_layout", layout, message, "torch-amp", ("training.zero_implementation",))
    elif layout == "torch-amp" and spec.parallel.expert > 1 and spec.parallel.zero == 3:
        message = "FSDP2 casts what it gathers, and experts that one rank alone holds it does not."
        yield Violation("training.state_layout", layout, message, "zero-16", ("parallel.expert", "parallel.zero"))


def _check_loss_scaling(spec: RunSpec) -> Iterator[Violation]:
    training = spec.training
    if training.loss_scaling and training.precision != "fp16-mixed":
        message = f"Gradients in {training.precision} do not run out of range: only fp16 needs its loss scaled."
        yield Violation("training.loss_scaling", True, message, "False", ("training.precision",))


def _check_optimizer(spec: RunSpec) -> Iterator[Violation]:
    parallel, optimizer = spec.parallel, spec.training.optimizer
    yield from one_of("training.optimizer", optimizer, ("adamw", "sgd", "lars", "lamb"))
    if optimizer not in ("lars", "lamb"):
        return
    message = f"{optimizer.upper()} needs the norm of every whole tensor, and here a rank updates pieces of tensors."
    if parallel.zero and not deals_out_tensors(spec):
        yield Violation("training.optimizer", optimizer, message, "adamw, sgd", ("parallel.zero",))
    elif max(parallel.tensor, parallel.expert) > 1:
        involved = ("parallel.tensor", "parallel.expert")
        yield Violation("training.optimizer", optimizer, message, "adamw, sgd", involved)


def _check_recompute(spec: RunSpec) -> Iterator[Violation]:
    recompute, every, layers = spec.training.recompute, spec.training.recompute_every, spec.model.layers
    if recompute == "none":
        because = "Nothing is recomputed, so not every so often either."
        yield from one_of("training.recompute_every", every, (1,), because)
        return
    if every > layers:
        message = f"There are only {layers} layers."
        yield Violation("training.recompute_every", every, message, f"1 to {layers}", ("model.layers",))
    parallel = spec.parallel
    if parallel.pipeline > 1 and parallel.schedule not in WHOLE_BACKWARD:
        message = f"{parallel.schedule} runs backward in two passes, and each would compute the layer again."
        yield Violation("training.recompute", recompute, message, "none", ("parallel.schedule", "parallel.pipeline"))
