"""Scaling laws: loss, and how to divide compute between parameters and tokens."""

from __future__ import annotations

from app.theory import scaling_laws as laws
from app.theory.formulas.latex import over, power
from app.theory.formulas.registry import Formula, Input, Latex, Where
from app.theory.formulas.shared import KAPLAN, PARAMETERS, TOKENS, Inputs, plain
from app.units import latex_number

_HOFFMANN = "Hoffmann et al. 2022 (Chinchilla)"
_BOTH_FITS = "Hoffmann et al. 2022, section 3.3; Besiroglu et al. 2024"
_SARDANA = "Sardana et al. 2024 (Beyond Chinchilla-Optimal)"
FLOPS = Input("flops", "Training compute", "C", "flop", minimum=1e10, maximum=1e32)
RATIO = Input("tokens_per_parameter", "Tokens per parameter", "r", minimum=1e-2, maximum=1e6, default=20.0)
FIT = Input("fit", "Fit", "", choices=tuple(laws.FITS), default="besiroglu")
FRONTIER = Input("frontier", "Published allocation", "", choices=tuple(laws.FRONTIERS), default="approach-1")
LAW = Input("by", "Limited by", "", choices=tuple(laws.KAPLAN_LAWS), default="parameters")
LOSS = Input("loss", "Loss, nats per token", "L", minimum=1.5, maximum=6)
SERVED = Input("inference_tokens", "Tokens served", r"D_\text{inf}", "tokens", minimum=0, maximum=1e18)
MODEL_SIZE = Input("parameters", "Parameters", "N", minimum=1e3, maximum=1e15)
_FIT_NOTE = "Each fit holds for its own data and tokenizer, between about 70M and 16B parameters."
_FRONTIER_NOTE = "An extrapolation beyond the fitted budgets. Kaplan counts non-embedding parameters."


def _fit_constants(inputs: Inputs) -> dict[str, float]:
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


def _tokens_for_loss_latex(inputs: Inputs) -> tuple[str, str]:
    fit = laws.FITS[inputs["fit"]]
    lack = over(str(fit.parameter_scale), power(latex_number(inputs["parameters"]), fit.parameter_exponent))
    left = f"{latex_number(inputs['loss'])} - {fit.irreducible_loss} - {lack}"
    return (
        r"\left(\frac{B}{L - E - A/N^\alpha}\right)^{1/\beta}",
        power(over(str(fit.token_scale), left), f"1/{fit.token_exponent}"),
    )


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


def _kaplan_constants(law: laws.PowerLaw, symbol: str) -> Where:
    return lambda _: {f"{symbol}_c": law.scale, rf"\alpha_{symbol}": law.exponent}


def _kaplan_latex(law: laws.PowerLaw, symbol: str, amount: str) -> Latex:
    def render(inputs: Inputs) -> tuple[str, str]:
        scale, value = latex_number(law.scale), latex_number(inputs[amount])
        return (
            rf"\left(\frac{{{symbol}_c}}{{{symbol}}}\right)^{{\alpha_{symbol}}}",
            power(over(scale, value), law.exponent),
        )

    return render


def _ratio_latex(inputs: Inputs) -> tuple[str, str]:
    exponent = laws.KAPLAN_LAWS[inputs["by"]].exponent
    return r"k^{-\alpha}", power(latex_number(inputs["factor"]), f"-{exponent}")


def _serving_latex(inputs: Inputs) -> tuple[str, str]:
    """The condition the optimum meets; it is found by bisection."""
    return (
        r"\min_N\; 6ND + 2ND_\text{inf} \quad\text{with}\quad L(N, D) = L",
        rf"\min_N\; 6ND + 2N \times {latex_number(inputs['inference_tokens'])}"
        rf" \quad\text{{with}}\quad L(N, D) = {latex_number(inputs['loss'])}",
    )


def _kaplan_by_parameters(parameters: float) -> float:
    return laws.kaplan_loss(parameters, "parameters")


def _kaplan_by_tokens(tokens: float) -> float:
    return laws.kaplan_loss(tokens, "tokens")


def _kaplan_by_compute(flops: float) -> float:
    return laws.kaplan_loss(flops, "compute")


_LAWS = laws.KAPLAN_LAWS
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
        _BOTH_FITS,
        f"Nats per token. {_FIT_NOTE}",
        _fit_constants,
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
        f"{_FIT_NOTE} The printed constants are rounded so far that they give 93 tokens per parameter.",
        _fit_constants,
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
        _FIT_NOTE,
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
    Formula(
        "F37",
        "kaplan_loss_parameters",
        "Kaplan's loss by parameters",
        _kaplan_by_parameters,
        (MODEL_SIZE,),
        "count",
        "",
        _kaplan_latex(_LAWS["parameters"], "N", "parameters"),
        f"{KAPLAN}, equation 1.1",
        "Nats per token; non-embedding parameters, trained to convergence on enough tokens.",
        _kaplan_constants(_LAWS["parameters"], "N"),
        example={"parameters": 1.5e9},
    ),
    Formula(
        "F37",
        "kaplan_loss_tokens",
        "Kaplan's loss by tokens",
        _kaplan_by_tokens,
        (TOKENS,),
        "count",
        "",
        _kaplan_latex(_LAWS["tokens"], "D", "tokens"),
        f"{KAPLAN}, equation 1.2",
        "Nats per token; a large enough model, stopped early.",
        _kaplan_constants(_LAWS["tokens"], "D"),
        example={"tokens": 3e11},
    ),
    Formula(
        "F37",
        "kaplan_loss_compute",
        "Kaplan's loss by compute",
        _kaplan_by_compute,
        (FLOPS,),
        "count",
        "",
        _kaplan_latex(_LAWS["compute"], "C", "flops"),
        f"{KAPLAN}, equation 1.3",
        "Nats per token; the best model size for the compute, at a small batch. C_c is 3.1e8 PFLOP/s-days.",
        _kaplan_constants(_LAWS["compute"], "C"),
        example={"flops": 3.150144e23},
    ),
    Formula(
        "F37",
        "kaplan_loss_ratio",
        "What growth leaves of the loss",
        laws.kaplan_loss_ratio,
        (Input("factor", "Growth", "k", minimum=1, maximum=1e12), LAW),
        "fraction",
        "%",
        _ratio_latex,
        f"{KAPLAN}, equations 1.1 to 1.3",
        "A power law: every factor of ten leaves the same share.",
        lambda inputs: {r"\alpha": laws.KAPLAN_LAWS[inputs["by"]].exponent},
        example={"factor": 10, "by": "parameters"},
    ),
    Formula(
        "F38",
        "kaplan_parameters",
        "Kaplan's compute-efficient parameters",
        laws.kaplan_parameters,
        (FLOPS,),
        "count",
        "billion",
        plain(
            r"1.3 \times 10^9 \left(\frac{C}{8.64 \times 10^{19}}\right)^{0.73}",
            r"1.3 \times 10^9 \left(\frac{{{flops}}}{{8.64 \times 10^{{19}}}}\right)^{{0.73}}",
        ),
        f"{KAPLAN}, appendix A",
        "Superseded: its runs shared one learning-rate schedule. C in PFLOP/s-days.",
        example={"flops": 3.150144e23},
    ),
    Formula(
        "F38",
        "kaplan_tokens",
        "Kaplan's compute-efficient tokens",
        laws.kaplan_tokens,
        (FLOPS,),
        "tokens",
        "tokens",
        plain(
            r"2 \times 10^{10} \left(\frac{C}{8.64 \times 10^{19}}\right)^{0.27}",
            r"2 \times 10^{{10}} \left(\frac{{{flops}}}{{8.64 \times 10^{{19}}}}\right)^{{0.27}}",
        ),
        f"{KAPLAN}, appendix A",
        "Superseded: its runs shared one learning-rate schedule. C in PFLOP/s-days.",
        example={"flops": 3.150144e23},
    ),
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
        _BOTH_FITS,
        _FIT_NOTE,
        _fit_constants,
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
        f"Found by bisection of the optimum's condition. {_FIT_NOTE}",
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
        f"Found by bisection of the optimum's condition. {_FIT_NOTE}",
        example={"loss": 1.9738818631585637, "inference_tokens": 2e12},
    ),
)
