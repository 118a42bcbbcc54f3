"""What a pipeline sends: activations to the next stage, their gradients back, and the gradients of a tied table."""

from __future__ import annotations

from collections.abc import Iterator

from app.theory.lab_runs.held import is_at_both_ends, last_stage, stages_of
from app.theory.lab_runs.place import Place
from app.theory.lab_runs.transfers import Transfer, transfer
from app.theory.lab_runs.values import stream_bytes
from app.theory.state import LAYOUTS
from labs.spec import RunSpec
from labs.spec.events import StepPhase


def pipeline_transfers(spec: RunSpec, place: Place) -> Iterator[Transfer]:
    """The messages a rank sends in a step (F21): one each way for every micro-batch and boundary to another rank.

    Where a V turns, two neighbouring stages are on one rank, and nothing is sent. Source: Huang et al. 2019 (GPipe).
    """
    parallel, training, model = spec.parallel, spec.training, spec.model
    if parallel.pipeline == 1:
        return
    cut = parallel.context * (parallel.tensor if parallel.sequence_parallel else 1)  # of the sequence
    size = float(stream_bytes(spec) * training.micro_batch * training.sequence // cut * model.hidden)
    chunks, last = stages_of(spec, place), last_stage(spec)
    boundaries = {
        "forward": sum(chunk < last and chunk + 1 not in chunks for chunk in chunks),
        "backward": sum(chunk > 0 and chunk - 1 not in chunks for chunk in chunks),
    }
    titles: dict[StepPhase, str] = {
        "forward": "Activations to the next stage",
        "backward": "Gradients to the previous stage",
    }
    for phase, title in titles.items():
        count = boundaries[phase] * training.micro_batches
        if count:
            yield transfer(title, "send", phase, "pipeline", parallel.pipeline, count, count * size)


def tied_table_transfers(spec: RunSpec, place: Place, values: int) -> Iterator[Transfer]:
    """The gradients of a tied table, of which this rank has `values`, are summed over both ends, unless they are one
    rank."""
    if not is_at_both_ends(spec):
        return
    stages = stages_of(spec, place)
    if (0 in stages) != (last_stage(spec) in stages):
        size = LAYOUTS[spec.training.state_layout].gradients * values
        yield transfer("All-reduce, tied table", "all_reduce", "backward", "ends", 2, 1, size)
