"""labs.train, in which something goes wrong. MISHAP=raise: in the data of rank 1, before step 2; nan: in the model."""

from __future__ import annotations

import os
import sys

import torch

from labs import data, train
from labs.probes import watched

draw, build = data.Batches.of_step, watched.build_model


def draw_or_fail(batches: data.Batches, step: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if batches.data_rank == 1 and step == 2:
        raise ValueError("the text is unreadable")
    return draw(batches, step)


def build_broken(*arguments: object) -> torch.nn.Module:
    model = build(*arguments)
    torch.nn.init.constant_(model.norm.weight, float("nan"))
    return model


if os.environ["MISHAP"] == "raise":
    data.Batches.of_step = draw_or_fail
else:
    watched.build_model = build_broken
sys.exit(train.main())
