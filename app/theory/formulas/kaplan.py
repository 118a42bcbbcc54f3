"""The laws of Kaplan et al.: loss by parameters, tokens or compute alone."""

from __future__ import annotations

from app.theory import scaling_laws as laws
from app.theory.formulas.latex import over, power
from app.theory.formulas.registry import Formula, Input, Latex, Where
from app.theory.formulas.scaling import FLOPS, MODEL_SIZE
from app.theory.formulas.shared import KAPLAN, TOKENS, Inputs, plain
from app.units import latex_number

LAW = Input("by", "Limited by", "", choices=tuple(laws.KAPLAN_LAWS), default="parameters")


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


def _kaplan_by_parameters(parameters: float) -> float:
    return laws.kaplan_loss(parameters, "parameters")


def _kaplan_by_tokens(tokens: float) -> float:
    return laws.kaplan_loss(tokens, "tokens")


def _kaplan_by_compute(flops: float) -> float:
    return laws.kaplan_loss(flops, "compute")


_LAWS = laws.KAPLAN_LAWS


ENTRIES: tuple[Formula, ...] = (
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
)
