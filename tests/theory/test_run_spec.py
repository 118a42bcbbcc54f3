"""What can be asked of a run, and how a request that cannot be taken is refused."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from labs.spec import LAB_MODELS, Model, SpecError, Violation, check_model, parse_run_spec

SMALL: dict[str, Any] = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 256}
TWO: dict[str, Any] = {"pipeline": 2}
V: dict[str, Any] = {"pipeline": 2, "virtual_stages": 2}
LATENT = {"key_value_rank": 16, "rope_dim": 8, "nope_dim": 16, "value_dim": 16}


def violations(data: Any) -> dict[str, Violation]:
    with pytest.raises(SpecError) as raised:
        parse_run_spec(data)
    return {violation.field: violation for violation in raised.value.violations}


@pytest.mark.parametrize("name", list(LAB_MODELS))
@pytest.mark.parametrize("stage", [0, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_labs_models_run_under_ddp_and_fsdp_on_one_to_four_ranks(name: str, stage: int, ranks: int) -> None:
    spec = parse_run_spec({"model": name, "training": {"steps": 2}, "parallel": {"data": ranks, "zero": stage}})
    assert spec.parallel.world_size == ranks
    assert spec.model == LAB_MODELS[name]


def test_a_shape_may_leave_out_what_follows_from_it() -> None:
    model = parse_run_spec({"model": SMALL}).model
    assert (model.kv_heads, model.ffn_hidden) == (4, 256)


def test_a_step_is_the_batch_of_all_ranks() -> None:
    training = {"sequence": 32, "micro_batch": 3, "micro_batches": 2}
    spec = parse_run_spec({"model": SMALL, "training": training, "parallel": {"data": 4}})
    assert spec.global_batch == 24
    assert spec.tokens_per_step == 24 * 32


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = violations(
        {
            "model": {**SMALL, "heads": 7, "kv_heads": 5},
            "training": {"steps": 0, "sequence": 10**30, "learning_rate": float("nan"), "colour": "red"},
            "parallel": {"data": 50, "zero": 4, "tensor": 2},
            "program": "sing",
            "device": "abacus",
            "link": {"nodes": 99},
            "mood": "good",
        }
    )
    assert set(found) >= {
        "model.heads",
        "model.kv_heads",
        "training.steps",
        "training.sequence",
        "training.learning_rate",
        "training.colour",
        "parallel.data",
        "parallel.zero",
        "parallel.tensor",
        "program",
        "device",
        "link.nodes",
        "mood",
    }
    assert all(violation.message and violation.accepted for violation in found.values())


def test_heads_that_do_not_divide_are_told_their_nearest_neighbours() -> None:
    assert violations({"model": {**SMALL, "heads": 7}})["model.heads"].accepted == "1, 2, 4, 8, 16"
    assert violations({"model": {**SMALL, "kv_heads": 3}})["model.kv_heads"].accepted == "1, 2, 4"


def test_a_limit_is_told_with_what_was_given() -> None:
    found = violations({"model": SMALL, "training": {"steps": 1000}})["training.steps"]
    assert found.value == 1000
    assert "1,000" in found.message
    assert found.accepted == "at most 500"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"parallel": {"data": 16}}, "parallel.data"),
        ({"training": {"precision": "fp8-mixed"}}, "training.precision"),
        ({"training": {"optimizer": "adafactor"}}, "training.optimizer"),
        ({"link": {}}, "link"),
        ({"mode": "dry"}, "mode"),
        ({"program": "sorting"}, "program"),
        ({"faults": [{"kind": "hang"}]}, "faults.0.kind"),
        ({"model": {**SMALL, "biases": True}}, "model.biases"),
        ({"model": {**SMALL, "hidden": 36, "heads": 4, "positions": "rotary"}}, "model.heads"),
        ({"model": {**SMALL, "qkv_biases": True}}, "model.qkv_biases"),
        ({"model": {**SMALL, "head_dim": 32}}, "model.head_dim"),
        ({"model": {**SMALL, "hidden": 66, "head_dim": 16}}, "model.head_dim"),
        ({"model": {**SMALL, "latent_attention": LATENT}}, "model.latent_attention"),
    ],
    ids=str,
)
def test_what_is_not_built_yet_is_refused_by_name(changed: dict[str, Any], field: str) -> None:
    assert field in violations({"model": SMALL, **changed})


MIXTURE: dict[str, Any] = {**SMALL, "experts": 4, "active_experts": 2}


@pytest.mark.parametrize(
    ("model", "parallel", "sequence", "found"),
    [
        (
            {},
            {"tensor": 3},
            32,
            {
                "parallel.tensor": "1, 2, 4",
                "model.ffn_hidden": "252, 255, 258, 261",
                "model.vocab": "252, 255, 258, 261",
            },
        ),
        ({"vocab": 257}, {"tensor": 2}, 32, {"parallel.tensor": "1", "model.vocab": "254, 256, 258, 260"}),
        ({"kv_heads": 1}, {"tensor": 2}, 32, {"parallel.tensor": "1", "model.kv_heads": "2, 4"}),
        ({"heads": 1, "kv_heads": 1}, {"tensor": 2}, 32, {"parallel.tensor": "1", "model.heads": "2, 4"}),
        ({}, {"sequence_parallel": True}, 32, {"parallel.sequence_parallel": "False, or parallel.tensor of 2 or more"}),
        ({}, {"tensor": 4, "sequence_parallel": True}, 30, {"training.sequence": "24, 28, 32, 36"}),
        ({}, {"context": 2}, 30, {"training.sequence": "24, 28, 32, 36"}),
        ({}, {"context": 2, "tensor": 4, "sequence_parallel": True}, 36, {"training.sequence": "24, 32, 40, 48"}),
        ({}, {"expert": 2, "data": 2}, 32, {"parallel.expert": "1"}),
        (MIXTURE, {"expert": 2, "data": 3}, 32, {"parallel.expert": "1"}),
        (MIXTURE, {"expert": 3, "data": 3}, 32, {"parallel.expert": "1"}),
        (MIXTURE, {"tensor": 2}, 32, {"parallel.tensor": "1"}),
        (
            {"layers": 4},
            {"pipeline": 2, "tensor": 2, "virtual_stages": 2, "schedule": "zbv"},
            32,
            {"parallel.schedule": "gpipe, 1f1b, interleaved, looped-bfs"},
        ),
        (MIXTURE, {"pipeline": 2, "data": 2, "expert": 2}, 32, {"parallel.pipeline": "1"}),
        ({**MIXTURE, "experts": 65}, {}, 32, {"model.experts": "1 to 64"}),
    ],
    ids=str,
)
def test_layers_that_cannot_be_cut_are_refused_with_what_could(
    model: dict[str, Any], parallel: dict[str, Any], sequence: int, found: dict[str, str]
) -> None:
    seen = violations({"model": {**SMALL, **model}, "parallel": parallel, "training": {"sequence": sequence}})
    assert {field: violation.accepted for field, violation in seen.items()} == found


@pytest.mark.parametrize(
    ("model", "parallel"),
    [
        ({}, {"tensor": 4, "sequence_parallel": True, "data": 2, "zero": 3}),
        ({}, {"context": 4, "tensor": 2}),
        (MIXTURE, {"data": 4, "expert": 2}),
        ({**MIXTURE, "shared_experts": 1, "expert_ffn_hidden": 64, "dense_layers": 1}, {"data": 2, "zero": 3}),
    ],
    ids=str,
)
def test_layers_that_can_be_cut_are(model: dict[str, Any], parallel: dict[str, Any]) -> None:
    parse_run_spec({"model": {**SMALL, **model}, "parallel": parallel, "training": {"sequence": 32}})


@pytest.mark.parametrize(
    ("parallel", "micro_batches", "field", "accepted"),
    [
        ({"pipeline": 3}, 4, "parallel.pipeline", "pipeline 1, 2, 4"),
        ({**TWO, "virtual_stages": 3, "schedule": "interleaved"}, 4, "parallel.pipeline", "layers: a multiple of 6"),
        ({**TWO, "virtual_stages": 2}, 4, "parallel.virtual_stages", "1"),
        ({**TWO, "schedule": "interleaved"}, 4, "parallel.virtual_stages", "2 or more"),
        ({**V, "schedule": "interleaved"}, 3, "training.micro_batches", "a multiple of 2, such as 2 or 4"),
        ({**V, "schedule": "dualpipev"}, 2, "training.micro_batches", "4 or more"),
        ({**V, "schedule": "zbv", "data": 2}, 4, "model.tied_embeddings", "false, or parallel.data 1"),
        ({**TWO, "data": 2, "zero": 3}, 4, "training.reshard_after_forward", "false"),
        ({"schedule": "gpipe"}, 1, "parallel.schedule", "1f1b"),
        ({"virtual_stages": 2}, 1, "parallel.virtual_stages", "1"),
    ],
    ids=str,
)
def test_a_pipeline_that_cannot_be_is_refused_with_what_could(
    parallel: dict[str, Any], micro_batches: int, field: str, accepted: str
) -> None:
    model = {**SMALL, "layers": 4}
    found = violations({"model": model, "parallel": parallel, "training": {"micro_batches": micro_batches}})
    assert found[field].accepted == accepted


def test_a_head_size_that_is_the_usual_one_changes_nothing() -> None:
    spec = parse_run_spec({"model": {**SMALL, "head_dim": 16}})  # 64 / 4
    assert spec.model.head_dim == 16
    assert violations({"model": {**SMALL, "head_dim": 32}})["model.head_dim"].accepted == "None, 16"


def test_a_model_written_down_before_is_read_as_it_was() -> None:
    """Runs in the database carry no fields of mixtures and latent attention: their defaults are a plain GPT."""
    old = {
        "layers": 2,
        "hidden": 64,
        "heads": 4,
        "kv_heads": 4,
        "ffn_hidden": 256,
        "vocab": 256,
        "gated_mlp": False,
        "tied_embeddings": True,
        "experts": 1,
        "active_experts": 1,
        "positions": "learned",
        "norm": "layer",
        "biases": False,
    }
    assert parse_run_spec({"model": old}).model == Model(**SMALL)
    assert Model(**SMALL).model_dump().items() >= old.items()


@pytest.mark.parametrize(
    ("shape", "field", "value", "accepted"),
    [
        ({"heads": 7}, "heads", 7, "1, 2, 4, 8, 16"),
        ({"kv_heads": 3}, "kv_heads", 3, "1, 2, 4"),
        ({"kv_heads": 8}, "kv_heads", 8, "1, 2, 4"),
        ({"experts": 4, "active_experts": 5}, "active_experts", 5, "1 to 4"),
        ({"experts": 4, "dense_layers": 3}, "dense_layers", 3, "0 to 2"),
        ({"dense_layers": 1}, "dense_layers", 1, "0"),
        ({"shared_experts": 2}, "shared_experts", 2, "0"),
        ({"expert_ffn_hidden": 32}, "expert_ffn_hidden", 32, "null"),
        ({"latent_attention": LATENT, "head_dim": 16}, "head_dim", 16, "null"),
        ({"latent_attention": LATENT, "kv_heads": 2}, "kv_heads", 2, "4"),
        ({"latent_attention": LATENT, "qkv_biases": True}, "qkv_biases", True, "false"),
    ],
    ids=str,
)
def test_a_shape_that_contradicts_itself_is_told_where(
    shape: dict[str, Any], field: str, value: Any, accepted: str
) -> None:
    (found,) = check_model(Model(**SMALL | shape), at="here")
    assert (found.field, found.value, found.accepted) == (f"here.{field}", value, accepted)
    assert found.message.endswith(".")


@pytest.mark.parametrize(
    "shape",
    [
        {"heads": 7, "head_dim": 16},  # heads of their own size need not share out the hidden size
        {"heads": 7, "latent_attention": LATENT},
        {"experts": 4, "active_experts": 4, "dense_layers": 2, "shared_experts": 3, "expert_ffn_hidden": 8},
    ],
    ids=str,
)
def test_a_shape_that_fits_together_is_taken(shape: dict[str, Any]) -> None:
    assert check_model(Model(**SMALL | shape)) == []


def test_what_is_wrong_inside_latent_attention_is_named_alone() -> None:
    found = violations({"model": {**SMALL, "latent_attention": {**LATENT, "rope_dim": 0, "colour": "red"}}})
    assert set(found) == {"model.latent_attention.rope_dim", "model.latent_attention.colour"}
    missing = {name: size for name, size in LATENT.items() if name != "key_value_rank"}
    assert set(violations({"model": {**SMALL, "latent_attention": missing}})) == {
        "model.latent_attention.key_value_rank"
    }


def test_the_fault_that_is_built_must_hit_a_rank_and_a_step_there_is() -> None:
    found = violations({"model": SMALL, "training": {"steps": 5}, "faults": [{"kind": "kill", "rank": 1, "step": 6}]})
    assert found["faults.0.rank"].accepted == "0 to 0"
    assert found["faults.0.step"].accepted == "1 to 5"


def test_a_run_must_end_while_one_watches() -> None:
    huge = violations({"model": {**SMALL, "hidden": 1024, "layers": 40}})
    assert huge["model.layers"].accepted.startswith("1 to ")
    assert "model.hidden" in violations({"model": {**SMALL, "hidden": 4096}}), "not even one layer is possible"
    long = violations({"model": "gpt-medium", "training": {"steps": 500, "micro_batch": 16, "sequence": 1024}})
    most = int(long["training.steps"].accepted.split()[2].replace(",", ""))
    again = {"steps": most, "micro_batch": 16, "sequence": 1024}
    assert parse_run_spec({"model": "gpt-medium", "training": again}).training.steps == most


def test_a_run_must_fit_the_machine_all_ranks_share() -> None:
    wide = {"model": "gpt-medium", "training": {"micro_batch": 64, "sequence": 1024}, "parallel": {"data": 4}}
    most = int(violations(wide)["training.micro_batch"].accepted.split()[2])
    training = {"micro_batch": most, "sequence": 1024, "steps": 1}
    assert parse_run_spec({**wide, "training": training}).training.micro_batch == most
    assert "model.vocab" in violations({"model": {**SMALL, "vocab": 10_000_000}})
    assert "model.layers" in violations({"model": {**SMALL, "layers": 10_000}})


@pytest.mark.parametrize("number", [4096.0, "4096", 4096])
def test_sizes_that_follow_do_so_however_the_number_was_written(number: Any) -> None:
    model = Model.model_validate({"layers": 2, "hidden": number, "heads": 32.0, "vocab": 256})
    assert (model.ffn_hidden, model.kv_heads) == (16384, 32)


def test_what_only_the_other_strategy_has_is_refused_rather_than_ignored() -> None:
    assert "training.bucket_bytes" in violations(
        {"model": "gpt-mini", "parallel": {"zero": 3}, "training": {"bucket_bytes": 2048}}
    )
    assert "training.reshard_after_forward" in violations(
        {"model": "gpt-mini", "training": {"reshard_after_forward": False}}
    )
    assert "parallel.schedule" in violations({"model": "gpt-mini", "parallel": {"schedule": "zero-bubble"}})


def test_bytes_need_256_words() -> None:
    assert violations({"model": {**SMALL, "vocab": 255}})["model.vocab"].accepted == "256 or more"


@pytest.mark.parametrize("data", [None, [], "gpt-small", 7, True, {}, {5: 6}], ids=repr)
def test_what_is_no_spec_is_refused(data: Any) -> None:
    assert violations(data)


@pytest.mark.parametrize("value", ["7", [], 3, True], ids=repr)
@pytest.mark.parametrize("section", ["training", "parallel", "compression", "link"])
def test_a_section_of_the_wrong_kind_is_named(section: str, value: Any) -> None:
    assert section in violations({"model": SMALL, section: value})


def test_an_unknown_model_says_which_there_are() -> None:
    assert "gpt-small" in violations({"model": "gpt-huge"})["model"].accepted


def test_no_wild_spec_does_anything_but_parse_or_be_refused() -> None:
    source = random.Random(11)
    wild = [0, 1, 3, 10**9, 10**400, -1, 0.5, 1e308, float("nan"), float("inf"), None, True, "8", "x", [], {}, [{}]]
    places = [
        *(("model", name) for name in (*SMALL, "kv_heads", "ffn_hidden", "experts", "head_dim", "latent_attention")),
        *(("training", name) for name in ("steps", "sequence", "micro_batch", "learning_rate", "seed", "colour")),
        *(("parallel", name) for name in ("data", "tensor", "zero", "shard")),
    ]
    parsed = 0
    for _ in range(1500):
        data: dict[str, Any] = {"model": dict(SMALL), "training": {}, "parallel": {}}
        for _ in range(source.randint(1, 4)):
            section, name = source.choice(places)
            data[section][name] = source.choice(wild)
        if source.random() < 0.2:
            data[source.choice(["faults", "probes", "link", "model"])] = source.choice(wild)
        with contextlib.suppress(SpecError):
            parse_run_spec(data)
            parsed += 1
    assert parsed > 20
