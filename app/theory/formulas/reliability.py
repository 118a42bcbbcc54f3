"""Failures, checkpoints and goodput."""

from __future__ import annotations

from app.theory import reliability
from app.theory.formulas.latex import over
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import PARAMETERS, Inputs, by_case, plain
from app.units import digits, factor_of, latex_number

_EXPONENTIAL = "exponentially distributed failures"
_DALY = "Daly 2006 (A higher order estimate of the optimum checkpoint interval)"
GPUS = Input("gpus", "GPUs", "G", minimum=1, maximum=1e7, integer=True)
RULES = ("young", "daly", "daly-higher-order")


def _seconds(name: str, label: str, symbol: str, minimum: float = 1e-6, default: float | None = None) -> Input:
    return Input(name, label, symbol, "seconds", minimum=minimum, maximum=1e13, default=default)


MTBF = _seconds("mtbf_seconds", "Mean time between failures of the job", "M")
WRITE = _seconds("checkpoint_seconds", "Time a checkpoint stops training", r"\delta")
INTERVAL = _seconds("interval_seconds", "Work between checkpoints", r"\tau")
RESTART = _seconds("restart_seconds", "Detection and restart", "R", 0.0)
CONTENT = Input("content", "Content", "c", choices=tuple(reliability.CHECKPOINTS), default="weights-and-optimizer")
STORAGE = Input("bytes_per_second", "Storage bandwidth, all writers", "B", "bytes_per_second", minimum=1, maximum=1e16)
_ANY_FAILURE = "Any failure stops the job; failures are independent and as likely at any time."


def _interval_latex(inputs: Inputs) -> tuple[str, str]:
    write, between = latex_number(inputs["checkpoint_seconds"]), latex_number(inputs["mtbf_seconds"])
    root = rf"\sqrt{{2 \times {write} \times {between}}}"
    if inputs["rule"] == "young":
        return r"\sqrt{2\,\delta\,M}", root
    if inputs["rule"] == "daly":
        return r"\sqrt{2\,\delta\,M} - \delta", f"{root} - {write}"
    if inputs["checkpoint_seconds"] >= 2 * inputs["mtbf_seconds"]:
        return "M", between
    ratio = over(write, rf"2 \times {between}")
    ninth = over(write, rf"18 \times {between}")
    return (
        r"\sqrt{2\,\delta\,M}\left(1 + \frac{1}{3}\sqrt{\frac{\delta}{2M}} + \frac{\delta}{18M}\right) - \delta",
        rf"{root}\left(1 + \frac{{1}}{{3}}\sqrt{{{ratio}}} + {ninth}\right) - {write}",
    )


def _checkpoint_latex(inputs: Inputs) -> tuple[str, str]:
    each = digits(reliability.CHECKPOINTS[inputs["content"]])
    return rf"{each}\,N", rf"{each} \times {{parameters}}"


def _writing_latex(inputs: Inputs) -> tuple[str, str]:
    each = digits(reliability.CHECKPOINTS[inputs["content"]])
    return rf"\frac{{{each}\,N}}{{B}}", over(
        rf"{each} \times {latex_number(inputs['parameters'])}", latex_number(inputs["bytes_per_second"])
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F47",
        "mtbf",
        "Time between failures of a job",
        reliability.mtbf_seconds,
        (GPUS, _seconds("gpu_seconds_per_failure", "GPU time per failure", r"\Theta", default=50677 * factor_of("h"))),
        "seconds",
        "h",
        plain(r"\frac{\Theta}{G}", r"\frac{{{gpu_seconds_per_failure}}}{{{gpus}}}"),
        "; ".join(rate.source for rate in reliability.FAILURE_RATES.values()),
        f"{_ANY_FAILURE} The default is Llama 3's 50,677 GPU-hours; research clusters measured 8,090 to 29,538.",
        example={"gpus": 1024, "gpu_seconds_per_failure": 29122560.0},
    ),
    Formula(
        "F47",
        "failure_count",
        "Failures to expect",
        reliability.failure_count,
        (_seconds("seconds", "Time", "t", 0.0), MTBF),
        "count",
        "",
        plain(r"\frac{t}{M}", r"\frac{{{seconds}}}{{{mtbf_seconds}}}"),
        _EXPONENTIAL,
        _ANY_FAILURE,
        example={"seconds": 4.6656e6, "mtbf_seconds": 11134.8},
    ),
    Formula(
        "F47",
        "survival",
        "Probability of no failure",
        reliability.survival_probability,
        (_seconds("seconds", "Time", "t", 0.0), MTBF),
        "fraction",
        "%",
        plain(r"e^{-t/M}", r"e^{{-\frac{{{seconds}}}{{{mtbf_seconds}}}}}"),
        _EXPONENTIAL,
        _ANY_FAILURE,
        example={"seconds": 356400.0, "mtbf_seconds": 356400.0},
    ),
    Formula(
        "F48",
        "checkpoint_interval",
        "Best time between checkpoints",
        reliability.checkpoint_interval_seconds,
        (WRITE, MTBF, Input("rule", "Rule", "", choices=RULES, default="young")),
        "seconds",
        "min",
        _interval_latex,
        f"Young 1974; {_DALY}",
        "Young's holds for δ well below M. An asynchronous checkpoint counts only with the time it stops training.",
        example={"checkpoint_seconds": 10, "mtbf_seconds": 356400.0},
    ),
    Formula(
        "F48",
        "checkpoint_overhead",
        "Loss at Young's interval, without restarts",
        reliability.checkpoint_overhead,
        (WRITE, MTBF),
        "fraction",
        "%",
        plain(r"\sqrt{\frac{2\,\delta}{M}}", r"\sqrt{{\frac{{2 \times {checkpoint_seconds}}}{{{mtbf_seconds}}}}}"),
        "Young 1974",
        "Half of it is writing, half is repeated work. For δ well below M.",
        example={"checkpoint_seconds": 10, "mtbf_seconds": 356400.0},
    ),
    Formula(
        "F49",
        "lost_time",
        "Share of time lost",
        reliability.lost_fraction,
        (INTERVAL, WRITE, MTBF, RESTART),
        "fraction",
        "%",
        plain(
            r"\frac{\delta}{\tau} + \frac{\tau/2 + R}{M}",
            r"\frac{{{checkpoint_seconds}}}{{{interval_seconds}}}"
            r" + \frac{{{interval_seconds}/2 + {restart_seconds}}}{{{mtbf_seconds}}}",
        ),
        "Young 1974, with restarts",
        "First order: τ and R well below M. Goodput is what is left.",
        example={"interval_seconds": 4626, "checkpoint_seconds": 60, "mtbf_seconds": 178200.0, "restart_seconds": 600},
    ),
    Formula(
        "F49",
        "lost_time_at_best",
        "Share of time lost at Young's interval",
        reliability.lost_fraction_at_best,
        (WRITE, MTBF, RESTART),
        "fraction",
        "%",
        plain(
            r"\sqrt{\frac{2\,\delta}{M}} + \frac{R}{M}",
            r"\sqrt{{\frac{{2 \times {checkpoint_seconds}}}{{{mtbf_seconds}}}}}"
            r" + \frac{{{restart_seconds}}}{{{mtbf_seconds}}}",
        ),
        "Young 1974, with restarts",
        "First order: δ and R well below M. Goodput is what is left.",
        example={"checkpoint_seconds": 60, "mtbf_seconds": 356400.0, "restart_seconds": 600},
    ),
    Formula(
        "F49",
        "goodput",
        "Goodput",
        reliability.goodput,
        (INTERVAL, WRITE, MTBF, RESTART),
        "fraction",
        "%",
        plain(
            r"\frac{\tau}{M\,e^{R/M}\left(e^{(\tau+\delta)/M} - 1\right)}",
            r"\frac{{{interval_seconds}}}{{{mtbf_seconds} \times e^{{\frac{{{restart_seconds}}}{{{mtbf_seconds}}}}}"
            r"\left(e^{{\frac{{{interval_seconds}+{checkpoint_seconds}}}{{{mtbf_seconds}}}}} - 1\right)}}",
        ),
        f"{_DALY}, equation 20",
        "Failures may also strike while writing and restarting. Slow steps and queueing are not in it.",
        example={"interval_seconds": 600, "checkpoint_seconds": 100, "mtbf_seconds": 1000, "restart_seconds": 100},
    ),
    Formula(
        "F50",
        "checkpoint_size",
        "Size of a checkpoint",
        reliability.checkpoint_bytes,
        (PARAMETERS, CONTENT),
        "bytes",
        "GB",
        by_case(_checkpoint_latex),
        "counting: bf16 weights, fp32 master weights and Adam's moments",
        "All ranks together. Gradients, data-loader state and random states are left out.",
        example={"parameters": 3e10},
    ),
    Formula(
        "F50",
        "checkpoint_time",
        "Time to write a checkpoint",
        reliability.checkpoint_seconds,
        (PARAMETERS, STORAGE, CONTENT),
        "seconds",
        "s",
        _writing_latex,
        "counting: bf16 weights, fp32 master weights and Adam's moments",
        "Sharded: all writers share the storage's bandwidth. Written asynchronously, training waits for less.",
        example={"parameters": 7e10, "bytes_per_second": 1e10},
    ),
    Formula(
        "F67",
        "pair_lost",
        "Chance that two nodes that fail together hold each other's copy",
        reliability.pair_lost_probability,
        (Input("nodes", "Nodes", "N", minimum=2, maximum=1e7, integer=True),),
        "fraction",
        "%",
        plain(r"\frac{1}{N-1}", r"\frac{{1}}{{{nodes}-1}}"),
        "Wang et al. 2023 (GEMINI), groups of two",
        "Independent failures. Nodes of one rack, switch or power supply fail together more often.",
        example={"nodes": 2048},
    ),
    Formula(
        "F67",
        "replica_downtime",
        "Throughput lost while failed replicas are away",
        reliability.replica_downtime,
        (
            MTBF,
            _seconds("repair_seconds", "Time until a replica is back", "D", 0.0),
            Input("replicas", "Replicas", "r", minimum=1, maximum=1e6, integer=True),
        ),
        "fraction",
        "%",
        plain(r"\frac{D}{M\,r}", r"\frac{{{repair_seconds}}}{{{mtbf_seconds} \times {replicas}}}"),
        "repair time over time between failures, of one replica in r",
        "The other replicas go on with smaller batches. Repeated work of the step that failed is left out.",
        example={"mtbf_seconds": 36000, "repair_seconds": 1800, "replicas": 10},
    ),
)
