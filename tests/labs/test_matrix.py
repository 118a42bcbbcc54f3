"""Every row of the support matrix on every one of its layouts: as exact as it says, and as much sent and held as theory
says, on every rank. All rows for one number of ranks run in one start of torchrun."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.theory.runs import RunTheory, rank_theory
from app.theory.runs.place import world
from labs.spec import SUPPORT, Row, RunSpec, parse_run_spec
from tests.labs.ranks import PROGRAMS, call, parse_events

pytestmark = pytest.mark.slow

# Small, but with everything that divides: eight heads for eight ways, layers for four stages of two chunks.
MODEL = {"layers": 8, "hidden": 32, "heads": 8, "vocab": 256}
TRAINING = {"sequence": 32, "micro_batch": 2, "micro_batches": 2, "steps": 4, "learning_rate": 1e-3}
ROWS_OF_A_STEP = 16  # the global batch, whatever the layout
TIME_LIMIT_SECONDS = 600  # for all rows of one number of ranks


@dataclass(frozen=True)
class Case:
    row: Row
    layout: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.row.id}-{self.spec.parallel.world_size}"

    @property
    def data(self) -> dict[str, Any]:
        training = {**TRAINING, **self.row.training}
        training["micro_batch"] = max(1, ROWS_OF_A_STEP // (self.layout.get("data", 1) * training["micro_batches"]))
        compression = {"compression": dict(self.row.compression)} if self.row.compression else {}
        model = {**MODEL, **self.row.model}
        return {"model": model, "training": training, "parallel": dict(self.layout), "device": "cpu", **compression}

    @property
    def spec(self) -> RunSpec:
        return parse_run_spec(self.data)


CASES = [Case(row, layout) for row in SUPPORT for layout in row.layouts]
IDS = [case.id for case in CASES]


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], list[dict[str, Any]]]:
    """seen(case): what every rank reported of it. The first case of a world size runs all of that size."""
    found: dict[int, dict[str, list[dict[str, Any]]]] = {}

    def of(case: Case) -> list[dict[str, Any]]:
        ranks = case.spec.parallel.world_size
        if ranks not in found:
            found[ranks] = run_all(ranks, tmp_path_factory.mktemp(f"matrix-{ranks}"))
        reports = found[ranks].get(case.id, [])
        errors = [report["error"] for report in reports if "error" in report]
        assert not errors, errors[0]
        assert len(reports) == ranks, f"{case.id} did not run: an earlier row ended the ranks, or took too long"
        return reports

    return of


def run_all(ranks: int, folder: Path) -> dict[str, list[dict[str, Any]]]:
    cases = [case for case in CASES if case.spec.parallel.world_size == ranks]
    rows = [{"id": case.id, "spec": case.data, "fp64": case.spec.training.precision == "fp32"} for case in cases]
    (folder / "rows.json").write_text(json.dumps(rows))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "localhost"]
    command += ["--nproc-per-node", str(ranks), str(PROGRAMS / "matrix.py")]
    command += ["--rows", str(folder / "rows.json"), "--events", str(folder)]
    with contextlib.suppress(subprocess.TimeoutExpired):  # what had run by then is judged all the same
        call(command, timeout=TIME_LIMIT_SECONDS)
    by_id: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("events-*.jsonl")):
        for event in parse_events(path.read_text()):
            by_id.setdefault(event["id"], []).append(event)
    return by_id


def test_ids_are_the_rows_own():
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_loss_is_one_processs(seen, case):
    """After three steps, relative. Another seed differs in the first digits, so the tolerance means something."""
    for report in seen(case):
        assert report["losses"][-1] == pytest.approx(report["reference"][-1], rel=case.row.tolerance)
        assert report["losses"][-1] < report["losses"][0]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_ledger_is_theorys(seen, case):
    """Counts and payload of every collective, exactly, on every rank."""
    for report, place in zip(seen(case), world(case.spec), strict=True):
        theory = rank_theory(case.spec, place)
        found = ledger(report["collectives"])
        for key, (count, size) in expected(theory).items():
            assert found.pop(key) == (count, size), f"{key}, rank {report['rank']}"
        assert not found


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_model_state_is_theorys(seen, case):
    """Within one per cent, of which the optimizer's step counters are the most."""
    for report, place in zip(seen(case), world(case.spec), strict=True):
        theory = rank_theory(case.spec, place)
        for component, size_bytes in theory.model_state_bytes.items():
            assert report["moments"]["step_end"][component] == pytest.approx(size_bytes, rel=0.01, abs=2000), component


def ledger(collectives: list[dict[str, Any]]) -> dict[tuple[str, str, str], tuple[int, float]]:
    return {
        (entry["operation"], entry["phase"], entry["group"]): (entry["count"], entry["payload_bytes"])
        for entry in collectives
    }


def expected(theory: RunTheory) -> dict[tuple[str, str, str], tuple[int, float]]:
    found: dict[tuple[str, str, str], tuple[int, float]] = {}
    for each in theory.transfers:
        key = (each.operation, each.phase, each.group)
        count, size = found.get(key, (0, 0.0))
        found[key] = (count + each.count, size + each.payload_bytes)
    return found
