"""What a run of the lab holds and moves, tensor by tensor: the profile of our own training script.

Exact, not asymptotic: to the byte what `labs` holds at the end of a step and hands to its collectives, padding and all.
`held` says which tensors a rank has, the other modules what each kind of parallelism sends.
"""

from __future__ import annotations

from app.theory.runs.held import held_tensors, kept_bytes
from app.theory.runs.over_data import data_transfers
from app.theory.runs.place import Place, world
from app.theory.runs.transfers import RunTheory, Transfer
from app.theory.transformer import parameter_count
from labs.spec import RunSpec

__all__ = ["Place", "RunTheory", "Transfer", "rank_theory", "run_theory"]


def run_theory(spec: RunSpec) -> RunTheory:
    """Model state and traffic per step of the rank that holds most, under the layout the run really has."""
    return max((rank_theory(spec, place) for place in world(spec)), key=lambda theory: theory.state_total_bytes)


def rank_theory(spec: RunSpec, place: Place) -> RunTheory:
    """The same of one rank, by its place in the grid."""
    held = held_tensors(spec, place)
    state = {name: kept_bytes(spec, place, held, name) for name in ("parameters", "gradients", "optimizer")}
    every = parameter_count(spec.model, spec.training.sequence)
    return RunTheory(every, spec.training.state_layout, state, tuple(data_transfers(spec, held)))
