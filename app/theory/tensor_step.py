"""An MLP over tensor ranks in small whole numbers, product by product: columns of the first matrix, rows of the second.

Every matrix is computed, so that what ranks have in parts can be held against the whole. ReLU stands in for GELU, which
would leave no whole numbers. Source: Shoeybi et al. 2019 (Megatron-LM), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.theory.collectives import ring_all_reduce_bytes

Matrix = tuple[tuple[int, ...], ...]
Move = Literal["input", "first product", "activation", "second product", "all-reduce"]

INPUT: Matrix = ((1, 2), (3, -1))  # two tokens of width 2
FIRST: Matrix = ((1, 0, 2, -1), (-1, 1, 1, 2))  # 2 × 4
SECOND: Matrix = ((2, 1), (1, -1), (0, 1), (1, 2))  # 4 × 2


@dataclass(frozen=True)
class TensorState:
    """After a move: what each rank has, and what it has sent so far in units of the block's result."""

    move: Move
    held: tuple[Matrix, ...]
    sent: float


def product(left: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> Matrix:
    return tuple(
        tuple(sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True))
        for row in left
    )


def relu(matrix: Matrix) -> Matrix:
    return tuple(tuple(max(0, value) for value in row) for row in matrix)


def columns(matrix: Matrix, part: int, parts: int) -> Matrix:
    """The `part`-th of equal groups of columns."""
    width = len(matrix[0]) // parts
    return tuple(row[part * width : (part + 1) * width] for row in matrix)


def rows(matrix: Matrix, part: int, parts: int) -> Matrix:
    """The `part`-th of equal groups of rows."""
    height = len(matrix) // parts
    return matrix[part * height : (part + 1) * height]


def added(matrices: Sequence[Matrix]) -> Matrix:
    return tuple(tuple(map(sum, zip(*lines, strict=True))) for lines in zip(*matrices, strict=True))


def tensor_step(ranks: int) -> tuple[TensorState, ...]:
    """The forward pass over 2 or 4 ranks, from the input that all have to the sum that all have."""
    first = [product(INPUT, columns(FIRST, rank, ranks)) for rank in range(ranks)]
    active = [relu(each) for each in first]
    partial = [product(active[rank], rows(SECOND, rank, ranks)) for rank in range(ranks)]
    return (
        TensorState("input", (INPUT,) * ranks, 0.0),
        TensorState("first product", tuple(first), 0.0),
        TensorState("activation", tuple(active), 0.0),
        TensorState("second product", tuple(partial), 0.0),
        TensorState("all-reduce", (added(partial),) * ranks, ring_all_reduce_bytes(1.0, ranks)),
    )
