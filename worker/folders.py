"""The folders of a run: one of each claim, for what its ranks report and print, one for the checkpoints of all, and one
for what the allocator recorded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from app.lab.work import Claim
from labs.checkpoints import named_for_checkpoints
from labs.command import CHECKPOINTS, GANG_RESTARTS, SNAPSHOTS
from labs.snapshots import named_for_snapshots


def name_of_claim(run_id: int, lease: str) -> str:
    """Of this claim's own: a database that starts again at run 1 must not read what an older run 1 left."""
    return f"{run_id}-{lease[:8]}"


def folder_of_checkpoints(runs: Path, claim: Claim) -> Path:
    """Of the run's own, whoever claims it, below the folder of all `runs`: it goes on from what an earlier start has
    written. Where that folder is on a file system that hosts share, any of them may be lost."""
    return named_for_checkpoints(runs, claim.identity)


def variables_for_ranks(runs: Path, claim: Claim) -> Mapping[str, str]:
    """What tells the ranks where the run's checkpoints are and where snapshots go, and, of several hosts, how often all
    were started again. Raises OSError."""
    variables = {GANG_RESTARTS: str(claim.starts - 1)} if claim.spec.hosts > 1 else {}
    places = {
        CHECKPOINTS: folder_of_checkpoints(runs, claim) if claim.spec.training.checkpoint_every is not None else None,
        SNAPSHOTS: named_for_snapshots(runs, claim.identity) if "allocator" in claim.spec.probes else None,
    }
    for name, folder in places.items():
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            variables[name] = str(folder)
    return variables


def let_go(runs: Path, claim: Claim, folder: Path) -> None:
    """Remove what a run has left, of which this claim's folder is `folder`."""
    for each in (folder, folder_of_checkpoints(runs, claim), named_for_snapshots(runs, claim.identity)):
        shutil.rmtree(each, ignore_errors=True)
