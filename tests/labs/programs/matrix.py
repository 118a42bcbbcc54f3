"""Rows of the support matrix on real ranks: each against one process in fp64, and its ledger, as events of every rank.

`--rows FILE` holds [{id, spec, fp64}]. For each row: the losses of three steps, those of one process that knows no
parallelism, and what a typical step sent and held in the row's own precision. Where losses are to be compared in fp64
but the row is not, that is a run of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from findings import Findings

from labs.data import Batches, draw_passages, load_text
from labs.joining import join
from labs.model import build_model
from labs.parallel.mesh import Mesh
from labs.parallel.optimizers import make_optimizer
from labs.preload import EVERY_STRATEGY, preload
from labs.probes.instrument import Instrument
from labs.probes.report import Reporter
from labs.probes.watched import spread_watched, watched_step
from labs.spec import Parallel, RunSpec, parse_run_spec
from labs.spec.events import Event, SpanEvent, to_json

CPU = torch.device("cpu")
STEPS = 3


@cache
def one_process(model: str, training: str, global_batch: int, drawn_in: torch.dtype) -> list[float]:
    """The losses in fp64 without any parallelism, accumulation or probe. Initial weights are `drawn_in` a precision of
    their own: the same seed gives other numbers in another."""
    spec = parse_run_spec({"model": json.loads(model), "training": json.loads(training)})
    torch.set_default_dtype(drawn_in)
    plain = build_model(spec.model, spec.training.sequence, spec.training.seed).double()
    optimizer = make_optimizer(plain.parameters(), spec.training)
    losses = []
    for step in range(1, STEPS + 1):
        passages = draw_passages(load_text(), spec.training.sequence, global_batch, (spec.training.seed, step))
        optimizer.zero_grad()
        loss = plain(passages[:, :-1], passages[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@cache
def mesh_of(parallel: str) -> Mesh:
    """The grid of ranks for a layout. Rows share it: gloo connects every pair of ranks anew for each group."""
    return Mesh(Parallel.model_validate_json(parallel), "cpu")


def reference(spec: RunSpec, drawn_in: torch.dtype) -> list[float]:
    """One process's losses. One rank computes them for all: on each it would only keep others from their cores."""
    found = [_reference(spec, drawn_in) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    assert found[0] is not None
    return found[0]


def _reference(spec: RunSpec, drawn_in: torch.dtype) -> list[float]:
    """With nothing but what changes the result: the model, the optimizer and its learning rate."""
    plain = {
        "sequence": spec.training.sequence,
        "optimizer": spec.training.optimizer,
        "learning_rate": spec.training.learning_rate,
        "seed": spec.training.seed,
    }
    return one_process(spec.model.model_dump_json(), json.dumps(plain), spec.global_batch, drawn_in)


@dataclass
class Seen:
    """The losses of every step, and what was found in the `watched` one."""

    losses: list[float]
    instrument: Instrument
    watched: int


def typical_step(spec: RunSpec) -> int:
    """The second, for the optimizer's state is made in the first. But the third, of which the step before is looked at
    too, where DDP sees to the gradients, which it groups anew in the second; in a pipeline, which receives into buffers
    that it made before; and where a router decides what is kept: such rows are compared, so in the same step."""
    parallel = spec.parallel
    by_ddp = parallel.zero == 0 or (parallel.zero < 3 and spec.training.zero_implementation != "flat-buffer")
    is_regrouped = by_ddp and parallel.data * parallel.context > 1
    return 3 if is_regrouped or parallel.pipeline > 1 or spec.model.experts > 1 else 2


def train(spec: RunSpec, dtype: torch.dtype, steps: int, watched: int = 0) -> Seen:
    """The row itself, looked at up to step `watched`."""
    torch.set_default_dtype(dtype)
    mesh = mesh_of(spec.parallel.model_dump_json())
    # Untimed: the clock is stopped by a thread that holds on to what was sent until the interpreter lets it.
    instrument = Instrument(spec.probes if watched else (), watched, CPU, mesh, timed=False)
    blind = Instrument((), steps, CPU, mesh)
    strategy, _ = spread_watched(spec, mesh, CPU, instrument)
    batches = Batches(load_text(), spec.training, mesh.data_rank, mesh.data_ranks, CPU)
    losses = []
    for step in range(1, steps + 1):
        loss = watched_step(instrument if step <= watched else blind, step, strategy, batches.of_step)
        dist.all_reduce(loss)
        losses.append(loss.item() * mesh.pipeline.size / dist.get_world_size())
    return Seen(losses, instrument, watched)


def spans_of(seen: Seen) -> list[object]:
    """The events that the film of the watched step is drawn from, without what memory they held."""
    events: list[Event] = []
    seen.instrument.report(Reporter(dist.get_rank(), events.append), seen.watched)
    return [to_json(replace(each, held=None)) for each in events if isinstance(each, SpanEvent)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--events", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    preload(*EVERY_STRATEGY)
    join(CPU)
    findings = Findings(options.events, dist.get_rank())
    for row in json.loads(options.rows.read_text()):
        spec = parse_run_spec(row["spec"])
        try:
            dtype = torch.float64 if row["fp64"] else torch.float32
            typical = typical_step(spec)
            if row["fp64"]:
                exact = train(spec, dtype, STEPS)
                seen = train(spec, torch.float32, typical, typical)
            else:
                exact = seen = train(spec, dtype, STEPS, typical)
        except Exception:  # the others may wait for this rank: nothing after it can be trusted
            findings.add("row", id=row["id"], error=traceback.format_exc())
            os._exit(1)
        findings.add(
            "row",
            id=row["id"],
            losses=exact.losses,
            reference=reference(spec, dtype),
            collectives=[asdict(entry) for entry in seen.instrument.collectives or []],
            moments=seen.instrument.moments,
            spans=spans_of(seen),
        )
    dist.barrier()
    os._exit(0)  # as labs.train does, and for its reason


main()
