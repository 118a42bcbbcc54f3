"""Dry runs of models that no machine here could hold."""

from __future__ import annotations

import json
import sys

import pytest

from app.theory.runs import run_theory
from labs.spec import SpecError, parse_run_spec
from tests.labs.ranks import call

LLAMA_70B = {
    "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn_hidden": 28672, "vocab": 128256, "gated_mlp": True,
    "tied_embeddings": False,
}  # fmt: skip
MOST_RESIDENT_BYTES = 2**30


def spec(parallel: dict, **training: object) -> dict:
    return {"model": LLAMA_70B, "training": {"sequence": 4096, "micro_batch": 1, **training}, "parallel": parallel}


@pytest.mark.slow
def test_seventy_billion_parameters_on_256_ranks_fit_into_a_gibibyte():
    data = spec({"data": 32, "pipeline": 8, "zero": 3}, micro_batches=8, reshard_after_forward=False)
    done = call([sys.executable, "-m", "labs.dryrun", "-"], input=json.dumps(data), timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["resident_bytes"] < MOST_RESIDENT_BYTES
    assert found["parameters"] == pytest.approx(70.6e9, rel=0.01)
    theory = run_theory(parse_run_spec(data, dry=True))
    worst = max(kind["model_state_bytes"]["total"] for kind in found["kinds"])
    assert worst == pytest.approx(theory.state_total_bytes, rel=0.01)
    assert sum(kind["ranks"] for kind in found["kinds"]) == 256
    assert [kind["rank"] for kind in found["kinds"]] == [0, 32, 224]


def test_a_dry_run_takes_what_no_run_could():
    assert parse_run_spec(spec({"data": 1024, "zero": 3}), dry=True).parallel.world_size == 1024
    with pytest.raises(SpecError) as raised:
        parse_run_spec(spec({"data": 2048, "zero": 3}), dry=True)
    (violation,) = raised.value.violations
    assert (violation.field, violation.accepted) == ("parallel.data", "1 to 1024")


@pytest.mark.parametrize(("given", "dry"), [("run", True), ("dry", False)])
def test_each_command_takes_its_own_mode(given, dry):
    with pytest.raises(SpecError) as raised:
        parse_run_spec({"model": "gpt-mini", "mode": given}, dry=dry)
    assert [violation.field for violation in raised.value.violations] == ["mode"]


def test_bad_input_is_named_and_the_exit_code_is_2():
    done = call([sys.executable, "-m", "labs.dryrun", "-"], input=json.dumps(spec({"data": 0})))
    assert done.returncode == 2
    assert done.stderr.startswith("parallel.data:")
