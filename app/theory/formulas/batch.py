"""How a global batch is divided, and how large it must be."""

from __future__ import annotations

from app.theory import batch
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import MICRO_BATCH, SEQUENCE, SHARDS, plain

ACCUMULATION = Input("accumulation", "Micro-steps", "A", minimum=1, maximum=1e6, integer=True, default=1)

STAGES = Input("stages", "Stages", "p", minimum=1, maximum=1e5, integer=True)


ENTRIES: tuple[Formula, ...] = (
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
)
