"""Dry runs of models that no machine here could hold."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

from app.theory.presets import PRESETS
from app.theory.runs import run_theory
from labs.dryrun import kinds_of_ranks
from labs.model import GPT, build_model
from labs.parallel.mesh import Mesh
from labs.probes import watched
from labs.probes.instrument import Instrument
from labs.spec import LARGE_MODELS, SpecError, parse_run_spec
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


def test_of_a_pipeline_a_rank_keeps_its_own_stages_only(monkeypatch):
    """Not the model that every rank has built to begin with, nor what is still to be done to its gradients."""
    parts: list[weakref.ref[nn.Module]] = []

    def build(*arguments: Any) -> GPT:
        model = build_model(*arguments)
        parts.extend(weakref.ref(part) for part in [model.positions, *model.blocks, model.norm])
        return model

    monkeypatch.setattr(watched, "build_model", build)
    model = {"layers": 4, "hidden": 32, "heads": 4, "vocab": 256}
    training = {"sequence": 32, "micro_batches": 2}
    parallel = {"pipeline": 2, "tensor": 2, "sequence_parallel": True}
    run = parse_run_spec({"model": model, "training": training, "parallel": parallel}, dry=True)
    dist.init_process_group("fake", rank=2, world_size=4, store=FakeStore())
    try:
        mesh = Mesh(run.parallel, "cpu")
        instrument = Instrument((), 1, torch.device("cpu"), mesh)
        strategy, _ = watched.spread_watched(run, mesh, torch.device("cpu"), instrument)
        gc.collect()
        assert [part() is not None for part in parts] == [False, False, False, True, True, True]
        assert len(strategy.modules) == 1
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("schedule", "names"),
    [("1f1b", ["first stage", "middle stages", "last stage"]), ("zbv", ["both ends", "middle stages", "turn"])],
)
def test_ranks_of_one_kind_do_the_same(schedule, names):
    stages = {"1f1b": 1, "zbv": 2}[schedule]
    given = spec({"pipeline": 8, "virtual_stages": stages, "schedule": schedule}, micro_batches=8)
    kinds = kinds_of_ranks(parse_run_spec(given, dry=True))
    assert kinds == list(zip(names, [0, 1, 7], strict=True))


def test_a_dry_run_takes_what_no_run_could():
    assert parse_run_spec(spec({"data": 1024, "zero": 3}), dry=True).parallel.world_size == 1024
    with pytest.raises(SpecError) as raised:
        parse_run_spec(spec({"data": 2048, "zero": 3}), dry=True)
    (violation,) = raised.value.violations
    assert (violation.field, violation.accepted) == ("parallel.data", "1 to 1024")


@pytest.mark.parametrize("name", LARGE_MODELS)
def test_large_models_are_dry_run_by_name_and_are_the_planners(name):
    spec = {"model": name, "parallel": {"data": 256, "zero": 3}}
    assert parse_run_spec(spec, dry=True).model == PRESETS[name].model
    with pytest.raises(SpecError, match="can only be run dry"):
        parse_run_spec({"model": name, "parallel": {"data": 2}})


@pytest.mark.parametrize(("given", "dry"), [("run", True), ("dry", False)])
def test_each_command_takes_its_own_mode(given, dry):
    with pytest.raises(SpecError) as raised:
        parse_run_spec({"model": "gpt-mini", "mode": given}, dry=dry)
    assert [violation.field for violation in raised.value.violations] == ["mode"]


def test_bad_input_is_named_and_the_exit_code_is_2():
    done = call([sys.executable, "-m", "labs.dryrun", "-"], input=json.dumps(spec({"data": 0})))
    assert done.returncode == 2
    assert done.stderr.startswith("parallel.data:")
