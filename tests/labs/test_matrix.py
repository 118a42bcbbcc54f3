"""Rows of the support matrix on their layouts: as exact as each says, and as much sent and held as theory says, on
every rank. All rows for one number of ranks run in one start of torchrun. Which rows: see `covering`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.lab.film.pieces import step_of
from app.theory.lab_runs import RunTheory, rank_theory, world
from labs.command import local_torchrun
from labs.spec import SUPPORT, Row, RunSpec, SpecError, parse_run_spec
from labs.spec.events import read_events
from tests.labs.covering import Options, covering, share_of_this_commit
from tests.labs.ranks import PROGRAMS, call, parse_events, torchrun
from tests.support.shared import made_once

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

# Small, but with everything that divides: eight heads for eight ways, and two layers, so that one can be gathered while
# the other computes; of a pipeline as many on each rank. One where a rank has one stage and gathers nothing (but
# for autocast, of which a dry run's peak is not quite the real one: see there).
LAYERS, STAGE_LAYERS = 2, 1
MODEL = {"hidden": 32, "heads": 8, "vocab": 256}
TRAINING = {"sequence": 32, "micro_batch": 2, "micro_batches": 2, "steps": 3, "learning_rate": 1e-3}
ROWS_OF_A_STEP = 16  # the global batch, whatever the layout
COUNTED = ("count", "payload_bytes", "wire_bytes")
TIME_LIMIT_SECONDS = 1200  # for all rows of one number of ranks


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
        layers = self.layout.get("pipeline", 1) * self._layers_of_a_rank
        model = {**MODEL, "layers": layers, **self.row.model}
        return {"model": model, "training": training, "parallel": dict(self.layout), "device": "cpu", **compression}

    @property
    def _layers_of_a_rank(self) -> int:
        if "pipeline" not in self.layout:
            return LAYERS
        is_one_stage = self.layout.get("virtual_stages", 1) == 1 and not self.layout.get("zero")
        is_cast = self.row.training.get("state_layout") == "torch-amp"
        return STAGE_LAYERS if is_one_stage and not is_cast else LAYERS

    @property
    def spec(self) -> RunSpec:
        return parse_run_spec(self.data)


CASES = [Case(row, layout) for row in SUPPORT for layout in row.layouts]
IDS = [case.id for case in CASES]


def options(case: Case) -> Options:
    """What a row is made of, whatever the sizes: the axes, and every setting that is not the default."""
    named = {name: value if name in ("zero", "schedule") else bool(value) for name, value in case.layout.items()}
    settings = {**case.row.training, **case.row.model, **(case.row.compression or {})}
    settings["micro_batches"] = settings.get("micro_batches", 1) > TRAINING["micro_batches"]
    settings.pop("learning_rate", None)
    return frozenset((name, str(value)) for name, value in {**named, **settings}.items())


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """A test of each case."""
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


def can_be_dry_run(case: Case) -> bool:
    try:
        parse_run_spec(case.data, dry=True)
    except SpecError:
        return False
    return True


def _replicated(case: Case) -> Case | None:
    """The case that differs only in that data ranks replicate what they shard in this one. Not under autocast: DDP's
    keeps 16-bit copies of weights for backward, which FSDP2's policy gathers again."""
    if case.spec.training.state_layout == "torch-amp":
        return None
    for other in CASES:
        is_alike = (other.row.model, other.row.training) == (case.row.model, case.row.training)
        if is_alike and {**other.layout, "zero": 3} == case.layout != other.layout:
            return other
    return None


def _of_pairs(cases: list[Case], run_anyhow: list[Case]) -> list[Case]:
    return covering(cases, options, lambda case: case.spec.parallel.world_size**0.5, run_anyhow)


# One layout of each strategy: the widest.
COULD_BE_DRY = [case for case in CASES if case.layout is case.row.layouts[-1] and can_be_dry_run(case)]
DRY_OF_PAIRS = _of_pairs(COULD_BE_DRY, [])
OF_PAIRS = {case.id for case in (*DRY_OF_PAIRS, *_of_pairs(CASES, DRY_OF_PAIRS))}
OF_COMMIT = {case.id for case in share_of_this_commit([case for case in CASES if case.id not in OF_PAIRS])}
_TWINS = {twin.id for case in CASES if case.id in OF_PAIRS | OF_COMMIT and (twin := _replicated(case))}
RUN = [case for case in CASES if case.id in OF_PAIRS | OF_COMMIT | _TWINS]
DRY_RUN = [case for case in COULD_BE_DRY if case in DRY_OF_PAIRS or case.id in OF_COMMIT]
SHARDED = [case for case in RUN if (twin := _replicated(case)) and twin in RUN]


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], list[dict[str, Any]]]:
    """seen(case): what every rank reported of it. The first case of a world size runs all of that size."""
    folder = tmp_path_factory.getbasetemp()

    @cache
    def all_of(ranks: int) -> dict[str, list[dict[str, Any]]]:
        return reports(made_once(folder, f"matrix of {ranks} ranks", lambda place: run_all(ranks, place)))

    def of(case: Case) -> list[dict[str, Any]]:
        ranks = case.spec.parallel.world_size
        found = all_of(ranks).get(case.id, [])
        errors = [report["error"] for report in found if "error" in report]
        assert not errors, errors[0]
        assert len(found) == ranks, f"{case.id} did not run: an earlier row ended the ranks, or took too long"
        return found

    return of


def run_all(ranks: int, folder: Path) -> None:
    cases = [case for case in RUN if case.spec.parallel.world_size == ranks]
    rows = [{"id": case.id, "spec": case.data, "fp64": case.spec.training.precision == "fp32"} for case in cases]
    (folder / "rows.json").write_text(json.dumps(rows))
    command = [*local_torchrun(ranks), str(PROGRAMS / "matrix.py")]
    command += ["--rows", str(folder / "rows.json"), "--events", str(folder)]
    with contextlib.suppress(subprocess.TimeoutExpired):  # what had run by then is judged all the same
        torchrun(command, timeout=TIME_LIMIT_SECONDS)


def reports(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """By case, what each rank wrote down."""
    by_id: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("events-*.jsonl")):
        for event in parse_events(path.read_text()):
            by_id.setdefault(event["id"], []).append(event)
    return by_id


@pytest.fixture(scope="session")
def dry(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], dict[str, Any]]:
    """dry(case): its dry run. The first case runs all, in one process: more than a tenth of it is to load torch."""
    folder = tmp_path_factory.getbasetemp()

    @cache
    def all_of_them() -> dict[str, dict[str, Any]]:
        def make(place: Path) -> None:
            (place / "rows.json").write_text(json.dumps([{"id": case.id, "spec": case.data} for case in DRY_RUN]))
            done = call(
                [sys.executable, str(PROGRAMS / "dry.py"), str(place / "rows.json")], timeout=TIME_LIMIT_SECONDS
            )
            assert done.returncode == 0, done.stderr
            (place / "dry.jsonl").write_text(done.stdout)

        lines = parse_events((made_once(folder, "dry runs", make) / "dry.jsonl").read_text())
        return {line["id"]: line["dry"] for line in lines}

    return lambda case: all_of_them()[case.id]


def test_ids_are_the_rows_own():
    assert len(set(IDS)) == len(IDS)


def test_what_cannot_be_dry_run_depends_on_values():
    """Routers, compressors, scaled losses and state elsewhere: nothing else is left out."""
    left_out = {case.row.id for case in CASES} - {case.row.id for case in COULD_BE_DRY}
    assert len(left_out) < len({case.row.id for case in CASES}) / 2
    for row in (row for row in SUPPORT if row.id in left_out):
        elsewhere = {"loss_scaling", "offload", "zero_implementation"} & set(row.training)
        assert row.compression or "experts" in row.model or elsewhere, row.id


@each(RUN)
def test_the_loss_is_one_processs(seen, case):
    """After two steps, relative. Another seed differs in the first digits, so the tolerance means something."""
    for report in seen(case):
        assert report["losses"][-1] == pytest.approx(report["reference"][-1], rel=case.row.tolerance)
        assert report["losses"][-1] < report["losses"][0]


@each(RUN)
def test_the_ledger_is_theorys(seen, case):
    """Counts and payload of every collective, exactly, on every rank; where a router decides who gets how much, the
    payload of all ranks together."""
    sums: dict[tuple[str, str, str], list[float]] = {}
    for report, place in zip(seen(case), world(case.spec), strict=True):
        theory = rank_theory(case.spec, place)
        found = ledger(report["collectives"])
        means = {(each.operation, each.phase, each.group) for each in theory.transfers if each.is_mean}
        for key, (count, size) in expected(theory).items():
            counted, payload_bytes = found.pop(key)
            here = f"{key}, rank {report['rank']}"
            assert counted == count, here
            assert payload_bytes == size or key in means, here
            sums.setdefault(key, []).append(payload_bytes - size)
        assert not found
    assert all(sum(differences) == 0 for differences in sums.values())


@each(RUN)
def test_the_film_draws_every_byte_of_the_ledger(seen, case):
    """On every rank and for every kind of collective: how many, their payload and what goes over the wire."""
    found = seen(case)
    step = step_of(case.spec, [event for report in found for event in read_events(report["spans"])], [])
    assert step is not None
    for report, rank in zip(sorted(found, key=lambda each: each["rank"]), step.ranks, strict=True):
        drawn: dict[tuple[str, str, str], list[int]] = {}
        for piece in rank.moved:
            assert piece.moved is not None
            moved = piece.moved
            sums = drawn.setdefault((moved.operation, moved.phase, moved.group), [0, 0, 0])
            for index, value in enumerate((1, moved.payload_bytes, moved.wire_bytes)):
                sums[index] += value
            assert rank.rank in moved.members
        assert rank.over_by(step.seconds) == rank.moved  # at its end all of it was sent
        assert drawn == {
            (entry["operation"], entry["phase"], entry["group"]): [entry[name] for name in COUNTED]
            for entry in report["collectives"]
        }


@each(RUN)
def test_the_model_state_is_theorys(seen, case):
    """Within one per cent, of which the optimizer's step counters are the most."""
    for report, place in zip(seen(case), world(case.spec), strict=True):
        theory = rank_theory(case.spec, place)
        for component, size_bytes in theory.model_state_bytes.items():
            assert report["moments"]["step_end"][component] == pytest.approx(size_bytes, rel=0.01, abs=2000), component


@each(RUN)
def test_nothing_is_kept_for_a_backward_that_is_over(seen, case):
    for report in seen(case):
        assert report["moments"]["backward_start"]["activations"] > 0
        assert report["moments"]["step_end"]["activations"] == 0


@each(SHARDED)
def test_what_is_gathered_is_temporary(seen, case):
    """What autograd keeps is the same whether a layer's parameters are here or were gathered: those are no
    activations."""
    for sharded, replicated in zip(seen(case), seen(_replicated(case)), strict=True):
        kept = [report["moments"]["backward_start"]["activations"] for report in (sharded, replicated)]
        assert kept[0] == kept[1] > 0


@each(DRY_RUN)
def test_a_dry_run_sees_what_the_real_one_does(seen, dry, case):
    """The same collectives to the byte, and the same peak within two per cent, on one rank of every kind.

    Under autocast a dry pipeline's peak has the outputs of all stages but the last besides, B × T × H in fp32 for every
    micro-batch: 4.6 per cent of this one. Why is not known.
    """
    in_cast_pipeline = case.spec.parallel.pipeline > 1 and case.spec.training.state_layout == "torch-amp"
    tolerance = 0.05 if in_cast_pipeline else 0.02
    reports = {report["rank"]: report for report in seen(case)}
    for kind in dry(case)["kinds"]:
        real = reports[kind["rank"]]
        assert ledger(kind["collectives"]) == ledger(real["collectives"])
        assert kind["peak_bytes"]["total"] == pytest.approx(real["moments"]["peak"]["total"], rel=tolerance)
        for component, size_bytes in kind["model_state_bytes"].items():
            if component != "total":
                assert size_bytes == pytest.approx(real["moments"]["step_end"][component], rel=tolerance), component


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
