"""What looking on costs a run, within one run: for so many steps nobody looks on, for as many a crowd does, in turns.

The viewers have a process of their own at idle priority (`tests.bench.crowd`): they are not on the machine that trains.
What each part of the product took is told by processor time, beside what the ranks took in the same steps: on a machine
with other work that says more than tokens a second.

A turn is compared with those around it, so that what the machine does over minutes falls out, and each comparison is
one block: the interval is of the blocks' mean, by Student's t, for steps next to each other are not independent. A run
may have 500 steps; several, one after the other, give as many blocks as it takes.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import psutil

from app.core.settings import Settings
from app.lab.least_squares import student_t
from tests.bench.crowd import Crowd
from tests.support.product import Product

TURN_STEPS, TURNS = 45, 9  # the first and the last without viewers
FIRST_STEP = 20  # that counts
STEPS = FIRST_STEP + TURNS * TURN_STEPS + 75  # some more: a turn ends a little later than it might
ARRIVED = 8  # steps into a turn, by when they are there
_PARTS = {"web": "app.cli serve", "worker": "--devices", "control": "--control", "beat": "--beat"}


@dataclass(frozen=True)
class Blocks:
    """A share, measured once in each turn with viewers, of all runs."""

    shares: list[float]

    @property
    def mean(self) -> float:
        return statistics.mean(self.shares)

    @property
    def margin(self) -> float:
        """Half the mean's 95 % interval, by Student's t."""
        return student_t(len(self.shares) - 1) * statistics.stdev(self.shares) / sqrt(len(self.shares))

    def verdict(self, target: float) -> str:
        """Whether it is within `target`, where the interval tells."""
        if self.mean + self.margin <= target:
            return "met"
        return "missed" if self.mean - self.margin > target else "not told: the interval takes it in"

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.margin:.1f} %"


@dataclass(frozen=True)
class Turns:
    """A run that was looked at in turns. `seconds`: of each step without probes. `began`: each turn's first step, and
    behind them that which no turn has any more. Shares are of the ranks' processor time, by part of the product:
    `alone` of each turn in which nobody looked on, `added` what each of the others had more than those around it.
    `missed`: viewers who got nothing, or not everything in order."""

    seconds: Mapping[int, float]
    began: list[int]
    alone: list[dict[str, float]]
    added: dict[str, list[float]]
    missed: int

    def costs(self, behind: int, middle: Callable[[Sequence[float]], float]) -> list[float]:
        """By what share of its tokens a second each turn with viewers was slower than those around it, from so many
        steps into each. `middle`: of a turn's steps, the mean, which has all that came in between, or the median, which
        other work on the machine does not move."""
        took = [
            middle([self.seconds[step] for step in range(first + behind, after) if step in self.seconds])
            for first, after in pairwise(self.began)
        ]
        return [1 - _around(took, turn) / took[turn] for turn in range(1, len(took), 2)]


def _around(turns: Sequence[float], turn: int) -> float:
    return (turns[turn - 1] + turns[turn + 1]) / 2


def give_way() -> str:
    """As a user has it, unless the benchmark is asked for another."""
    return os.environ.get("RANKZERO_GIVE_WAY") or str(Settings.model_fields["give_way"].default)


def in_turns(product: Product, spec: Mapping[str, Any], viewers: int) -> Turns:
    """`spec` for as many steps as it takes, with so many viewers in every second turn."""
    crowd = Crowd(product.url, (product.data / "token").read_text().strip())
    before = set(product.data.rglob("events-0.jsonl"))
    body = {"spec": {**spec, "training": {"steps": STEPS}}}
    status, run = product.post_json("/api/v1/lab/runs", body)
    assert status == 201, run
    taken, began, missed = list[dict[str, float]](), list[int](), 0
    for turn in range(TURNS + 1):
        step = _wait_for_step(product, before, began[-1] + TURN_STEPS - 1 if began else FIRST_STEP)
        if turn and turn % 2 == 0:
            missed += crowd.leave()["missed"]
        taken.append(_processor_seconds(product, crowd.pid))
        began.append(step + 1)
        if turn % 2:
            crowd.look(f"/lab/runs/{run['id']}/live", viewers)
    crowd.close()
    seconds = {event["step"]: event["seconds"] for event in _steps(product, before) if not event["probed"]}
    product.post_form(f"/lab/runs/{run['id']}/cancel")  # what is left of it
    while product.get_json(f"/api/v1/lab/runs/{run['id']}")["status"] not in ("finished", "cancelled"):
        time.sleep(1)
    shares = [_shares(first, after) for first, after in pairwise(taken)]
    added = {
        name: [shares[at][name] - _around([each[name] for each in shares], at) for at in range(1, TURNS, 2)]
        for name in shares[0]
    }
    return Turns(seconds, began, shares[::2], added, missed)


def _steps(product: Product, before: set[Path]) -> list[dict[str, Any]]:
    """What rank 0 has written of its steps, of the run that came after those of `before`."""
    path = next((each for each in product.data.rglob("events-0.jsonl") if each not in before), None)
    lines = path.read_text().splitlines() if path else []
    return [json.loads(line) for line in lines if '"kind":"step"' in line and line.endswith("}")]


def _wait_for_step(product: Product, before: set[Path], step: int) -> int:
    """The last step that is done, that one at least."""
    while True:
        done = [event["step"] for event in _steps(product, before)]
        if done and done[-1] >= STEPS:
            raise RuntimeError("the run was over before its turns were: the clients came too late, on a busy machine")
        if done and done[-1] >= step:
            return int(done[-1])
        time.sleep(0.2)


def _processor_seconds(product: Product, clients: int) -> dict[str, float]:
    """Processor seconds until now of each part of the product, of the clients, and of the ranks that are there."""
    taken = dict.fromkeys((*_PARTS, "redis", "clients", "ranks"), 0.0)
    for process in product.children():
        with suppress(psutil.Error):
            command, times = " ".join(process.cmdline()), process.cpu_times()
            if "labs/leash.py" in command:
                continue
            name = next((name for name, part in _PARTS.items() if part in command), None)
            if name is None and "-server" in process.name():  # redis-server, or valkey's
                name = "redis"
            if name is None and "labs.host" in command:  # what it forks has its name
                name = "ranks"
            if name is not None:
                taken[name] += times.user + times.system
    times = psutil.Process(clients).cpu_times()
    taken["clients"] = times.user + times.system
    return taken


def _shares(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Of what the ranks took in between, by part."""
    ranks = after["ranks"] - before["ranks"]
    return {name: (after[name] - before[name]) / ranks for name in before if name != "ranks"}
