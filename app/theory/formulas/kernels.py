"""Kernels: the roofline's ridge, a product's intensity, waves of tiles, and launches."""

from __future__ import annotations

from app.theory import kernels
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import BYTES_EACH, plain

_NVIDIA = "NVIDIA, Matrix Multiplication Background user's guide"


def _size(name: str, label: str, symbol: str, default: int | None = None) -> Input:
    return Input(name, label, symbol, minimum=1, maximum=1e7, integer=True, default=default)


_M, _N, _K = _size("m", "Rows", "m"), _size("n", "Columns", "n"), _size("k", "Inner dimension", "k")

ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F71",
        "ridge_intensity",
        "FLOPs a byte at the ridge",
        kernels.ridge_intensity,
        (
            Input("peak_flops_per_second", "Peak", "F", "flop_per_second", minimum=1, maximum=1e18),
            Input("memory_bytes_per_second", "Memory bandwidth", "B", "bytes_per_second", minimum=1, maximum=1e17),
        ),
        "count",
        "",
        plain(r"\frac{F}{B}", r"\frac{{{peak_flops_per_second}}}{{{memory_bytes_per_second}}}"),
        "Williams et al. 2009 (Roofline)",
        "Below it a kernel is bound by memory.",
        example={"peak_flops_per_second": 9.89e14, "memory_bytes_per_second": 3.35e12},
    ),
    Formula(
        "F71",
        "gemm_intensity",
        "FLOPs a byte of a matrix product",
        kernels.gemm_intensity,
        (_M, _N, _K, BYTES_EACH),
        "count",
        "",
        plain(
            r"\frac{2\,m\,n\,k}{w\,(m\,k + k\,n + m\,n)}",
            r"\frac{{2 \times {m} \times {n} \times {k}}}"
            r"{{{bytes_each} \times ({m} \times {k} + {k} \times {n} + {m} \times {n})}}",
        ),
        f"{_NVIDIA}, chapter 2",
        "Each matrix read or written once. What a tile reads again out of cache is not counted.",
        example={"m": 128, "n": 8192, "k": 8192},
    ),
    Formula(
        "F71",
        "wave_efficiency",
        "Filled share of the waves of tiles",
        kernels.wave_efficiency,
        (
            _M,
            _N,
            _size("tile_m", "Rows of a tile", "t_m", 128),
            _size("tile_n", "Columns of a tile", "t_n", 256),
            _size("units", "Multiprocessors", "U", 132),
        ),
        "fraction",
        "%",
        plain(
            r"\frac{\left\lceil\frac{m}{t_m}\right\rceil \left\lceil\frac{n}{t_n}\right\rceil}"
            r"{U \left\lceil\frac{1}{U}\left\lceil\frac{m}{t_m}\right\rceil"
            r" \left\lceil\frac{n}{t_n}\right\rceil\right\rceil}",
            r"\frac{{\left\lceil\frac{{{m}}}{{{tile_m}}}\right\rceil \left\lceil\frac{{{n}}}{{{tile_n}}}\right\rceil}}"
            r"{{{units} \left\lceil\frac{{1}}{{{units}}}\left\lceil\frac{{{m}}}{{{tile_m}}}\right\rceil"
            r" \left\lceil\frac{{{n}}}{{{tile_n}}}\right\rceil\right\rceil}}",
        ),
        f"{_NVIDIA}, section 3.2",
        "One tile a multiprocessor at a time. Libraries choose among tiles, and may split the inner dimension.",
        example={"m": 4096, "n": 8192},
    ),
    Formula(
        "F71",
        "launch_bound",
        "Time of kernels that wait for their launches",
        kernels.launch_bound_seconds,
        (
            _size("kernels", "Kernels", "j"),
            Input("launch_seconds", "Launch", "l", "seconds", minimum=0, maximum=1),
            Input("gpu_seconds", "Time on the GPU", "T", "seconds", minimum=0, maximum=1e6),
        ),
        "seconds",
        "ms",
        plain(r"\max(j\,l, T)", r"\max({kernels} \times {launch_seconds}, {gpu_seconds})"),
        "launches follow one another on the host",
        "All launches alike; one long kernel can hide short ones behind it, which this does not see.",
        example={"kernels": 1500, "launch_seconds": 5e-6, "gpu_seconds": 0.004},
    ),
)
