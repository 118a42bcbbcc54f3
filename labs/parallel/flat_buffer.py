"""What ZeRO stages 1 and 2 lay parameters out in: end to end, and cut into equal pieces, whatever tensors those cut
through. See `zero`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs.parallel.mesh import Axis
from labs.parallel.precision import gradient_dtype
from labs.spec import RunTraining


class FlatBuffer:
    """Parameters laid end to end, and their gradients in the same order; this rank answers for one piece in K.

    weights: all of them, always there: the model's parameters are views into this buffer.
    mine: this rank's piece of `weights`, as a parameter of the optimizer's, with its reduced gradient.
    """

    def __init__(
        self, parameters: list[nn.Parameter], data: Axis, training: RunTraining, keeps_gradients: bool
    ) -> None:
        self.parameters, self._data, self._keeps_gradients = parameters, data, keeps_gradients
        self._dtype = gradient_dtype(parameters[0].dtype, training)
        *starts, values = accumulate((parameter.numel() for parameter in parameters), initial=0)
        self._starts = dict(zip(parameters, starts, strict=True))
        length = -(-values // data.size) * data.size
        self.weights = parameters[0].detach().new_zeros(length)
        for parameter in parameters:
            place = self._place_of(parameter, self.weights)
            place.copy_(parameter.detach())
            parameter.data = place
        self.mine = nn.Parameter(self._piece_of(self.weights))
        self.mine.grad_dtype = self._dtype
        self._gradients = self._make_gradients() if keeps_gradients else None
        self._arrived: set[nn.Parameter] = set()

    def add(self, parameter: nn.Parameter) -> bool:
        """Take over the gradient of `parameter`. Whether all of this buffer are there."""
        assert parameter.grad is not None
        if self._gradients is None:
            self._gradients = self._make_gradients()
        self._place_of(parameter, self._gradients).add_(parameter.grad)
        parameter.grad = None
        self._arrived.add(parameter)
        return len(self._arrived) == len(self.parameters)

    def take_what_is_left(self) -> None:
        """A schedule that computes weight gradients in a pass of their own lays them down where no hook sees it."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                self.add(parameter)

    def next_micro_batch(self) -> None:
        self._arrived = set()

    def reduce_scatter(self) -> Callable[[], None]:
        """Begin to send the gradients. What is returned waits for the result: the mean of this rank's own piece."""
        assert self._gradients is not None
        whole, own = self._gradients, self._piece_of(self._gradients)
        reduced = own if self._keeps_gradients else torch.empty_like(own)
        work = None
        if self._data.group is None:  # alone: the piece is the whole
            reduced.copy_(own)
        else:
            work = dist.reduce_scatter_single(reduced, whole, dist.ReduceOp.AVG, group=self._data.group, async_op=True)
        if not self._keeps_gradients:
            self._gradients = None  # `whole` is let go when the sending is done

        def wait() -> None:
            if work is not None:
                work.wait()
            self.mine.grad = reduced if self.mine.grad is None else self.mine.grad + reduced

        return wait

    def all_gather(self) -> None:
        """Everybody's new weights."""
        if self._data.group is not None:
            dist.all_gather_single(self.weights, self._piece_of(self.weights), group=self._data.group)

    def zero_grad(self) -> None:
        self.mine.grad = None
        if self._gradients is not None:
            self._gradients.zero_()

    def share_of(self, parameter: nn.Parameter) -> Tensor:
        """The slice of this rank's reduced piece that is the gradient of `parameter`, or of a part of it."""
        assert self.mine.grad is not None
        first = self._starts[parameter] - self._data.index * len(self.mine)
        return self.mine.grad[max(0, first) : max(0, first + parameter.numel())]

    def held_gradients(self) -> list[Tensor]:
        """What is there of gradients from step to step: the whole buffer in stage 1, this rank's piece in stage 2."""
        kept = self._gradients if self._keeps_gradients else self.mine.grad
        return [] if kept is None else [kept]

    def _make_gradients(self) -> Tensor:
        return torch.zeros_like(self.weights, dtype=self._dtype)

    def _piece_of(self, buffer: Tensor) -> Tensor:
        return buffer.chunk(self._data.size)[self._data.index]

    def _place_of(self, parameter: nn.Parameter, buffer: Tensor) -> Tensor:
        """The slice of `buffer` that is `parameter`'s, in its shape."""
        start = self._starts[parameter]
        return buffer[start : start + parameter.numel()].view(parameter.shape)
