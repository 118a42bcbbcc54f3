"""The entry point that torchrun starts on every rank: `torchrun ... -m labs.train --spec SPEC`.

Here is what comes before the training itself: what is asked for, where to report, and what happens when
something goes wrong. The training is in `labs.loop` (the other programs are in `labs.programs`), which is loaded only
then: torch takes a second to import, and whoever is watching should not wait so long for the first sign of life.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from labs.command import plain_command, read_spec, restart_count
from labs.console import Console
from labs.failures import CannotStartError, end_on_signal, exit_at_once, fail
from labs.gang import HOST
from labs.lifeline import die_with_parent
from labs.preload import preload
from labs.probes.report import EventFile, Reporter
from labs.pulse import keep_pulse
from labs.spec import RunSpec, SpecError
from labs.spec.events import STARTS_AGAIN, HostEvent

_EXIT_USAGE = 2


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 when the training is done, 2 when it cannot be done as asked, 1 when it failed."""
    options = _options(arguments)
    rank = int(os.environ.get("RANK", "0"))
    try:
        spec = read_spec(options.spec)
        _check_ranks(spec)
    except (SpecError, CannotStartError) as error:
        if rank == 0:  # the others found the same
            sys.stderr.write(f"{error}\n")
        return _EXIT_USAGE

    write = Console(spec.training.steps) if options.events is None else EventFile(options.events, rank)
    reporter = Reporter(rank, write)
    end_on_signal(reporter, spec.parallel.world_size)
    die_with_parent()
    if options.events is not None:
        keep_pulse(options.events, rank)
    try:
        if host := os.environ.get(HOST):
            reporter.emit(HostEvent, host)
        if restarts := restart_count():
            most = f" of {spec.restarts}" if restarts <= spec.restarts else ""  # a lost host is none of those asked for
            reporter.phase("starting", f"{STARTS_AGAIN}, restart {restarts}{most}")
        reporter.phase("starting", "loading torch" if "torch" not in sys.modules else None)
        work = _load(spec)
        work(spec, reporter)
    except BaseException as error:
        fail(reporter, error)
    exit_at_once(0)


def _load(spec: RunSpec) -> Callable[[RunSpec, Reporter], None]:
    """What the ranks do, with torch. Half of a run's start-up is importing it."""
    place, name = ("labs.loop", "train") if spec.program == "train" else ("labs.programs.running", "run_program")
    preload(place, "torch._dynamo")  # which DDP, FSDP and every optimizer import when first used
    work: Callable[[RunSpec, Reporter], None] = getattr(importlib.import_module(place), name)
    return work


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m labs.train", description="Train on the ranks of torchrun.")
    parser.add_argument("--spec", required=True, help="the run as a JSON object, or a file with one")
    parser.add_argument("--events", type=Path, help="a folder for events-<rank>.jsonl, instead of progress lines")
    return parser.parse_args(arguments)


def _check_ranks(spec: RunSpec) -> None:
    wanted = spec.parallel.world_size
    if "WORLD_SIZE" not in os.environ:
        raise CannotStartError("not under torchrun", f"Start the ranks with torchrun:\n{plain_command(spec)}")
    started = int(os.environ["WORLD_SIZE"])
    if started != wanted:
        raise CannotStartError(
            "wrong world size",
            f"torchrun started {started} ranks, but the spec's parallel layout is for {wanted}: "
            f"use --nproc-per-node {wanted}, or change `parallel`.",
        )


if __name__ == "__main__":
    sys.exit(main())
