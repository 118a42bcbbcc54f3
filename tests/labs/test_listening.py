"""Who listens while ranks run: a step of each family of strategies and every program, started warm; and started cold
some of them, for how ranks were started is over before they know what to do."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from labs.command import environment, local_torchrun
from labs.spec import PROGRAMS, SUPPORT, parse_run_spec
from labs.warm import WarmHost, WarmRun
from tests.labs.ranks import PROGRAMS as SCRIPTS
from tests.labs.ranks import parse_events
from tests.labs.test_programs import SMALL_OPTIONS
from tests.support.sockets import Watch

pytestmark = pytest.mark.slow

RANKS = 4
COLD_RANKS = 2  # each loads torch
MODEL = {"hidden": 32, "heads": 8, "vocab": 256, "layers": 4}
TRAINING = {"sequence": 32, "micro_batch": 2, "micro_batches": 4, "steps": 1}
FAMILIES = sorted({row.family for row in SUPPORT})
TIME_LIMIT_SECONDS = 240


def spec_of_family(family: str, ranks: int = RANKS) -> dict[str, Any]:
    """The first row of the family with a layout for so many ranks."""
    for row in (row for row in SUPPORT if row.family == family):
        for layout in row.layouts:
            data = {
                "model": {**MODEL, **row.model},
                "training": {**TRAINING, **row.training},
                "parallel": dict(layout),
                "device": "cpu",
                "compression": dict(row.compression) or {"kind": "none"},
            }
            if parse_run_spec(data).parallel.world_size == ranks:
                return data
    raise LookupError(f"no row of {family} has a layout for {ranks} ranks")


def spec_of_program(name: str, ranks: int = RANKS) -> dict[str, Any]:
    axis = PROGRAMS[name].axis
    options = SMALL_OPTIONS[name] | ({"micro_batches": [4]} if name == "schedule" else {})
    return {"program": name, "options": options, "parallel": {axis: ranks} if axis else {}, "device": "cpu"}


EVERYTHING = {
    **{family: spec_of_family(family) for family in FAMILIES},
    **{name: spec_of_program(name) for name in PROGRAMS},
}
COLD = {
    **{family: spec_of_family(family, COLD_RANKS) for family in ("data", "pipeline")},
    "collectives": spec_of_program("collectives", COLD_RANKS),
}
WAYS = [("cold", name) for name in COLD] + [("warm", name) for name in EVERYTHING]


@dataclass
class Watched:
    """What ranks did, and who listened meanwhile."""

    done: list[str]
    watch: Watch
    said: str


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, host: WarmHost) -> Callable[[str], Watched]:
    """everything("cold" or "warm"): all that is run in this way, in one start."""
    return cache(lambda way: run_all(way, tmp_path_factory.mktemp(way), host))


def run_all(way: str, folder: Path, host: WarmHost) -> Watched:
    (folder / "specs.json").write_text(json.dumps(EVERYTHING if way == "warm" else COLD))
    script = SCRIPTS / "everything.py"
    ranks = RANKS if way == "warm" else COLD_RANKS
    command = [*local_torchrun(ranks), str(script), "--specs", str(folder / "specs.json"), "--events", str(folder)]
    output = folder / "output"
    if way == "warm":
        process: subprocess.Popen[bytes] | WarmRun = host.start(command, folder, environment(), output)
        watched = host.pid  # what other tests ran from it is over
    else:
        with output.open("wb") as file:
            process = subprocess.Popen(command, env=environment(), stdout=file, stderr=subprocess.STDOUT)
        watched = process.pid
    assert watched is not None
    with Watch(watched) as watch:
        code = process.wait(TIME_LIMIT_SECONDS)
    said = output.read_text()
    assert code == 0, said
    events = parse_events((folder / "events-0.jsonl").read_text())
    return Watched([event["line"] for event in events if event["kind"] == "log"], watch, said)


@pytest.mark.parametrize(("way", "name"), WAYS)
def test_ranks_listen_on_loopback_only(everything: Callable[[str], Watched], way: str, name: str) -> None:
    found = everything(way)
    assert name in found.done
    assert found.watch.looks > 10
    assert found.watch.seen, "gloo's pairs listen somewhere"
    assert found.watch.outside == []
