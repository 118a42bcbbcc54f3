"""What a run of the lab holds and moves, and what its programs should measure.

Exact, not asymptotic: to the byte what `labs` holds at the end of a step and hands to its collectives, padding and all.
`ranks` adds up, `held` says which tensors a rank has, `over_…` what each kind of parallelism sends; `programs` has the
expected points and quantities of programs that are not a training run.
"""

from app.theory.lab_runs.kept import activation_bytes, layer_terms, papers_layer_terms
from app.theory.lab_runs.over_link import bytes_between_hosts, link_seconds
from app.theory.lab_runs.place import Place, world
from app.theory.lab_runs.programs import Expected, Point, expected_of_program, parts_of_quantity
from app.theory.lab_runs.ranks import fullest, rank_theory, run_theory
from app.theory.lab_runs.transfers import RunTheory, Transfer

__all__ = [
    "Expected",
    "Place",
    "Point",
    "RunTheory",
    "Transfer",
    "activation_bytes",
    "bytes_between_hosts",
    "expected_of_program",
    "fullest",
    "layer_terms",
    "link_seconds",
    "papers_layer_terms",
    "parts_of_quantity",
    "rank_theory",
    "run_theory",
    "world",
]
