"""A collective of several ranks is not timed by one network card, unless the text says that it sits that way."""

from __future__ import annotations

import pytest

from app.content.live import ExpressionError, Expressions

PLACED = 'gpu_ring_bandwidth(gpu="a100-80gb", ranks=64)'


@pytest.mark.parametrize(
    "expression",
    [
        "ring_all_reduce_seconds(size_bytes=14e9, ranks=64, bytes_per_second=50e9)",
        "half_ring_seconds(size_bytes=14e9, ranks=64, bytes_per_second=12.5e9)",
        'fsdp_break_even_tokens(ranks=64, bytes_per_second=gpu["a100-80gb"].nic_bytes_per_second,'
        " achieved_flops_per_second=1e14)",
        "tensor_parallel_share(hidden=8192, tensor=8, achieved_flops_per_second=1e14, bytes_per_second=25e9)",
        "ring_all_reduce_bytes(size_bytes=14e9, ranks=64) / 25e9",
        "transfer(size_bytes=data_parallel_bytes(size_bytes=14e9, ranks=64, strategy='ddp'), bytes_per_second=25e9)",
    ],
)
def test_one_cards_speed_for_many_ranks_is_refused_and_says_what_to_write(expression: str) -> None:
    with pytest.raises(ExpressionError, match="Say where they sit"):
        Expressions().number(expression)


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        (f"ring_all_reduce_seconds(size_bytes=14e9, ranks=64, bytes_per_second={PLACED})", 27.5625 / 200),
        (f"ring_all_reduce_bytes(size_bytes=14e9, ranks=64) / {PLACED}", 27.5625 / 200),
        (
            "ring_all_reduce_seconds(size_bytes=14e9, ranks=64, bytes_per_second=ring_bandwidth(ranks=64,"
            " ranks_per_node=8, bytes_per_second=300e9, nic_bytes_per_second=12.5e9, nics_per_node=1))",
            2.205,
        ),
        ("ring_all_reduce_seconds(size_bytes=14e9, ranks=8, bytes_per_second=300e9)", 24.5 / 300),
        ("ring_all_reduce_seconds(size_bytes=14e9, ranks=1, bytes_per_second=25e9)", 0),
        ("transfer(size_bytes=14e9, bytes_per_second=25e9)", 0.56),
        ("transfer(size_bytes=hierarchical_node_bytes(size_bytes=14e9, nodes=8), bytes_per_second=12.5e9)", 1.96),
    ],
)
def test_a_placed_group_a_link_inside_and_a_single_message_are_taken(expression: str, seconds: float) -> None:
    assert Expressions().number(expression) == pytest.approx(seconds)
