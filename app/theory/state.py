"""Which bytes a parameter carries (F01), as data: one record per convention; and who holds them (F02, F18, F27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from app.theory.checks import check_at_most


@dataclass(frozen=True)
class StateLayout:
    """Bytes per parameter. `optimizer` includes an fp32 master copy where the layout keeps one."""

    name: str
    title: str
    parameters: float
    gradients: float
    optimizer: float
    parts: tuple[tuple[str, float], ...]

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.optimizer

    @property
    def bytes_each(self) -> str:
        """Of a parameter, its gradient and its optimizer state: "2 + 2 + 12"."""
        return " + ".join(f"{size:g}" for size in (self.parameters, self.gradients, self.optimizer))


def _layout(name: str, title: str, *parts: tuple[str, str, float]) -> StateLayout:
    """A layout from (component, what it is, bytes) triples."""
    sums = {"parameters": 0.0, "gradients": 0.0, "optimizer": 0.0}
    for component, _, size in parts:
        sums[component] += size
    return StateLayout(name, title, **sums, parts=tuple((what, size) for _, what, size in parts))


_BF16_W = ("parameters", "bf16 weights", 2.0)
_BF16_G = ("gradients", "bf16 gradients", 2.0)
_FP32_G = ("gradients", "fp32 gradients", 4.0)
_MASTER = ("optimizer", "fp32 master weights", 4.0)
_MOMENTUM = ("optimizer", "fp32 momentum", 4.0)
_MOMENTS = (_MOMENTUM, ("optimizer", "fp32 variance", 4.0))
_FP32_W = ("parameters", "fp32 weights", 4.0)
_BF16_MOMENTS = (("optimizer", "bf16 momentum", 2.0), ("optimizer", "bf16 variance", 2.0))
_8BIT_MOMENTS = (("optimizer", "8-bit momentum", 1.0), ("optimizer", "8-bit variance", 1.0))

LAYOUTS: Mapping[str, StateLayout] = {
    layout.name: layout
    for layout in (
        _layout("zero-16", "mixed-precision Adam, bf16 gradients", _BF16_W, _BF16_G, _MASTER, *_MOMENTS),
        _layout("megatron-18", "mixed-precision Adam, fp32 gradients", _BF16_W, _FP32_G, _MASTER, *_MOMENTS),
        _layout("mixed-20", "mixed-precision Adam, gradients twice", _BF16_W, _BF16_G, _FP32_G, _MASTER, *_MOMENTS),
        _layout("torch-amp", "PyTorch mixed precision: fp32 weights, gradients and Adam", _FP32_W, _FP32_G, *_MOMENTS),
        _layout("fp32", "fp32 throughout, Adam", _FP32_W, _FP32_G, *_MOMENTS),
        _layout("bf16", "bf16 throughout, Adam moments included", _BF16_W, _BF16_G, *_BF16_MOMENTS),
        _layout("sgd-12", "mixed-precision SGD with momentum", _BF16_W, _BF16_G, _MASTER, _MOMENTUM),
        _layout("adam8bit-10", "mixed-precision Adam with 8-bit moments", _BF16_W, _BF16_G, _MASTER, *_8BIT_MOMENTS),
        _layout("inference-2", "bf16 weights alone, nothing to train", _BF16_W),
    )
}


def training_state_bytes(parameters: float, layout: str = "zero-16", part: str = "all") -> float:
    """F01: bytes of weights, gradients and optimizer state of `parameters` parameters, unsharded.

    `part`: `all`, `parameters`, `gradients` or `optimizer`.
    Source: Rajbhandari et al. 2020 (ZeRO), section 3.1; other layouts by counting their tensors.
    """
    record = LAYOUTS[layout]
    each = record.total if part == "all" else float(getattr(record, part))
    return each * parameters


def zero_state_bytes(parameters: float, ranks: int, stage: int, layout: str = "zero-16", part: str = "all") -> float:
    """F02: bytes of model state each of `ranks` data-parallel ranks holds under ZeRO `stage` 0 to 3.

    Stage 1 shards the optimizer, stage 2 also the gradients, stage 3 also the weights.
    Source: Rajbhandari et al. 2020 (ZeRO), section 5 and figure 1.
    """
    first_sharded_stage = {"optimizer": 1, "gradients": 2, "parameters": 3}
    wanted = first_sharded_stage if part == "all" else {part: first_sharded_stage[part]}
    return sum(
        training_state_bytes(parameters, layout, component) / (ranks if stage >= sharded_from else 1)
        for component, sharded_from in wanted.items()
    )


def lora_state_bytes(
    parameters: float, adapter_parameters: float, layout: str = "zero-16", frozen_bytes_each: float = 2.0
) -> float:
    """F01: bytes of state when only `adapter_parameters` are trained and the base model is frozen, 2N + 16N_lora.

    `frozen_bytes_each` is 2 in bf16, about 0.5 where the base is quantised to 4 bits.
    Source: Hu et al. 2021 (LoRA), section 4.2: no optimizer state for what is frozen.
    """
    return frozen_bytes_each * parameters + training_state_bytes(adapter_parameters, layout)


def parallel_state_bytes(
    parameters: float, tensor: int, stages: int, ranks: int, stage: int = 0, layout: str = "zero-16"
) -> float:
    """F27: bytes of model state per GPU: `tensor` × `stages` split the model, ZeRO `stage` over `ranks` its state.

    Tensor ranks hold different parameters, so ZeRO has nothing to remove between them; it shards over replicas.
    Source: Rajbhandari et al. 2020 (ZeRO), section 5, for N/(t·p) parameters.
    """
    return zero_state_bytes(parameters / (tensor * stages), ranks, stage, layout)


def fsdp_peak_weight_bytes(
    parameters: float, ranks: int, units: int, live_units: int, bytes_each: float = 2.0
) -> float:
    """F18: the most weight bytes alive on a rank under FSDP: its shard plus `live_units` gathered units.

    `units` equal units hold the whole model; prefetching the next unit makes two of them live. Raises SpecError
    where more units are live than there are.
    Source: Zhao et al. 2023 (PyTorch FSDP), section 4.
    """
    check_at_most("live_units", live_units, "units", units)
    whole = parameters * bytes_each
    return whole / ranks + live_units * whole / units


def fsdp_peak_backward_bytes(
    parameters: float,
    ranks: int,
    units: int,
    live_units: int,
    bytes_each: float = 2.0,
    gradient_bytes_each: float = 2.0,
) -> float:
    """F18: the same in backward, when a gathered unit's whole gradient is alive too until it is reduce-scattered."""
    gradient = gradient_bytes_each * parameters / units
    return fsdp_peak_weight_bytes(parameters, ranks, units, live_units, bytes_each) + gradient


def dim0_shard_rows(rows: int, ranks: int) -> int:
    """F70: rows of the largest shard of a weight cut along dimension 0, ⌈d/n⌉; the last ranks hold less, or nothing.

    Source: PyTorch documentation, fully_shard, which cuts by torch.chunk.
    """
    return ceil(rows / ranks)


def transformer_parameters(layers: int, hidden: int, vocab: int = 0) -> float:
    """F52: parameters of a GPT-like transformer, 12Lh² + Vh: 4h² of attention and 8h² of MLP a layer, one embedding.

    Source: Kaplan et al. 2020, table 1 (d_ff = 4h). `transformer.parameter_count` counts tensor by tensor.
    """
    return float(12 * layers * hidden**2 + vocab * hidden)
