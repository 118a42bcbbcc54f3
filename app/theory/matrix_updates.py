"""Optimizers that update a weight matrix as a whole, and how a step is scaled with a model's width (F73).

Muon takes the momentum of a matrix, makes its singular values nearly equal by a Newton-Schulz iteration, and steps
along the result. It works on whole matrices: who holds a slice must gather the rest first.
"""

from __future__ import annotations

NEWTON_SCHULZ_ITERATIONS = 5


def newton_schulz_flops(rows: int, columns: int, iterations: int = NEWTON_SCHULZ_ITERATIONS) -> float:
    """F73: FLOPs of making a matrix orthogonal, T·(4·m²·n + 2·m³), m the shorter side and n the longer.

    Each iteration forms A = X·Xᵀ (2·m²·n), A² (2·m³), and multiplies a polynomial of A with X (2·m²·n).
    Source: Jordan et al. 2024 (Muon); counted from the quintic iteration, element-wise work left out.
    """
    short, long = min(rows, columns), max(rows, columns)
    return iterations * (4 * short**2 * long + 2 * short**3)


def newton_schulz_share(rows: int, columns: int, tokens: float, iterations: int = NEWTON_SCHULZ_ITERATIONS) -> float:
    """F73: those FLOPs over the 6·m·n·B that `tokens` tokens of a step cost in the matrix; T·m/B where it is square.

    Source: Jordan et al. 2024 (Muon), run time analysis.
    """
    return newton_schulz_flops(rows, columns, iterations) / (6 * rows * columns * tokens)


def width_scaled_rate(base_rate: float, base_width: int, width: int) -> float:
    """F75: learning rate of hidden matrices under Adam at `width`, tuned at `base_width`: η·w₀/w.

    Source: Yang et al. 2022 (μP, Tensor Programs V), table 3.
    """
    return base_rate * base_width / width
