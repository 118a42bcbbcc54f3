"""Scaling laws: the loss a model of N parameters reaches after D tokens, and how to divide compute between them.

Losses are nats per token. Every published fit is a record; each holds for its own data and tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, sqrt

from app.units import factor_of
from labs.spec import SpecError, Violation

PF_DAY_FLOPS = factor_of("PFLOP") * factor_of("day")  # Kaplan et al. count compute in PFLOP/s-days
TOKENS_PER_PARAMETER = 20.0  # Hoffmann et al. 2022, table 3: 20 to 22 from 400M to 10T parameters
_HOFFMANN = "Hoffmann et al. 2022 (Chinchilla)"
_KAPLAN = "Kaplan et al. 2020"


def compute_optimal_parameters(flops: float, tokens_per_parameter: float = TOKENS_PER_PARAMETER) -> float:
    """F35: parameters for a budget C = 6ND at D = rN tokens, √(C/6r): √(C/120) at the usual 20."""
    return sqrt(flops / (6 * tokens_per_parameter))


def compute_optimal_tokens(flops: float, tokens_per_parameter: float = TOKENS_PER_PARAMETER) -> float:
    """F35: tokens for a budget C = 6ND at D = rN."""
    return tokens_per_parameter * compute_optimal_parameters(flops, tokens_per_parameter)


def compute_optimal_flops(parameters: float, tokens_per_parameter: float = TOKENS_PER_PARAMETER) -> float:
    """F35: the budget at which `parameters` are compute-optimal, 6rN²."""
    return 6 * tokens_per_parameter * parameters**2


def overtraining(parameters: float, tokens: float, tokens_per_parameter: float = TOKENS_PER_PARAMETER) -> float:
    """F35: tokens per parameter over those of the rule of thumb, D/(rN): 1 is compute-optimal, more is over-trained."""
    return tokens / (tokens_per_parameter * parameters)


@dataclass(frozen=True)
class ParametricFit:
    """L(N, D) = E + A/N^α + B/D^β, in nats per token."""

    name: str
    title: str
    irreducible_loss: float
    parameter_scale: float
    token_scale: float
    parameter_exponent: float
    token_exponent: float
    source: str


# The rounded constants printed in the paper; they contradict its own 20 tokens per parameter (93 at 5.9e23 FLOPs).
_PRINTED = (1.69, 406.4, 410.7, 0.34, 0.28)
_REFIT = (1.8172, 482.01, 2085.43, 0.3478, 0.3658)
FITS: Mapping[str, ParametricFit] = {
    fit.name: fit
    for fit in (
        ParametricFit("besiroglu", "Chinchilla's data, fitted anew", *_REFIT, "Besiroglu et al. 2024"),
        ParametricFit("chinchilla", "Chinchilla, as printed", *_PRINTED, f"{_HOFFMANN}, equation 10"),
    )
}


def _parts(parameters: float, tokens: float, fit: ParametricFit) -> tuple[float, float]:
    """What too few parameters and too few tokens each add to the loss."""
    lack_of_parameters = fit.parameter_scale / parameters**fit.parameter_exponent
    return lack_of_parameters, fit.token_scale / tokens**fit.token_exponent


def parametric_loss(parameters: float, tokens: float, fit: str = "besiroglu") -> float:
    """F36: loss in nats per token of `parameters` trained on `tokens`, E + A/N^α + B/D^β, by a fit of `FITS`.

    Source: Hoffmann et al. 2022, section 3.3; Besiroglu et al. 2024.
    """
    return FITS[fit].irreducible_loss + sum(_parts(parameters, tokens, FITS[fit]))


def parametric_optimum(flops: float, fit: str = "besiroglu") -> tuple[float, float]:
    """F36: parameters and tokens of the least loss at C = 6ND.

    N = G(C/6)^(β/(α+β)), G = (αA/βB)^(1/(α+β)). Source: Hoffmann et al. 2022, equation 4.
    """
    record = FITS[fit]
    alpha, beta = record.parameter_exponent, record.token_exponent
    balance = alpha * record.parameter_scale / (beta * record.token_scale)
    parameters = balance ** (1 / (alpha + beta)) * (flops / 6) ** (beta / (alpha + beta))
    return parameters, flops / 6 / parameters


def parametric_optimum_parameters(flops: float, fit: str = "besiroglu") -> float:
    """F36: parameters of the least loss at C = 6ND."""
    return parametric_optimum(flops, fit)[0]


def parametric_optimum_tokens(flops: float, fit: str = "besiroglu") -> float:
    """F36: tokens of the least loss at C = 6ND."""
    return parametric_optimum(flops, fit)[1]


def tokens_for_loss(parameters: float, loss: float, fit: str = "besiroglu") -> float:
    """F39: tokens after which `parameters` reach `loss`, (B/(L − E − A/N^α))^(1/β).

    Raises SpecError for a loss this many parameters never reach.
    """
    record = FITS[fit]
    floor = record.irreducible_loss + record.parameter_scale / parameters**record.parameter_exponent
    if loss <= floor:
        message = "So many parameters do not reach this with any number of tokens."
        raise SpecError([Violation("loss", loss, message, f"more than {floor:.4g}")])
    return float((record.token_scale / (loss - floor)) ** (1 / record.token_exponent))


@dataclass(frozen=True)
class Frontier:
    """Compute-optimal allocation as power laws of C, through a published point: N = N₀(C/C₀)^a, D = D₀(C/C₀)^b."""

    name: str
    title: str
    parameter_exponent: float
    token_exponent: float
    flops: float
    parameters: float
    tokens: float
    source: str


# Hoffmann et al. publish exponents (table 2) and points: through their row for 10B parameters the others agree to 6 %.
FRONTIERS: Mapping[str, Frontier] = {
    frontier.name: frontier
    for frontier in (
        Frontier(
            "approach-1",
            "Chinchilla, least loss along training curves",
            0.50,
            0.50,
            1.23e22,
            10e9,
            205.1e9,
            f"{_HOFFMANN}, tables 2 and 3",
        ),
        Frontier(
            "approach-2",
            "Chinchilla, minima at equal FLOPs",
            0.49,
            0.51,
            1.32e22,
            10e9,
            219.5e9,
            f"{_HOFFMANN}, tables 2 and A3",
        ),
        Frontier(
            "approach-3",
            "Chinchilla, parametric loss",
            0.46,
            0.54,
            2.46e22,
            10e9,
            410.1e9,
            f"{_HOFFMANN}, tables 2 and A3",
        ),
        Frontier(
            "kaplan",
            "Kaplan, compute-efficient and short of convergence",
            0.73,
            0.27,
            PF_DAY_FLOPS,
            1.3e9,
            2e10,
            f"{_KAPLAN}, appendix A",
        ),
    )
}


def frontier_parameters(flops: float, frontier: str = "approach-1") -> float:
    """F36, F38: parameters for `flops` by a published allocation of `FRONTIERS`."""
    record = FRONTIERS[frontier]
    return float(record.parameters * (flops / record.flops) ** record.parameter_exponent)


def frontier_tokens(flops: float, frontier: str = "approach-1") -> float:
    """F36, F38: tokens for `flops` by a published allocation of `FRONTIERS`."""
    record = FRONTIERS[frontier]
    return float(record.tokens * (flops / record.flops) ** record.token_exponent)


def kaplan_parameters(flops: float) -> float:
    """F38: compute-efficient parameters, 1.3e9·C^0.73 C in PFLOP/s-days. Source: Kaplan et al. 2020, appendix A."""
    return frontier_parameters(flops, "kaplan")


def kaplan_tokens(flops: float) -> float:
    """F38: compute-efficient tokens, 2e10·C^0.27 C in PFLOP/s-days. Source: Kaplan et al. 2020, appendix A."""
    return frontier_tokens(flops, "kaplan")


@dataclass(frozen=True)
class PowerLaw:
    """L(x) = (`scale`/x)^`exponent` where nothing but x holds the loss back."""

    name: str
    title: str
    scale: float
    exponent: float


# Kaplan et al. 2020, equations 1.1 to 1.3: non-embedding parameters, tokens, and FLOPs at the best model size.
KAPLAN_LAWS: Mapping[str, PowerLaw] = {
    law.name: law
    for law in (
        PowerLaw("parameters", "non-embedding parameters", 8.8e13, 0.076),
        PowerLaw("tokens", "tokens, with early stopping", 5.4e13, 0.095),
        PowerLaw("compute", "FLOPs at the best model size", 3.1e8 * PF_DAY_FLOPS, 0.050),
    )
}


def kaplan_loss(amount: float, by: str) -> float:
    """F37: loss in nats per token limited by `amount` of a key of `KAPLAN_LAWS` alone.

    Source: Kaplan et al. 2020, equations 1.1 to 1.3.
    """
    law = KAPLAN_LAWS[by]
    return float((law.scale / amount) ** law.exponent)


def kaplan_loss_ratio(factor: float, by: str) -> float:
    """F37: what is left of the loss when `by` grows by `factor`, factor^−α: ten times the parameters leave 84 %."""
    return float(factor ** -KAPLAN_LAWS[by].exponent)


def lifetime_flops(parameters: float, tokens: float, inference_tokens: float) -> float:
    """F39: training and serving, 6ND + 2N·D_inf. They are equal at D_inf = 3D. Source: Sardana et al. 2024."""
    return 6 * parameters * tokens + 2 * parameters * inference_tokens


def serving_optimum(loss: float, inference_tokens: float, fit: str = "besiroglu") -> tuple[float, float]:
    """F39: parameters and tokens that reach `loss` with the fewest FLOPs of training and serving together.

    Along D(N) at that loss the total is least where αA/N^α over βB/D^β is 1 + D_inf/3D; the left side falls and the
    right side grows with N, so bisection finds the one N. Raises SpecError for a loss at or below E.
    Source: Sardana et al. 2024 (Beyond Chinchilla-Optimal), with the fit asked for.
    """
    record = FITS[fit]
    reducible = loss - record.irreducible_loss
    if reducible < 0.01:
        message = "No model reaches this, or none that could be trained."
        raise SpecError([Violation("loss", loss, message, f"at least {record.irreducible_loss + 0.01:.4g}")])
    too_small = (record.parameter_scale / reducible) ** (1 / record.parameter_exponent)
    low, high = log(too_small) + 1e-9, log(too_small) + 100
    for _ in range(200):
        middle = (low + high) / 2
        if _is_too_small(exp(middle), loss, inference_tokens, record):
            low = middle
        else:
            high = middle
    parameters = exp(high)
    return parameters, tokens_for_loss(parameters, loss, fit)


def _is_too_small(parameters: float, loss: float, inference_tokens: float, fit: ParametricFit) -> bool:
    """Whether more parameters would lower the total at the same loss."""
    tokens = tokens_for_loss(parameters, loss, fit.name)
    by_parameters, by_tokens = _parts(parameters, tokens, fit)
    ratio = fit.parameter_exponent * by_parameters / (fit.token_exponent * by_tokens)
    return ratio > 1 + inference_tokens / (3 * tokens)


def serving_optimum_parameters(loss: float, inference_tokens: float, fit: str = "besiroglu") -> float:
    """F39: parameters that reach `loss` with the fewest FLOPs of training and serving together."""
    return serving_optimum(loss, inference_tokens, fit)[0]


def serving_optimum_tokens(loss: float, inference_tokens: float, fit: str = "besiroglu") -> float:
    """F39: training tokens of the model that reaches `loss` with the fewest FLOPs of training and serving together."""
    return serving_optimum(loss, inference_tokens, fit)[1]
