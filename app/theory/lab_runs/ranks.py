"""What a run of the lab holds and moves, tensor by tensor: the profile of our own training script."""

from __future__ import annotations

from collections.abc import Sequence

from app.theory.lab_runs.held import held_tensors, is_averaged_apart, kept_bytes, own_gradient_values
from app.theory.lab_runs.over_context import context_transfers
from app.theory.lab_runs.over_data import data_transfers, overflow_transfers
from app.theory.lab_runs.over_experts import expert_transfers
from app.theory.lab_runs.over_pipeline import pipeline_transfers, tied_table_transfers
from app.theory.lab_runs.over_tensor import tensor_transfers
from app.theory.lab_runs.place import Place, world
from app.theory.lab_runs.transfers import RunTheory, Transfer
from app.theory.transformer import parameter_count
from labs.spec import RunSpec

__all__ = ["Place", "RunTheory", "Transfer", "fullest", "rank_theory", "run_theory"]


def run_theory(spec: RunSpec) -> RunTheory:
    """Model state and traffic per step of the rank that holds most, under the layout the run really has."""
    return fullest([rank_theory(spec, place) for place in world(spec)])


def fullest(ranks: Sequence[RunTheory]) -> RunTheory:
    """The rank that holds most."""
    return max(ranks, key=lambda theory: theory.state_total_bytes)


def rank_theory(spec: RunSpec, place: Place) -> RunTheory:
    """The same of one rank, by its place in the grid."""
    held = held_tensors(spec, place)
    state = {name: kept_bytes(spec, place, held, name) for name in ("parameters", "gradients", "optimizer")}
    every = parameter_count(spec.model, spec.training.sequence)
    table = [tensor for tensor in held if tensor.name == "token embedding"]
    transfers = (
        *tensor_transfers(spec, held, place),
        *context_transfers(spec, held),
        *expert_transfers(spec, held),
        *data_transfers(spec, place, [tensor for tensor in held if not is_averaged_apart(tensor, spec)]),
        *pipeline_transfers(spec, place),
        *tied_table_transfers(spec, place, own_gradient_values(spec, place, held, table)),
        *overflow_transfers(spec),
    )
    return RunTheory(every, spec.training.state_layout, state, transfers)
