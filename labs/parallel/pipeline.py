"""Pipeline parallelism: every rank holds some of the layers, and micro-batches pass from rank to rank.

The model is cut into *stages*, runs of neighbouring blocks; the first has the embeddings besides, the last the final
norm, the head and the loss. A rank computes its stage of a micro-batch, sends the result (B, T, H) to the rank with the
next stage, and later gets back the gradient of what it sent. That is all the communication there is: one message each
way for every micro-batch and stage boundary, 4·B·T·H bytes in fp32.

The price is idling. The last rank has nothing to do until the first micro-batch has come through, nor the first until
its gradient comes back. The *schedule* says in which order a rank runs the forward and backward passes of its
micro-batches; it decides how much idles and how many micro-batches' activations are alive at once:

  gpipe        all forward passes, then all backward passes. Idle (P−1)/(M+P−1) of the time; M micro-batches alive.
  1f1b         a backward pass as soon as there is one. As idle, but at most P micro-batches alive.
  interleaved  1f1b with v smaller stages a rank, dealt round the ranks: idle (P−1)/(vM+P−1), v times the messages.
  looped-bfs   the same stages, but all micro-batches pass one before the next begins.
  zero-bubble  splits backward in two: the gradient that the previous stage waits for, and the weights' own gradient,
               which nobody waits for and which fills the idle time.
  zbv          the same with two stages a rank laid in a V, so that the first rank also has the last stage.
  dualpipev    that V, with forward and backward passes of different micro-batches in pairs.

Huang et al. 2019 (GPipe); Narayanan et al. 2021, section 2.2; Lamy-Poirier 2022; Qi et al. 2023; DeepSeek-AI 2024.
The schedules are torch's (`torch.distributed.pipelining`); this file cuts the model and feeds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining import schedules as library

from labs.model import GPT
from labs.parallel.mesh import Axis, Mesh
from labs.parallel.precision import stream_dtype
from labs.parallel.strategy import MicroBatch, Phases, SharesOf, Strategy
from labs.spec import V_SHAPED, Parallel, RunSpec
from labs.spec.events import Pass, StepPhase


class OneFOneB(library.Schedule1F1B):
    """torch's, whose steps are right for fewer micro-batches than stages too, though it refuses to be made for them."""

    def __init__(self, stage: PipelineStage, n_microbatches: int, **settings: Any) -> None:
        super().__init__(stage, max(n_microbatches, stage.num_stages), **settings)
        self._n_microbatches = n_microbatches


class ZeroBubble(library.ScheduleInterleavedZeroBubble):
    """torch's, which deals micro-batches into equal rounds. With one stage a rank there are no rounds to deal into."""

    @property
    def number_of_rounds(self) -> int:
        return 1 if self.n_local_stages == 1 else self._rounds

    @number_of_rounds.setter
    def number_of_rounds(self, rounds: int) -> None:
        self._rounds = rounds


SCHEDULES = {
    "gpipe": library.ScheduleGPipe,
    "1f1b": OneFOneB,
    "interleaved": library.ScheduleInterleaved1F1B,
    "looped-bfs": library.ScheduleLoopedBFS,
    "zero-bubble": ZeroBubble,
    "zbv": library.ScheduleZBVZeroBubble,
    "dualpipev": library.ScheduleDualPipeV,
}


class Stage(GPT):
    """A run of the model's blocks, with its beginning or its end where it has one."""

    def __init__(self, whole: GPT, index: int, stages: int) -> None:
        nn.Module.__init__(self)  # not GPT's own, which would make a whole model
        first, last = layers_of(len(whole.blocks), index, stages)
        self.is_first, self.is_last = index == 0, index == stages - 1
        if self.is_first or (self.is_last and whole.head is None):
            self.tokens = whole.tokens  # tied to the head: the last stage needs the table as well
        if self.is_first:
            self.positions = whole.positions
        self.rotary = whole.rotary
        self.blocks = whole.blocks[first:last]
        if self.is_last:
            self.norm, self.head, self.next_token = whole.norm, whole.head, whole.next_token

    def forward(self, x: Tensor, targets: Tensor | None = None) -> Tensor:
        """Token ids (B, T) or the previous stage's (B, T, H), to (B, T, H) or, of the last stage, the loss as (1,)."""
        if self.is_first:
            x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        if not self.is_last:
            return x
        assert targets is not None, "the last stage is given the targets"
        # torch joins the micro-batches' outputs along their first dimension. It keeps them until the next step, without
        # their graph if it can detach them in place, which a view (reshape) cannot be.
        return torch.stack([self.loss(x, targets)])


def layers_of(layers: int, index: int, stages: int) -> tuple[int, int]:
    """Which blocks stage `index` of `stages` has, from and up to. `stages` divides `layers`."""
    each = layers // stages
    return index * each, (index + 1) * each


def stages_of(parallel: Parallel, rank: int) -> list[int]:
    """The stages that fall to pipeline rank `rank`: dealt round the ranks, or down and up again in a V."""
    stages = parallel.pipeline * parallel.virtual_stages
    if parallel.schedule in V_SHAPED:
        return [rank, stages - 1 - rank]
    return list(range(rank, stages, parallel.pipeline))


def layers_here(spec: RunSpec, rank: int) -> list[int]:
    """The numbers of the layers that pipeline rank `rank` has, in the order of its stages."""
    stages = spec.parallel.pipeline * spec.parallel.virtual_stages
    cuts = [layers_of(spec.model.layers, index, stages) for index in stages_of(spec.parallel, rank)]
    return [layer for first, last in cuts for layer in range(first, last)]


def cut_into_stages(model: GPT, parallel: Parallel, mesh: Mesh) -> list[Stage]:
    """This rank's stages of `model`, in the order of the model. The rest of it is let go."""
    stages = parallel.pipeline * parallel.virtual_stages
    return [Stage(model, index, stages) for index in stages_of(parallel, mesh.pipeline.index)]


class PipelinePasses:
    """Runs a step's micro-batches through the pipeline: the part of a step that a schedule decides."""

    def __init__(self, strategy: Strategy, spec: RunSpec, mesh: Mesh, device: torch.device) -> None:
        """The strategy's modules are this rank's stages, whatever they were wrapped in since they were cut."""
        self._strategy, self._micro_batches = strategy, spec.training.micro_batches
        indices = stages_of(spec.parallel, mesh.pipeline.index)
        stages = spec.parallel.pipeline * spec.parallel.virtual_stages
        self._has_first, self._has_last = 0 in indices, stages - 1 in indices
        self._stages = [
            PipelineStage(module, index, stages, device, group=mesh.pipeline.group, **known_shapes(spec, index, stages))
            for module, index in zip(strategy.modules, indices, strict=True)
        ]
        schedule = SCHEDULES[spec.parallel.schedule]
        several = issubclass(schedule, library.PipelineScheduleMulti)
        self._schedule = schedule(
            self._stages if several else self._stages[0],
            n_microbatches=self._micro_batches,
            # the micro-batches' gradients add up to that of their mean
            loss_fn=lambda loss, _targets: loss.squeeze(0) * strategy.loss_scale() / self._micro_batches,
            scale_grads=False,
        )
        self._phases: Phases | None = None
        for stage in self._stages:
            self._report_pass(stage, "forward_one_chunk", "F")
            self._report_pass(stage, "backward_one_chunk", "B")
            self._report_pass(stage, "backward_weight_one_chunk", "W")
            self._report_messages(stage, "get_fwd_send_ops", "forward")
            self._report_messages(stage, "get_bwd_send_ops", "backward")

    def __call__(self, batch: list[MicroBatch], phases: Phases) -> Tensor:
        """Every micro-batch forward and backward; the sum of their losses where this rank has the last stage."""
        self._phases = phases
        tokens, targets = (torch.cat(parts) for parts in zip(*batch, strict=True))
        given = (tokens,) if self._has_first else ()
        losses: list[Tensor] = []
        more = {"targets": targets, "target": targets, "losses": losses} if self._has_last else {}
        with self._reporting_waits():
            self._schedule.step(*given, return_outputs=False, **more)
        if not losses:
            return torch.zeros((), device=tokens.device)
        return torch.stack([loss.detach() for loss in losses]).sum() * self._micro_batches / self._strategy.loss_scale()

    def _report_pass(self, stage: PipelineStage, name: str, what: Pass) -> None:
        """Have whoever watches the step told of each pass: torch's stages call these methods for it."""
        run = getattr(stage, name)

        def reported(*args: Any, **kwargs: Any) -> Any:
            assert self._phases is not None
            micro_batch = args[0] if args else kwargs["bwd_chunk_id"]
            with self._phases.passing(what, stage.stage_index, micro_batch):
                return run(*args, **kwargs)

        setattr(stage, name, reported)

    def _report_messages(self, stage: PipelineStage, name: str, phase: StepPhase) -> None:
        """And of what a stage is about to send."""
        make = getattr(stage, name)

        def reported(micro_batch: int) -> list[dist.P2POp]:
            messages: list[dist.P2POp] = make(micro_batch)
            assert self._phases is not None
            self._phases.sending(phase, (message.tensor for message in messages))
            return messages

        setattr(stage, name, reported)

    @contextmanager
    def _reporting_waits(self) -> Iterator[None]:
        """Have it told, too, when a rank waits for a message: torch's schedules call this function for it."""
        original = library._wait_batch_p2p

        def reported(work: list[dist.Work]) -> None:
            assert self._phases is not None
            if work:
                with self._phases.waiting(self._stages[0].stage_index):
                    original(work)

        library._wait_batch_p2p = reported
        try:
            yield
        finally:
            library._wait_batch_p2p = original


def known_shapes(spec: RunSpec, index: int, stages: int) -> dict[str, Any]:
    """What a stage takes and gives, for a dry run, in which nobody is there to be asked.

    Otherwise the stages tell each other in the first step, by trying.
    """
    if spec.mode != "dry":
        return {}
    training, parallel = spec.training, spec.parallel
    here = training.sequence // parallel.context  # of each row's tokens
    tokens = torch.empty(training.micro_batch, here, dtype=torch.long, device="meta")
    between = here // (parallel.tensor if parallel.sequence_parallel else 1)
    dtype = stream_dtype(training, parallel.zero == 3 and parallel.data * parallel.context > 1)
    shape = training.micro_batch, between, spec.model.hidden
    message = torch.empty(shape, dtype=dtype, device="meta", requires_grad=True)
    loss = torch.empty(1, device="meta", requires_grad=True)
    return {"input_args": tokens if index == 0 else message, "output_args": loss if index == stages - 1 else message}


class TiedEnds:
    """A table that is both embedding and head is on the first and on the last stage, which both have gradients of it.

    Their sum is what one process would have; both ends then make the same update, and stay the same.
    (Shoeybi et al. 2019, section 3, for the tied table.)
    """

    def __init__(self, table: nn.Module, ends: Axis) -> None:
        self._table, self._ends = table, ends  # the module: sharding it gives it another parameter

    def __call__(self, shares_of: SharesOf) -> None:
        for share in shares_of([self._table.get_parameter("weight")]):
            dist.all_reduce(share, group=self._ends.group)
