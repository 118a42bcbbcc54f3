"""Formulas of pipelines, mapping and batch against examples worked out elsewhere, or by hand beside each line."""

from __future__ import annotations

import random
from typing import Any

import pytest

from app.theory import batch, pipeline
from app.theory.mesh import AXES, Mesh, mesh_of
from labs.spec import Parallel, SpecError
from tests.theory.worked import OPENING, PERCENT, Example, Inputs, worked

# Stages, micro-batches, idle share and overhead in %: fill and drain take p − 1 of m + p − 1 slots (GPipe, 2.3).
BUBBLES = [
    (4, 1, "75", "300"),
    (4, 4, "42.9", "75"),
    (4, 8, "27.3", "37.5"),
    (4, 16, "15.8", "18.75"),
    (4, 32, "8.57", "9.38"),
    (4, 64, "4.48", "4.69"),
    (5, 4, "50", "100"),
    (5, 16, "20", "25"),
    (8, 8, "46.7", "87.5"),
    (8, 32, "17.9", "21.9"),
    (8, 64, "9.86", "10.9"),
    (16, 64, "19.0", "23.4"),
]

# Stages, micro-batches, chunks per stage, overhead and idle share in %: fill and drain shrink v-fold.
INTERLEAVED = [
    (4, 16, 2, "9.38", "8.57"),
    (4, 16, 4, "4.69", "4.48"),
    (8, 32, 2, "10.9", "9.86"),
    (8, 32, 4, "5.47", "5.19"),
]

MESH: Inputs = {"tensor": 8, "pipeline": 4, "data": 8}  # 256 GPUs

EXAMPLES: list[Example] = [
    # 1 − 1/8; eight times (1/8)²
    ("padding_waste", OPENING, PERCENT, "87.5"),
    ("document_share", OPENING, PERCENT, "12.5"),
    # 15 × 3; 15 × (3 − 2); 7 × (3 + 2 − 3); with pairs that take as long as a backward 7 × (2 + 2 − 3)
    ("schedule_idle", {"schedule": "1f1b", "stages": 16}, 1, "45"),
    ("schedule_idle", {"schedule": "zb1p", "stages": 16}, 1, "15"),
    ("schedule_idle", OPENING, 1, "14"),
    ("schedule_idle", {"schedule": "dualpipe", "stages": 16, "pair_seconds": 2.0}, 1, "7"),
    *(("bubble", {"stages": p, "micro_batches": m}, PERCENT, idle) for p, m, idle, _ in BUBBLES),
    *(("bubble", {"stages": p, "micro_batches": m, "asked": "overhead"}, PERCENT, over) for p, m, _, over in BUBBLES),
    ("bubble", {"stages": 8, "micro_batches": 32, "asked": "utilisation"}, PERCENT, "82.1"),
    # an event simulation of four stages by hand: 1F1B shows 1.5 m + 4 transfers, GPipe 2(p − 1) whatever m
    *(
        ("exposed_transfers", {"schedule": "1f1b", "stages": 4, "micro_batches": m}, 1, str(count))
        for m, count in ((16, 28), (32, 52), (64, 100))
    ),
    ("exposed_transfers", {"schedule": "gpipe", "stages": 4, "micro_batches": 64}, 1, "6"),
    ("exposed_transfers", {"schedule": "interleaved", "stages": 4, "micro_batches": 16, "virtual_stages": 2}, 1, "14"),
    ("exposed_transfers", {"schedule": "interleaved", "stages": 4, "micro_batches": 64, "virtual_stages": 2}, 1, "14"),
    # (32 + 3) × (10 + 20) ms
    ("pipeline_time", OPENING, 1, "1.05"),
    # 7 × 0.9/0.1 = 63; interleaved in two chunks 31.5, so the next multiple of 8
    ("micro_batches_for_bubble", OPENING, 1, "63"),
    ("micro_batches_for_bubble", {"stages": 8, "idle_fraction": 0.1, "virtual_stages": 2}, 1, "32"),
    *(
        ("interleaved_bubble", {"stages": p, "micro_batches": m, "virtual_stages": v, "asked": asked}, PERCENT, shown)
        for p, m, v, over, idle in INTERLEAVED
        for asked, shown in (("overhead", over), ("fraction", idle))
    ),
    # 1 + 7/16
    ("interleaved_activations", OPENING, 1, "1.44"),
    # Qi et al. 2023, with equal passes: 7/96 of the ideal time, a third of 1F1B's 7/32; nothing
    ("zero_bubble", OPENING, PERCENT, "7.29"),
    ("zero_bubble", {"stages": 8, "micro_batches": 32, "variant": "zb-h2"}, PERCENT, "0"),
    ("zero_bubble", {"stages": 8, "micro_batches": 32, "variant": "zb-v"}, PERCENT, "0"),
    # (8 − 1) × (2 + 2 − 2 × 1) of 32 × 5
    (
        "zero_bubble",
        {
            "stages": 8,
            "micro_batches": 32,
            "variant": "zb-h2",
            "forward_seconds": 2,
            "input_gradient_seconds": 2,
            "asked": "overhead",
        },
        PERCENT,
        "8.75",
    ),
    *(
        ("zero_bubble_in_flight", {"stages": 8, "variant": name}, 1, shown)
        for name, shown in (("zb-h1", "8"), ("zb-h2", "15"), ("zb-v", "8"))
    ),
    *(
        ("in_flight", {"schedule": "1f1b", "stages": 4, "micro_batches": 32, "stage": i}, 1, str(4 - i))
        for i in range(4)
    ),
    ("in_flight", {"schedule": "gpipe", "stages": 4, "micro_batches": 32, "stage": 3}, 1, "32"),
    ("in_flight", {"schedule": "1f1b", "stages": 8, "micro_batches": 32, "stage": 3}, 1, "5"),
    ("in_flight", {"schedule": "1f1b", "stages": 8, "micro_batches": 2}, 1, "2"),
    # 8 × 1.4375 micro-batches: a warm-up of 14 + 8 chunks and one more, of two halves each
    ("in_flight", {"schedule": "interleaved", "stages": 8, "micro_batches": 32, "virtual_stages": 2}, 1, "11.5"),
    # the first of 4 stages with 20 of 80 layers holds 4 micro-batches of them
    # the last stage of two chunks has 8 of the other chunk before its first, and no more than 2 × 4 chunks there are
    (
        "in_flight",
        {"schedule": "interleaved", "stages": 8, "micro_batches": 32, "virtual_stages": 2, "stage": 7},
        1,
        "4.5",
    ),
    (
        "in_flight",
        {"schedule": "interleaved", "stages": 8, "micro_batches": 32, "virtual_stages": 3, "stage": 5},
        0.1,
        "70",  # 2 × 2 + 2 × 8 + 1 of a third
    ),
    ("in_flight", {"schedule": "interleaved", "stages": 4, "micro_batches": 4, "virtual_stages": 2}, 1, "4"),
    ("in_flight_layers", OPENING, 1, "80"),
    ("in_flight_layers", {"schedule": "1f1b", "stages": 4, "micro_batches": 32, "layers": 80, "stage": 3}, 1, "20"),
    ("mesh_gpus", OPENING, 1, "256"),
    *(
        ("mesh_groups", {**MESH, "axis": axis}, 1, shown)
        for axis, shown in (("tensor", "32"), ("pipeline", "64"), ("data", "32"))
    ),
    # 100 = 1 × 64 + 4 × 8 + 4
    *(
        ("mesh_coordinate", {**MESH, "axis": axis, "rank": 100}, 1, shown)
        for axis, shown in (("tensor", "4"), ("context", "0"), ("data", "4"), ("pipeline", "1"))
    ),
    ("global_batch", OPENING, 1, "256"),
    ("global_batch_tokens", OPENING, 1, "1048576"),
    # 4,194,304 tokens in sequences of 4,096
    ("accumulation", OPENING, 1, "8"),
    ("minimum_batch", OPENING, 1, "32"),
    ("minimum_batch", {"ranks": 8}, 1, "8"),
    # m = 16 on each of 8 pipelines
    ("efficient_batch", OPENING, 1, "128"),
    # Goyal et al. 2017: 0.1 at 256 becomes 3.2 at 8,192
    ("scaled_learning_rate", OPENING, 1, "3.2"),
    (
        "scaled_learning_rate",
        {"learning_rate": 3e-4, "batch": 512, "new_batch": 4096, "rule": "square-root"},
        1e-4,
        "8.49",
    ),
    # from 0.1 to 3.2 in 5 epochs: three fifths of the way
    ("warm_up", OPENING, 1, "1.96"),
    # |G|² = (64 × 6.25 − 32 × 9)/32 = 3.5, tr(Σ) = (9 − 6.25)/(1/64) = 176
    ("noise_scale", OPENING, 1, "50.3"),
    ("step_excess", OPENING, 1, "2"),
    ("step_excess", {"batch": 256, "noise_scale": 1024}, 1, "5"),
    ("example_excess", OPENING, 1, "1.25"),
    ("noise_limited_learning_rate", OPENING, 1, "0.2"),
    # 0.001 × 10/(0.5 + 0.0005 × 10)
    ("lars_trust_ratio", OPENING, 1, "0.0198"),
    ("lamb_trust_ratio", OPENING, 1, "2.5"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_mapping_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def refused(function: Any, *given: Any) -> set[str]:
    with pytest.raises(SpecError) as raised:
        function(*given)
    return {violation.field for violation in raised.value.violations}


@pytest.mark.parametrize("chunks", [1, 2, 4])
@pytest.mark.parametrize("stages", [1, 2, 4, 16])
@pytest.mark.parametrize("idle", [0.02, 0.1, 0.5])
def test_the_micro_batches_for_a_bubble_are_the_fewest(stages: int, chunks: int, idle: float) -> None:
    found = pipeline.micro_batches_for_bubble(stages, idle, chunks)
    step = stages if chunks > 1 else 1
    assert pipeline.interleaved_bubble(stages, found, chunks) <= idle + 1e-12
    assert found == step or pipeline.interleaved_bubble(stages, found - step, chunks) > idle


def test_the_peak_of_interleaving_is_that_of_its_factor() -> None:
    for stages, chunks in ((4, 2), (8, 2), (8, 4), (16, 3)):
        held = pipeline.in_flight_micro_batches("interleaved", stages, 4 * stages, 0, chunks)
        assert held == pytest.approx(stages * pipeline.interleaved_activation_factor(stages, chunks))


def test_what_a_schedule_cannot_do_is_refused_by_its_field() -> None:
    assert refused(pipeline.interleaved_bubble, 4, 6, 2) == {"micro_batches"}
    assert refused(pipeline.in_flight_micro_batches, "1f1b", 4, 8, 4) == {"stage"}
    assert refused(pipeline.in_flight_micro_batches, "interleaved", 4, 8, 0, 1) == {"virtual_stages"}
    assert refused(pipeline.in_flight_micro_batches, "gpipe", 4, 8, 0, 2) == {"virtual_stages"}
    assert refused(pipeline.in_flight_layers, "1f1b", 4, 8, 30) == {"layers"}
    assert refused(pipeline.zero_bubble, 4, 8, "zb-v", 1.0, 1.0, 2.0) == {"weight_gradient_seconds"}
    assert refused(pipeline.zero_bubble, 4, 8, "zb-h1", 2.0, 1.0, 1.5) == {"weight_gradient_seconds"}
    assert refused(pipeline.micro_batches_for_bubble, 4, 0.0) == {"idle_fraction"}
    assert refused(batch.accumulation_steps, 100, 1, 8) == {"global_batch"}


def test_coordinates_and_ranks_are_each_others_inverse() -> None:
    mesh = Mesh(tensor=2, context=3, data=4, pipeline=5)
    seen = [mesh.rank(mesh.coordinates(rank)) for rank in range(mesh.world_size)]
    assert seen == list(range(120))


def test_neighbours_on_an_axis_are_a_stride_apart() -> None:
    mesh = Mesh(tensor=2, context=2, data=2, pipeline=2)
    assert [mesh.stride(axis) for axis in AXES] == [1, 2, 4, 8]
    assert mesh.group("tensor", 5) == (4, 5)
    assert mesh.group("context", 5) == (5, 7)
    assert mesh.group("data", 5) == (1, 5)
    assert mesh.group("pipeline", 5) == (5, 13)


def test_the_groups_of_an_axis_hold_every_rank_once() -> None:
    source = random.Random("mesh")
    for _ in range(20):
        sizes = [source.randint(1, 5) for _ in AXES]
        mesh = Mesh(*sizes, order=tuple(source.sample(AXES, 4)))
        for axis in AXES:
            groups = mesh.groups(axis)
            assert len(groups) == mesh.group_count(axis)
            assert {len(group) for group in groups} == {mesh.size(axis)}
            assert sorted(rank for group in groups for rank in group) == list(range(mesh.world_size))
            assert all(mesh.group(axis, group[-1]) == group for group in groups)


def test_tensor_ranks_share_a_node_and_pipeline_ranks_do_not() -> None:
    mesh = mesh_of(Parallel(tensor=8, pipeline=4, data=8))
    assert mesh.nodes_spanned("tensor", 8) == 1
    assert mesh.nodes_spanned("data", 8) == 8
    assert mesh.nodes_spanned("pipeline", 8) == 4


def test_the_first_axis_of_an_order_has_neighbouring_ranks() -> None:
    mesh = Mesh(tensor=4, data=4, order=("data", "tensor", "context", "pipeline"))
    assert mesh.group("data", 0) == (0, 1, 2, 3)
    assert mesh.group("tensor", 0) == (0, 4, 8, 12)
    assert mesh.nodes_spanned("tensor", 8) == 2


def test_a_mesh_refuses_what_it_does_not_have() -> None:
    mesh = Mesh(tensor=2, data=3)
    assert refused(mesh.coordinates, 6) == {"rank"}
    assert refused(mesh.rank, {"tensor": 2, "data": 3}) == {"tensor", "data"}
    assert refused(mesh.groups, "expert") == {"axis"}


def test_norms_that_averaging_cannot_give_are_refused() -> None:
    assert refused(batch.gradient_noise_scale, 64, 32, 3, 2.5) == {"big_batch"}
    assert refused(batch.gradient_noise_scale, 32, 64, 2.5, 3) == {"big_norm"}
    assert refused(batch.gradient_noise_scale, 32, 64, 3, 1) == {"big_norm"}


def test_the_noise_scale_of_gradients_without_noise_is_nothing() -> None:
    assert batch.gradient_noise_scale(32, 64, 2, 2) == 0


def test_steps_and_samples_trade_off_as_a_hyperbola() -> None:
    """McCandlish et al. 2018: (S/S_min − 1)(E/E_min − 1) = 1 at every batch size."""
    for size in (1, 100, 3000, 1e6):
        steps, examples = batch.step_excess(size, 3000), batch.example_excess(size, 3000)
        assert (steps - 1) * (examples - 1) == pytest.approx(1)


def test_a_layer_without_weights_or_update_keeps_its_learning_rate() -> None:
    assert batch.lars_trust_ratio(0, 1) == batch.lars_trust_ratio(1, 0) == 1
    assert batch.lamb_trust_ratio(0, 1) == batch.lamb_trust_ratio(1, 0) == 1


def test_a_warm_up_ends_at_the_learning_rate_and_stays_there() -> None:
    assert [batch.warm_up_learning_rate(0.8, step, 4) for step in (0, 1, 4, 5)] == [0, 0.2, 0.8, 0.8]
    assert batch.warm_up_learning_rate(0.8, 0, 0) == 0.8


def test_micro_batches_enter_dualpipe_at_both_ends() -> None:
    assert refused(pipeline.schedule_idle_seconds, "dualpipe", 7) == {"stages"}
    assert refused(pipeline.schedule_idle_seconds, "zb1p", 4, 1.0, 2.0, 1.6) == {"weight_gradient_seconds"}
