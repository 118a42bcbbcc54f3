"""How many samples a step takes, and how the learning rate follows (F40, F41, F55)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from app.theory.checks import check_at_most
from labs.spec import SpecError, Violation


def global_batch_sequences(micro_batch: int, ranks: int, accumulation: int = 1) -> int:
    """F40: sequences per optimizer step, b·K·A. In a pipeline A is the number of micro-batches m."""
    return micro_batch * ranks * accumulation


def global_batch_tokens(micro_batch: int, ranks: int, sequence: int, accumulation: int = 1) -> int:
    """F40: tokens per optimizer step, b·K·A·s."""
    return global_batch_sequences(micro_batch, ranks, accumulation) * sequence


def accumulation_steps(global_batch: int, micro_batch: int, ranks: int) -> int:
    """F40: micro-steps per optimizer step for a batch of `global_batch` sequences, B/(b·K).

    Raises SpecError where the batch is no multiple of micro_batch × ranks.
    """
    each = micro_batch * ranks
    if global_batch % each:
        message = f"{global_batch:,} sequences are no multiple of micro_batch × ranks = {micro_batch:,} × {ranks:,}."
        raise SpecError([Violation("global_batch", global_batch, message, f"a multiple of {each:,}")])
    return global_batch // each


def minimum_batch(ranks: int, micro_batch: int = 1) -> int:
    """F41: the smallest global batch in sequences: every data-parallel rank needs one micro-batch, b·K."""
    return ranks * micro_batch


def efficient_batch(ranks: int, stages: int, micro_batch: int = 1, micro_batches_per_stage: int = 4) -> int:
    """F41: the smallest global batch in sequences that keeps a pipeline's bubble small, m ≥ 4p: 4·p·b·K.

    Source: Huang et al. 2019 (GPipe), section 2.3: the bubble is negligible from m ≥ 4p.
    """
    return micro_batches_per_stage * stages * micro_batch * ranks


# How a learning rate follows the batch: the exponent of the batch's growth.
# Linear: Goyal et al. 2017, section 2.1, for SGD. Square root: Malladi et al. 2022, for Adam.
LEARNING_RATE_RULES: Mapping[str, float] = {"linear": 1.0, "square-root": 0.5}


def scaled_learning_rate(learning_rate: float, batch: float, new_batch: float, rule: str = "linear") -> float:
    """F55: the learning rate for `new_batch` after one tuned at `batch`, η(B′/B) or η√(B′/B)."""
    return float(learning_rate * (new_batch / batch) ** LEARNING_RATE_RULES[rule])


def warm_up_learning_rate(
    learning_rate: float, step: int, warm_up_steps: int, start_learning_rate: float = 0.0
) -> float:
    """F55: the learning rate at `step` (from 0) of a linear warm-up from `start_learning_rate` to `learning_rate`.

    Source: Goyal et al. 2017, section 2.2 (gradual warm-up).
    """
    done = min(1.0, step / warm_up_steps) if warm_up_steps else 1.0
    return start_learning_rate + (learning_rate - start_learning_rate) * done


def gradient_noise_scale(small_batch: float, big_batch: float, small_norm: float, big_norm: float) -> float:
    """F55: the simple noise scale tr(Σ)/|G|² from the gradient's mean norm at two batch sizes, in samples.

    The norm of a batch's gradient estimates |G|² + tr(Σ)/B; two batch sizes tell the two parts apart. It is what the
    critical batch size is about. Norms are root-mean-square over several steps: a single pair is mostly noise.
    Raises SpecError where the norms leave no positive signal or noise.
    Source: McCandlish et al. 2018, appendix A.1.
    """
    if not small_batch < big_batch:
        message = "The two batch sizes must differ."
        raise SpecError([Violation("big_batch", big_batch, message, f"more than {small_batch:g}")])
    noise = (small_norm**2 - big_norm**2) / (1 / small_batch - 1 / big_batch)
    signal = (big_batch * big_norm**2 - small_batch * small_norm**2) / (big_batch - small_batch)
    if noise < 0 or signal <= 0:
        lowest = small_norm * sqrt(small_batch / big_batch)
        accepted = f"more than {lowest:.9g}, at most {small_norm:.9g}"
        raise SpecError([Violation("big_norm", big_norm, "Averaging leaves no such norm.", accepted)])
    return noise / signal


def step_excess(batch: float, noise_scale: float) -> float:
    """F55: optimizer steps a batch needs over the fewest possible (of an infinite batch), 1 + B_noise/B.

    Source: McCandlish et al. 2018, section 2.3.
    """
    return 1 + noise_scale / batch


def example_excess(batch: float, noise_scale: float) -> float:
    """F55: samples a batch needs over the fewest possible (of a tiny batch), 1 + B/B_noise.

    At the critical batch B = B_noise both excesses are 2. Source: McCandlish et al. 2018, section 2.3.
    """
    return 1 + batch / noise_scale


def noise_limited_learning_rate(largest_learning_rate: float, batch: float, noise_scale: float) -> float:
    """F55: SGD's best learning rate at a batch, η_max/(1 + B_noise/B): linear in B far below the noise scale.

    Source: McCandlish et al. 2018, equation 2.6.
    """
    return largest_learning_rate / step_excess(batch, noise_scale)


def lars_trust_ratio(
    weight_norm: float, gradient_norm: float, weight_decay: float = 0.0, coefficient: float = 1e-3
) -> float:
    """F55: LARS' factor on the learning rate of one layer, η‖w‖/(‖∇L‖ + λ‖w‖); 1 where a norm is 0.

    Source: You, Gitman and Ginsburg 2017, equation 6.
    """
    scale = gradient_norm + weight_decay * weight_norm
    return coefficient * weight_norm / scale if weight_norm and scale else 1.0


def lamb_trust_ratio(weight_norm: float, update_norm: float) -> float:
    """F55: LAMB's factor on the learning rate of one layer, ‖w‖/‖u‖ with u = m̂/(√v̂ + ε) + λw; 1 where a norm is 0.

    Source: You et al. 2020 (LAMB), algorithm 2, with φ(z) = z.
    """
    return weight_norm / update_norm if weight_norm and update_norm else 1.0


def padding_waste(mean_tokens: float, sequence: int) -> float:
    """F72: share of a padded batch that is padding, 1 − mean/s.

    Raises SpecError where documents are longer than the sequence. By counting tokens.
    """
    check_at_most("mean_tokens", mean_tokens, "sequence", sequence)
    return 1 - mean_tokens / sequence


def document_share(documents: int) -> float:
    """F72: visible pairs of a sequence of n equal documents that do not see each other, over those of one, 1/n.

    By hand: n times (s/n)² of s².
    """
    return 1 / documents
