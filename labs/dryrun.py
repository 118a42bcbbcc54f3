"""`python -m labs.dryrun FILE`: what a run would hold and send on up to 1,024 ranks, without any of them.

The very code of `labs/parallel` runs a step on one rank of each kind, with two things replaced: tensors have a shape, a
type and a device, but no memory (torch's `FakeTensorMode`), and collectives return at once without talking to anybody
(its `fake` process group). The probes see the same allocations and the same collectives as in a real run, so the peak
and the ledger are those of the real run. Nothing is computed, so there is no loss and there are no times.

One rank of each kind is enough: ranks that differ only in their place along data, context or tensor do the same. Along
the pipeline the first stage, the last and those between differ. (In a V the first rank has both ends, and the last has
the two stages in the middle of the model, where the V turns.)
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining._utils import InferenceMode
from torch.distributed.pipelining.stage import PipelineStage
from torch.testing._internal.distributed.fake_pg import FakeStore

from labs.command import parse_spec, read_spec
from labs.parallel.mesh import Mesh, axis_sizes
from labs.parallel.strategy import MicroBatch, Phases, Strategy
from labs.preload import EVERY_STRATEGY, preload
from labs.probes.instrument import Instrument
from labs.probes.memory import model_state
from labs.probes.watched import spread_watched, watched_step
from labs.spec import V_SHAPED, RunSpec, SpecError

_CPU = torch.device("cpu")
_STEPS = 2  # the optimizer's state is made in the first: the second is typical
_MIDDLE = "middle stages"
_EXIT_USAGE = 2
_RESIDENT_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


def main(arguments: list[str]) -> int:
    """Prints the result as JSON; 2 when the spec cannot be run."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m labs.dryrun FILE\n")
        return _EXIT_USAGE
    try:
        spec = parse_spec(sys.stdin.read(), dry=True) if arguments[0] == "-" else read_spec(arguments[0], dry=True)
    except SpecError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_USAGE
    preload(*EVERY_STRATEGY)
    sys.stdout.write(json.dumps(dry_run(spec), indent=2) + "\n")
    return 0


def dry_run(spec: RunSpec) -> dict[str, object]:
    """One step of `spec` on one rank of each kind. Bytes are per rank; `ranks` says how many there are of each kind."""
    started = time.perf_counter()
    kinds = [_rank_alone(spec, name, stage) for name, stage in kinds_of_ranks(spec)]
    parameters = [kind.pop("parameters_of_model") for kind in kinds]
    each = spec.parallel.world_size // spec.parallel.pipeline
    for kind in kinds:
        between = spec.parallel.pipeline - 2
        kind["ranks"] = each * (between if kind["kind"] == _MIDDLE else 1)
    return {
        "world_size": spec.parallel.world_size,
        "parameters": parameters[0],
        "state_layout": spec.training.state_layout,
        "kinds": kinds,
        "seconds": time.perf_counter() - started,
        "resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RESIDENT_UNIT_BYTES,
    }


def kinds_of_ranks(spec: RunSpec) -> list[tuple[str, int]]:
    """Ranks that do different things, by name, each with the pipeline rank that stands for it: of those in the middle
    the one with most micro-batches alive."""
    ranks = spec.parallel.pipeline
    if ranks == 1:
        return [("every rank", 0)]
    first, last = ("both ends", "turn") if spec.parallel.schedule in V_SHAPED else ("first stage", "last stage")
    middle = [(_MIDDLE, 1)] if ranks > 2 else []
    return [(first, 0), *middle, (last, ranks - 1)]


def _rank_alone(spec: RunSpec, name: str, stage: int) -> dict[str, object]:
    """A step of the first rank with pipeline rank `stage`."""
    sizes = axis_sizes(spec.parallel)
    rank = stage * (spec.parallel.world_size // sizes["pipeline"])
    dist.init_process_group("fake", rank=rank, world_size=spec.parallel.world_size, store=FakeStore())
    try:
        mesh = Mesh(spec.parallel, _CPU.type)  # torch computes with the ranks' numbers: not under fake tensors
        with _nothing_is_real():
            return {"kind": name, "rank": rank, **_step(spec, mesh)}
    finally:
        dist.destroy_process_group()


def _step(spec: RunSpec, mesh: Mesh) -> dict[str, object]:
    instrument = Instrument(("memory", "communication"), _STEPS, _CPU, mesh, timed=False, every_step=True)
    strategy, parameters = spread_watched(spec, mesh, _CPU, instrument)
    passes = strategy.passes
    for number in range(1, _STEPS + 1):
        strategy.passes = partial(_only_gradients, strategy) if passes and number < _STEPS else passes
        watched_step(instrument, number, strategy, lambda number: _fake_batch(spec, number))
    return {
        "parameters_of_model": parameters,
        "peak_bytes": instrument.moments["peak"],
        "peak_during": instrument.peak_during,
        "activation_bytes": instrument.moments["activation_peak"]["activations"],  # at their own largest
        "model_state_bytes": model_state(instrument.moments["step_end"]),
        "collectives": [
            {k: v for k, v in asdict(entry).items() if k != "seconds"} for entry in instrument.collectives or []
        ],
    }


def _fake_batch(spec: RunSpec, step: int) -> list[MicroBatch]:
    """The first step is only there to make the optimizer's state: one micro-batch does."""
    shape = spec.training.micro_batch, spec.training.sequence
    return [
        (torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long))
        for _ in range(spec.training.micro_batches if step == _STEPS else 1)
    ]


def _only_gradients(strategy: Strategy, batch: list[MicroBatch], _phases: Phases) -> torch.Tensor:
    """The first step of a pipeline, whose schedule wants every micro-batch there is: the gradients that the update
    needs, without the passes that they come from."""
    for parameter in strategy.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return torch.zeros((), device=batch[0][0].device)


@dataclass(frozen=True)
class _Message:
    """What a message under way is to its rank: somebody who holds on to a tensor until it is waited for."""

    tensor: torch.Tensor

    def wait(self) -> None:
        """It has arrived."""


@contextmanager
def _nothing_is_real() -> Iterator[None]:
    """Tensors without memory; stages that do not ask each other whether they know their shapes, for they do; and
    messages that keep what they send, as real ones do (a fake one lets go of it at once)."""

    start_messages = schedules._batch_p2p

    def sent(messages: list[dist.P2POp], *_: Any, **__: Any) -> list[Any]:
        return [_Message(message.tensor) for message in messages if start_messages([message])]

    def knows_shapes(_schedule: Any, stages: list[PipelineStage], *_: Any) -> None:
        for stage in stages:
            stage._inference_mode = InferenceMode.STATIC

    with ExitStack() as stack:
        stack.enter_context(patch.object(schedules._PipelineSchedule, "_warmup_p2p", knows_shapes))
        stack.enter_context(patch.object(schedules, "_batch_p2p", sent))
        stack.enter_context(FakeTensorMode())
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
