"""Dry runs of models that no machine here could hold."""

from __future__ import annotations

import gc
import json
import weakref
from io import StringIO
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

from app.theory.presets import PRESETS
from app.theory.transformer import parameter_count
from labs.dryrun import kinds_of_ranks, main
from labs.model import GPT, build_model
from labs.parallel.mesh import Mesh
from labs.probes import watched
from labs.probes.instrument import Instrument
from labs.spec import LARGE_MODELS, SpecError, parse_run_spec
from tests.labs.large import MOST_RESIDENT_BYTES, MOST_SECONDS, dry_run, given, ratios

LLAMA_70B = {
    "layers": 80,
    "hidden": 8192,
    "heads": 64,
    "kv_heads": 8,
    "ffn_hidden": 28672,
    "vocab": 128256,
    "gated_mlp": True,
    "tied_embeddings": False,
}


def spec(parallel: dict, **training: object) -> dict:
    return {"model": LLAMA_70B, "training": {"sequence": 4096, "micro_batch": 1, **training}, "parallel": parallel}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "recompute", "layers"),
    [("FSDP", "full", 2), ("TP8 + FSDP", "none", 2), ("TP8 x PP8 + FSDP", "none", 8)],
)
def test_what_256_ranks_of_a_70b_model_hold_and_send_is_theorys(layout, recompute, layers):
    """State to one per cent, activations to ten, payload to the byte, in a minute and a gibibyte. Fewer layers say as
    much; what all six layouts take in full is a benchmark (`python -m tests.bench dryrun`)."""
    run = dry_run(given(layout, recompute, layers))
    assert run.found["world_size"] == sum(kind["ranks"] for kind in run.found["kinds"]) == 256
    assert run.found["parameters"] == parameter_count(run.spec.model)
    assert run.found["resident_bytes"] < MOST_RESIDENT_BYTES
    assert run.seconds < MOST_SECONDS
    for each in ratios(run):
        for component in ("parameters", "gradients", "optimizer"):
            assert each[component] == pytest.approx(1, rel=0.01), (each["kind"], component)
        assert each["activations"] == pytest.approx(1, rel=0.1), each["kind"]
        assert each["payload_is_equal"], each["kind"]


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


def test_bad_input_is_named_and_the_exit_code_is_2(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", StringIO(json.dumps(spec({"data": 0}))))
    assert main(["-"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("parallel.data:")
    assert said.out == ""
