"""Compute-optimal training: loss by parameters and tokens, and how to divide compute between them."""

from __future__ import annotations

from app.theory import scaling_laws as laws
from app.theory.formulas.latex import over, power
from app.theory.formulas.registry import Formula, Input, Latex
from app.theory.formulas.shared import KAPLAN, PARAMETERS, TOKENS, Inputs, plain
from app.units import latex_number

_HOFFMANN = "Hoffmann et al. 2022 (Chinchilla)"

BOTH_FITS = "Hoffmann et al. 2022, section 3.3; Besiroglu et al. 2024"

FLOPS = Input("flops", "Training compute", "C", "flop", minimum=1e10, maximum=1e32)

RATIO = Input("tokens_per_parameter", "Tokens per parameter", "r", minimum=1e-2, maximum=1e6, default=20.0)

FIT = Input("fit", "Fit", "", choices=tuple(laws.FITS), default="besiroglu")

FRONTIER = Input("frontier", "Published allocation", "", choices=tuple(laws.FRONTIERS), default="approach-1")

MODEL_SIZE = Input("parameters", "Parameters", "N", minimum=1e3, maximum=1e15)

FIT_NOTE = "Each fit holds for its own data and tokenizer, between about 70M and 16B parameters."

_FRONTIER_NOTE = "An extrapolation beyond the fitted budgets. Kaplan counts non-embedding parameters."


def fit_constants(inputs: Inputs) -> dict[str, float]:
    fit = laws.FITS[inputs["fit"]]
    return {
        "E": fit.irreducible_loss,
        "A": fit.parameter_scale,
        "B": fit.token_scale,
        r"\alpha": fit.parameter_exponent,
        r"\beta": fit.token_exponent,
    }


def _optimum(inputs: Inputs) -> dict[str, float]:
    return {r"N_\text{opt}": laws.parametric_optimum_parameters(inputs["flops"], inputs["fit"])}


def _fit_latex(inputs: Inputs) -> tuple[str, str]:
    fit = laws.FITS[inputs["fit"]]
    parameters = power(latex_number(inputs["parameters"]), fit.parameter_exponent)
    tokens = power(latex_number(inputs["tokens"]), fit.token_exponent)
    values = f"{fit.irreducible_loss} + {over(str(fit.parameter_scale), parameters)}"
    return (
        r"E + \frac{A}{N^\alpha} + \frac{B}{D^\beta}",
        f"{values} + {over(str(fit.token_scale), tokens)}",
    )


def _optimum_latex(inputs: Inputs) -> tuple[str, str]:
    fit = laws.FITS[inputs["fit"]]
    a, b, alpha, beta = fit.parameter_scale, fit.token_scale, fit.parameter_exponent, fit.token_exponent
    both = f"{alpha} + {beta}"
    balance = power(over(rf"{alpha} \times {a}", rf"{beta} \times {b}"), over("1", both))
    budget = power(over(latex_number(inputs["flops"]), "6"), over(str(beta), both))
    return (
        r"\left(\frac{\alpha A}{\beta B}\right)^{\frac{1}{\alpha+\beta}}"
        r"\left(\frac{C}{6}\right)^{\frac{\beta}{\alpha+\beta}}",
        rf"{balance} \times {budget}",
    )


def _optimum_tokens_latex(inputs: Inputs) -> tuple[str, str]:
    flops = latex_number(inputs["flops"])
    parameters = laws.parametric_optimum_parameters(inputs["flops"], inputs["fit"])
    return r"\frac{C}{6\,N_\text{opt}}", over(flops, rf"6 \times {latex_number(parameters)}")


def _frontier_latex(symbol: str, letter: str, prefix: str, exponent: str) -> Latex:
    """The power law of one side of a frontier; `prefix` and `exponent` name its fields, `letter` the exponent."""

    def render(inputs: Inputs) -> tuple[str, str]:
        record = laws.FRONTIERS[inputs["frontier"]]
        ratio = over(latex_number(inputs["flops"]), latex_number(record.flops))
        start = latex_number(getattr(record, prefix))
        growth = power(ratio, getattr(record, exponent))
        return rf"{symbol}_0 \left(\frac{{C}}{{C_0}}\right)^{letter}", rf"{start} \times {growth}"

    return render


def _frontier_constants(inputs: Inputs) -> dict[str, float]:
    record = laws.FRONTIERS[inputs["frontier"]]
    return {
        "N_0": record.parameters,
        "D_0": record.tokens,
        "C_0": record.flops,
        "a": record.parameter_exponent,
        "b": record.token_exponent,
    }


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F35",
        "compute_optimal_parameters",
        "Compute-optimal parameters",
        laws.compute_optimal_parameters,
        (FLOPS, RATIO),
        "count",
        "billion",
        plain(r"\sqrt{\frac{C}{6r}}", r"\sqrt{{\frac{{{flops}}}{{6 \times {tokens_per_parameter}}}}}"),
        f"{_HOFFMANN}, table 3",
        "20 tokens per parameter is a rule of thumb; data and tokenizer move it.",
        example={"flops": 1e20},
    ),
    Formula(
        "F35",
        "compute_optimal_tokens",
        "Compute-optimal tokens",
        laws.compute_optimal_tokens,
        (FLOPS, RATIO),
        "tokens",
        "tokens",
        plain(
            r"r\,\sqrt{\frac{C}{6r}}",
            r"{tokens_per_parameter} \times \sqrt{{\frac{{{flops}}}{{6 \times {tokens_per_parameter}}}}}",
        ),
        f"{_HOFFMANN}, table 3",
        "20 tokens per parameter is a rule of thumb; data and tokenizer move it.",
        example={"flops": 1e20},
    ),
    Formula(
        "F35",
        "compute_optimal_flops",
        "Compute at which a size is optimal",
        laws.compute_optimal_flops,
        (PARAMETERS, RATIO),
        "flop",
        "FLOPs",
        plain(r"6\,r\,N^2", r"6 \times {tokens_per_parameter} \times ({parameters})^2"),
        f"{_HOFFMANN}, table 3",
        "20 tokens per parameter is a rule of thumb; data and tokenizer move it.",
        example={"parameters": 7e10},
    ),
    Formula(
        "F35",
        "overtraining",
        "Over-training",
        laws.overtraining,
        (PARAMETERS, TOKENS, RATIO),
        "fraction",
        "×",
        plain(r"\frac{D}{r\,N}", r"\frac{{{tokens}}}{{{tokens_per_parameter} \times {parameters}}}"),
        f"{_HOFFMANN}, table 3",
        "Tokens per parameter over those of the rule of thumb; below 1 it is under-trained.",
        example={"parameters": 3e10, "tokens": 8.75e12},
    ),
    Formula(
        "F36",
        "parametric_loss",
        "Loss by parameters and tokens",
        laws.parametric_loss,
        (MODEL_SIZE, TOKENS, FIT),
        "count",
        "",
        _fit_latex,
        BOTH_FITS,
        f"Nats per token. {FIT_NOTE}",
        fit_constants,
        example={"parameters": 7e10, "tokens": 1.4e12},
    ),
    Formula(
        "F36",
        "parametric_optimum_parameters",
        "Parameters of the least loss",
        laws.parametric_optimum_parameters,
        (FLOPS, FIT),
        "count",
        "billion",
        _optimum_latex,
        f"{_HOFFMANN}, equation 4",
        f"{FIT_NOTE} The printed constants are rounded so far that they give 93 tokens per parameter.",
        fit_constants,
        example={"flops": 5.88e23},
    ),
    Formula(
        "F36",
        "parametric_optimum_tokens",
        "Tokens of the least loss",
        laws.parametric_optimum_tokens,
        (FLOPS, FIT),
        "tokens",
        "tokens",
        _optimum_tokens_latex,
        f"{_HOFFMANN}, equation 4",
        FIT_NOTE,
        _optimum,
        example={"flops": 5.88e23},
    ),
    Formula(
        "F36",
        "frontier_parameters",
        "Parameters by a published allocation",
        laws.frontier_parameters,
        (FLOPS, FRONTIER),
        "count",
        "billion",
        _frontier_latex("N", "a", "parameters", "parameter_exponent"),
        f"{_HOFFMANN}, tables 2, 3 and A3; {KAPLAN}, appendix A",
        _FRONTIER_NOTE,
        _frontier_constants,
        example={"flops": 1.23e22},
    ),
    Formula(
        "F36",
        "frontier_tokens",
        "Tokens by a published allocation",
        laws.frontier_tokens,
        (FLOPS, FRONTIER),
        "tokens",
        "tokens",
        _frontier_latex("D", "b", "tokens", "token_exponent"),
        f"{_HOFFMANN}, tables 2, 3 and A3; {KAPLAN}, appendix A",
        _FRONTIER_NOTE,
        _frontier_constants,
        example={"flops": 1.23e22},
    ),
)
