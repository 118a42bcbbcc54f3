"""Mixtures of experts: their size, the rows of an expert, and what sending tokens to them costs."""

from __future__ import annotations

from dataclasses import replace

from app.theory import experts, traffic
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import ACHIEVED, BANDWIDTH, BYTES_EACH, HIDDEN, LAYERS, RANKS, plain

_TOKENS = Input("tokens", "Tokens per rank", "T", "tokens", minimum=1, maximum=1e9, integer=True)
_EXPERTS = Input("experts", "Experts", "E", minimum=1, maximum=1e4, integer=True)
_PER_TOKEN = Input("experts_per_token", "Experts per token", "k", minimum=1, maximum=1e3, integer=True)
_WIDTH = Input("expert_hidden", "Inner size of an expert", "f", minimum=1, maximum=1e6, integer=True)
_RANKS = replace(RANKS, label="Expert-parallel ranks")
_NODES = Input("nodes", "Nodes of the group", "N", minimum=1, maximum=1e4, integer=True)
_TRANSFERS = Input("transfers", "Transfers", "c", minimum=1, maximum=4, integer=True, default=4)
_GSHARD = "Lepikhin et al. 2021 (GShard)"
_V3 = "DeepSeek-AI 2024 (DeepSeek-V3)"

ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F14",
        "moe_all_to_all_bytes",
        "Mixture of experts, bytes each rank sends per layer",
        traffic.moe_all_to_all_bytes,
        (_TOKENS, HIDDEN, _PER_TOKEN, _RANKS, _TRANSFERS, BYTES_EACH),
        "bytes",
        "MB",
        plain(
            r"c\,\frac{n-1}{n}\,T\,k\,h\,w",
            r"{transfers} \times \frac{{{ranks}-1}}{{{ranks}}} \times {tokens} \times {experts_per_token}"
            r" \times {hidden} \times {bytes_each}",
        ),
        f"{_GSHARD}, section 3",
        "Balanced experts, no token dropped or sent once for two experts of a rank. Dispatch and combine, forward and "
        "backward: four transfers.",
        example={"tokens": 8192, "hidden": 4096, "experts_per_token": 2, "ranks": 8},
    ),
    Formula(
        "F58",
        "expert_parameters",
        "Parameters of the experts",
        experts.expert_parameters,
        (HIDDEN, _WIDTH, _EXPERTS, replace(LAYERS, label="Layers with experts", default=1)),
        "count",
        "billion",
        plain(r"3\,h\,f\,E\,L", r"3 \times {hidden} \times {expert_hidden} \times {experts} \times {layers}"),
        "Shazeer 2020 (GLU Variants), section 2",
        "Gated experts of three matrices. Router, attention and embeddings come on top.",
        example={"hidden": 7168, "expert_hidden": 2048, "experts": 256, "layers": 58},
    ),
    Formula(
        "F58",
        "expert_rows",
        "Rows each expert multiplies",
        experts.expert_rows,
        (_TOKENS, _PER_TOKEN, _RANKS, _EXPERTS),
        "count",
        "",
        plain(r"\frac{n\,T\,k}{E}", r"\frac{{{ranks} \times {tokens} \times {experts_per_token}}}{{{experts}}}"),
        f"{_GSHARD}, section 2.2",
        "On average. The step waits for the rank that got most.",
        example={"tokens": 4096, "experts_per_token": 8, "ranks": 64, "experts": 256},
    ),
    Formula(
        "F58",
        "expert_capacity",
        "Capacity of an expert",
        experts.expert_capacity,
        (
            replace(_TOKENS, label="Tokens routed together"),
            _PER_TOKEN,
            _EXPERTS,
            Input("capacity_factor", "Capacity factor", "c", minimum=0.01, maximum=1e3, default=1.0),
        ),
        "count",
        "",
        plain(
            r"\left\lceil c\,\frac{T\,k}{E}\right\rceil",
            r"\left\lceil {capacity_factor} \times"
            r" \frac{{{tokens} \times {experts_per_token}}}{{{experts}}}\right\rceil",
        ),
        "Fedus et al. 2022 (Switch Transformers), section 2.2",
        "What exceeds it skips the expert and keeps only the residual. Dropless training has none.",
        example={"tokens": 4096, "experts_per_token": 2, "experts": 64, "capacity_factor": 1.25},
    ),
    Formula(
        "F58",
        "expert_nodes",
        "Nodes a token's experts are on",
        experts.expected_nodes,
        (_EXPERTS, _PER_TOKEN, _NODES),
        "count",
        "",
        plain(
            r"N\left(1 - \binom{E-E/N}{k} \middle/ \binom{E}{k}\right)",
            r"{nodes}\left(1 - \binom{{{experts}-{experts}/{nodes}}}{{{experts_per_token}}} \middle/"
            r" \binom{{{experts}}}{{{experts_per_token}}}\right)",
        ),
        "a node is missed when all k experts are among those of the others",
        "On average, where any k experts are as likely as any others. Node-limited routing sets a bound.",
        example={"experts": 256, "experts_per_token": 8, "nodes": 8},
    ),
    Formula(
        "F58",
        "moe_network_bytes",
        "Mixture of experts, bytes each rank sends to other nodes per layer",
        experts.network_bytes,
        (
            _TOKENS,
            HIDDEN,
            Input("copies", "Copies of a token", "M", minimum=1, maximum=1e4),
            _NODES,
            _TRANSFERS,
            BYTES_EACH,
        ),
        "bytes",
        "MB",
        plain(
            r"c\,\frac{N-1}{N}\,T\,M\,h\,w",
            r"{transfers} \times \frac{{{nodes}-1}}{{{nodes}}} \times {tokens} \times {copies}"
            r" \times {hidden} \times {bytes_each}",
        ),
        f"{_V3}, section 3.2.2",
        "M is k where every expert gets its own copy, and less where one goes to each node and NVLink spreads it.",
        example={"tokens": 4096, "hidden": 7168, "copies": 8, "nodes": 8},
    ),
    Formula(
        "F58",
        "moe_all_to_all_share",
        "All-to-alls of the experts over their compute",
        experts.all_to_all_share,
        (_WIDTH, replace(RANKS, label="Ranks, or nodes for what leaves them"), ACHIEVED, BANDWIDTH),
        "fraction",
        "%",
        plain(
            r"\frac{4}{9}\,\frac{n-1}{n}\,\frac{\eta F}{f\,B}",
            r"\frac{{4}}{{9}} \times \frac{{{ranks}-1}}{{{ranks}}} \times"
            r" \frac{{{achieved_flops_per_second}}}{{{expert_hidden} \times {bytes_per_second}}}",
        ),
        "four transfers of 2Tkh bytes against 18Tkhf FLOPs",
        "bf16, one copy for each expert, nothing overlapped; attention and shared experts are left out. Tokens, k and "
        "hidden size cancel.",
        example={
            "expert_hidden": 2048,
            "ranks": 8,
            "achieved_flops_per_second": 4.4505e14,
            "bytes_per_second": 450e9,
        },
    ),
)
