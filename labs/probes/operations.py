"""How long the operations of a watched step took themselves, without the calls in between and without the probes.

Three kinds: products of matrices, attention's fused ones among them; the optimizer's operations; all others. What a
step takes beyond their sum is Python, autograd, the way to each operation, and waiting for other ranks: DDP waits where
no operation is seen. On a GPU a call returns before its work is done, so nothing is timed there.
"""

from __future__ import annotations

import time
from typing import Any

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


class Operations:
    """Adds up seconds by kind; `phase` is the step's."""

    def __init__(self, device: torch.device) -> None:
        self._is_timed = device.type == "cpu"
        self.phase: StepPhase | None = None
        self._products = self._others = self._optimizer = 0.0

    def start(self) -> None:
        self._products = self._others = self._optimizer = 0.0

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation below autograd, timed."""
        began = time.perf_counter()
        result = func(*args, **kwargs)
        seconds = time.perf_counter() - began
        if self.phase == "optimizer":
            self._optimizer += seconds
        elif func._opname in PRODUCTS:
            self._products += seconds
        else:
            self._others += seconds
        return result

    def seconds(self) -> OperationSeconds | None:
        """What the step came to; None where nothing was timed."""
        return OperationSeconds(self._products, self._others, self._optimizer) if self._is_timed else None
