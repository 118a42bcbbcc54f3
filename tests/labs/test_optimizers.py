"""Layer-wise optimizers by hand, master copies, and the state that lives elsewhere."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from labs.parallel.mesh import Axis
from labs.parallel.offload import File, HostMemory
from labs.parallel.optimizers import LAMB, LARS
from labs.parallel.precision import LossScaler, TensorwiseOptimizer, local_optimizer
from labs.spec import RunTraining

ZERO_16 = RunTraining(precision="bf16-mixed", state_layout="zero-16", learning_rate=1e-3)
FP32 = RunTraining(learning_rate=1e-2)


def weight(*values: float, dtype: torch.dtype = torch.float32) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=dtype))


def test_lars_moves_a_tensor_by_a_fixed_part_of_its_norm():
    """|w| = 5, |g| = 10, decay 0.1: the rate is 2 · 0.001 · 5 / (10 + 0.5), the direction g + 0.1 w."""
    tensor = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    optimizer = LARS([tensor], lr=2.0, weight_decay=0.1, momentum=0.9)
    tensor.grad = torch.tensor([[6.0, -8.0]])
    optimizer.step()
    rate = 2.0 * 0.001 * 5 / 10.5
    assert tensor[0].tolist() == pytest.approx([3 - rate * 6.3, 4 - rate * -7.6])


def test_lars_goes_on_by_its_momentum():
    tensor = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    optimizer = LARS([tensor], lr=2.0, weight_decay=0.0, momentum=0.9)
    places = []
    for gradient in ([[6.0, -8.0]], [[0.0, 0.0]]):
        places.append(tensor.detach().clone())
        tensor.grad = torch.tensor(gradient)
        optimizer.step()
    first, second = places[1] - places[0], tensor.detach() - places[1]
    assert torch.allclose(second, 0.9 * first, rtol=1e-3)


def test_lamb_moves_a_tensor_by_the_learning_rate_times_its_norm():
    """In the first step Adam's direction is the gradient's sign; without decay |w| / |u| = 5 / √2."""
    tensor = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    optimizer = LAMB([tensor], lr=0.01, weight_decay=0.0)
    tensor.grad = torch.tensor([[0.2, -7.0]])
    optimizer.step()
    step = 0.01 * 5 / math.sqrt(2)
    assert tensor[0].tolist() == pytest.approx([3 - step, 4 + step], rel=1e-5)


def test_lamb_with_decay_adds_it_before_the_norm_is_taken():
    tensor = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    optimizer = LAMB([tensor], lr=0.01, weight_decay=0.5)
    tensor.grad = torch.tensor([[1.0, 1.0]])
    optimizer.step()
    direction = (2.5, 3.0)  # 1 + 0.5 · w
    scale = 0.01 * 5 / math.hypot(*direction)
    assert tensor[0].tolist() == pytest.approx([3 - scale * 2.5, 4 - scale * 3.0], rel=1e-5)


def test_vectors_take_plain_steps_and_do_not_decay():
    tensor = weight(3.0, 4.0)
    LARS([tensor], lr=0.1, weight_decay=0.5, momentum=0.9)
    optimizer = LARS([tensor], lr=0.1, weight_decay=0.5, momentum=0.9)
    tensor.grad = torch.tensor([1.0, -1.0])
    optimizer.step()
    assert tensor.tolist() == pytest.approx([2.9, 4.1])


def test_a_master_copy_adds_up_what_bf16_would_round_away():
    """1 + 0.001 is 1 in bf16, however often it is added."""
    plain, kept = weight(1.0, dtype=torch.bfloat16), weight(1.0, dtype=torch.bfloat16)
    pure = local_optimizer([plain], RunTraining(precision="bf16", state_layout="bf16", learning_rate=1e-3))
    mixed = local_optimizer([kept], ZERO_16)
    for _ in range(20):
        for tensor, optimizer in ((plain, pure), (kept, mixed)):
            tensor.grad = torch.tensor([-1.0], dtype=torch.bfloat16)
            optimizer.step()
    assert plain.item() == 1.0
    assert kept.item() == pytest.approx(1.02, abs=0.004)
    assert sum(tensor.nbytes for tensor in mixed.tensors()) == 12 + 4  # master and two moments, and a step counter


@pytest.mark.parametrize("home", [None, HostMemory(), File()], ids=["here", "host", "file"])
@pytest.mark.parametrize("training", [FP32, ZERO_16, FP32.model_copy(update={"optimizer": "sgd"})], ids=str)
def test_one_tensor_after_the_other_is_as_good_as_all_at_once(home, training):
    dtype = torch.bfloat16 if training is ZERO_16 else torch.float32
    draw = torch.Generator().manual_seed(3)
    start = [torch.randn(shape, generator=draw).to(dtype) for shape in ((5, 3), (7,))]
    ours, theirs = ([nn.Parameter(each.clone()) for each in start] for _ in range(2))
    optimizer = TensorwiseOptimizer(ours, training, File() if isinstance(home, File) else home)
    plain = TensorwiseOptimizer(theirs, training) if training is ZERO_16 else local_optimizer(theirs, training)
    for _ in range(4):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(a.shape, generator=draw).to(dtype)
            b.grad = a.grad.clone()
        optimizer.step()
        plain.step()
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_state_in_a_file_is_not_in_memory_and_goes_to_and_fro_once_a_step():
    tensor, home = nn.Parameter(torch.ones(1000, dtype=torch.bfloat16)), File()
    optimizer = TensorwiseOptimizer([tensor], ZERO_16, home)
    assert home.measure()["written to file"] == (4000.0, "B")  # the master copy; there are no moments yet
    for expected_read in (4000.0, 12000.0, 12000.0):
        tensor.grad = torch.ones_like(tensor)
        optimizer.step()
        found = home.measure()
        assert found["read from file"] == (expected_read, "B")
        assert found["written to file"] == (12000.0, "B")
        assert found["reading and writing"][0] > 0
        held = sum(each.untyped_storage().nbytes() for each in optimizer.tensors())
        assert held == 4  # the step counter


def test_an_infinite_gradient_skips_the_step_and_halves_the_scale():
    tensor = weight(1.0, 2.0)
    inner = local_optimizer([tensor], FP32)
    scaler = LossScaler(inner, lambda: [tensor.grad], Axis("data"), "cpu")
    scale = scaler.scale
    tensor.grad = torch.tensor([1.0, math.inf])
    scaler.step()
    assert tensor.tolist() == [1.0, 2.0]
    assert (scaler.scale, scaler.skipped) == (scale / 2, 1)
    tensor.grad = torch.tensor([1.0, 1.0]) * scaler.scale
    scaler.step()
    assert tensor.tolist() == pytest.approx([0.99, 1.99], abs=1e-3)
    assert tensor.grad.tolist() == [1.0, 1.0]


def test_after_a_while_without_overflow_twice_the_scale_is_tried():
    tensor = weight(1.0)
    scaler = LossScaler(local_optimizer([tensor], FP32), lambda: [tensor.grad], Axis("data"), "cpu")
    scale = scaler.scale
    for _ in range(200):
        tensor.grad = torch.ones(1)
        scaler.step()
    assert scaler.scale == 2 * scale
