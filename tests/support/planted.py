"""labs.train, in which something goes wrong on purpose; what each rank's flight recorder has of it is kept.

PLANTED has the fault as JSON: `stuck-loader`, where the rank never gets its batch of the step; `one-rank-validates`,
where the rank alone calls a collective before it; `overflow`, where a weight of every rank is spoilt before it. A rank
that makes no step for STILL_SECONDS writes what torch's flight recorder has, and its stack, into FLIGHT.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import sys
import threading
import time
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from labs import data, joining, loop, train
from labs.parallel.strategy import Strategy
from labs.probes import watched

STILL_SECONDS, PEER_SECONDS = 5.0, 10.0
SPOILT = 1e6  # what a weight is multiplied by: beyond what fp16 holds of its products

PLANTED = json.loads(os.environ["PLANTED"])
RANK = int(os.environ["RANK"])
MAIN = threading.main_thread()
moved = [math.inf]  # when a step began last
strategies: list[Strategy] = []
draw, step_of, spread = data.Batches.of_step, loop.watched_step, loop.spread_watched


def is_due(step: int) -> bool:
    return bool(step == PLANTED["step"])


def draw_or_wait(batches: data.Batches, step: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if PLANTED["kind"] == "stuck-loader" and is_due(step) and PLANTED["rank"] == RANK:
        next_batch()
    return draw(batches, step)


def next_batch() -> None:
    threading.Event().wait()  # a worker that died, a file system that does not answer


def validate() -> None:
    """What was harmless under `if rank == …` until somebody gathered a metric in it."""
    metric = torch.zeros(1)
    dist.all_gather([torch.zeros(1) for _ in range(dist.get_world_size())], metric)


def spread_and_keep(*arguments: object) -> tuple[Strategy, int]:
    found = spread(*arguments)  # type: ignore[arg-type]
    strategies.append(found[0])
    return found


def spoil() -> None:
    """As a bad update would: the same on every rank, and it stays."""
    weights = [each for each in strategies[0].parameters() if each.dim() > 1]
    with torch.no_grad():
        weights[len(weights) // 2].mul_(SPOILT)


def planted_step(instrument: watched.Instrument, number: int, *more: object) -> torch.Tensor:
    moved[0] = time.monotonic()
    if PLANTED["kind"] == "one-rank-validates" and is_due(number) and PLANTED["rank"] == RANK:
        validate()
    if PLANTED["kind"] == "overflow" and is_due(number):
        spoil()
    return step_of(instrument, number, *more)  # type: ignore[arg-type]


def dump_when_still() -> None:
    while time.monotonic() - moved[0] < STILL_SECONDS:
        time.sleep(0.1)
    stack = traceback.extract_stack(sys._current_frames()[MAIN.ident or 0])
    kept = {
        "entries": pickle.loads(torch._C._distributed_c10d._dump_fr_trace())["entries"],  # noqa: S301 - our own
        "stack": [[frame.filename, frame.name] for frame in stack],
    }
    (Path(os.environ["FLIGHT"]) / f"flight-{RANK}.json").write_text(json.dumps(kept))


joining._PEER_TIMEOUT = timedelta(seconds=PEER_SECONDS)
data.Batches.of_step, loop.watched_step = draw_or_wait, planted_step  # type: ignore[method-assign]
loop.spread_watched = spread_and_keep
threading.Thread(target=dump_when_still, daemon=True).start()
sys.exit(train.main())
