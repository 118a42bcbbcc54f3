"""Dynamic loss scaling at work on one gradient that is known.

The loss is multiplied by the scale, so that every gradient is; where one becomes infinite in fp16, the step is skipped
and the scale halved; after a number of good steps twice the scale is tried. So it goes up to where the largest
gradient just fits, and tries a little more now and then, which costs a step. (Micikevicius et al. 2018, section 3.2.)
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.amp import GradScaler
from torch.autograd import backward

FIRST_SCALE = 65_536.0


def new_scaler(device: torch.device, growth_interval: int, enabled: bool = True) -> GradScaler:
    """torch's scaler: ×2 after `growth_interval` good steps (its own default is 2,000), ×½ at each overflow."""
    return GradScaler(device.type, init_scale=FIRST_SCALE, growth_interval=growth_interval, enabled=enabled)


def scales_for(gradient: float, growth_interval: int, device: torch.device) -> Iterator[tuple[float, bool]]:
    """For every step the scale it was made with, and whether it overflowed and was skipped.

    A model of one fp32 weight, which is used in fp16: the scaled gradient passes through fp16 on its way back.
    """
    weight = nn.Parameter(torch.ones((), device=device))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = new_scaler(device, growth_interval)
    while True:
        scale = scaler.get_scale()
        loss = weight.half().float() * gradient
        optimizer.zero_grad()
        backward(scaler.scale(loss))
        assert weight.grad is not None, "backward has reached the weight"
        skipped = not bool(weight.grad.isfinite())
        scaler.step(optimizer)
        scaler.update()
        yield scale, skipped
