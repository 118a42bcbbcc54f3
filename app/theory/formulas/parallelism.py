"""Communication: what each parallelism moves per step or micro-batch."""

from __future__ import annotations

from dataclasses import replace

from app.theory import collectives, traffic
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import (
    ACCUMULATION,
    BANDWIDTH,
    BYTES_EACH,
    HIDDEN,
    KORTHIKANTI,
    LATENCY,
    LAYERS,
    MICRO_BATCH,
    MICRO_BATCHES,
    PASSES,
    SEQUENCE,
    SHARDS,
    SIZE,
    STAGES,
    TENSOR,
    ZERO,
    Inputs,
    by_case,
    plain,
)
from labs.spec import BUCKET_BYTES

_MEGATRON = "Shoeybi et al. 2019 (Megatron-LM), section 3"
_LAYERS = replace(LAYERS, default=1)
_SHAPE = (SEQUENCE, MICRO_BATCH, HIDDEN)
_BSH = r"{micro_batch} \times {sequence} \times {hidden}"


def _family_latex(inputs: Inputs) -> tuple[str, str]:
    halves = {
        "ddp": "2",
        "ddp-every-micro-step": "2A",
        "zero-1": "2",
        "zero-2": "(A+1)",
        "zero-3": "3A",
        "zero-3-keep-gathered": "2A",
    }[inputs["strategy"]]
    count = {
        "2": "2",
        "2A": r"2 \times {accumulation}",
        "(A+1)": "({accumulation}+1)",
        "3A": r"3 \times {accumulation}",
    }[halves]
    return (
        rf"{halves}\,\frac{{K-1}}{{K}}\,S",
        count + r" \times \frac{{{ranks}-1}}{{{ranks}}} \times {size_bytes}",
    )


def _tensor_latex(inputs: Inputs) -> tuple[str, str]:
    sends = traffic.all_reduces_per_layer(inputs["passes"])
    return (
        rf"{sends}\,L\,\frac{{2(t-1)}}{{t}}\,w\,b\,s\,h",
        rf"{sends} \times {{layers}} \times \frac{{{{2({{tensor}}-1)}}}}{{{{{{tensor}}}}}}"
        rf" \times {{bytes_each}} \times {_BSH}",
    )


def _tensor_time_latex(inputs: Inputs) -> tuple[str, str]:
    sends = traffic.all_reduces_per_layer(inputs["passes"])
    return (
        rf"{sends}\,L\left(2(t-1)\alpha + \frac{{2(t-1)}}{{t}}\,\frac{{2\,b\,s\,h}}{{B}}\right)",
        rf"{sends} \times {{layers}} \times \left(2({{tensor}}-1) \times {{latency_seconds}}"
        rf" + \frac{{{{2({{tensor}}-1)}}}}{{{{{{tensor}}}}}}"
        rf" \times \frac{{{{2 \times {_BSH}}}}}{{{{{{bytes_per_second}}}}}}\right)",
    )


def _sequence_latex(inputs: Inputs) -> tuple[str, str]:
    halves = traffic.sequence_parallel_halves(inputs["passes"], inputs["backward"])
    return (
        rf"{halves}\,L\,\frac{{t-1}}{{t}}\,w\,b\,s\,h",
        rf"{halves} \times {{layers}} \times \frac{{{{{{tensor}}-1}}}}{{{{{{tensor}}}}}}"
        rf" \times {{bytes_each}} \times {_BSH}",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F17",
        "data_parallel_bytes",
        "Bytes each rank sends per step",
        collectives.data_parallel_step_bytes,
        (SIZE, SHARDS, Input("strategy", "Strategy", "", choices=collectives.STRATEGIES), ACCUMULATION),
        "bytes",
        "GB",
        by_case(_family_latex),
        f"{ZERO}, section 7",
        "S is the weights' bytes, equal to the gradients'. DDP with no_sync on all but the last micro-step.",
        example={"size_bytes": 8, "ranks": 8, "strategy": "ddp", "accumulation": 1},
    ),
    Formula(
        "F53",
        "ddp_buckets",
        "Buckets DDP reduces per step",
        collectives.ddp_buckets,
        (
            Input("gradient_bytes", "Gradients", "S", "bytes", minimum=1, maximum=1e18),
            Input("bucket_bytes", "Bucket", "B", "bytes", minimum=1024, maximum=1e12, default=BUCKET_BYTES),
        ),
        "count",
        "",
        plain(
            r"\left\lceil\frac{S}{B}\right\rceil", r"\left\lceil\frac{{{gradient_bytes}}}{{{bucket_bytes}}}\right\rceil"
        ),
        "PyTorch DistributedDataParallel documentation, bucket_cap_mb",
        "The first bucket is 1 MiB, which can add one.",
        example={"gradient_bytes": 1.4e10},
    ),
    Formula(
        "F19",
        "tensor_parallel_bytes",
        "Tensor parallelism, bytes each rank sends per micro-batch",
        traffic.tensor_parallel_bytes,
        (*_SHAPE, TENSOR, _LAYERS, PASSES, BYTES_EACH),
        "bytes",
        "GB",
        by_case(_tensor_latex),
        f"{_MEGATRON}: two all-reduces forward, two backward",
        "Ring all-reduces. Embedding and loss, once per model, come on top.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "tensor": 8, "passes": "forward"},
    ),
    Formula(
        "F19",
        "tensor_parallel_time",
        "Tensor parallelism, time of its all-reduces per micro-batch",
        traffic.tensor_parallel_seconds,
        (*_SHAPE, TENSOR, BANDWIDTH, _LAYERS, PASSES, LATENCY),
        "seconds",
        "ms",
        by_case(_tensor_time_latex),
        f"{_MEGATRON}: two all-reduces forward, two backward",
        "bf16, ring all-reduces that block; splitting the matmuls to overlap them hides a part.",
        example={
            "sequence": 4096,
            "micro_batch": 1,
            "hidden": 8192,
            "tensor": 8,
            "layers": 20,
            "bytes_per_second": 3e11,
        },
    ),
    Formula(
        "F20",
        "sequence_parallel_bytes",
        "Sequence parallelism, bytes each rank sends per micro-batch",
        traffic.sequence_parallel_bytes,
        (
            *_SHAPE,
            TENSOR,
            _LAYERS,
            PASSES,
            BYTES_EACH,
            Input("backward", "Inputs in backward", "", choices=traffic.GATHERED_INPUTS, default="gathers-again"),
        ),
        "bytes",
        "GB",
        by_case(_sequence_latex),
        f"{KORTHIKANTI}, section 4.2.2",
        "Forward as many bytes as F19. Backward gathers the inputs of both blocks once more, beside its matmuls; "
        "keeping them whole saves those bytes and costs t times their memory.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "tensor": 8, "layers": 80},
    ),
    Formula(
        "F21",
        "pipeline_boundary_bytes",
        "Pipeline, bytes of one micro-batch over a stage boundary",
        traffic.pipeline_boundary_bytes,
        (*_SHAPE, BYTES_EACH),
        "bytes",
        "MB",
        plain(r"w\,b\,s\,h", rf"{{bytes_each}} \times {_BSH}"),
        "Narayanan et al. 2021 (Megatron-LM), section 2.2",
        "One way: activations forward, their gradients back. Each tensor rank sends it whole unless it is split.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192},
    ),
    Formula(
        "F21",
        "pipeline_bytes",
        "Pipeline, bytes over all boundaries per step",
        traffic.pipeline_step_bytes,
        (
            *_SHAPE,
            STAGES,
            MICRO_BATCHES,
            Input("chunks", "Chunks per stage", "v", minimum=1, maximum=1e4, integer=True, default=1),
            BYTES_EACH,
        ),
        "bytes",
        "GB",
        plain(
            r"2\,(p\,v-1)\,m\,w\,b\,s\,h",
            r"2 \times ({stages} \times {chunks} - 1) \times {micro_batches} \times {bytes_each}"
            rf" \times {_BSH}",
        ),
        "Narayanan et al. 2021 (Megatron-LM), section 2.2",
        "One pipeline, both ways. A middle stage sends v times as much as without interleaving.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "stages": 4, "micro_batches": 32},
    ),
)
