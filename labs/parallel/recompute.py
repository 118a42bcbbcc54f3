"""Activation checkpointing: keep less of forward, and compute it again when backward needs it.

Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost". What a block keeps for one micro-batch:

  none       everything its backward needs
  full       its input. In backward the block's forward runs once more, which costs a third more arithmetic in all
  selective  besides its input the attention's output and every other matrix product: what takes the most arithmetic to
             compute again. Norms, GELU and the other products take little (Korthikanti et al. 2022, section 5, for
             the idea; the choice is torchtitan's)

With `recompute_every` = k only every k-th block does it, the first one included.

What a block sends in forward it sends again when it is computed again: tensor parallel sums, keys and values round the
ring, rows to their experts. (Shoeybi et al. 2019 count two more all-reduces a layer.) Under FSDP a block is gathered
for its backward anyway, and recomputes while it is: no collective comes on top.

torch would stop as soon as backward has what it needs, and so leave out a block's last product and what sums it up.
Here the whole forward is repeated, as the papers count it and Megatron-LM does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from labs.spec import RunTraining

_Context = AbstractContextManager[Any]

_PRODUCTS = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}
_ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_cudnn_attention.default,
}


class Recomputation:
    """`watch` is entered around everything that leaves behind tensors for a block's backward: a probe may set it."""

    def __init__(self) -> None:
        self.watch: Callable[[], _Context] = nullcontext

    def contexts(self, is_selective: bool) -> tuple[_Context, _Context]:
        """What a block's forward runs in, and what its recomputation does."""
        if not is_selective:
            return nullcontext(), self._watched(nullcontext())
        forward, again = create_selective_checkpoint_contexts(_EveryOtherProduct().decide)  # type: ignore[no-untyped-call]
        return self._watched(forward), self._watched(again)

    @contextmanager
    def _watched(self, inner: _Context) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(self.watch())
            stack.enter_context(inner)
            yield


class _EveryOtherProduct:
    """Counts matrix products, in forward and in recomputation alike, and keeps the first, the third and so on.

    A product that tensor ranks sum in place is the attention's fourth, which is not kept, or the block's last, whose
    value nobody asks for again.
    """

    def __init__(self) -> None:
        self._numbers = {False: count(), True: count()}

    def decide(self, context: Any, operation: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
        keeps = operation in _ATTENTION
        if operation in _PRODUCTS:
            keeps = next(self._numbers[context.is_recompute]) % 2 == 0
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE


def recompute_blocks(blocks: nn.ModuleList, training: RunTraining) -> Recomputation | None:
    """Have every `recompute_every`-th of `blocks` compute in backward again what it does not keep.

    Each block's own `forward` is wrapped, so that whatever is hooked to calling a block (FSDP's gathering) stays
    outside, and happens once in backward.
    """
    if training.recompute == "none":
        return None
    recomputation = Recomputation()
    contexts = partial(recomputation.contexts, training.recompute == "selective")
    for block in list(blocks)[:: training.recompute_every]:
        block.forward = partial(
            checkpoint,
            block.forward,
            use_reentrant=False,
            preserve_rng_state=False,  # nothing here is random: there is no dropout
            early_stop=False,
            context_fn=contexts,
        )
    return recomputation
