"""Formulas of mixtures of experts against DeepSeek-V3's published shape and figures worked out by hand."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from app.theory import experts
from app.theory.traffic import moe_all_to_all_bytes
from labs.spec import SpecError
from tests.theory.worked import GB, H100, MB, OPENING, PERCENT, Example, Inputs, worked

V3: Inputs = {"experts": 256, "experts_per_token": 8}
SENT: Inputs = {"tokens": 4096, "hidden": 7168, "nodes": 8}
H100_45 = 0.45 * H100

EXAMPLES: list[Example] = [
    # 3 × 7,168 × 2,048 = 44.04M an expert; 256 in each of 58 layers, of the 671B that the model has
    ("expert_parameters", {"hidden": 7168, "expert_hidden": 2048, "experts": 1}, 1e6, "44.04"),
    ("expert_parameters", OPENING, 1e9, "653.9"),
    ("expert_rows", {**V3, "tokens": 4096, "ranks": 1}, 1, "128"),
    ("expert_rows", OPENING, 1, "8192"),
    # 1.25 × 4,096 × 2 / 64 = 160; 1.25 × 100 × 1 / 8 = 15.6
    ("expert_capacity", OPENING, 1, "160"),
    ("expert_capacity", {"tokens": 100, "experts_per_token": 1, "experts": 8, "capacity_factor": 1.25}, 1, "16"),
    # 2 nodes of 2 experts, k = 2: six pairs, two of them on one node: (4 × 2 + 2 × 1) / 6
    ("expert_nodes", {"experts": 4, "experts_per_token": 2, "nodes": 2}, 1, "1.6667"),
    ("expert_nodes", {"experts": 256, "experts_per_token": 1, "nodes": 8}, 1, "1.0000"),
    # 8 × (1 − (224 · 223 · … · 217) / (256 · 255 · … · 249)), where 8 × (1 − (7/8)⁸) would be 5.25
    ("expert_nodes", OPENING, 1, "5.29"),
    # 7/8 × 4,096 × 4 × 7,168 × 2 bytes = 205.5 MB a transfer
    ("moe_network_bytes", {**SENT, "copies": 4, "transfers": 1}, MB, "205.5"),
    ("moe_network_bytes", OPENING, GB, "1.644"),
    # 4/9 × 7/8 × 445 TFLOP/s / (2,048 × 450 GB/s); an expert seven times as wide has a seventh
    (
        "moe_all_to_all_share",
        OPENING,
        PERCENT,
        "18.78",
    ),
    (
        "moe_all_to_all_share",
        {"expert_hidden": 14336, "ranks": 8, "achieved_flops_per_second": H100_45, "bytes_per_second": 450e9},
        PERCENT,
        "2.68",
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_experts_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


@pytest.mark.parametrize(("count", "chosen", "nodes"), [(4, 2, 2), (8, 3, 4), (12, 5, 3), (6, 6, 2), (8, 2, 8)])
def test_nodes_of_a_token_are_the_mean_over_all_choices(count: int, chosen: int, nodes: int) -> None:
    per_node = count // nodes
    each = [len({expert // per_node for expert in picked}) for picked in combinations(range(count), chosen)]
    assert experts.expected_nodes(count, chosen, nodes) == pytest.approx(sum(each) / len(each))


def test_the_share_is_that_of_bytes_and_flops_whatever_the_tokens() -> None:
    for tokens, hidden, chosen, width, ranks in ((4096, 7168, 8, 2048, 64), (100, 512, 2, 1024, 4)):
        sent = moe_all_to_all_bytes(tokens, hidden, chosen, ranks) / 50e9
        computed = 3 * 2 * experts.expert_parameters(hidden, width, chosen) * tokens / H100_45
        assert experts.all_to_all_share(width, ranks, H100_45, 50e9) == pytest.approx(sent / computed)


def test_a_copy_for_each_expert_is_the_all_to_all_between_nodes() -> None:
    assert experts.network_bytes(4096, 7168, 8, 8) == moe_all_to_all_bytes(4096, 7168, 8, 8)


def test_nodes_hold_equal_numbers_of_experts_and_all_experts_are_on_all_nodes() -> None:
    with pytest.raises(SpecError, match="does not divide experts"):
        experts.expected_nodes(256, 8, 6)
    assert math.isclose(experts.expected_nodes(256, 256, 8), 8)
