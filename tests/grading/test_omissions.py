"""Slips that nobody listed are named from the key's own structure, on variants nobody has seen."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.content.structures import structure_of
from app.grading.numbers import KnownSlip, grade_number
from app.grading.omissions import Node, explained
from app.grading.questions import NumberQuestion
from app.practice.variants import make_variant
from tests.support.shipped import shipped

STATE = "zero_state(parameters=parameters, ranks=ranks, stage=stage)"
RING = "ring_all_reduce_seconds(size_bytes=size, ranks=ranks, bytes_per_second=300e9, latency_seconds=alpha)"
BILLIONS = st.floats(0.5, 200).map(lambda billions: round(billions, 2) * 1e9)


def graded(key: str, value: float, dimension: str = "bytes", slips: Any = (), **values: Any) -> str:
    """What is said of `value` given in base units."""
    structure = structure_of(key, {}, values)
    assert structure is not None
    unit = {"bytes": "B", "seconds": "s"}[dimension]
    return grade_number(f"{value!r} {unit}", structure.value, dimension, 0.01, slips, 0.5, lambda: structure).message


@settings(max_examples=40, deadline=None)
@given(parameters=BILLIONS, ranks=st.sampled_from([16, 24, 48, 96, 160]), stage=st.sampled_from([1, 2]))
def test_a_forgotten_part_of_the_state_is_named_with_its_bytes(parameters: float, ranks: int, stage: int) -> None:
    key = {"parameters": parameters, "ranks": ranks, "stage": stage}
    state = (4 + 12 / ranks if stage == 1 else 2 + 14 / ranks) * parameters
    assert "you left out the weights, 2 of 16 bytes" in graded(STATE, state - 2 * parameters, **key)
    moved = parameters * 4 * (1 - 1 / ranks)  # the master copy kept whole on every rank
    assert "not divide by the" in graded(STATE, state + moved, **key)
    assert "master copy" in graded(STATE, state + moved, **key)


@settings(max_examples=40, deadline=None)
@given(parameters=BILLIONS)
def test_the_master_copy_and_the_moments_are_told_apart(parameters: float) -> None:
    key = "training_state(parameters=parameters)"
    assert "fp32 master copy, 4 of 16 bytes" in graded(key, 12 * parameters, parameters=parameters)
    assert "moments, 8 of 16 bytes" in graded(key, 8 * parameters, parameters=parameters)


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(6, 200), alpha=st.floats(4e-6, 4e-5), size=st.floats(1e5, 4e6))
def test_ring_factor_and_messages_are_named(ranks: int, alpha: float, size: float) -> None:
    values = {"ranks": ranks, "alpha": alpha, "size": size}
    latency, bandwidth = 2 * (ranks - 1) * alpha, 2 * (ranks - 1) / ranks * size / 300e9
    assert "n − 1 messages for 2(n − 1)" in graded(RING, latency / 2 + bandwidth, "seconds", **values)
    bytes_key = "ring_all_reduce_bytes(size_bytes=size, ranks=ranks)"
    if ranks < 40:  # beyond, 2S is within the tolerance of what is right
        assert f"{ranks - 1}/{ranks}" in graded(bytes_key, 2 * size, **values)


@settings(max_examples=40, deadline=None)
@given(parameters=BILLIONS, tensor=st.sampled_from([2, 4, 8]), stages=st.sampled_from([3, 5, 6]))
def test_a_divisor_forgotten_in_arithmetic_is_named(parameters: float, tensor: int, stages: int) -> None:
    key = "2 * parameters / (tensor * stages)"
    found = graded(key, 2 * parameters / stages, parameters=parameters, tensor=tensor, stages=stages)
    assert "not divide by tensor" in found


def test_two_mistakes_at_once_are_named_after_slips_of_units() -> None:
    values = {"parameters": 7e9, "ranks": 48, "stage": 1}
    weights_and_master = (2 + 8 / 48) * 7e9
    assert " and " in graded(STATE, weights_and_master, **values)


def test_the_live_layer_is_named() -> None:
    key = (
        'activations(sequence=4096, micro_batch=1, hidden=4096, heads=32, layers=layers, recompute="full", flash="yes")'
    )
    inputs = 2 * 4096 * 4096 * 24
    assert "live layer" in graded(key, inputs, layers=24)


def test_bits_for_bytes_is_said_only_where_nothing_else_explains_the_factor() -> None:
    bits = KnownSlip("bits-for-bytes", 14e9, "bits for bytes", "These are bits.")
    values = {"size": 112e9, "gpus": 8}
    assert "not divide by gpus" in graded(
        "size / gpus", 112e9, slips=[KnownSlip("bits", 112e9, "b", "Bits.")], **values
    )
    assert graded("size * 1.0", 14e9, slips=[bits], **values) == "These are bits."


@pytest.fixture(scope="module")
def questions() -> list[NumberQuestion]:
    """Every number of every shipped problem, on seeds beyond those the checks look at."""
    content = shipped()
    return [
        part.question
        for problem in content.problems.values()
        for seed in (1001, 1002)
        for part in make_variant(problem, seed).parts
        if isinstance(part.question, NumberQuestion)
    ]


def _tree(question: NumberQuestion) -> Node:
    assert question.structure is not None
    found = question.structure()
    assert found is not None
    return found


@pytest.mark.slow
def test_every_key_of_the_problems_is_taken_apart_to_its_own_value(questions: list[NumberQuestion]) -> None:
    assert questions
    for question in questions:
        tree = _tree(question)
        assert tree.value == pytest.approx(question.key)
        assert explained(tree, question.key, question.tolerance) is None


def test_a_wrong_number_out_of_the_blue_is_hardly_ever_given_a_cause(questions: list[NumberQuestion]) -> None:
    drawn = random.Random(7)
    tried = named = 0
    for question in questions:
        tree = _tree(question)
        for _ in range(10):
            value = question.key * 10 ** drawn.uniform(-1.3, 1.3)
            tried += 1
            named += any(explained(tree, value, question.tolerance, two) for two in (False, True))
    assert named / tried < 0.03


def test_no_more_than_one_factor_is_said_to_be_left_out() -> None:
    """The step of an accumulation is a sum over 32 micro-batches over a norm: whoever says 1 left out anything."""
    product = Node("", 96.0, factors=((1, Node("32 micro-batches", 32.0)), (1, Node("the norm", 3.0))))
    assert explained(product, 3.0, 0.01) == "you did not multiply by 32 micro-batches"
    assert explained(product, 1.0, 0.01, two=True) is None
    alone = Node("", 32.0, factors=((1, Node("32 micro-batches", 32.0)),))
    assert explained(alone, 1.0, 0.01) is None
