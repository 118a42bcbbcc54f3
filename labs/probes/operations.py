"""How long the operations of watched steps took themselves, without the calls in between and without the probes.

Three kinds: products of matrices, attention's fused ones among them; the optimizer's operations; all others. What a
step takes beyond their sum is Python, autograd, the way to each operation, and waiting for other ranks, which is
measured by itself (labs.loop): DDP waits where no operation is seen. On a GPU a call returns before its work is done,
so nothing is timed there.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any, Literal

import torch

from labs.spec.events import OperationSeconds, StepPhase

PRODUCTS = frozenset(
    {
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "_grouped_mm",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    }
)


_Kind = Literal["products", "others", "optimizer"]


class Operations:
    """Adds up seconds by kind, a watched step after the other; `phase` is the step's."""

    def __init__(self, device: torch.device) -> None:
        self._is_timed = device.type == "cpu"
        self.phase: StepPhase | None = None
        self._steps: list[dict[_Kind, float]] = []

    def start(self) -> None:
        """Another step is watched."""
        self._steps.append({"products": 0.0, "others": 0.0, "optimizer": 0.0})

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation below autograd, timed."""
        began = time.thread_time()  # without the time in which others had the core: that is waiting
        result = func(*args, **kwargs)
        kind: _Kind = "optimizer" if self.phase == "optimizer" else "products" if func._opname in PRODUCTS else "others"
        self._steps[-1][kind] += time.thread_time() - began
        return result

    def seconds(self) -> OperationSeconds | None:
        """What a watched step came to in the middle, each kind by itself: others' work on the machine falls on one step
        and not on another. None where nothing was timed."""
        if not self._is_timed or not self._steps:
            return None
        return OperationSeconds(**{kind: median(step[kind] for step in self._steps) for kind in self._steps[0]})
