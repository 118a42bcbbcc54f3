"""Formulas of communication against examples worked out elsewhere: papers, data sheets, or by hand beside each line."""

from __future__ import annotations

import pytest

from labs.spec import SpecError
from tests.theory.worked import A100, GB, H100, MB, MS, OPENING, Example, Inputs, value_of, worked

# ZeRO, section 7, for one micro-step; with accumulation by counting collectives: how often S passes, and GB for 7B.
TRAFFIC = [
    ("ddp", 1, 2),
    ("ddp", 8, 2),
    ("ddp-every-micro-step", 8, 16),
    ("zero-1", 1, 2),
    ("zero-1", 8, 2),
    ("zero-2", 1, 2),
    ("zero-2", 8, 9),
    ("zero-3", 1, 3),
    ("zero-3", 8, 24),
    ("zero-3-keep-gathered", 8, 16),
]

RING: Inputs = {"size_bytes": 14e9, "ranks": 8, "bytes_per_second": 300e9}  # 7B in bf16 over NVLink 3
NDR: Inputs = {"bytes_per_second": 50e9, "latency_seconds": 5e-6}
SMALL_MANY: Inputs = {"size_bytes": 1e6, "ranks": 512, **NDR}
LARGE_FEW: Inputs = {"size_bytes": 14e9, "ranks": 64, **NDR}
RAILS: Inputs = {"bytes_per_second": 300e9, "nic_bytes_per_second": 50e9}
NODES: Inputs = {"size_bytes": 14e9, "gpus_per_node": 8, "nodes": 8, "node_bytes_per_second": 12.5e9}
MOE: Inputs = {"tokens": 8192, "hidden": 4096, "experts_per_token": 2, "ranks": 8}
BLOCK: Inputs = {"sequence": 4096, "micro_batch": 1, "hidden": 8192}  # 2bsh = 67.1 MB
TENSOR_8: Inputs = {**BLOCK, "tensor": 8}
A100_HALF, H100_45 = 0.5 * A100, 0.45 * H100

EXAMPLES: list[Example] = [
    # 440 MB over NVLink 3, NVLink 4, NDR and HDR
    ("transfer", OPENING, MS, "1.47"),
    ("transfer", {"size_bytes": 440e6, "bytes_per_second": 450e9}, MS, "0.98"),
    ("transfer", {"size_bytes": 440e6, "bytes_per_second": 50e9}, MS, "8.8"),
    ("transfer", {"size_bytes": 440e6, "bytes_per_second": 25e9}, MS, "17.6"),
    ("transfer", {"size_bytes": 0, "bytes_per_second": 25e9, "latency_seconds": 5e-6}, 1e-6, "5"),
    # Patarasuk and Yuan 2009: 2(n − 1) steps of S/n
    ("ring_all_reduce_seconds", OPENING, MS, "0.653"),
    ("ring_all_reduce_seconds", RING, MS, "81.7"),
    ("ring_all_reduce_seconds", {**RING, "bytes_per_second": 450e9}, MS, "54.4"),
    ("ring_all_reduce_seconds", {"size_bytes": 14e9, "ranks": 64, "bytes_per_second": 12.5e9}, 1.0, "2.205"),
    ("ring_all_reduce_bytes", OPENING, GB, "24.5"),
    # by hand: eight cards of 25 GB/s leave a node of A100s, four leave half a node, one rank has one
    ("gpu_ring_bandwidth", OPENING, GB, "200"),
    ("gpu_ring_bandwidth", {"gpu": "h100-80gb", "ranks": 64}, GB, "400"),
    ("gpu_ring_bandwidth", {"gpu": "a100-80gb", "ranks": 8, "ranks_per_node": 4}, GB, "100"),
    ("gpu_ring_bandwidth", {"gpu": "a100-80gb", "ranks": 8, "ranks_per_node": 1}, GB, "25"),
    ("gpu_ring_bandwidth", {"gpu": "a100-80gb", "ranks": 8}, GB, "300"),
    ("gpu_ring_bandwidth", {"gpu": "a100-80gb", "ranks": 4}, GB, "300"),
    ("ring_bandwidth", OPENING, GB, "300"),  # eight cards would carry 400, NVLink gives 300
    ("ring_bandwidth", {**RAILS, "ranks": 64, "nics_per_node": 1}, GB, "50"),
    ("ring_bandwidth", {**RAILS, "ranks": 8, "nics_per_node": 1}, GB, "300"),
    # a tree wins on small tensors over many ranks and loses on large ones
    ("ring_all_reduce_seconds", SMALL_MANY, MS, "5.15"),
    ("tree_all_reduce_seconds", SMALL_MANY, MS, "0.13"),
    ("ring_all_reduce_seconds", LARGE_FEW, MS, "552"),
    ("tree_all_reduce_seconds", OPENING, MS, "560"),
    ("half_ring_bytes", OPENING, GB, "12.25"),
    # half of the all-reduces above
    ("half_ring_seconds", OPENING, MS, "40.8"),
    ("half_ring_seconds", {**RING, "size_bytes": 100e6, "latency_seconds": 5e-6}, MS, "0.327"),
    # DDP's start: rank 0 sends 7B in bf16; 63 hops and 6 hops of 5 µs; two ranks are one message
    ("broadcast_seconds", OPENING, 1, "0.56"),
    ("broadcast_seconds", {"size_bytes": 0, "ranks": 64, "shape": "chain", **NDR}, 1e-6, "315"),
    ("broadcast_seconds", {"size_bytes": 0, "ranks": 64, "shape": "tree", **NDR}, 1e-6, "30"),
    ("broadcast_seconds", {"size_bytes": 0, "ranks": 65, "shape": "tree", **NDR}, 1e-6, "35"),
    ("broadcast_seconds", {"size_bytes": 50e6, "ranks": 2, "shape": "chain", **NDR}, MS, "1.005"),
    # 8,192 tokens to two experts each are 134.2 MB of bf16, an eighth of which stays
    ("all_to_all_bytes", OPENING, MB, "117.4"),
    ("all_to_all_seconds", OPENING, MS, "2.384"),  # 2.349 + 7 × 0.005
    ("moe_all_to_all_bytes", {**MOE, "transfers": 1}, MB, "117.4"),
    ("moe_all_to_all_bytes", OPENING, MB, "469.8"),
    # 8 nodes of 8 GPUs with 100 Gb/s each: 2 × 7/8 × 14 GB leave a node; inside 2 × 7/8 × 14 / 300 = 0.082 s
    ("hierarchical_node_bytes", OPENING, GB, "24.5"),
    ("hierarchical_all_reduce_seconds", {**NODES, "bytes_per_second": 1e15}, 1, "1.96"),
    ("hierarchical_all_reduce_seconds", OPENING, 1, "2.042"),
    ("hierarchical_all_reduce_seconds", {**NODES, "bytes_per_second": 300e9, "nodes": 1}, MS, "81.7"),
    # 1 GB in 8 ms over 8 ranks
    ("algorithm_bandwidth", OPENING, GB, "125"),
    *(
        ("bus_bandwidth", {"size_bytes": 1e9, "seconds": 8e-3, "ranks": 8, "operation": operation}, GB, shown)
        for operation, shown in (
            ("all-reduce", "218.75"),
            ("reduce-scatter", "109.375"),
            ("all-gather", "109.375"),
            ("all-to-all", "109.375"),
            ("broadcast", "125"),
            ("reduce", "125"),
        )
    ),
    *(
        ("data_parallel_bytes", {"size_bytes": 8, "ranks": 8, "strategy": name, "accumulation": steps}, 7.0, str(times))
        for name, steps, times in TRAFFIC
    ),
    ("data_parallel_bytes", {"size_bytes": 14e9, "ranks": 8, "strategy": "ddp"}, GB, "24.5"),
    ("data_parallel_bytes", {"size_bytes": 14e9, "ranks": 8, "strategy": "zero-3"}, GB, "36.75"),
    # Megatron-LM, section 3: 2 × 7/8 × 67.1 MB an all-reduce, two forward, four with backward, six with recomputation
    ("tensor_parallel_bytes", OPENING, 2 * MB, "117.4"),
    ("tensor_parallel_bytes", TENSOR_8, 4 * MB, "117.4"),
    ("tensor_parallel_bytes", {**TENSOR_8, "passes": "training-full-recompute"}, 6 * MB, "117.4"),
    ("tensor_parallel_bytes", {**TENSOR_8, "layers": 80}, GB, "37.6"),
    ("tensor_parallel_bytes", {**TENSOR_8, "layers": 20}, GB, "9.40"),
    ("tensor_parallel_bytes", {**TENSOR_8, "layers": 20, "passes": "forward"}, GB, "4.70"),
    # Korthikanti, section 4.2.2: eight halves of 58.7 MB a layer, and two gathers more in backward unless kept
    ("sequence_parallel_bytes", OPENING, GB, "47.0"),
    ("sequence_parallel_bytes", {**TENSOR_8, "layers": 80, "backward": "kept"}, GB, "37.6"),
    ("sequence_parallel_bytes", {**TENSOR_8, "passes": "training-full-recompute"}, 14 * MB, "58.7"),
    ("sequence_parallel_bytes", {**TENSOR_8, "layers": 20, "passes": "forward"}, GB, "4.70"),
    ("tensor_parallel_time", OPENING, MS, "31.3"),
    ("tensor_parallel_time", {**TENSOR_8, "layers": 20, "bytes_per_second": 450e9}, MS, "20.9"),
    ("tensor_parallel_time", {**TENSOR_8, "layers": 20, "bytes_per_second": 50e9}, MS, "188"),
    # 80 layers forward, as 62.6 ms over NVLink 3; and 20 layers with 80 all-reduces of 14 hops of 5 µs: 5.6 ms more
    ("tensor_parallel_time", {**TENSOR_8, "layers": 80, "passes": "forward", "bytes_per_second": 300e9}, MS, "62.6"),
    ("tensor_parallel_time", {**TENSOR_8, "layers": 20, **NDR, "bytes_per_second": 300e9}, MS, "36.9"),
    # 2bsh over a boundary; 3 boundaries, 32 micro-batches, both ways; two chunks on 4 devices meet at 7 boundaries
    ("pipeline_boundary_bytes", OPENING, MB, "67.1"),
    ("transfer", {"size_bytes": 2 * 4096 * 8192, "bytes_per_second": 25e9}, MS, "2.68"),
    ("pipeline_bytes", OPENING, GB, "12.9"),
    ("pipeline_bytes", {**BLOCK, "stages": 4, "micro_batches": 32, "chunks": 2}, GB, "30.1"),
    ("pipeline_bytes", {**BLOCK, "stages": 1, "micro_batches": 32}, GB, "0"),
    # 4.5 s of compute, 3.0 s of it backward: 2.205 s hide, of 4.0 s one is left
    ("exposed_communication", OPENING, 1, "1.0"),
    ("exposed_communication", {"communication_seconds": 2.205, "overlappable_seconds": 3.0}, 1, "0"),
    (
        "exposed_communication",
        {"communication_seconds": 2.205, "overlappable_seconds": 3.0, "tail_seconds": 0.1},
        1,
        "0.1",
    ),
    ("step_time", OPENING, 1, "5.5"),
    ("step_time", {"compute_seconds": 4.5, "communication_seconds": 4.0, "overlappable_seconds": 0}, 1, "8.5"),
    # 2.24 of 6.74 s, and of 4.5 s; 2.205 of 8 × 4.5 s
    ("communication_share", OPENING, 0.01, "33.2"),
    ("communication_share", {"communication_seconds": 2.24, "compute_seconds": 4.5, "of": "compute"}, 0.01, "49.8"),
    (
        "communication_share",
        {"communication_seconds": 2.205, "compute_seconds": 4.5, "accumulation": 8, "of": "compute"},
        0.01,
        "6.1",
    ),
    # 32 bits to 16, to 1, and 16 to 1
    *(
        ("quantised_ratio", {"from_bits": before, "to_bits": after}, 1, shown)
        for before, after, shown in ((32, 16, "2"), (32, 1, "32"), (16, 1, "16"))
    ),
    # 4 bytes against 8 for one value in a hundred; 2 against 6; half kept with its indices saves nothing
    ("top_k_ratio", OPENING, 1, "50"),
    ("top_k_ratio", {"density": 0.01, "value_bytes": 2}, 1, "33"),
    ("top_k_ratio", {"density": 0.5}, 1, "1"),
    # 4096² over r × 8192
    *(
        ("power_sgd_ratio", {"rows": 4096, "columns": 4096, "rank": rank}, 1, shown)
        for rank, shown in ((1, "2048"), (2, "1024"), (4, "512"), (8, "256"), (32, "64"))
    ),
    ("power_sgd_ratio", {"rows": 4096, "columns": 1024, "rank": 4}, 1, "204.8"),  # 4,194,304 / (4 × 5,120)
    # 63 × 0.01 × 7e9 × 6 bytes, against a ring's 27.56 GB; equal at 4 / (6ρ) ranks
    ("top_k_gather_bytes", OPENING, GB, "26.46"),
    ("ring_all_reduce_bytes", {"size_bytes": 14e9, "ranks": 64}, GB, "27.56"),
    ("top_k_break_even_ranks", OPENING, 1, "67"),
    ("top_k_break_even_ranks", {"density": 0.001}, 1, "667"),
    # 14 and 28 GB in buckets of 25 MiB
    ("ddp_buckets", OPENING, 1, "535"),
    ("ddp_buckets", {"gradient_bytes": 28e9}, 1, "1069"),
    # ηF/B with (K − 1)/K almost 1
    *(
        (
            "fsdp_break_even_tokens",
            {"ranks": ranks, "achieved_flops_per_second": achieved, "bytes_per_second": bandwidth},
            1,
            shown,
        )
        for ranks, achieved, bandwidth, shown in (
            (10**6, 0.5 * A100, 300e9, "520"),
            (10**6, 0.5 * A100, 25e9, "6240"),
            (10**6, 0.45 * H100, 450e9, "989"),
            (10**6, 0.45 * H100, 50e9, "8901"),
            (2, 0.5 * A100, 300e9, "260"),
        )
    ),
    # two of FSDP's three transfers
    (
        "ddp_break_even_tokens",
        OPENING,
        1,
        "4160",
    ),
    # 2/9 × 7 × 156e12 / (8192 × 300e9); h = 4096 doubles it; forward alone 1/3 in place of 2/9
    *(
        (
            "tensor_parallel_share",
            {
                "hidden": hidden,
                "tensor": 8,
                "achieved_flops_per_second": achieved,
                "bytes_per_second": bandwidth,
                "passes": passes,
            },
            0.01,
            shown,
        )
        for hidden, achieved, bandwidth, passes, shown in (
            (8192, A100_HALF, 300e9, "training", "9.9"),
            (8192, H100_45, 450e9, "training", "18.8"),
            (8192, A100_HALF, 25e9, "training", "118"),
            (4096, A100_HALF, 300e9, "training", "19.7"),
            (8192, A100_HALF, 300e9, "forward", "14.8"),
            (8192, A100_HALF, 300e9, "training-full-recompute", "11.1"),  # 6 all-reduces against 4 forwards: 1/4
        )
    ),
    # offloading 7B: 14 GB down and 14 GB up over PCIe 4
    ("transfer", {"size_bytes": 28e9, "bytes_per_second": 25e9}, 1, "1.12"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_communication_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    for ranks in (1, 2, 3, 8, 1000):
        inputs = {"size_bytes": 12e9, "ranks": ranks, "bytes_per_second": 25e9, "latency_seconds": 1e-5}
        whole, half = value_of("ring_all_reduce_seconds", inputs), value_of("half_ring_seconds", inputs)
        assert whole == pytest.approx(2 * half)


def test_a_rank_alone_sends_nothing_whatever_the_strategy() -> None:
    for strategy, *_ in TRAFFIC:
        assert value_of("data_parallel_bytes", {"size_bytes": 1e9, "ranks": 1, "strategy": strategy}) == 0


def test_sparse_gradients_break_even_where_they_receive_what_a_ring_sends() -> None:
    """At ρ = 1/96, 2 × 2 / (6ρ) is 64 ranks."""
    given = {"density": 1 / 96}
    assert value_of("top_k_break_even_ranks", given) == pytest.approx(64)
    sparse = value_of("top_k_gather_bytes", {"parameters": 7e9, "ranks": 64, **given})
    assert sparse == pytest.approx(value_of("ring_all_reduce_bytes", {"size_bytes": 14e9, "ranks": 64}))


def test_the_tensor_parallel_share_is_the_time_of_its_bytes_over_the_time_of_its_flops() -> None:
    """72bsh² FLOPs a layer in training, split over t."""
    sent = value_of("tensor_parallel_time", {**TENSOR_8, "bytes_per_second": 300e9})
    computed = 72 * 4096 * 8192**2 / 8 / A100_HALF
    given = {"hidden": 8192, "tensor": 8, "achieved_flops_per_second": A100_HALF, "bytes_per_second": 300e9}
    assert value_of("tensor_parallel_share", given) == pytest.approx(sent / computed)


@pytest.mark.parametrize(
    ("name", "inputs", "field"),
    [
        ("tensor_parallel_bytes", {**BLOCK, "tensor": 3}, "tensor"),
        ("sequence_parallel_bytes", {**TENSOR_8, "sequence": 4100}, "tensor"),
        ("pipeline_bytes", {**BLOCK, "stages": 1, "micro_batches": 4, "chunks": 2}, "chunks"),
        (
            "step_time",
            {"compute_seconds": 1, "communication_seconds": 1, "overlappable_seconds": 2},
            "overlappable_seconds",
        ),
        (
            "exposed_communication",
            {"communication_seconds": 1, "overlappable_seconds": 2, "tail_seconds": 1.5},
            "tail_seconds",
        ),
        ("power_sgd_ratio", {"rows": 64, "columns": 4096, "rank": 65}, "rank"),
        ("broadcast_seconds", {"size_bytes": 1, "ranks": 1, "bytes_per_second": 1}, "ranks"),
    ],
)
def test_inputs_that_do_not_fit_together_are_refused(name: str, inputs: Inputs, field: str) -> None:
    with pytest.raises(SpecError) as raised:
        value_of(name, inputs)
    assert [violation.field for violation in raised.value.violations] == [field]
