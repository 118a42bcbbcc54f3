"""Training that counts what serving costs: more tokens into a smaller model."""

from __future__ import annotations

from app.theory import scaling_laws as laws
from app.theory.formulas.latex import over, power
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.scaling import BOTH_FITS, FIT, FIT_NOTE, MODEL_SIZE, fit_constants
from app.theory.formulas.shared import PARAMETERS, TOKENS, Inputs, plain
from app.units import latex_number

_SARDANA = "Sardana et al. 2024 (Beyond Chinchilla-Optimal)"

LOSS = Input("loss", "Loss, nats per token", "L", minimum=1.5, maximum=6)

SERVED = Input("inference_tokens", "Tokens served", r"D_\text{inf}", "tokens", minimum=0, maximum=1e18)


def _tokens_for_loss_latex(inputs: Inputs) -> tuple[str, str]:
    fit = laws.FITS[inputs["fit"]]
    lack = over(str(fit.parameter_scale), power(latex_number(inputs["parameters"]), fit.parameter_exponent))
    left = f"{latex_number(inputs['loss'])} - {fit.irreducible_loss} - {lack}"
    return (
        r"\left(\frac{B}{L - E - A/N^\alpha}\right)^{1/\beta}",
        power(over(str(fit.token_scale), left), f"1/{fit.token_exponent}"),
    )


def _serving_latex(inputs: Inputs) -> tuple[str, str]:
    """The condition the optimum meets; it is found by bisection."""
    return (
        r"\min_N\; 6ND + 2ND_\text{inf} \quad\text{with}\quad L(N, D) = L",
        rf"\min_N\; 6ND + 2N \times {latex_number(inputs['inference_tokens'])}"
        rf" \quad\text{{with}}\quad L(N, D) = {latex_number(inputs['loss'])}",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F39",
        "lifetime_flops",
        "Compute of training and serving",
        laws.lifetime_flops,
        (PARAMETERS, TOKENS, SERVED),
        "flop",
        "FLOPs",
        plain(
            r"6ND + 2ND_\text{inf}",
            r"6 \times {parameters} \times {tokens} + 2 \times {parameters} \times {inference_tokens}",
        ),
        _SARDANA,
        "FLOPs as if both ran at one utilisation; serving runs at a lower one, so it weighs more in money.",
        example={"parameters": 3e10, "tokens": 8.75e12, "inference_tokens": 2e12},
    ),
    Formula(
        "F39",
        "tokens_for_loss",
        "Tokens to reach a loss",
        laws.tokens_for_loss,
        (MODEL_SIZE, LOSS, FIT),
        "tokens",
        "tokens",
        _tokens_for_loss_latex,
        BOTH_FITS,
        FIT_NOTE,
        fit_constants,
        example={"parameters": 3e10, "loss": 1.9738818631585637},
    ),
    Formula(
        "F39",
        "serving_optimum_parameters",
        "Cheapest size for a loss and a demand",
        laws.serving_optimum_parameters,
        (LOSS, SERVED, FIT),
        "count",
        "billion",
        _serving_latex,
        _SARDANA,
        f"Found by bisection of the optimum's condition. {FIT_NOTE}",
        example={"loss": 1.9738818631585637, "inference_tokens": 2e12},
    ),
    Formula(
        "F39",
        "serving_optimum_tokens",
        "Its training tokens",
        laws.serving_optimum_tokens,
        (LOSS, SERVED, FIT),
        "tokens",
        "tokens",
        _serving_latex,
        _SARDANA,
        f"Found by bisection of the optimum's condition. {FIT_NOTE}",
        example={"loss": 1.9738818631585637, "inference_tokens": 2e12},
    ),
)
