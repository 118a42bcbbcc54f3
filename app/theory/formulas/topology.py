"""Topology: how many end points a network has, what a taper costs, and reductions in the switch."""

from __future__ import annotations

from dataclasses import replace

from app.theory import topology
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import BANDWIDTH, RANKS, SIZE, plain

ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F59",
        "fat_tree_ports",
        "End points of a fat tree",
        topology.fat_tree_ports,
        (
            Input("radix", "Ports of a switch", "k", minimum=2, maximum=1024, integer=True),
            Input("levels", "Levels of switches", "L", minimum=1, maximum=4, integer=True),
        ),
        "count",
        "GPUs",
        plain(
            r"2\left\lfloor\frac{k}{2}\right\rfloor^L", r"2\left\lfloor\frac{{{radix}}}{{2}}\right\rfloor^{{{levels}}}"
        ),
        "Al-Fares et al. 2008, section 3",
        "Full bandwidth between all of them: below the top, half of every switch's ports go up.",
        example={"radix": 64, "levels": 3},
    ),
    Formula(
        "F59",
        "tapered_bandwidth",
        "Bandwidth through an oversubscribed level",
        topology.tapered_bytes_per_second,
        (
            BANDWIDTH,
            Input("oversubscription", "Ports down for each port up", "r", minimum=1, maximum=1000),
            Input("crossing", "Share that crosses", "x", "fraction", minimum=0.0001, maximum=1, default=1.0),
        ),
        "bytes_per_second",
        "GB/s",
        plain(
            r"\min(B, \frac{B}{r\,x})",
            r"\min({bytes_per_second}, \frac{{{bytes_per_second}}}{{{oversubscription} \times {crossing}}})",
        ),
        "ports down over ports up, all used at once",
        "Everybody below the level sends at the same time; a few flows alone find more.",
        example={"bytes_per_second": 50e9, "oversubscription": 7, "crossing": 0.5},
    ),
    Formula(
        "F59",
        "in_switch_all_reduce_bytes",
        "All-reduce in the switch, bytes each rank sends",
        topology.in_switch_all_reduce_bytes,
        (SIZE,),
        "bytes",
        "GB",
        plain("S", "{size_bytes}"),
        "Klenk et al. 2020 (An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives)",
        "At best: up once, and the sum down once, for any number of ranks.",
        example={"size_bytes": 14e9},
    ),
    Formula(
        "F77",
        "torus_gather",
        "All-gather on a torus",
        topology.torus_gather_seconds,
        (
            SIZE,
            replace(RANKS, minimum=2),
            replace(BANDWIDTH, label="All links of a chip, one direction"),
            Input("torus_axes", "Axes of the torus", "D", minimum=1, maximum=6, integer=True, default=3),
            Input("axes_used", "Axes the group lies along", "k", minimum=1, maximum=6, integer=True, default=1),
        ),
        "seconds",
        "ms",
        plain(
            r"\frac{n-1}{n} \cdot \frac{D\,S}{k\,B}",
            r"\frac{{{ranks}-1}}{{{ranks}}} \cdot"
            r" \frac{{{torus_axes} \times {size_bytes}}}{{{axes_used} \times {bytes_per_second}}}",
        ),
        "Austin et al. 2025 (How to scale your model), chapter 3",
        "Axes that wrap around; without the wrap one direction is missing and it takes twice as long. No latency.",
        example={"size_bytes": 14e9, "ranks": 16, "bytes_per_second": 6e11},
    ),
)
