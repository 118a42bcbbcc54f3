"""Matrix optimizers, scaling with width, and replicas that average seldom."""

from __future__ import annotations

from app.theory import local_updates, matrix_updates
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import BANDWIDTH, PARAMETERS, plain

_ROWS = Input("rows", "Rows", "r", minimum=1, maximum=1e6, integer=True)
_COLUMNS = Input("columns", "Columns", "c", minimum=1, maximum=1e6, integer=True)
_ITERATIONS = Input(
    "iterations",
    "Iterations",
    "T",
    minimum=1,
    maximum=100,
    integer=True,
    default=matrix_updates.NEWTON_SCHULZ_ITERATIONS,
)
_BATCH = Input("tokens", "Tokens of a step", "B", "tokens", minimum=1, maximum=1e12)
_SITES = Input("sites", "Sites", "n", minimum=2, maximum=1e4, integer=True)
_INNER = Input("inner_steps", "Steps between exchanges", "H", minimum=1, maximum=1e6, integer=True)
_STEP = Input("step_seconds", "Step", "t", "seconds", minimum=1e-6, maximum=1e6)
_VALUE = Input("bytes_each", "Bytes each", "w", minimum=0.125, maximum=8, default=4.0)
_JORDAN = "Jordan et al. 2024 (Muon)"
_DILOCO = "Douillard et al. 2023 (DiLoCo), section 2"

ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F73",
        "newton_schulz_flops",
        "FLOPs of an orthogonal update",
        matrix_updates.newton_schulz_flops,
        (_ROWS, _COLUMNS, _ITERATIONS),
        "flop",
        "FLOPs",
        plain(
            r"T\,(4\,\min(r,c)^2 \max(r,c) + 2\,\min(r,c)^3)",
            r"{iterations} \times (4 \times \min({rows},{columns})^2 \times \max({rows},{columns})"
            r" + 2 \times \min({rows},{columns})^3)",
        ),
        _JORDAN,
        "Products only. The iteration runs in bf16 and needs the whole matrix on one rank.",
        example={"rows": 8192, "columns": 28672},
    ),
    Formula(
        "F73",
        "newton_schulz_share",
        "Muon's work beside a step's",
        matrix_updates.newton_schulz_share,
        (_ROWS, _COLUMNS, _BATCH, _ITERATIONS),
        "fraction",
        "%",
        plain(
            r"\frac{T\,(4\,\min(r,c)^2 \max(r,c) + 2\,\min(r,c)^3)}{6\,r\,c\,B}",
            r"\frac{{{iterations} \times (4 \times \min({rows},{columns})^2 \times \max({rows},{columns})"
            r" + 2 \times \min({rows},{columns})^3)}}{{6 \times {rows} \times {columns} \times {tokens}}}",
        ),
        _JORDAN,
        "Of one matrix; T·m/B where it is square. Data-parallel ranks divide it only where each takes other matrices.",
        example={"rows": 16384, "columns": 16384, "tokens": 16e6},
    ),
    Formula(
        "F75",
        "width_scaled_rate",
        "Learning rate at another width",
        matrix_updates.width_scaled_rate,
        (
            Input("base_rate", "Rate that was tuned", r"\eta_0", minimum=1e-9, maximum=10),
            Input("base_width", "Width it was tuned at", "w_0", minimum=1, maximum=1e6, integer=True),
            Input("width", "Width of the large model", "w_1", minimum=1, maximum=1e6, integer=True),
        ),
        "count",
        "",
        plain(r"\eta_0 \frac{w_0}{w_1}", r"{base_rate} \times \frac{{{base_width}}}{{{width}}}"),
        "Yang et al. 2022 (Tensor Programs V), table 3",
        "Hidden matrices under Adam. Embeddings and norms keep theirs; initial values and output scale change too.",
        example={"base_rate": 0.01, "base_width": 256, "width": 8192},
    ),
    Formula(
        "F74",
        "outer_bandwidth",
        "Traffic between sites",
        local_updates.outer_bandwidth,
        (PARAMETERS, _SITES, _INNER, _STEP, _VALUE),
        "bytes_per_second",
        "GB/s",
        plain(
            r"\frac{2(n-1)}{n} \cdot \frac{w\,N}{H\,t}",
            r"\frac{{2 \times ({sites}-1)}}{{{sites}}} \times"
            r" \frac{{{bytes_each} \times {parameters}}}{{{inner_steps} \times {step_seconds}}}",
        ),
        f"{_DILOCO}; Douillard et al. 2025 (Streaming DiLoCo)",
        "Mean over a round, per site, sent. Every step (H = 1) is data parallelism.",
        example={"parameters": 10e9, "sites": 2, "inner_steps": 500, "step_seconds": 2},
    ),
    Formula(
        "F74",
        "outer_idle",
        "Waiting for an exchange between sites",
        local_updates.outer_idle_fraction,
        (PARAMETERS, _SITES, _INNER, _STEP, BANDWIDTH, _VALUE),
        "fraction",
        "%",
        plain(
            r"\frac{\frac{2(n-1)}{n} \cdot \frac{w\,N}{B}}{H\,t + \frac{2(n-1)}{n} \cdot \frac{w\,N}{B}}",
            r"\frac{{\frac{{2 \times ({sites}-1)}}{{{sites}}} \times"
            r" \frac{{{bytes_each} \times {parameters}}}{{{bytes_per_second}}}}}"
            r"{{{inner_steps} \times {step_seconds} + \frac{{2 \times ({sites}-1)}}{{{sites}}} \times"
            r" \frac{{{bytes_each} \times {parameters}}}{{{bytes_per_second}}}}}",
        ),
        _DILOCO,
        "The whole change at once, nothing hidden. Latency and the outer update are left out.",
        example={"parameters": 10e9, "sites": 2, "inner_steps": 500, "step_seconds": 2, "bytes_per_second": 1.25e9},
    ),
)
