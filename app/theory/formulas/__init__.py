"""The formula list: every entry binds a pure function to its id, inputs, LaTeX and source.

`SECTIONS` keeps them as they are read, one section per module; `FORMULAS` finds one by name or id.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.theory.formulas import (
    activations,
    batch,
    block_scaling,
    communication,
    compression,
    context,
    efficiency,
    experts,
    generation,
    kaplan,
    kernels,
    learning_rate,
    llama,
    memory,
    mesh,
    overlap,
    packing,
    parallelism,
    pipeline,
    precision,
    reliability,
    scaling,
    serving,
    topology,
    updates,
)
from app.theory.formulas.registry import Formula, Registry

SECTIONS: Mapping[str, tuple[Formula, ...]] = {
    "Model state": memory.ENTRIES,
    "Llama": llama.ENTRIES,
    "Activations": activations.ENTRIES,
    "Collectives": communication.ENTRIES,
    "Topology": topology.ENTRIES,
    "Traffic of parallelism": parallelism.ENTRIES,
    "Context parallelism": context.ENTRIES,
    "Experts": experts.ENTRIES,
    "Overlap": overlap.ENTRIES,
    "Compression": compression.ENTRIES,
    "Pipeline": pipeline.ENTRIES,
    "Mapping and batch": (*mesh.ENTRIES, *batch.ENTRIES, *learning_rate.ENTRIES, *packing.ENTRIES),
    "Efficiency and compute": efficiency.ENTRIES,
    "Kernels": kernels.ENTRIES,
    "Scaling laws": (*scaling.ENTRIES, *kaplan.ENTRIES, *serving.ENTRIES),
    "Precision": precision.ENTRIES,
    "Scaled blocks": block_scaling.ENTRIES,
    "Reliability": reliability.ENTRIES,
    "Generation and rollouts": generation.ENTRIES,
    "Updates": updates.ENTRIES,
}

FORMULAS = Registry()
for _formula in (formula for entries in SECTIONS.values() for formula in entries):
    FORMULAS.add(_formula)
