"""Compressed gradients, scheme by scheme. What they send on real ranks is in the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs.parallel.compression import Compressor, OneBit, PowerSGD, RandomK, TopK, _scheme
from labs.spec import Compression
from tests.labs.alone import one_rank

SHAPES = ((12, 7), (7,), (5, 9))
STEPS = 30
KINDS = ("fp16", "bf16", "top-k", "random-k", "one-bit", "powersgd")


@dataclass
class Bucket:
    """What DDP hands to a hook."""

    keys: list[nn.Parameter]
    values: Tensor

    def buffer(self) -> Tensor:
        return self.values

    def gradients(self) -> list[Tensor]:
        pieces = self.values.split([key.numel() for key in self.keys])
        return [piece.view(key.shape) for piece, key in zip(pieces, self.keys, strict=True)]

    def parameters(self) -> list[nn.Parameter]:
        return self.keys


@pytest.fixture(scope="module")
def group() -> Iterator[dist.ProcessGroup]:
    with one_rank() as found:
        yield found


@pytest.fixture
def keys() -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]


def gradient(step: int, keys: list[nn.Parameter]) -> Bucket:
    """The same direction every step, with noise: what a scheme that forgets would never send."""
    size = sum(key.numel() for key in keys)
    steady = torch.randn(size, generator=torch.Generator().manual_seed(1))
    return Bucket(keys, steady + 0.3 * torch.randn(size, generator=torch.Generator().manual_seed(step + 2)))


def total_of(compressor: Compressor, keys: list[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """The sums over all steps: of what there was, and of what came through."""
    there = came = torch.zeros(sum(key.numel() for key in keys))
    for step in range(STEPS):
        bucket = gradient(step, keys)
        there = there + bucket.values
        came = came + compressor(bucket).value()
    return there, came


@pytest.mark.parametrize("kind", KINDS)
def test_error_feedback_loses_nothing(kind, group, keys):
    """What came through and what is still to come are together what there was."""
    compressor = Compressor(_scheme(Compression(kind=kind, density=0.1, rank=2), group), error_feedback=True)
    there, came = total_of(compressor, keys)
    waiting = torch.cat([compressor._left_out[key].flatten() for key in keys])
    assert torch.allclose(came + waiting, there, rtol=1e-4, atol=1e-4)
    assert (there - came).norm() < 0.4 * there.norm()


@pytest.mark.parametrize("kind", ["top-k", "powersgd"])
def test_without_it_what_is_left_out_is_lost(kind, group, keys):
    compressor = Compressor(_scheme(Compression(kind=kind, density=0.1, rank=1), group), error_feedback=False)
    there, came = total_of(compressor, keys)
    assert (there - came).norm() > 0.4 * there.norm()


def test_random_values_without_feedback_have_the_right_mean(group, keys):
    """Each of them is sent in one step of ten, and ten times as large."""
    scheme = RandomK(group, density=0.1, unbiased=True)
    bucket = gradient(0, keys)
    steps = 3000
    mean = sum(scheme.reduce(bucket.values, bucket.gradients(), keys).mean for _ in range(steps)) / steps
    assert torch.allclose(mean, bucket.values, rtol=0.3, atol=0.05)


def test_top_k_sends_the_largest(group, keys):
    bucket = gradient(0, keys)
    mean = TopK(group, density=0.1).reduce(bucket.values, bucket.gradients(), keys).mean
    chosen = mean.nonzero().flatten()
    assert len(chosen) == -(-bucket.values.numel() // 10)
    assert torch.equal(mean[chosen], bucket.values[chosen])
    assert bucket.values[chosen].abs().min() >= bucket.values[mean == 0].abs().max()


def test_one_bit_keeps_signs_and_the_mean_size_of_each_tensor(group, keys):
    bucket = gradient(0, keys)
    bucket.values[: keys[0].numel()] *= 100
    mean = OneBit(group).reduce(bucket.values, bucket.gradients(), keys).mean
    assert torch.equal(mean.sign(), bucket.values.sign())
    for each, whole in zip(Bucket(keys, mean).gradients(), bucket.gradients(), strict=True):
        assert torch.allclose(each.abs(), whole.abs().mean().expand_as(each))


def test_power_sgd_of_full_rank_is_exact(group, keys):
    bucket = gradient(0, keys)
    mean = PowerSGD(group, rank=100).reduce(bucket.values, bucket.gradients(), keys).mean
    assert torch.allclose(mean, bucket.values, atol=1e-4)


def test_power_sgd_finds_a_matrix_of_low_rank_in_a_few_steps(group):
    """Each step goes on from the last one's factors."""
    key = nn.Parameter(torch.zeros(20, 30))
    matrix = torch.randn(20, 2) @ torch.randn(2, 30) + 0.001 * torch.randn(20, 30)
    scheme = PowerSGD(group, rank=2)
    for _ in range(5):
        mean = scheme.reduce(matrix.flatten(), [matrix], [key]).mean
    assert (mean.view(20, 30) - matrix).norm() < 0.01 * matrix.norm()
