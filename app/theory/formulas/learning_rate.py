"""What the batch makes of the learning rate: scaling rules, warm-up, gradient noise, trust ratios."""

from __future__ import annotations

from app.theory import batch
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import Inputs, by_case, plain

_MCCANDLISH = "McCandlish et al. 2018 (An Empirical Model of Large-Batch Training)"

_GOYAL = "Goyal et al. 2017, section 2"


def _batch(name: str, label: str, symbol: str, default: float | None = None) -> Input:
    return Input(name, label, symbol, minimum=1e-3, maximum=1e12, default=default)


def _norm(name: str, label: str, symbol: str) -> Input:
    return Input(name, label, symbol, minimum=0, maximum=1e12)


BATCH = _batch("batch", "Batch", "B")

NOISE_SCALE = _batch("noise_scale", "Gradient noise scale", r"B_\text{noise}")

WEIGHT_NORM = _norm("weight_norm", "Norm of the weights", r"\|w\|")

RATE = Input("learning_rate", "Learning rate", r"\eta", minimum=1e-12, maximum=1e3)


def _rule_latex(inputs: Inputs) -> tuple[str, str]:
    if inputs["rule"] == "linear":
        return r"\eta\,\frac{B'}{B}", r"{learning_rate} \times \frac{{{new_batch}}}{{{batch}}}"
    return r"\eta\,\sqrt{\frac{B'}{B}}", r"{learning_rate} \times \sqrt{{\frac{{{new_batch}}}{{{batch}}}}}"


def _warm_up_latex(inputs: Inputs) -> tuple[str, str]:
    if inputs["step"] >= inputs["warm_up_steps"]:
        return r"\eta", "{learning_rate}"
    return (
        r"\eta_0 + (\eta - \eta_0)\,\frac{i}{w}",
        r"{start_learning_rate} + ({learning_rate} - {start_learning_rate}) \times \frac{{{step}}}{{{warm_up_steps}}}",
    )


def _lars_latex(inputs: Inputs) -> tuple[str, str]:
    if not inputs["weight_norm"] or not (inputs["gradient_norm"] or inputs["weight_decay"]):
        return "1", "1"
    return (
        r"\eta\,\frac{\|w\|}{\|g\| + \lambda\|w\|}",
        r"{coefficient} \times \frac{{{weight_norm}}}{{{gradient_norm} + {weight_decay} \times {weight_norm}}}",
    )


def _lamb_latex(inputs: Inputs) -> tuple[str, str]:
    if not inputs["weight_norm"] or not inputs["update_norm"]:
        return "1", "1"
    return r"\frac{\|w\|}{\|u\|}", r"\frac{{{weight_norm}}}{{{update_norm}}}"


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F55",
        "scaled_learning_rate",
        "Learning rate for another batch",
        batch.scaled_learning_rate,
        (
            RATE,
            BATCH,
            _batch("new_batch", "New batch", "B'"),
            Input("rule", "Rule", "", choices=tuple(batch.LEARNING_RATE_RULES), default="linear"),
        ),
        "count",
        "",
        by_case(_rule_latex),
        f"{_GOYAL} (linear); Malladi et al. 2022 (square root)",
        "Linear for SGD, square root for Adam, both with a warm-up and below the critical batch size.",
        example={"learning_rate": 0.1, "batch": 256, "new_batch": 8192},
    ),
    Formula(
        "F55",
        "warm_up",
        "Learning rate during a linear warm-up",
        batch.warm_up_learning_rate,
        (
            RATE,
            Input("step", "Step, from 0", "i", minimum=0, maximum=1e9, integer=True),
            Input("warm_up_steps", "Warm-up steps", "w", minimum=0, maximum=1e9, integer=True),
            Input("start_learning_rate", "Learning rate at step 0", r"\eta_0", minimum=0, maximum=1e3, default=0.0),
        ),
        "count",
        "",
        by_case(_warm_up_latex),
        f"{_GOYAL}.2",
        "Constant afterwards; a decay is a schedule of its own.",
        example={"learning_rate": 3.2, "step": 3, "warm_up_steps": 5, "start_learning_rate": 0.1},
    ),
    Formula(
        "F55",
        "noise_scale",
        "Gradient noise scale from two batch sizes",
        batch.gradient_noise_scale,
        (
            _batch("small_batch", "Small batch", "b"),
            _batch("big_batch", "Big batch", "B"),
            _norm("small_norm", "Gradient norm at the small batch", r"\|g_b\|"),
            _norm("big_norm", "Gradient norm at the big batch", r"\|g_B\|"),
        ),
        "count",
        "",
        plain(
            r"\frac{(\|g_b\|^2 - \|g_B\|^2)\,/\,(1/b - 1/B)}{(B\|g_B\|^2 - b\|g_b\|^2)\,/\,(B - b)}",
            r"\frac{{(({small_norm})^2 - ({big_norm})^2)"
            r"\,/\,(\frac{{1}}{{{small_batch}}} - \frac{{1}}{{{big_batch}}})}}"
            r"{{({big_batch} \times ({big_norm})^2 - {small_batch} \times ({small_norm})^2)"
            r"\,/\,({big_batch} - {small_batch})}}",
        ),
        f"{_MCCANDLISH}, appendix A.1",
        "In the batches' own unit. Norms averaged over many steps; the scale grows during training.",
        example={"small_batch": 32, "big_batch": 64, "small_norm": 3, "big_norm": 2.5},
    ),
    Formula(
        "F55",
        "step_excess",
        "Steps a batch needs over the fewest possible",
        batch.step_excess,
        (BATCH, NOISE_SCALE),
        "fraction",
        "×",
        plain(r"1 + \frac{B_\text{noise}}{B}", r"1 + \frac{{{noise_scale}}}{{{batch}}}"),
        f"{_MCCANDLISH}, section 2.3",
        "To one loss, with the learning rate tuned at every batch size.",
        example={"batch": 1024, "noise_scale": 1024},
    ),
    Formula(
        "F55",
        "example_excess",
        "Samples a batch needs over the fewest possible",
        batch.example_excess,
        (BATCH, NOISE_SCALE),
        "fraction",
        "×",
        plain(r"1 + \frac{B}{B_\text{noise}}", r"1 + \frac{{{batch}}}{{{noise_scale}}}"),
        f"{_MCCANDLISH}, section 2.3",
        "To one loss, with the learning rate tuned at every batch size.",
        example={"batch": 256, "noise_scale": 1024},
    ),
    Formula(
        "F55",
        "noise_limited_learning_rate",
        "Best learning rate of a batch",
        batch.noise_limited_learning_rate,
        (
            Input(
                "largest_learning_rate",
                "Best learning rate without noise",
                r"\eta_\text{max}",
                minimum=1e-12,
                maximum=1e3,
            ),
            BATCH,
            NOISE_SCALE,
        ),
        "count",
        "",
        plain(
            r"\frac{\eta_\text{max}}{1 + B_\text{noise}/B}",
            r"\frac{{{largest_learning_rate}}}{{1 + \frac{{{noise_scale}}}{{{batch}}}}}",
        ),
        f"{_MCCANDLISH}, equation 2.6",
        "For SGD: linear in B below the noise scale, constant above it.",
        example={"largest_learning_rate": 1, "batch": 256, "noise_scale": 1024},
    ),
    Formula(
        "F55",
        "lars_trust_ratio",
        "LARS: a layer's factor on the learning rate",
        batch.lars_trust_ratio,
        (
            WEIGHT_NORM,
            _norm("gradient_norm", "Norm of the gradient", r"\|g\|"),
            Input("weight_decay", "Weight decay", r"\lambda", minimum=0, maximum=10, default=0.0),
            Input("coefficient", "Trust coefficient", r"\eta", minimum=1e-6, maximum=10, default=1e-3),
        ),
        "count",
        "",
        by_case(_lars_latex),
        "You, Gitman and Ginsburg 2017, equation 6",
        "1 where a norm is 0, as implementations do.",
        example={"weight_norm": 10, "gradient_norm": 0.5, "weight_decay": 0.0005},
    ),
    Formula(
        "F55",
        "lamb_trust_ratio",
        "LAMB: a layer's factor on the learning rate",
        batch.lamb_trust_ratio,
        (WEIGHT_NORM, _norm("update_norm", "Norm of Adam's update", r"\|u\|")),
        "count",
        "",
        by_case(_lamb_latex),
        "You et al. 2020 (LAMB), algorithm 2",
        "The update includes weight decay. Not clipped; 1 where a norm is 0, as implementations do.",
        example={"weight_norm": 10, "update_norm": 4},
    ),
)
