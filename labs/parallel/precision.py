"""Mixed precision: compute in 16 bits, and keep what training would lose in them in 32.

There are two ways of doing it, and they hold different bytes a parameter (weights + gradients + AdamW's state):

  torch-amp    4 + 4 + 8   PyTorch's own. Weights stay fp32; matrix products get 16-bit copies of them, made on the
                           fly (autocast; under FSDP2 when a unit is gathered). Gradients arrive in fp32.
  zero-16      2 + 2 + 12  The papers' (Micikevicius et al. 2018, section 3; Rajbhandari et al. 2020, section 3.1).
                           Weights and gradients are 16-bit throughout; the optimizer keeps an fp32 *master copy* of
                           the weights beside its two moments, updates that, and rounds the weights from it.
  megatron-18  2 + 4 + 12  The same, with gradients added up and reduced in fp32.

What a cut layer sends (tensor parallel sums, keys and values of a ring, rows to experts) it sends in the 16 bits that
its matrix products take and give. What goes from block to block, and so from one pipeline stage to the next, autocast
leaves in fp32; in the other ways it has 16 bits, too.

A master copy is needed because a step is small: bf16 has 8 bits of fraction, so that a weight of 1 plus 0.001 is 1.
Pure bf16 (2 + 2 + 4) goes without it and shows what that does.

fp16 has digits enough but little range: gradients below 6e-8 become zero. So the loss is multiplied by a large
number before backward, and the gradients are divided by it in fp32 after. See `LossScaler`. (Few CPUs multiply fp16
matrices: there it takes some twenty times as long as bf16.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy

from labs.parallel.buckets import local
from labs.parallel.mesh import Axis, Mesh
from labs.parallel.optimizers import LocalOptimizer, make_optimizer
from labs.parallel.strategy import Optimizer, Strategy
from labs.spec import RunTraining

COMPUTE = {"bf16-mixed": torch.bfloat16, "fp16-mixed": torch.float16, "bf16": torch.bfloat16}
_MASTER_LAYOUTS = ("zero-16", "megatron-18")

_LARGEST_SCALE = 2.0**24
_FIRST_SCALE = 2.0**16
_PATIENCE = 200  # steps without overflow after which twice the scale is tried


def store_weights(model: nn.Module, training: RunTraining) -> None:
    """Turn the weights into what the state layout stores. fp32 ones are left as they were built."""
    if training.state_layout in (*_MASTER_LAYOUTS, "bf16"):
        for parameter in model.parameters():  # not `model.to`, which cannot do it to a dry run's tensors
            parameter.data = parameter.data.to(COMPUTE[training.precision])


def autocasts(training: RunTraining) -> bool:
    """Whether weights are kept in fp32 and computed with in 16 bits."""
    return training.state_layout == "torch-amp"


def gradient_dtype(weights: torch.dtype, training: RunTraining) -> torch.dtype:
    """What gradients of `weights` are added up in."""
    return torch.float32 if training.state_layout == "megatron-18" else weights


class Autocast(nn.Module):
    """Computes `model` in 16 bits where that is safe: matrix products yes, norms, softmax and loss no."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.dtype = dtype
        # What DDP shall leave alone, such as a rank's own experts, it asks the outermost module for, by name.
        exempt = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
        self._ddp_params_and_buffers_to_ignore = [f"model.{name}" for name in exempt]

    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor:
        with torch.autocast(x.device.type, dtype=self.dtype):
            out: Tensor = self.model(x, *more, **named)
        return out


def as_multiplied(x: Tensor) -> Tensor:
    """`x` as a matrix product takes it: in 16 bits under autocast. What is sent on its way there is cast first, so that
    half the bytes are sent."""
    device_type = x.device.type
    return x.to(torch.get_autocast_dtype(device_type)) if torch.is_autocast_enabled(device_type) else x


def stream_dtype(training: RunTraining, is_sharded: bool) -> torch.dtype:
    """What blocks add to in. Autocast leaves it as the weights are; FSDP2 (`is_sharded`) casts those."""
    weights_decide = autocasts(training) and not is_sharded
    return torch.get_default_dtype() if weights_decide else COMPUTE.get(training.precision, torch.get_default_dtype())


def in_compute_precision(model: nn.Module, training: RunTraining) -> nn.Module:
    """`model`, autocast if the layout asks for it."""
    return Autocast(model, COMPUTE[training.precision]) if autocasts(training) else model


def fsdp_policy(training: RunTraining) -> MixedPrecisionPolicy:
    """FSDP2's way: shards are cast before they are gathered, so that half the bytes are sent; gradients are reduced
    in fp32."""
    if not autocasts(training):
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=COMPUTE[training.precision], reduce_dtype=torch.float32)


class Home(Protocol):
    """Where the optimizer's state lives between two steps."""

    @property
    def device(self) -> torch.device | None:
        """Where the update is computed; none: where the weights are."""

    def fetch(self, number: int, state: dict[str, Tensor]) -> None:
        """Bring back the state of tensor `number`, by name."""

    def put_away(self, number: int, state: dict[str, Tensor]) -> None:
        """Take it out of the way."""


class _AtHome:
    """State stays where the weights are."""

    device: torch.device | None = None

    def fetch(self, number: int, state: dict[str, Tensor]) -> None: ...

    def put_away(self, number: int, state: dict[str, Tensor]) -> None: ...


class TensorwiseOptimizer:
    """Updates one tensor after the other, each by an optimizer of its own.

    So only one tensor at a time has its gradient in fp32, or its state brought in from elsewhere. It takes longer than
    all at once, as libraries do it, and it holds what the layouts say.
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        training: RunTraining,
        home: Home | None = None,
        companions: Callable[[], Iterable[Tensor]] = lambda: (),
    ) -> None:
        self._companions = companions
        self._home = home or _AtHome()
        has_master = training.state_layout in _MASTER_LAYOUTS
        self._updaters = [_Updater(weight, training, has_master, self._home.device) for weight in weights]
        for number, updater in enumerate(self._updaters):
            self._home.put_away(number, updater.state())

    def step(self, gradient_scale: float = 1.0) -> None:
        for number, updater in enumerate(self._updaters):
            self._home.fetch(number, updater.state())
            updater.update(gradient_scale)
            self._home.put_away(number, updater.state())

    def zero_grad(self) -> None:
        for updater in self._updaters:
            updater.weight.grad = None

    def tensors(self) -> Iterator[Tensor]:
        for updater in self._updaters:
            yield from updater.state().values()
            yield from updater.counters()
        yield from self._companions()


class _Updater:
    """One tensor: its weights as the model has them, and the copy that is updated, which is the same tensor where it
    has the same precision and place."""

    def __init__(self, weight: Tensor, training: RunTraining, has_master: bool, device: torch.device | None) -> None:
        self.weight = weight
        self._has_master = has_master
        self._device = device or weight.device
        self._dtype = torch.float32 if has_master else weight.dtype
        self._updated = nn.Parameter(self._copy(local(weight).detach()))
        self._inner = make_optimizer([self._updated], training)

    def update(self, gradient_scale: float) -> None:
        """The optimizer's step for this tensor; `gradient_scale` is applied in the update's own precision."""
        assert self.weight.grad is not None, "backward left no gradient"
        here = local(self.weight).detach()
        if not self._has_master:
            self._updated.data = self._copy(here)
        gradient = self._copy(local(self.weight.grad))
        self._updated.grad = gradient if gradient_scale == 1.0 else gradient * gradient_scale
        self._inner.step()
        self._updated.grad = None
        if self._updated.untyped_storage()._cdata != here.untyped_storage()._cdata:
            here.copy_(self._updated.data)  # rounds, where weights have fewer bits
            if not self._has_master:
                self._updated.data = here.new_empty(0, device=self._device)

    def state(self) -> dict[str, Tensor]:
        """The state by name, of the weights' size: the master copy, and the optimizer's moments once there are any."""
        kept = {name: item for name, item in self._items() if item.dim() > 0}
        return {"master": self._updated.data, **kept} if self._has_master else kept

    def counters(self) -> list[Tensor]:
        """What the optimizer keeps besides: a number of steps, one for the tensor."""
        return [item for _, item in self._items() if item.dim() == 0]

    def _items(self) -> Iterator[tuple[str, Tensor]]:
        state = self._inner.state.get(self._updated, {})
        return ((name, item) for name, item in state.items() if isinstance(item, Tensor))

    def _copy(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, self._dtype)


def local_optimizer(
    weights: Iterable[nn.Parameter],
    training: RunTraining,
    home: Home | None = None,
    companions: Callable[[], Iterable[Tensor]] = lambda: (),
) -> LocalOptimizer | TensorwiseOptimizer:
    """The optimizer over what this rank keeps of the weights, with master copies where the layout has them and its
    state at `home` where it is offloaded."""
    if home is not None or training.state_layout in _MASTER_LAYOUTS:
        return TensorwiseOptimizer(weights, training, home, companions)
    return LocalOptimizer(make_optimizer(weights, training), companions)


class LossScaler:
    """Dynamic loss scaling around an optimizer (Micikevicius et al. 2018, section 3.2).

    The loss is multiplied by `scale`, so that small gradients are not lost in fp16. If that was too much, some
    gradient is infinite: then the step is skipped, on every rank together, and the scale halved. After a while
    without overflow twice the scale is tried.

    The ranks have to agree, because each may see other gradients, under ZeRO or where the model is cut: one all-reduce
    of a single fp32 number over all of them.
    """

    def __init__(
        self, inner: Optimizer, gradients: Callable[[], Iterable[Tensor]], everybody: Axis, device_type: str
    ) -> None:
        self._inner, self._gradients, self._everybody, self._device_type = inner, gradients, everybody, device_type
        self.scale = _FIRST_SCALE
        self.skipped = 0
        self._good = 0

    def step(self, gradient_scale: float = 1.0) -> None:
        if self._all_finite():
            self._inner.step(gradient_scale / self.scale)
            self._good += 1
            if self._good % _PATIENCE == 0:
                self.scale = min(2 * self.scale, _LARGEST_SCALE)
        else:
            self.scale, self._good = max(self.scale / 2, 1.0), 0
            self.skipped += 1

    def zero_grad(self) -> None:
        self._inner.zero_grad()

    def tensors(self) -> Iterable[Tensor]:
        return self._inner.tensors()

    def measure(self) -> Mapping[str, tuple[float, str]]:
        return {"loss scale": (self.scale, ""), "steps skipped": (float(self.skipped), "")}

    def _all_finite(self) -> bool:
        finite = torch.stack([local(gradient).isfinite().all() for gradient in self._gradients()]).all().float()
        if self._everybody.group is not None:
            finite = finite.to(self._device_type)  # offloaded gradients are on the host, where NCCL does not reach
            dist.all_reduce(finite, dist.ReduceOp.MIN, group=self._everybody.group)
        return bool(finite.item())


def scale_loss(strategy: Strategy, mesh: Mesh) -> None:
    """Put a loss scaler around the strategy's optimizer."""
    scaler = LossScaler(strategy.optimizer, strategy.gradients, mesh.everybody(), mesh.device_type)
    measure = strategy.measure
    strategy.optimizer = scaler
    strategy.loss_scale = lambda: scaler.scale
    strategy.measure = lambda: {**(measure() if measure is not None else {}), **scaler.measure()}
