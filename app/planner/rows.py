"""Plans as comma-separated values: a row each, quantities in SI base units, and the whole request it answers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from io import StringIO

from app.theory.planner import Candidate, EstimateRequest, SearchResult

INPUTS = ("sequence", "global_batch", "precision", "state_layout", "attention")
AXES = (
    "data",
    "tensor",
    "sequence_parallel",
    "pipeline",
    "virtual_stages",
    "schedule",
    "context",
    "expert",
    "zero",
    "shard",
    "reshard_after_forward",
)
CHOICES = ("micro_batch", "recompute", "recompute_modules")
FIGURES = ("step_seconds", "step_seconds_low", "step_seconds_high", "memory_bytes", "tokens_per_second", "mfu", "hfu")
HEAD = ("listed", "rank", "gpu", "gpus", "gpus_per_node", *INPUTS, "profile", *AXES, *CHOICES, *FIGURES, "request")


def search_csv(result: SearchResult) -> str:
    """A header and a line for each plan, the best first."""
    return plans_csv((("best", result.best),))


def plans_csv(
    lists: Sequence[tuple[str, Sequence[Candidate]]], address_of: Callable[[Candidate], str] | None = None
) -> str:
    """The same for several lists of plans, each by its name; with an `address_of` plans, a column of those."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*HEAD, "plan") if address_of else HEAD)
    for name, plans in lists:
        for rank, each in enumerate(plans, 1):
            address = (address_of(each),) if address_of else ()
            writer.writerow(
                (name, rank, *_inputs(each.request), *_choices(each), *_figures(each), *_asked(each), *address)
            )
    return text.getvalue()


def _inputs(request: EstimateRequest) -> Iterator[object]:
    cluster = request.cluster
    assert cluster is not None, "a search names a GPU"
    yield from (cluster.gpu, request.parallel.world_size, cluster.gpus_per_node)
    yield from (getattr(request.training, name) for name in INPUTS)


def _choices(candidate: Candidate) -> Iterator[object]:
    parallel, training = candidate.parallel, candidate.training
    yield candidate.request.profile
    yield from ("" if getattr(parallel, name) is None else getattr(parallel, name) for name in AXES)
    yield from (training.micro_batch, training.recompute, "+".join(training.recompute_modules or ()))


def _figures(candidate: Candidate) -> tuple[float | None, ...]:
    made = candidate.estimate
    low, high = made.interval.step_seconds or (None, None)
    return candidate.step_seconds, low, high, candidate.memory_bytes, made.time.tokens_per_second, made.mfu, made.hfu


def _asked(candidate: Candidate) -> tuple[str]:
    """What `rankzero estimate` answers with the same figures."""
    asked = candidate.request.model_dump(mode="json", exclude_defaults=True)
    # Named, for a default of state is that of no software, and the plan's software is named.
    asked["training"] = {**asked.get("training", {}), "state_layout": candidate.training.state_layout}
    return (json.dumps(asked),)
