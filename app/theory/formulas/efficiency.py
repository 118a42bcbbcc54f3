"""FLOPs, time and money, and how much of the hardware is used."""

from __future__ import annotations

from app.theory import compute
from app.theory.formulas.latex import over
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import HIDDEN, KAPLAN, LAYERS, PARAMETERS, SEQUENCE, TOKENS, Inputs, by_case, plain
from app.units import digits, latex_number

_PALM = "Chowdhery et al. 2022 (PaLM)"
_KORTHIKANTI = "Korthikanti et al. 2022, section 5"
GPUS = Input("gpus", "GPUs", "G", minimum=1, maximum=1e7, integer=True)
PEAK = Input("peak_flops_per_second", "Dense peak per GPU", "F", "flop_per_second", minimum=1, maximum=1e18)
MFU = Input("mfu", "MFU", r"\eta", "fraction", minimum=1e-4, maximum=1)
SERIAL = Input("serial", "Serial share", "s", "fraction", minimum=0, maximum=1)
RANKS = Input("ranks", "Ranks", "n", minimum=1, maximum=1e7, integer=True)
SPEEDUP = Input("speedup", "Speed-up", "S", "fraction", minimum=1, maximum=1e7)
SECONDS = Input("seconds", "Time", "t", "seconds", minimum=0, maximum=1e12)
MASK = Input("mask", "Attention mask", "", choices=("full", "causal"), default="full")
_SERIAL_NOTE = "s is fixed. Bubbles and exposed communication are not: they change with the ranks."


def _attention_latex(inputs: Inputs) -> tuple[str, str]:
    factor = 12 if inputs["mask"] == "full" else 6
    values = rf"{factor} \times {{layers}} \times {{hidden}} \times {{sequence}} \times {{tokens}}"
    return rf"{factor}\,L\,h\,s\,D", values


def _attention_factor_latex(inputs: Inputs) -> tuple[str, str]:
    factor, times = ("2", r"2 \times ") if inputs["mask"] == "full" else ("", "")
    product = r" \times ".join(latex_number(inputs[name]) for name in ("layers", "hidden", "sequence"))
    values = over(times + product, latex_number(inputs["parameters"]))
    return rf"1 + \frac{{{factor}L\,h\,s}}{{N}}", f"1 + {values}"


def _pass_latex(inputs: Inputs) -> tuple[str, str]:
    each = digits(compute.PASSES[inputs["part"]])
    return rf"{each}\,N\,D", rf"{each} \times {{parameters}} \times {{tokens}}"


def _hfu_latex(inputs: Inputs) -> tuple[str, str]:
    if inputs["recompute"] == "none":
        return r"\eta", "{mfu}"
    return r"\frac{8}{6}\,\eta", r"\frac{{8}}{{6}} \times {mfu}"


def _recompute_latex(inputs: Inputs) -> tuple[str, str]:
    factor = 4 if inputs["mask"] == "full" else 2
    core = rf"{factor} \times {{layers}} \times {{hidden}} \times {{sequence}}"
    return {
        "none": ("0", "0"),
        "selective": (rf"{factor}\,L\,h\,s\,D", rf"{core} \times {{tokens}}"),
        "full": (rf"(2N + {factor}\,L\,h\,s)\,D", rf"(2 \times {{parameters}} + {core}) \times {{tokens}}"),
    }[inputs["recompute"]]


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F28",
        "amdahl_speedup",
        "Speed-up of a fixed problem",
        compute.amdahl_speedup,
        (SERIAL, RANKS),
        "fraction",
        "×",
        plain(r"\frac{1}{s + \frac{1-s}{n}}", r"\frac{{1}}{{{serial} + \frac{{1-{serial}}}{{{ranks}}}}}"),
        "Amdahl 1967",
        f"At most 1/s. {_SERIAL_NOTE}",
        example={"serial": 0.02, "ranks": 8},
    ),
    Formula(
        "F28",
        "amdahl_efficiency",
        "Efficiency on a fixed problem",
        compute.amdahl_efficiency,
        (SERIAL, RANKS),
        "fraction",
        "%",
        plain(r"\frac{1}{1 + s(n-1)}", r"\frac{{1}}{{1 + {serial} \times ({ranks}-1)}}"),
        "Amdahl 1967",
        _SERIAL_NOTE,
        example={"serial": 0.02, "ranks": 8},
    ),
    Formula(
        "F28",
        "amdahl_serial_share",
        "Serial share behind a speed-up",
        compute.amdahl_serial_share,
        (SPEEDUP, RANKS),
        "fraction",
        "%",
        plain(r"\frac{n/S - 1}{n - 1}", r"\frac{{\frac{{{ranks}}}{{{speedup}}} - 1}}{{{ranks} - 1}}"),
        "Karp and Flatt 1990",
        "A share that grows with n is not a serial part but overhead.",
        example={"speedup": 199.7, "ranks": 256},
    ),
    Formula(
        "F29",
        "gustafson_speedup",
        "Speed-up of a problem that grows with the ranks",
        compute.gustafson_speedup,
        (SERIAL, RANKS),
        "fraction",
        "×",
        plain("n - s(n-1)", r"{ranks} - {serial} \times ({ranks}-1)"),
        "Gustafson 1988",
        "s is the share on n ranks; weak scaling, as when the batch grows with the GPUs.",
        example={"serial": 0.02, "ranks": 256},
    ),
    Formula(
        "F29",
        "gustafson_serial_share",
        "Serial share behind a scaled speed-up",
        compute.gustafson_serial_share,
        (SPEEDUP, RANKS),
        "fraction",
        "%",
        plain(r"\frac{n - S}{n - 1}", r"\frac{{{ranks} - {speedup}}}{{{ranks} - 1}}"),
        "Gustafson 1988",
        "s is the share on n ranks.",
        example={"speedup": 60.85, "ranks": 64},
    ),
    Formula(
        "F30",
        "training_flops",
        "Training compute",
        compute.training_flops,
        (PARAMETERS, TOKENS),
        "flop",
        "FLOPs",
        plain(r"6\,N\,D", r"6 \times {parameters} \times {tokens}"),
        f"{KAPLAN}, section 2.1",
        "Attention's own matmuls are left out. With experts, N is the parameters active per token.",
        example={"parameters": 7e10, "tokens": 2e12},
    ),
    Formula(
        "F31",
        "attention_flops",
        "Compute of attention's own products",
        compute.attention_flops,
        (TOKENS, LAYERS, HIDDEN, SEQUENCE, MASK),
        "flop",
        "FLOPs",
        by_case(_attention_latex),
        f"{_PALM}, appendix B",
        "On top of 6ND. Causal: only where the kernel skips the masked half. h is heads × head dimension.",
        example={"tokens": 1, "sequence": 2048, "layers": 32, "hidden": 4096},
    ),
    Formula(
        "F31",
        "attention_factor",
        "Training compute with attention over 6ND",
        compute.attention_factor,
        (PARAMETERS, LAYERS, HIDDEN, SEQUENCE, MASK),
        "fraction",
        "×",
        _attention_factor_latex,
        f"{_PALM}, appendix B",
        "Causal: only where the kernel skips the masked half.",
        example={"parameters": 7e9, "sequence": 2048, "mask": "full", "layers": 32, "hidden": 4096},
    ),
    Formula(
        "F32",
        "training_time",
        "Training time",
        compute.training_seconds,
        (PARAMETERS, TOKENS, GPUS, PEAK, MFU),
        "seconds",
        "days",
        plain(
            r"\frac{6ND}{G\,F\,\eta}",
            r"\frac{{6 \times {parameters} \times {tokens}}}{{{gpus} \times {peak_flops_per_second} \times {mfu}}}",
        ),
        f"{KAPLAN}, section 2.1",
        "Without failures, restarts and evaluation. MFU falls as GPUs are added.",
        example={"parameters": 7e10, "tokens": 2e12, "gpus": 1024, "peak_flops_per_second": 3.12e14, "mfu": 0.4},
    ),
    Formula(
        "F32",
        "affordable_flops",
        "Compute of a cluster in a given time",
        compute.affordable_flops,
        (GPUS, SECONDS, PEAK, MFU),
        "flop",
        "FLOPs",
        plain(r"G\,F\,\eta\,t", r"{gpus} \times {peak_flops_per_second} \times {mfu} \times {seconds}"),
        f"{KAPLAN}, section 2.1",
        "Model FLOPs: what 6ND may be. F is the dense peak, not the sparse one.",
        example={"gpus": 512, "seconds": 7.776e6, "peak_flops_per_second": 9.89e14, "mfu": 0.4},
    ),
    Formula(
        "F32",
        "gpu_time",
        "GPU time of a training",
        compute.gpu_seconds,
        (PARAMETERS, TOKENS, PEAK, MFU),
        "seconds",
        "h",
        plain(
            r"\frac{6ND}{F\,\eta}",
            r"\frac{{6 \times {parameters} \times {tokens}}}{{{peak_flops_per_second} \times {mfu}}}",
        ),
        f"{KAPLAN}, section 2.1",
        "Summed over GPUs: in hours these are GPU-hours.",
        example={"parameters": 7e10, "tokens": 2e12, "peak_flops_per_second": 3.12e14, "mfu": 0.4},
    ),
    Formula(
        "F32",
        "training_cost",
        "Price of GPU time",
        compute.training_cost,
        (GPUS, SECONDS, Input("price_per_gpu_hour", "Price of a GPU-hour", "c", minimum=0, maximum=1e6)),
        "count",
        "",
        plain(r"G\,\frac{t}{3600}\,c", r"{gpus} \times \frac{{{seconds}}}{{3600}} \times {price_per_gpu_hour}"),
        "GPU-hours times price",
        "t in seconds, in the price's currency; storage, network and people come on top.",
        example={"gpus": 1024, "seconds": 864000.0, "price_per_gpu_hour": 2},
    ),
    Formula(
        "F33",
        "mfu",
        "Model FLOPs utilisation",
        compute.model_flops_utilisation,
        (
            Input(
                "tokens_per_second", "Tokens per second, all GPUs", "T", "tokens_per_second", minimum=0, maximum=1e15
            ),
            PARAMETERS,
            GPUS,
            PEAK,
        ),
        "fraction",
        "%",
        plain(
            r"\frac{6N\,T}{G\,F}",
            r"\frac{{6 \times {parameters} \times {tokens_per_second}}}{{{gpus} \times {peak_flops_per_second}}}",
        ),
        f"{_PALM}, section 4.1 and appendix B",
        "F is the dense peak. Attention's own products are left out. Above 100 % an input is wrong.",
        example={"tokens_per_second": 28000, "parameters": 7e9, "gpus": 8, "peak_flops_per_second": 3.12e14},
    ),
    Formula(
        "F33",
        "throughput",
        "Tokens per second at an MFU",
        compute.throughput,
        (PARAMETERS, GPUS, PEAK, MFU),
        "tokens_per_second",
        "tokens/s",
        plain(
            r"\frac{G\,F\,\eta}{6N}",
            r"\frac{{{gpus} \times {peak_flops_per_second} \times {mfu}}}{{6 \times {parameters}}}",
        ),
        f"{_PALM}, section 4.1 and appendix B",
        "All GPUs together. F is the dense peak.",
        example={"parameters": 7e10, "gpus": 1, "peak_flops_per_second": 9.89e14, "mfu": 0.4},
    ),
    Formula(
        "F34",
        "hfu",
        "Hardware FLOPs utilisation",
        compute.hardware_flops_utilisation,
        (MFU, Input("recompute", "Recomputation", "", choices=tuple(compute.RECOMPUTED_FORWARDS), default="full")),
        "fraction",
        "%",
        by_case(_hfu_latex),
        f"{_PALM}, section 4.1",
        "Full recomputation repeats every forward: 8N per token instead of 6N. It can be no more than 100 %.",
        example={"mfu": 0.45},
    ),
    Formula(
        "F34",
        "recompute_flops",
        "Compute that recomputation adds",
        compute.recompute_flops,
        (
            PARAMETERS,
            TOKENS,
            LAYERS,
            HIDDEN,
            SEQUENCE,
            Input("recompute", "Recomputation", "", choices=("none", "selective", "full"), default="full"),
            MASK,
        ),
        "flop",
        "FLOPs",
        by_case(_recompute_latex),
        _KORTHIKANTI,
        "Selective repeats attention's own products only; with FlashAttention its backward does that anyway.",
        example={"parameters": 7e9, "tokens": 1, "sequence": 2048, "layers": 32, "hidden": 4096},
    ),
    Formula(
        "F54",
        "pass_flops",
        "Compute of one part of training",
        compute.pass_flops,
        (PARAMETERS, TOKENS, Input("part", "Part", "", choices=tuple(compute.PASSES), default="all")),
        "flop",
        "FLOPs",
        by_case(_pass_latex),
        f"{KAPLAN}, section 2.1",
        "Products with the weights only. With frozen weights the weight gradients fall away: 4N per token.",
        example={"parameters": 7e9, "tokens": 16384, "part": "forward"},
    ),
)
