"""Starting a run: by a program, by hand (what comes of it: journeys), and with a spec that cannot be run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from labs.command import compact, environment, plain_command, read_spec, torchrun_command
from labs.spec import SpecError, parse_run_spec
from tests.labs.ranks import DDP, FSDP, SMALL, spec_of, twelve_rows


def test_the_program_starts_this_python_and_asks_for_events(tmp_path):
    spec = parse_run_spec(spec_of({"data": 2}))
    command = torchrun_command(spec, tmp_path / "events", tmp_path / "logs")
    assert command[:3] == [sys.executable, "-m", "torch.distributed.run"]
    assert command[command.index("--nproc-per-node") + 1] == "2"
    assert command[command.index("--log-dir") + 1] == str(tmp_path / "logs")
    assert command[-2:] == ["--events", str(tmp_path / "events")]
    assert read_spec(command[command.index("--spec") + 1]) == spec


def test_the_plain_command_has_nothing_in_it_that_is_a_default_anyway():
    spec = parse_run_spec({"model": "gpt-mini", "training": {"steps": 5}, "parallel": {"data": 2, "zero": 3}})
    words = shlex.split(plain_command(spec))
    assert words[:2] == ["env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"]
    assert Path(words[2]).name == "torchrun"
    assert "store_type=file" in words
    assert "--standalone" not in words
    assert words[-6:-1] == ["--nproc-per-node", "2", "-m", "labs.train", "--spec"]
    assert words[-1] == '{"model":"gpt-mini","training":{"steps":5},"parallel":{"data":2,"zero":3}}'


@pytest.mark.parametrize("given", [twelve_rows(DDP, 2, 3, 2), twelve_rows(FSDP, 4, 1, 3), {"model": "gpt-small"}])
def test_the_short_spec_is_the_whole_spec(given):
    spec = parse_run_spec({**given, "probes": ["memory"]})
    assert parse_run_spec(json.loads(compact(spec))) == spec


def test_a_spec_may_be_a_file(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"model": SMALL}))
    assert read_spec(str(path)) == parse_run_spec({"model": SMALL})
    with pytest.raises(SpecError):
        read_spec(str(tmp_path / "none.json"))


def test_every_violation_is_named_and_the_exit_code_is_2(train_alone):
    bad = {"model": {**SMALL, "heads": 5}, "training": {"steps": 0, "micro_batch": "many"}, "parallel": {"data": 9}}
    done = train_alone("--spec", json.dumps(bad))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    fields = {line.partition(":")[0] for line in lines}
    assert fields == {"model.heads", "training.steps", "training.micro_batch", "parallel.data"}
    assert len(lines) == 4


def test_the_wrong_number_of_ranks_is_named_with_the_right_one(train_alone):
    done = train_alone("--spec", json.dumps(spec_of({"data": 4})), world_size="2")
    assert done.returncode == 2
    assert "2 ranks" in done.stderr
    assert "for 4" in done.stderr


def test_without_torchrun_it_says_how_to_start(train_alone):
    spec = spec_of({"data": 2})
    done = train_alone("--spec", json.dumps(spec), world_size=None)
    assert done.returncode == 2
    assert plain_command(parse_run_spec(spec)) in done.stderr


def test_threads_of_a_rank_sleep_while_they_wait_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert environment()["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert environment()["OMP_WAIT_POLICY"] == "ACTIVE"


def test_ranks_are_not_told_the_products_settings(monkeypatch):
    monkeypatch.setenv("RANKZERO_GRADER_KEY", "secret")
    found = environment({"RANKZERO_RUN_STARTED_AT": "1.0"})
    assert "secret" not in found.values()
    assert found["RANKZERO_RUN_STARTED_AT"] == "1.0"
