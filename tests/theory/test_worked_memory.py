"""Formulas of memory against examples worked out elsewhere: papers, data sheets, or by hand beside each line."""

from __future__ import annotations

import pytest

from labs.spec import SpecError
from tests.theory.worked import GB, OPENING, Example, Inputs, value_of, worked

# ZeRO (Rajbhandari et al. 2020), section 3.1: 2 + 2 + 12 bytes; the others by adding up what is kept.
STATES = [
    ("zero-16", "112"),
    ("megatron-18", "126"),
    ("mixed-20", "140"),
    ("fp32", "112"),
    ("torch-amp", "112"),
    ("bf16", "56"),
    ("adam8bit-10", "70"),
    ("sgd-12", "84"),
    ("inference-2", "14"),
]

# Parameters in billions, ranks, then GB per rank at stages 0 to 3. The last line is figure 1 of the ZeRO paper.
ZERO = [
    (7, 8, ["112", "38.5", "26.25", "14"]),
    (13, 8, ["208", "71.5", "48.75", "26"]),
    (70, 64, ["1120", "293.1", "155.3", "17.5"]),
    (175, 64, ["2800", "732.8", "388.3", "43.75"]),
    (7.5, 64, ["120", "31.4", "16.6", "1.9"]),
]

# Parameters in billions, tensor ranks, stages, replicas, ZeRO stage and GB per GPU: the ZeRO forms for N/(t·p).
PARALLEL = [
    (70, 4, 4, 8, 1, "24.06"),  # 4 × 4.375 + 12 × 4.375 / 8
    (70, 4, 4, 8, 0, "70"),  # 16 × 4.375
    (70, 8, 4, 8, 1, "12.03"),
    (70, 8, 2, 8, 1, "24.06"),
    (70, 4, 8, 4, 1, "15.31"),
    (70, 4, 1, 32, 3, "8.75"),  # 16 × 17.5 / 32
    (30, 4, 2, 64, 1, "15.70"),
]

LAYER_7B: Inputs = {"micro_batch": 1, "hidden": 4096, "heads": 32}
LAYER_70B: Inputs = {"micro_batch": 1, "hidden": 8192, "heads": 64}
SHAPE_70B: Inputs = {"sequence": 4096, "micro_batch": 1, "hidden": 8192}
MODEL_70B: Inputs = {**SHAPE_70B, "heads": 64, "layers": 80}
SPLIT_8: Inputs = {"tensor": 8, "sequence_parallel": "yes"}
FSDP_7B: Inputs = {"parameters": 7e9, "ranks": 8, "units": 32}

EXAMPLES: list[Example] = [
    # 50,257 / 768 = 65.4; eight rows for 64 ranks: one each, for eight of them
    ("dim0_shard", OPENING, 1, "66"),
    ("dim0_shard", {"rows": 8, "ranks": 64}, 1, "1"),
    *(("training_state", {"parameters": 7e9, "layout": layout}, GB, shown) for layout, shown in STATES),
    *(
        ("zero_state", {"parameters": billions * 1e9, "ranks": ranks, "stage": stage}, GB, shown)
        for billions, ranks, row in ZERO
        for stage, shown in enumerate(row)
    ),
    # Llama 3 70B: 2 × (6 × 8,192 + 2 × 8,192/8 + 3 × 28,672) = 274,432 bytes a token; 8B: 2 × (24,576 + 2,048 + 43,008)
    ("activation_layer_llama", OPENING, GB, "1.124"),
    (
        "activation_layer_llama",
        {"sequence": 1, "micro_batch": 1, "hidden": 4096, "mlp": 14336, "heads": 32, "key_value_heads": 8},
        1e3,
        "139.3",
    ),
    # Korthikanti et al. 2022, section 4.1: sbh(34 + 5as/h), and 34sbh where the attention matrix is not kept.
    ("activation_layer", OPENING, GB, "0.956"),
    ("activation_layer", {"sequence": 4096, **LAYER_7B}, GB, "3.255"),
    ("activation_layer", {"sequence": 4096, **LAYER_70B, "flash": "yes"}, GB, "1.141"),
    # ×80 layers of 1.141; without FlashAttention 33.55M values × (34 + 5 × 64 × 4096 / 8192) × 80
    ("activations", OPENING, GB, "91.3"),
    ("activations", {**MODEL_70B, "recompute": "selective"}, GB, "91.3"),
    ("activations", MODEL_70B, GB, "521"),
    ("activations", {**MODEL_70B, "flash": "yes", "tensor": 8}, GB, "34.9"),
    ("activations", {**MODEL_70B, "flash": "yes", **SPLIT_8}, GB, "11.4"),
    # 5.37 kept and 1.14 live; 0.67 and 0.14 on each of eight ranks
    ("activations", {**MODEL_70B, "flash": "yes", "recompute": "full"}, GB, "6.51"),
    ("activations", {**MODEL_70B, "flash": "yes", "recompute": "full", **SPLIT_8}, GB, "0.81"),
    # ... and 7B, 32 layers
    ("activations", {"sequence": 2048, **LAYER_7B, "layers": 32}, GB, "30.6"),
    ("activations", {"sequence": 4096, **LAYER_7B, "layers": 32}, GB, "104.2"),
    ("activations", {"sequence": 4096, **LAYER_7B, "layers": 32, "flash": "yes"}, GB, "18.3"),
    # equations of section 4.2 with t = 8: 33.55M × (10 + 3 + 20) and 33.55M × (34 + 160) / 8
    ("activation_layer_tensor", OPENING, GB, "1.107"),
    ("activation_layer_tensor", {"sequence": 4096, **LAYER_7B, "tensor": 1}, GB, "3.255"),
    ("activation_layer_sequence", OPENING, GB, "0.814"),
    # 33.55M × 34, × 13 and × 34/8
    ("activation_layer_selective", OPENING, GB, "1.141"),
    ("activation_layer_selective", {**SHAPE_70B, "tensor": 8}, GB, "0.436"),
    ("activation_layer_selective", {**SHAPE_70B, **SPLIT_8}, GB, "0.143"),
    # 2 × 33.55M, × 80; sequence parallelism keeps an eighth on each rank
    ("checkpointed_activations", {**SHAPE_70B, "layers": 1}, GB, "0.067"),
    ("checkpointed_activations", OPENING, GB, "5.37"),
    ("checkpointed_activations", {**SHAPE_70B, "layers": 80, "tensor": 8}, GB, "5.37"),
    ("checkpointed_activations", {**SHAPE_70B, "layers": 80, **SPLIT_8}, GB, "0.67"),
    # four thirds of 6 × 7e9 × 16,384 = 6.88e14
    ("full_recompute_flops", OPENING, 1e14, "9.18"),
    # 5 + 24/5; 4 + 24/4 is no better; all layers kept is all memory and one segment
    ("checkpoint_units", OPENING, 1, "9.80"),
    ("checkpoint_units", {"layers": 24, "checkpoints": 4}, 1, "10.0"),
    ("checkpoint_units", {"layers": 24, "checkpoints": 24}, 1, "25"),
    ("least_checkpoint_units", OPENING, 1, "9.80"),
    ("least_checkpoint_units", {"layers": 80}, 1, "17.89"),
    ("least_checkpoint_units", {"layers": 96}, 1, "19.60"),
    # 23 + 22 + … + 1
    ("uncheckpointed_forwards", OPENING, 1, "276"),
    # one value for each of 4,096 tokens and 128,256 words
    ("logits", OPENING, GB, "1.05"),
    ("logits", {"sequence": 4096, "micro_batch": 1, "vocab": 128256}, GB, "2.10"),
    # 14 GB over 8 ranks, and one or two of 32 equal units gathered
    ("fsdp_peak_weights", OPENING, GB, "2.19"),
    ("fsdp_peak_weights", {"parameters": 7e9, "ranks": 8, "units": 32, "live_units": 2}, GB, "2.63"),
    # and 2 or 4 bytes of gradient for each of the unit's 218.75M parameters
    ("fsdp_peak_backward", OPENING, GB, "2.625"),
    ("fsdp_peak_backward", {**FSDP_7B, "live_units": 2, "gradient_bytes_each": 4}, GB, "3.50"),
    *(
        (
            "parallel_state",
            {"parameters": billions * 1e9, "tensor": t, "stages": p, "ranks": k, "stage": stage},
            GB,
            shown,
        )
        for billions, t, p, k, stage, shown in PARALLEL
    ),
    # a frozen 7B in bf16 and 40M trained at 16 bytes: 14 + 0.64; quantised to 4 bits: 3.5 + 0.64
    ("lora_state", OPENING, GB, "14.64"),
    ("lora_state", {"parameters": 7e9, "adapter_parameters": 40e6, "frozen_bytes_each": 0.5}, GB, "4.14"),
    # GPT-3's 96 layers of 12,288, and the embedding of 50,257 words
    ("transformer_parameters", OPENING, 1e9, "173.9"),
    ("transformer_parameters", {"layers": 96, "hidden": 12288, "vocab": 50257}, 1e9, "174.6"),
    ("transformer_parameters", {"layers": 24, "hidden": 2048}, 1e9, "1.208"),
    ("transformer_parameters", {"layers": 1, "hidden": 4096}, 1e6, "201.3"),
    # 14 GB down, 14 GB up, at the 25 GB/s that PCIe Gen 4 x16 achieves of 32
    ("offload_bytes", OPENING, GB, "28"),
    ("offload_time", OPENING, 1, "1.12"),
    # 1.12 s of an A100 at half its peak is 1.747e14 FLOPs, at 4.2e10 a token
    ("offload_break_even_tokens", OPENING, 1, "4160"),
    # 70B: 280 GB of weights up and 140 GB of gradients down, over eight links
    ("streamed_offload_bytes", OPENING, GB, "420"),
    ("streamed_offload_time", OPENING, 1, "2.1"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_memory_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def test_parallelism_on_one_rank_changes_nothing() -> None:
    alone = value_of("activation_layer", {"sequence": 512, **LAYER_7B})
    for name in ("activation_layer_tensor", "activation_layer_sequence"):
        assert value_of(name, {"sequence": 512, **LAYER_7B, "tensor": 1}) == alone


@pytest.mark.parametrize(
    ("name", "inputs", "field"),
    [
        ("activation_layer", {"sequence": 8, "micro_batch": 1, "hidden": 100, "heads": 3}, "heads"),
        ("activation_layer_tensor", {**SHAPE_70B, "heads": 64, "tensor": 3}, "tensor"),
        ("activation_layer_tensor", {**SHAPE_70B, "heads": 64, "tensor": 128}, "tensor"),
        ("activation_layer_sequence", {**SHAPE_70B, "sequence": 4100, "heads": 64, "tensor": 8}, "tensor"),
        ("activation_layer_selective", {**SHAPE_70B, "tensor": 3}, "tensor"),
        ("checkpointed_activations", {**SHAPE_70B, "layers": 1, **SPLIT_8, "sequence": 4100}, "tensor"),
        ("activations", {**MODEL_70B, "heads": 65}, "heads"),
        ("checkpoint_units", {"layers": 24, "checkpoints": 25}, "checkpoints"),
        ("fsdp_peak_weights", {**FSDP_7B, "live_units": 33}, "live_units"),
    ],
)
def test_inputs_that_do_not_fit_together_are_refused(name: str, inputs: Inputs, field: str) -> None:
    with pytest.raises(SpecError) as raised:
        value_of(name, inputs)
    assert [violation.field for violation in raised.value.violations] == [field]


def test_a_sequence_need_only_divide_where_it_is_split() -> None:
    uneven = {**SHAPE_70B, "sequence": 4100, "layers": 1, "tensor": 8}
    assert value_of("checkpointed_activations", uneven) == 2 * 4100 * 8192
