"""How GPUs and the batch are divided, and what the learning rate makes of it."""

from __future__ import annotations

from app.theory import batch, mesh
from app.theory.formulas.latex import over
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import MICRO_BATCH, SEQUENCE, SHARDS, Inputs, by_case, plain
from app.units import latex_number

_MEGATRON = "Narayanan et al. 2021 (Megatron-LM), section 3"
_MCCANDLISH = "McCandlish et al. 2018 (An Empirical Model of Large-Batch Training)"
_GOYAL = "Goyal et al. 2017, section 2"


def _axis(name: str, label: str, symbol: str, maximum: float = 1e5) -> Input:
    return Input(name, label, symbol, minimum=1, maximum=maximum, integer=True, default=1)


AXES = (
    _axis("tensor", "Tensor-parallel ranks", "t"),
    _axis("context", "Context-parallel ranks", "c"),
    _axis("data", "Data-parallel ranks", "K", 1e6),
    _axis("pipeline", "Pipeline stages", "p"),
)
AXIS = Input("axis", "Axis", "", choices=mesh.AXES, default="tensor")
ACCUMULATION = Input("accumulation", "Micro-steps", "A", minimum=1, maximum=1e6, integer=True, default=1)
STAGES = Input("stages", "Stages", "p", minimum=1, maximum=1e5, integer=True)


def _batch(name: str, label: str, symbol: str, default: float | None = None) -> Input:
    return Input(name, label, symbol, minimum=1e-3, maximum=1e12, default=default)


def _norm(name: str, label: str, symbol: str) -> Input:
    return Input(name, label, symbol, minimum=0, maximum=1e12)


BATCH = _batch("batch", "Batch", "B")
NOISE_SCALE = _batch("noise_scale", "Gradient noise scale", r"B_\text{noise}")
WEIGHT_NORM = _norm("weight_norm", "Norm of the weights", r"\|w\|")
RATE = Input("learning_rate", "Learning rate", r"\eta", minimum=1e-12, maximum=1e3)
_SYMBOLS = {"tensor": "t", "context": "c", "data": "K", "pipeline": "p"}


def _groups_latex(inputs: Inputs) -> tuple[str, str]:
    others = [axis for axis in mesh.AXES if axis != inputs["axis"]]
    return r"\,".join(_SYMBOLS[axis] for axis in others), r" \times ".join(f"{{{axis}}}" for axis in others)


def _coordinate_latex(inputs: Inputs) -> tuple[str, str]:
    axis = inputs["axis"]
    faster = mesh.AXES[: mesh.AXES.index(axis)]
    symbols = over("r", r"\,".join(_SYMBOLS[each] for each in faster) or "1")
    values = over(latex_number(inputs["rank"]), r" \times ".join(latex_number(inputs[each]) for each in faster) or "1")
    return (
        rf"\left\lfloor{symbols}\right\rfloor \bmod {_SYMBOLS[axis]}",
        rf"\left\lfloor{values}\right\rfloor \bmod {latex_number(inputs[axis])}",
    )


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
        "F26",
        "mesh_gpus",
        "GPUs of a parallel layout",
        mesh.world_size,
        AXES,
        "count",
        "GPUs",
        plain(r"t\,c\,K\,p", r"{tensor} \times {context} \times {data} \times {pipeline}"),
        _MEGATRON,
        "Expert parallelism reuses the data-parallel ranks.",
        example={"tensor": 8, "pipeline": 4, "data": 8},
    ),
    Formula(
        "F26",
        "mesh_groups",
        "Groups along one axis",
        mesh.group_count,
        (*AXES, AXIS),
        "count",
        "",
        by_case(_groups_latex),
        _MEGATRON,
        "The product of the other axes: one group for each of their coordinates.",
        example={"tensor": 8, "pipeline": 4, "data": 8, "axis": "tensor"},
    ),
    Formula(
        "F26",
        "mesh_coordinate",
        "A rank's place on one axis",
        mesh.coordinate,
        (*AXES, AXIS, Input("rank", "Rank, from 0", "r", minimum=0, maximum=1e9, integer=True)),
        "count",
        "",
        _coordinate_latex,
        _MEGATRON,
        "Tensor fastest, then context, data, pipeline: tensor-parallel ranks share a node. Programs may differ.",
        example={"tensor": 8, "pipeline": 4, "data": 8, "axis": "tensor", "rank": 100},
    ),
    Formula(
        "F40",
        "global_batch",
        "Sequences per step",
        batch.global_batch_sequences,
        (MICRO_BATCH, SHARDS, ACCUMULATION),
        "count",
        "sequences",
        plain(r"b\,K\,A", r"{micro_batch} \times {ranks} \times {accumulation}"),
        "counting",
        "In a pipeline A is the number of micro-batches m. Tensor, pipeline and context ranks do not multiply it.",
        example={"micro_batch": 1, "ranks": 8, "accumulation": 32},
    ),
    Formula(
        "F40",
        "global_batch_tokens",
        "Tokens per step",
        batch.global_batch_tokens,
        (MICRO_BATCH, SHARDS, SEQUENCE, ACCUMULATION),
        "tokens",
        "tokens",
        plain(r"b\,K\,A\,s", r"{micro_batch} \times {ranks} \times {accumulation} \times {sequence}"),
        "counting",
        "Full sequences; padding counts as tokens.",
        example={"micro_batch": 1, "ranks": 8, "accumulation": 32, "sequence": 4096},
    ),
    Formula(
        "F40",
        "accumulation",
        "Micro-steps for a global batch",
        batch.accumulation_steps,
        (
            Input("global_batch", "Global batch, sequences", "B", minimum=1, maximum=1e12, integer=True),
            MICRO_BATCH,
            SHARDS,
        ),
        "count",
        "steps",
        plain(r"\frac{B}{b\,K}", r"\frac{{{global_batch}}}{{{micro_batch} \times {ranks}}}"),
        "counting",
        "The batch must be a multiple of b·K.",
        example={"global_batch": 1024, "micro_batch": 1, "ranks": 128},
    ),
    Formula(
        "F41",
        "minimum_batch",
        "Smallest global batch",
        batch.minimum_batch,
        (SHARDS, Input("micro_batch", "Micro-batch", "b", minimum=1, maximum=1e6, integer=True, default=1)),
        "count",
        "sequences",
        plain(r"b\,K", r"{micro_batch} \times {ranks}"),
        "counting",
        "Every data-parallel rank takes one micro-batch.",
        example={"ranks": 32},
    ),
    Formula(
        "F41",
        "efficient_batch",
        "Smallest global batch with a small bubble",
        batch.efficient_batch,
        (
            SHARDS,
            STAGES,
            Input("micro_batch", "Micro-batch", "b", minimum=1, maximum=1e6, integer=True, default=1),
            Input(
                "micro_batches_per_stage",
                "Micro-batches per stage",
                "k",
                minimum=1,
                maximum=1e4,
                integer=True,
                default=4,
            ),
        ),
        "count",
        "sequences",
        plain(r"k\,p\,b\,K", r"{micro_batches_per_stage} \times {stages} \times {micro_batch} \times {ranks}"),
        "Huang et al. 2019 (GPipe), section 2.3",
        "m = 4p leaves about a fifth idle; interleaved and zero-bubble schedules do with fewer.",
        example={"ranks": 8, "stages": 4},
    ),
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
    Formula(
        "F72",
        "padding_waste",
        "Padding in a batch",
        batch.padding_waste,
        (
            Input("mean_tokens", "Mean length", r"\bar{l}", "tokens", minimum=1, maximum=1e8),
            Input("sequence", "Sequence length", "s", "tokens", minimum=1, maximum=1e8, integer=True),
        ),
        "fraction",
        "%",
        plain(r"1 - \frac{\bar{l}}{s}", r"1 - \frac{{{mean_tokens}}}{{{sequence}}}"),
        "by counting tokens",
        "Every sequence padded to one length. Packing wastes none.",
        example={"mean_tokens": 1024, "sequence": 8192},
    ),
    Formula(
        "F72",
        "document_share",
        "Attention of packed documents over that of one",
        batch.document_share,
        (Input("documents", "Documents of equal length", "n", minimum=1, maximum=1e6, integer=True),),
        "fraction",
        "%",
        plain(r"\frac{1}{n}", r"\frac{{1}}{{{documents}}}"),
        "n times (s/n)² of s² pairs",
        "Masked apart, with a kernel that skips masked blocks.",
        example={"documents": 8},
    ),
)
