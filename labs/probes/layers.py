"""When each layer of the model ran, within the passes of a step.

A layer's forward is from its call to its return. Its backward is from when the gradient of its output is there to when
that of its input is. Under FSDP neither contains the gathering of its weights: FSDP's own hooks come before ours on the
way in and after them on the way out. Nothing is computed with what the hooks see, and they are there in the watched
step only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from labs.model import Block
from labs.spec.events import LayerPass

MOST_PASSES = 400  # as many as fit a line of events


class Layers:
    """The passes of every layer in one step. `now` is the clock, in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._blocks: list[nn.Module] = []
        self._started: dict[tuple[str, int], float] = {}
        self._backward = False  # forwards are those that are computed again
        self.passes: list[LayerPass] = []

    def attach(self, modules: Iterable[nn.Module]) -> None:
        """The layers to watch, in the order of the model."""
        self._blocks = [each for module in modules for each in module.modules() if isinstance(each, Block)]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around the step that is looked at."""
        self.passes, self._started = [], {}
        hooks = [
            hook
            for layer, block in enumerate(self._blocks)
            for hook in (
                block.register_forward_pre_hook(partial(self._called, layer)),
                block.register_forward_hook(partial(self._returned, layer)),
            )
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def enter(self, is_backward: bool) -> None:
        """The step goes over to a forward or a backward pass."""
        self._backward = is_backward

    def _called(self, layer: int, _module: nn.Module, args: tuple[Any, ...]) -> None:
        self._begin("F", layer)
        if not self._backward and isinstance(args[0], Tensor) and args[0].requires_grad:
            args[0].register_hook(lambda _gradient: self._end("B", layer))  # type: ignore[no-untyped-call]

    def _returned(self, layer: int, _module: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        self._end("F", layer)
        if not self._backward and isinstance(output, Tensor) and output.requires_grad:
            output.register_hook(lambda _gradient: self._begin("B", layer))  # type: ignore[no-untyped-call]

    def _begin(self, what: str, layer: int) -> None:
        self._started[what, layer] = self._now()

    def _end(self, what: Any, layer: int) -> None:
        started = self._started.pop((what, layer), None)
        if started is not None and len(self.passes) < MOST_PASSES:
            self.passes.append(LayerPass(layer, what, started, self._now()))
