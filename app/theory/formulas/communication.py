"""Communication: what a collective moves and how long that takes."""

from __future__ import annotations

from dataclasses import replace

from app.theory import collectives
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import BANDWIDTH, LATENCY, RANKS, SECONDS, SIZE, Inputs, by_case, plain
from app.theory.hardware import GPUS

_RING = "Patarasuk and Yuan 2009, section 3"
_FULL = "S is the full tensor, not the shard."
_ONE_LINK = "B is the slowest link of the ring, and one flow has it alone. The reductions themselves are left out."
_NCCL_TESTS = "nccl-tests, doc/PERFORMANCE.md"
_PEERS = replace(RANKS, minimum=2)
_NODES = Input("nodes", "Nodes", "M", minimum=1, maximum=1e6, integer=True)
_HALF_RING = (
    r"({ranks}-1) \times {latency_seconds}"
    r" + \frac{{{ranks}-1}}{{{ranks}}} \times \frac{{{size_bytes}}}{{{bytes_per_second}}}"
)


_PER_NODE = Input(
    "ranks_per_node", "Ranks of the group in a node", "g", minimum=1, maximum=1e4, integer=True, default=8
)
_RAILS = (
    "A ring over whole nodes leaves each through all of its network cards together. One card's bandwidth is right "
    "where the group has one rank in a node, or the node one card. Other groups must leave the rails idle meanwhile."
)
_RAILS_SOURCE = "NCCL builds a ring for each rail; the JAX scaling book, chapter on GPUs, for the egress of a node"


def _broadcast_latex(inputs: Inputs) -> tuple[str, str]:
    hops, values = {
        "chain": ("(n-1)", "({ranks}-1)"),
        "tree": (r"\lceil\log_2 n\rceil", r"\lceil\log_2 {ranks}\rceil"),
    }[inputs["shape"]]
    return (
        rf"\frac{{S}}{{B}} + {hops}\,\alpha",
        rf"\frac{{{{{{size_bytes}}}}}}{{{{{{bytes_per_second}}}}}} + {values} \times {{latency_seconds}}",
    )


def _bus_latex(inputs: Inputs) -> tuple[str, str]:
    rate = r"\frac{{{size_bytes}}}{{{seconds}}}"
    if inputs["operation"] in ("broadcast", "reduce"):
        return r"\frac{S}{t}", rate
    passes = "2" if inputs["operation"] == "all-reduce" else ""
    symbols, values = (f"{passes}({n}-1)" if passes else f"{n}-1" for n in ("n", "{ranks}"))
    return rf"\frac{{{symbols}}}{{n}}\,\frac{{S}}{{t}}", rf"\frac{{{{{values}}}}}{{{{{{ranks}}}}}} \times {rate}"


def _ring_latex(inputs: Inputs) -> tuple[str, str]:
    ranks, beside = inputs["ranks"], min(inputs["ranks"], inputs["ranks_per_node"])
    if ranks == beside:
        return "B", "{bytes_per_second}"
    leaving = rf"{min(beside, inputs['nics_per_node'])} \times {{nic_bytes_per_second}}"
    if beside == 1:
        return r"B_{\mathrm{NIC}}", leaving
    return (
        r"\min(B,\ \min(g, k)\,B_{\mathrm{NIC}})",
        rf"\min({{bytes_per_second}},\ {leaving})",
    )


def _gpu_links(inputs: Inputs) -> dict[str, float]:
    """A GPU's two links, and one network card for each GPU."""
    record = GPUS[inputs["gpu"]]
    return {
        "B": record.scale_up_bytes_per_second,
        r"B_{\mathrm{NIC}}": record.nic_bytes_per_second,
        "k": inputs["ranks_per_node"],
    }


def _gpu_ring_latex(inputs: Inputs) -> tuple[str, str]:
    names = ("bytes_per_second", "nic_bytes_per_second", "nics_per_node")
    return by_case(_ring_latex)({**inputs, **dict(zip(names, _gpu_links(inputs).values(), strict=True))})


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F56",
        "ring_bandwidth",
        "Bandwidth a rank of a ring finds",
        collectives.ring_bytes_per_second,
        (
            RANKS,
            _PER_NODE,
            replace(BANDWIDTH, label="Link inside the node, one direction"),
            Input(
                "nic_bytes_per_second",
                "Network card, one direction",
                r"B_{\mathrm{NIC}}",
                "bytes_per_second",
                minimum=1,
                maximum=1e15,
            ),
            Input("nics_per_node", "Network cards of a node", "k", minimum=1, maximum=1e4, integer=True, default=8),
        ),
        "bytes_per_second",
        "GB/s",
        by_case(_ring_latex),
        _RAILS_SOURCE,
        _RAILS,
        example={"bytes_per_second": 3e11, "nic_bytes_per_second": 5e10, "ranks": 64},
    ),
    Formula(
        "F56",
        "gpu_ring_bandwidth",
        "Bandwidth a rank of a ring finds among GPUs of a kind",
        collectives.gpu_ring_bytes_per_second,
        (
            Input("gpu", "GPU", "", choices=tuple(GPUS), words={name: each.title for name, each in GPUS.items()}),
            RANKS,
            _PER_NODE,
        ),
        "bytes_per_second",
        "GB/s",
        _gpu_ring_latex,
        _RAILS_SOURCE,
        f"{_RAILS} One card for each GPU.",
        _gpu_links,
        example={"gpu": "a100-80gb", "ranks": 64},
    ),
    Formula(
        "F09",
        "transfer",
        "One message",
        collectives.transfer_seconds,
        (SIZE, BANDWIDTH, LATENCY),
        "seconds",
        "ms",
        plain(r"\alpha + \frac{S}{B}", r"{latency_seconds} + \frac{{{size_bytes}}}{{{bytes_per_second}}}"),
        "the α-β model (Hockney 1994)",
        "One flow with the link to itself; contention makes it longer.",
        example={"size_bytes": 4.4e8, "bytes_per_second": 3e11},
    ),
    Formula(
        "F10",
        "ring_all_reduce_seconds",
        "Ring all-reduce, time",
        collectives.ring_all_reduce_seconds,
        (SIZE, RANKS, BANDWIDTH, LATENCY),
        "seconds",
        "ms",
        plain(
            r"2(n-1)\alpha + \frac{2(n-1)}{n}\frac{S}{B}",
            r"2({ranks}-1) \times {latency_seconds}"
            r" + \frac{{2({ranks}-1)}}{{{ranks}}} \times \frac{{{size_bytes}}}{{{bytes_per_second}}}",
        ),
        _RING,
        _ONE_LINK,
        example={"size_bytes": 1e8, "ranks": 8, "bytes_per_second": 3e11, "latency_seconds": 5e-6},
    ),
    Formula(
        "F10",
        "ring_all_reduce_bytes",
        "Ring all-reduce, bytes each rank sends",
        collectives.ring_all_reduce_bytes,
        (SIZE, RANKS),
        "bytes",
        "GB",
        plain(r"\frac{2(n-1)}{n}\,S", r"\frac{{2({ranks}-1)}}{{{ranks}}} \times {size_bytes}"),
        _RING,
        "Reductions in the switch (NVLink SHARP) send less.",
        example={"size_bytes": 1.4e10, "ranks": 8},
    ),
    Formula(
        "F11",
        "tree_all_reduce_seconds",
        "Tree all-reduce, time",
        collectives.tree_all_reduce_seconds,
        (SIZE, _PEERS, BANDWIDTH, LATENCY),
        "seconds",
        "ms",
        plain(
            r"2\lceil\log_2 n\rceil\alpha + \frac{2S}{B}",
            r"2\lceil\log_2 {ranks}\rceil \times {latency_seconds}"
            r" + \frac{{2 \times {size_bytes}}}{{{bytes_per_second}}}",
        ),
        "Sanders, Speck and Träff 2009",
        "Both trees pipelined and busy both ways; without pipelining S crosses every level in turn.",
        example={"size_bytes": 1.4e10, "ranks": 64, "bytes_per_second": 5e10, "latency_seconds": 5e-6},
    ),
    Formula(
        "F12",
        "half_ring_bytes",
        "Reduce-scatter or all-gather, bytes each rank sends",
        collectives.half_ring_bytes,
        (SIZE, RANKS),
        "bytes",
        "GB",
        plain(r"\frac{n-1}{n}\,S", r"\frac{{{ranks}-1}}{{{ranks}}} \times {size_bytes}"),
        _RING,
        _FULL,
        example={"size_bytes": 1.4e10, "ranks": 8},
    ),
    Formula(
        "F12",
        "half_ring_seconds",
        "Reduce-scatter or all-gather, time",
        collectives.half_ring_seconds,
        (SIZE, RANKS, BANDWIDTH, LATENCY),
        "seconds",
        "ms",
        plain(r"(n-1)\alpha + \frac{n-1}{n}\frac{S}{B}", _HALF_RING),
        _RING,
        f"{_FULL} {_ONE_LINK}",
        example={"size_bytes": 1.4e10, "ranks": 8, "bytes_per_second": 3e11},
    ),
    Formula(
        "F13",
        "broadcast_seconds",
        "Broadcast, time",
        collectives.broadcast_seconds,
        (
            SIZE,
            _PEERS,
            BANDWIDTH,
            LATENCY,
            Input("shape", "Along a", "", choices=collectives.BROADCASTS, default="tree"),
        ),
        "seconds",
        "ms",
        by_case(_broadcast_latex),
        "Sanders, Speck and Träff 2009",
        "Pipelined in chunks small enough that only latency tells the hops apart.",
        example={"size_bytes": 1.4e10, "ranks": 64, "bytes_per_second": 2.5e10},
    ),
    Formula(
        "F14",
        "all_to_all_bytes",
        "All-to-all, bytes each rank sends",
        collectives.all_to_all_bytes,
        (SIZE, RANKS),
        "bytes",
        "GB",
        plain(r"\frac{n-1}{n}\,S", r"\frac{{{ranks}-1}}{{{ranks}}} \times {size_bytes}"),
        "Thakur, Rabenseifner and Gropp 2005",
        "S is what one rank holds for all, in equal parts.",
        example={"size_bytes": 134217728, "ranks": 8},
    ),
    Formula(
        "F14",
        "all_to_all_seconds",
        "All-to-all, time",
        collectives.all_to_all_seconds,
        (SIZE, RANKS, BANDWIDTH, LATENCY),
        "seconds",
        "ms",
        plain(r"(n-1)\alpha + \frac{n-1}{n}\frac{S}{B}", _HALF_RING),
        "Thakur, Rabenseifner and Gropp 2005",
        "Every pair has B to itself: true inside an NVLink domain, seldom across a network.",
        example={"size_bytes": 134217728, "ranks": 8, "bytes_per_second": 5e10, "latency_seconds": 5e-6},
    ),
    Formula(
        "F15",
        "hierarchical_node_bytes",
        "Hierarchical all-reduce, bytes leaving each node",
        collectives.hierarchical_node_bytes,
        (SIZE, _NODES),
        "bytes",
        "GB",
        plain(r"\frac{2(M-1)}{M}\,S", r"\frac{{2({nodes}-1)}}{{{nodes}}} \times {size_bytes}"),
        "Cho et al. 2019 (BlueConnect)",
        "Over all NICs of the node together, after a reduce-scatter inside it.",
        example={"size_bytes": 1.4e10, "nodes": 8},
    ),
    Formula(
        "F15",
        "hierarchical_all_reduce_seconds",
        "Hierarchical all-reduce, time",
        collectives.hierarchical_all_reduce_seconds,
        (
            SIZE,
            Input("gpus_per_node", "GPUs per node", "g", minimum=1, maximum=1e4, integer=True),
            _NODES,
            BANDWIDTH,
            Input(
                "node_bytes_per_second",
                "Network of a node, one direction",
                r"B_{\mathrm{net}}",
                "bytes_per_second",
                minimum=1,
                maximum=1e15,
            ),
        ),
        "seconds",
        "ms",
        plain(
            r"\frac{2(g-1)}{g}\frac{S}{B} + \frac{2(M-1)}{M}\frac{S}{B_{\mathrm{net}}}",
            r"\frac{{2({gpus_per_node}-1)}}{{{gpus_per_node}}} \times \frac{{{size_bytes}}}{{{bytes_per_second}}}"
            r" + \frac{{2({nodes}-1)}}{{{nodes}}} \times \frac{{{size_bytes}}}{{{node_bytes_per_second}}}",
        ),
        "Cho et al. 2019 (BlueConnect)",
        "The phases one after the other, latency left out; all NICs of a node are busy at once.",
        example={
            "size_bytes": 1.4e10,
            "gpus_per_node": 8,
            "nodes": 8,
            "node_bytes_per_second": 1.25e10,
            "bytes_per_second": 3e11,
        },
    ),
    Formula(
        "F16",
        "algorithm_bandwidth",
        "Algorithm bandwidth",
        collectives.algorithm_bandwidth_bytes_per_second,
        (SIZE, SECONDS),
        "bytes_per_second",
        "GB/s",
        plain(r"\frac{S}{t}", r"\frac{{{size_bytes}}}{{{seconds}}}"),
        _NCCL_TESTS,
        f"{_FULL} Falls with the ranks though every link is full: compare bus bandwidth instead.",
        example={"size_bytes": 1e9, "seconds": 0.008},
    ),
    Formula(
        "F16",
        "bus_bandwidth",
        "Bus bandwidth",
        collectives.bus_bandwidth_bytes_per_second,
        (SIZE, SECONDS, RANKS, Input("operation", "Collective", "", choices=collectives.OPERATIONS)),
        "bytes_per_second",
        "GB/s",
        by_case(_bus_latex),
        _NCCL_TESTS,
        "Comparable with a link's bandwidth in one direction; may exceed it where the switch reduces.",
        example={"size_bytes": 1e9, "seconds": 0.008, "ranks": 8, "operation": "all-reduce"},
    ),
)
