"""Pipeline schedules."""

from __future__ import annotations

from dataclasses import replace

from app.theory import pipeline
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import LAYERS, MICRO_BATCHES, STAGES, Inputs, by_case, plain

ASKED = Input("asked", "Asked for", "", choices=pipeline.ASKED, default="fraction")
CHUNKS = Input("virtual_stages", "Model chunks per stage", "v", minimum=1, maximum=1e4, integer=True, default=1)
STAGE = Input("stage", "Stage, from 0", "i", minimum=0, maximum=1e5, integer=True, default=0)
SCHEDULE = Input("schedule", "Schedule", "", choices=pipeline.CLOSED_FORM_SCHEDULES, default="1f1b")
VARIANT = Input(
    "variant",
    "Schedule",
    "",
    choices=tuple(pipeline.ZERO_BUBBLES),
    default="zb-h1",
    words={name: each.title for name, each in pipeline.ZERO_BUBBLES.items()},
)
_GPIPE = "Huang et al. 2019 (GPipe), section 2.3"
_NARAYANAN = "Narayanan et al. 2021 (Megatron-LM), section 2.2"
_QI = "Qi et al. 2023 (Zero Bubble Pipeline Parallelism), sections 2 and 6"


def _seconds(name: str, label: str, symbol: str, default: float | None = None) -> Input:
    return Input(name, label, symbol, "seconds", minimum=1e-9, maximum=1e6, default=default)


def _of_ideal(asked: str, idle: tuple[str, str], ideal: tuple[str, str]) -> tuple[str, str]:
    """Symbols and values of idle next to ideal time, as the ratio asked for."""
    shapes = {"fraction": r"\frac{%s}{%s + %s}", "overhead": r"\frac{%s}{%s}", "utilisation": r"\frac{%s}{%s + %s}"}
    shape = shapes[asked]
    symbols, values = [
        {"fraction": (i, w, i), "overhead": (i, w), "utilisation": (w, w, i)}[asked]
        for i, w in zip(idle, ideal, strict=True)
    ]
    doubled = shape.replace("{", "{{").replace("}", "}}")  # the values are filled by str.format
    return shape % symbols, doubled % values


def _bubble_latex(inputs: Inputs) -> tuple[str, str]:
    return {
        "fraction": (r"\frac{p-1}{m+p-1}", r"\frac{{{stages}-1}}{{{micro_batches}+{stages}-1}}"),
        "overhead": (r"\frac{p-1}{m}", r"\frac{{{stages}-1}}{{{micro_batches}}}"),
        "utilisation": (r"\frac{m}{m+p-1}", r"\frac{{{micro_batches}}}{{{micro_batches}+{stages}-1}}"),
    }[inputs["asked"]]


def _interleaved_latex(inputs: Inputs) -> tuple[str, str]:
    ideal = (r"v\,m", r"{virtual_stages} \times {micro_batches}")
    return _of_ideal(inputs["asked"], ("p-1", "{stages}-1"), ideal)


def _zero_bubble_latex(inputs: Inputs) -> tuple[str, str]:
    filled = pipeline.ZERO_BUBBLES[inputs["variant"]].weights_filled
    times = "{forward_seconds} + {input_gradient_seconds}"
    ideal = (r"m\,(T_F + T_B + T_W)", rf"{{micro_batches}} \times ({times} + {{weight_gradient_seconds}})")
    if filled is None:
        return _of_ideal(inputs["asked"], ("0", "0"), ideal)
    count = "" if filled == 1 else str(filled)
    weights = rf"{filled} \times {{weight_gradient_seconds}}"
    idle = (rf"(p-1)(T_F + T_B - {count}T_W)", rf"({{stages}}-1) \times ({times} - {weights})")
    return _of_ideal(inputs["asked"], idle, ideal)


def _compared_latex(inputs: Inputs) -> tuple[str, str]:
    backward = "{backward_seconds}"
    if inputs["schedule"] == "1f1b":
        return "(p-1)(T_F + T_B)", rf"({{stages}}-1) \times ({{forward_seconds}} + {backward})"
    weights = r"\times {weight_gradient_seconds}"
    if inputs["schedule"] == "zb1p":
        return "(p-1)(T_F + T_B - 2T_W)", rf"({{stages}}-1) \times ({{forward_seconds}} + {backward} - 2 {weights})"
    return (
        r"(\frac{p}{2}-1)(T_P + T_B - 3T_W)",
        rf"(\frac{{{{{{stages}}}}}}{{{{2}}}}-1) \times ({{pair_seconds}} + {backward} - 3 {weights})",
    )


def _zero_bubble_memory_latex(inputs: Inputs) -> tuple[str, str]:
    return ("2p - 1", r"2 \times {stages} - 1") if inputs["variant"] == "zb-h2" else ("p", "{stages}")


def _in_flight_latex(inputs: Inputs) -> tuple[str, str]:
    return {
        "gpipe": ("m", "{micro_batches}"),
        "1f1b": (r"\min(m,\; p-i)", r"\min({micro_batches},\; {stages}-{stage})"),
        "interleaved": (
            r"\frac{\min(v\,m,\; 2(p-i-1) + (v-1)p + 1)}{v}",
            r"\frac{{\min({virtual_stages} \times {micro_batches},\;"
            r" 2({stages}-{stage}-1) + ({virtual_stages}-1) \times {stages} + 1)}}{{{virtual_stages}}}",
        ),
    }[inputs["schedule"]]


def _in_flight_layers_latex(inputs: Inputs) -> tuple[str, str]:
    symbols, values = _in_flight_latex(inputs)
    return rf"\frac{{L}}{{p}} \times {symbols}", r"\frac{{{layers}}}{{{stages}}} \times " + values


def _micro_batches_latex(inputs: Inputs) -> tuple[str, str]:
    """At least one; with several chunks the next multiple of the stages."""
    top = "({stages}-1)(1-{idle_fraction})"
    if inputs["virtual_stages"] == 1:
        return (
            r"\max(1,\; \left\lceil\frac{(p-1)(1-f)}{f}\right\rceil)",
            rf"\max(1,\; \left\lceil\frac{{{{{top}}}}}{{{{{{idle_fraction}}}}}}\right\rceil)",
        )
    under = r"{stages} \times {virtual_stages} \times {idle_fraction}"
    return (
        r"\max(1,\; p\left\lceil\frac{(p-1)(1-f)}{p\,v\,f}\right\rceil)",
        rf"\max(1,\; {{stages}} \times \left\lceil\frac{{{{{top}}}}}{{{{{under}}}}}\right\rceil)",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F22",
        "bubble",
        "Pipeline bubble",
        pipeline.bubble,
        (STAGES, MICRO_BATCHES, ASKED),
        "fraction",
        "%",
        by_case(_bubble_latex),
        _GPIPE,
        "Equal stages. Fraction is idle over total, overhead is extra over ideal.",
        example={"stages": 4, "micro_batches": 32},
    ),
    Formula(
        "F22",
        "pipeline_time",
        "Time of a step's passes",
        pipeline.pipeline_seconds,
        (
            STAGES,
            MICRO_BATCHES,
            _seconds("forward_seconds", "Forward of a micro-batch on a stage", "t_f"),
            _seconds("backward_seconds", "Backward of a micro-batch on a stage", "t_b"),
        ),
        "seconds",
        "s",
        plain(r"(m+p-1)(t_f+t_b)", r"({micro_batches}+{stages}-1) \times ({forward_seconds}+{backward_seconds})"),
        _GPIPE,
        "GPipe and 1F1B with equal stages; transfers between stages and the optimizer step come on top.",
        example={"stages": 4, "micro_batches": 32, "forward_seconds": 0.01, "backward_seconds": 0.02},
    ),
    Formula(
        "F21",
        "exposed_transfers",
        "Transfers whose time shows in a step",
        pipeline.exposed_transfers,
        (
            Input("schedule", "Schedule", "", choices=pipeline.SENT_BY),
            replace(STAGES, minimum=1, maximum=32),
            replace(MICRO_BATCHES, maximum=256),
            replace(CHUNKS, default=1, maximum=8),
        ),
        "count",
        "",
        plain(
            r"\frac{T(c) - T(0)}{c}",
            r"\frac{{T(c) - T(0)}}{{c}}\ \text{{for}}\ p = {stages},\ m = {micro_batches},\ v = {virtual_stages}",
        ),
        "this project's simulation of the schedule, with and without transfers that take time c",
        "Equal stages, backward twice forward, sends beside compute. Filling and draining show a number that does not "
        "grow with m; 1F1B has no slack in between, so its count does. Overlapping those sends takes double warm-up or "
        "interleaving.",
        example={"schedule": "1f1b", "stages": 4, "micro_batches": 16},
    ),
    Formula(
        "F22",
        "micro_batches_for_bubble",
        "Micro-batches for a target bubble",
        pipeline.micro_batches_for_bubble,
        (STAGES, Input("idle_fraction", "Idle fraction", "f", "fraction", minimum=1e-4, maximum=0.999), CHUNKS),
        "count",
        "micro-batches",
        by_case(_micro_batches_latex),
        _GPIPE,
        "Equal stages. With v > 1 chunks, interleaved, the next multiple of p is taken.",
        example={"stages": 8, "idle_fraction": 0.1},
    ),
    Formula(
        "F23",
        "interleaved_bubble",
        "Bubble of the interleaved schedule",
        pipeline.interleaved_bubble,
        (STAGES, MICRO_BATCHES, replace(CHUNKS, default=2), ASKED),
        "fraction",
        "%",
        by_case(_interleaved_latex),
        f"{_NARAYANAN}.2",
        "Equal chunks; m a multiple of p. Transfers between stages grow v-fold.",
        example={"stages": 4, "micro_batches": 16, "virtual_stages": 2, "asked": "overhead"},
    ),
    Formula(
        "F23",
        "interleaved_activations",
        "First stage's activations, interleaved over 1F1B",
        pipeline.interleaved_activation_factor,
        (STAGES, replace(CHUNKS, default=2)),
        "fraction",
        "×",
        by_case(
            lambda inputs: (
                ("1", "1")
                if inputs["virtual_stages"] == 1
                else (r"1 + \frac{p-1}{p\,v}", r"1 + \frac{{{stages}-1}}{{{stages} \times {virtual_stages}}}")
            )
        ),
        "Korthikanti et al. 2022, section 4.2.3",
        "From m = 2p on; v = 1 is 1F1B itself.",
        example={"stages": 8, "virtual_stages": 2},
    ),
    Formula(
        "F24",
        "zero_bubble",
        "Bubble of the zero-bubble schedules",
        pipeline.zero_bubble,
        (
            STAGES,
            MICRO_BATCHES,
            VARIANT,
            _seconds("forward_seconds", "Forward", "T_F", 1.0),
            _seconds("input_gradient_seconds", "Input gradient", "T_B", 1.0),
            _seconds("weight_gradient_seconds", "Weight gradient", "T_W", 1.0),
            ASKED,
        ),
        "fraction",
        "%",
        by_case(_zero_bubble_latex),
        _QI,
        "Equal stages, m at least 2p, free transfers, T_W no longer than T_F and T_B (ZB-V: equal). ZB-H2 and ZB-V "
        "also need an optimizer step that is validated afterwards: a global synchronisation brings a bubble back.",
        example={"stages": 8, "micro_batches": 32, "asked": "overhead"},
    ),
    Formula(
        "F63",
        "schedule_idle",
        "Idle time of 1F1B, ZB1P and DualPipe",
        pipeline.schedule_idle_seconds,
        (
            Input("schedule", "Schedule", "", choices=pipeline.COMPARED_SCHEDULES, default="1f1b"),
            STAGES,
            _seconds("forward_seconds", "Forward", "T_F", 1.0),
            _seconds("backward_seconds", "Whole backward", "T_B", 2.0),
            _seconds("weight_gradient_seconds", "Its part for the weights", "T_W", 1.0),
            _seconds("pair_seconds", "A forward and a backward as a pair", "T_P", 3.0),
        ),
        "seconds",
        "s",
        by_case(_compared_latex),
        "DeepSeek-AI 2024 (DeepSeek-V3), table 2",
        "On a rank, in a step. DualPipe keeps two copies of the weights; its pairs hide communication, which the "
        "others would add to their passes.",
        example={"schedule": "dualpipe", "stages": 16},
    ),
    Formula(
        "F24",
        "zero_bubble_in_flight",
        "Micro-batches held by the fullest stage, zero-bubble",
        pipeline.zero_bubble_in_flight,
        (STAGES, VARIANT),
        "count",
        "micro-batches",
        by_case(_zero_bubble_memory_latex),
        _QI,
        "1F1B holds p. What a weight gradient still needs is not counted.",
        example={"stages": 8, "variant": "zb-h1"},
    ),
    Formula(
        "F25",
        "in_flight",
        "Micro-batches whose activations a stage holds",
        pipeline.in_flight_micro_batches,
        (SCHEDULE, STAGES, MICRO_BATCHES, STAGE, CHUNKS),
        "count",
        "micro-batches",
        by_case(_in_flight_latex),
        _NARAYANAN,
        "At the peak, for a stage counted from 0. Interleaved in Megatron's order.",
        example={"schedule": "1f1b", "stages": 4, "micro_batches": 32, "stage": 0},
    ),
    Formula(
        "F25",
        "in_flight_layers",
        "Activations a stage holds, in layers of a micro-batch",
        pipeline.in_flight_layers,
        (SCHEDULE, STAGES, MICRO_BATCHES, LAYERS, STAGE, CHUNKS),
        "count",
        "",
        by_case(_in_flight_layers_latex),
        _NARAYANAN,
        "Layers divided evenly. The first stage of 1F1B holds as many as one GPU without a pipeline.",
        example={"schedule": "1f1b", "stages": 4, "micro_batches": 32, "layers": 80},
    ),
)
