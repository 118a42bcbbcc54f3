"""ZeRO stages 1 and 2: data parallelism without the redundancy in the optimizer's state, and in the gradients.

Under DDP all K ranks hold the same optimizer state and compute the same update, K times over. ZeRO gives each rank one
K-th of it. Rajbhandari et al. 2020, "ZeRO", section 5.

Parameters are laid end to end in flat buffers. A buffer is cut into K equal pieces, whatever tensors they cut through,
and rank r answers for piece r:

  1. reduce-scatter   each rank receives the mean of the gradients of its own piece, and nothing else
  2. update           each rank updates its own piece; only for that it has optimizer state
  3. all-gather       each rank receives the other pieces' new weights

A reduce-scatter and an all-gather are the two halves of the all-reduce that DDP does, so S bytes of gradients and S of
weights go out: as much as DDP sends (section 7.1).

Stage 1 (P_os) keeps all gradients, and so may add up those of several micro-batches and send them once a step. Stage 2
(P_os+g) does not: as soon as backward has made all gradients of a buffer they are reduce-scattered, and let go. With A
micro-batches that is (A + 1) · S instead of 2 · S.

What a rank pays for a parameter, in `zero-16` mixed precision with AdamW: 2 for the weight, 2 for the gradient, and 12
for the master copy and the moments: 2 + 2 + 12/K in stage 1, 2 + (2 + 12)/K in stage 2. In fp32 4 + 4 + 8/K and
4 + (4 + 8)/K. The flat buffers are padded to a multiple of K, by less than K values each.

Where a model is cut over tensor and pipeline ranks, K counts the ranks that hold the same part of it: stage 1 is then
what Megatron-LM calls its distributed optimizer. What else is summed over other ranks, gradients of norms under
sequence parallelism and those of a tied table, is summed piece by piece, after the reduce-scatter.

`ZeroRedundancyOptimizer` at the end is PyTorch's stage 1, which deals out whole tensors and sends half as much again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Literal

from torch import Tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from labs.parallel.buckets import in_buckets
from labs.parallel.ddp import averaging_last, replicate
from labs.parallel.flat_buffer import FlatBuffer
from labs.parallel.mesh import Mesh
from labs.parallel.offload import home_of
from labs.parallel.optimizers import LocalOptimizer, optimizer_class
from labs.parallel.precision import gradient_dtype, in_compute_precision, local_optimizer
from labs.parallel.strategy import Optimizer, Strategy, unique_parameters
from labs.spec import RunTraining


def apply_zero(
    models: list[nn.Module],
    mesh: Mesh,
    training: RunTraining,
    stage: int,
    in_pipeline: bool = False,
    apart: Iterable[nn.Module] = (),
) -> Strategy:
    """Spread the optimizer's state of `models` over `mesh.data`; from stage 2 on its gradients as well.

    In a pipeline, with stage 1, gradients are sent when the step's last pass is done. The parameters of `apart` get
    buffers of their own: a table that two ranks of the pipeline have is then cut alike on both.
    """
    own_buffer = {parameter for module in apart for parameter in module.parameters()}
    buffers = [
        FlatBuffer(parameters, mesh.data, training, keeps_gradients=stage == 1)
        for parameters in _fill_buffers(unique_parameters(models), own_buffer, training)
    ]
    reducer = Reducer(buffers, "micro-batch" if stage == 2 else "pipeline" if in_pipeline else "step")
    home = home_of(training)
    inner = local_optimizer([buffer.mine for buffer in buffers], training, home)
    return Strategy(
        [in_compute_precision(model, training) for model in models],
        ZeroOptimizer(buffers, inner),
        reducer.micro_step,
        finish=[reducer.finish_step],
        shares_of=partial(_shares, {parameter: buffer for buffer in buffers for parameter in buffer.parameters}),
        held_gradients=lambda: [gradient for buffer in buffers for gradient in buffer.held_gradients()],
        measure=home.measure if home is not None else None,
    )


def _fill_buffers(
    parameters: list[nn.Parameter], apart: set[nn.Parameter], training: RunTraining
) -> Iterator[list[nn.Parameter]]:
    """The parameters in about the order in which backward makes their gradients: last first. A buffer is closed when
    its gradients have reached `bucket_bytes`, so that sending it can begin while backward goes on."""

    def gradient_bytes(parameter: nn.Parameter) -> int:
        return parameter.numel() * gradient_dtype(parameter.dtype, training).itemsize

    last_first = [parameter for parameter in reversed(parameters) if parameter not in apart]
    yield from in_buckets(last_first, training.bucket_bytes, gradient_bytes)
    yield from ([parameter] for parameter in parameters if parameter in apart)


def _shares(buffer_of: Mapping[nn.Parameter, FlatBuffer], parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """What this rank answers for of the parameters' gradients, flat. Those of another stage of the pipeline are passed
    over."""
    here = [parameter for parameter in parameters if parameter in buffer_of]
    return [share for each in here if (share := buffer_of[each].share_of(each)).numel()]


class Reducer:
    """Sends buffers off as backward fills them, with every micro-batch or with the step's last. In a pipeline, where no
    pass is the last for all parameters, it sends them when all passes are done.

    At most one is under way while the next one fills: more would hide more of the sending behind backward, and take
    the memory that stage 2 is there to save.
    """

    def __init__(self, buffers: Iterable[FlatBuffer], sends_with: Literal["micro-batch", "step", "pipeline"]) -> None:
        self._buffers = list(buffers)
        self._sends_with = sends_with
        self._sends = False
        self._wait: Callable[[], None] = _nothing
        for buffer in self._buffers:
            for parameter in buffer.parameters:
                parameter.register_post_accumulate_grad_hook(self._take_into(buffer))  # type: ignore[no-untyped-call]

    @contextmanager
    def micro_step(self, last: bool) -> Iterator[None]:
        """Around one forward and backward pass."""
        self._sends = last or self._sends_with == "micro-batch"
        yield
        self.finish()
        for buffer in self._buffers:
            buffer.next_micro_batch()

    def finish_step(self) -> None:
        """After the step's last pass: in a pipeline, send everything now."""
        for buffer in self._buffers if self._sends_with == "pipeline" else ():
            buffer.take_what_is_left()
            buffer.next_micro_batch()
            self.finish()
            self._wait = buffer.reduce_scatter()
        self.finish()

    def finish(self) -> None:
        """Wait for what is under way."""
        self._wait()
        self._wait = _nothing

    def _take_into(self, buffer: FlatBuffer) -> Callable[[Tensor], None]:
        def take(parameter: Tensor) -> None:
            assert isinstance(parameter, nn.Parameter)
            if buffer.add(parameter) and self._sends:
                self.finish()
                self._wait = buffer.reduce_scatter()

        return take


def _nothing() -> None: ...


class ZeroOptimizer:
    """Updates this rank's pieces, and then gathers everybody's."""

    def __init__(self, buffers: list[FlatBuffer], inner: Optimizer) -> None:
        self._buffers, self._inner = buffers, inner

    def step(self, gradient_scale: float = 1.0) -> None:
        self._inner.step(gradient_scale)
        for buffer in self._buffers:
            buffer.all_gather()

    def zero_grad(self) -> None:
        for buffer in self._buffers:
            buffer.zero_grad()

    def tensors(self) -> Iterable[Tensor]:
        return self._inner.tensors()


def apply_zero_redundancy_optimizer(model: nn.Module, mesh: Mesh, training: RunTraining) -> Strategy:
    """PyTorch's stage 1, over DDP. Whole tensors are dealt out, the largest first, each to the rank with least so far.

    Gradients are all-reduced as DDP does it, and every rank then broadcasts the tensors it has updated: on the wire 2S
    and S, where reduce-scatter and all-gather send 2S in all.
    """
    replica = replicate(model, mesh, training)
    made, settings = optimizer_class(training)
    parameters = list(replica.parameters())
    sharded = ZeroRedundancyOptimizer(parameters, made, process_group=mesh.data.group, **settings)
    return Strategy([replica], DealtOutOptimizer(sharded), averaging_last(replica), has_buckets=True)


class DealtOutOptimizer(LocalOptimizer):
    """Its state is that of the optimizer inside, over the tensors that fell to this rank."""

    inner: ZeroRedundancyOptimizer

    def tensors(self) -> Iterator[Tensor]:
        for state in self.inner.optim.state.values():
            yield from (item for item in state.values() if isinstance(item, Tensor))
