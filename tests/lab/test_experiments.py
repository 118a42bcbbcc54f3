"""Experiments for every quantity and every knob: what is offered, what is refused, what is asked, what comes back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.content.catalogue import Catalogue
from app.content.schemas import Experiment
from app.core.db import Database
from app.core.errors import DomainError
from app.core.settings import ROOT
from app.lab import service
from app.lab.explaining import run_values
from app.lab.knobs import offer, own_settings, reachable_settings, read_settings, settings_of_run, spec_with
from app.lab.predict import theory_record
from app.lab.quantities import quantities_of
from app.lab.sliders import make_slider, rounded_up
from app.reveal.comparison import is_right
from labs.spec import SpecError, parse_run_spec
from tests.conftest import NOW

HTML = {"Accept": "text/html"}
FILES = (ROOT / "cards" / "experiments").glob("*.yaml")
EXPERIMENTS = sorted(path.read_text("utf-8").partition("\n")[0].removeprefix("id: ") for path in FILES)


def experiment(**changed: Any) -> Experiment:
    """One over pipeline schedules in which not everything goes together."""
    fields: dict[str, Any] = {
        "id": "L99",
        "slug": "made-up",
        "title": "Made up",
        "about": "For tests.",
        "concepts": ["pipeline-bubble"],
        "minutes": 1,
        "asks": "What of {{ run }}?",
        "why": "Because.",
        "measures": ["Seconds"],
        "spec": {"program": "schedule", "parallel": {"pipeline": 2}, "options": {"micro_batches": [6]}},
        "knobs": [
            {"field": "parallel.pipeline", "label": "Ranks", "values": [2, 4]},
            {"field": "options.micro_batches", "label": "Micro-batches", "values": [[6], [8]]},
            {"field": "options.message_seconds", "label": "A message takes", "values": [0, 0.01]},
        ],
        "quantities": [
            {
                "id": "bubble_fraction",
                "title": "Idle",
                "says": "of the step",
                "unit": "%",
                "most": "1",
                "anchor": {"says": "half", "value": "0.5"},
                "cure": "C55",
                "explanation": "{{ measured.bubble_fraction | pct }} of {{ elsewhere(field='options.micro_batches', "
                "value=[8]).bubble_fraction | pct }}",
            }
        ],
        "interview_line": "So.",
    }
    return Experiment.model_validate(fields | changed)


# --- knobs


def test_a_knob_sets_an_option_of_a_program_whatever_its_kind() -> None:
    settings = read_settings(
        experiment(), {"options.micro_batches": "8", "parallel.pipeline": "4", "options.message_seconds": "0.01"}
    )
    assert settings == (4, (8,), 0.01)
    spec = parse_run_spec(spec_with(experiment(), settings))
    assert spec.options is not None
    assert settings_of_run(experiment(), spec.model_dump(mode="json")) == {
        "parallel.pipeline": "4",
        "options.micro_batches": "8",
        "options.message_seconds": "0.01",
    }


def test_a_run_that_has_a_whole_number_as_a_fraction_finds_its_knob_again() -> None:
    spec = parse_run_spec(spec_with(experiment(), own_settings(experiment())))
    assert settings_of_run(experiment(), spec.model_dump(mode="json"))["options.message_seconds"] == "0"


def test_a_knob_that_is_no_field_is_told_from_all_that_it_sets() -> None:
    along = {"parallel.tensor": [2, 2, 4], "parallel.data": [1, 2, 1]}
    knob = {"field": "across", "is_named": True, "label": "Across", "values": ["a", "b", "c"], "along": along}
    named = experiment(spec={"model": "gpt-mini", "parallel": {"tensor": 2, "data": 2}}, knobs=[knob])
    assert own_settings(named) == ("b",)
    spec = parse_run_spec(spec_with(named, ("c",)))
    assert (spec.parallel.tensor, spec.parallel.data) == (4, 1)
    assert settings_of_run(named, spec.model_dump(mode="json")) == {"across": "c"}
    with pytest.raises(ValueError, match="tell the values apart"):
        experiment(knobs=[{**knob, "along": {"parallel.tensor": [2, 2, 4]}}])


def test_what_is_not_offered_is_refused_by_name() -> None:
    with pytest.raises(DomainError) as refused:
        read_settings(experiment(), {"parallel.pipeline": "3", "options.micro_batches": "8,8"})
    assert [(each.field, each.accepted) for each in refused.value.violations] == [
        ("parallel.pipeline", "2, 4"),
        ("options.micro_batches", "6, 8"),
    ]


def test_what_does_not_go_together_is_refused_with_the_reason() -> None:
    with pytest.raises(SpecError, match="a multiple of 4"):
        read_settings(experiment(), {"parallel.pipeline": "4", "options.micro_batches": "6"})
    ranks, batches, _ = offer(experiment(), (4, (8,), 0))
    assert [(each.text, each.refused is not None) for each in batches.offers] == [("6", True), ("8", False)]
    assert [each.refused for each in ranks.offers] == [None, None]


def test_only_what_one_gets_to_by_turning_counts_as_reachable() -> None:
    found = reachable_settings(experiment())
    assert {settings[:2] for settings in found} == {(2, (6,)), (2, (8,)), (4, (8,))}


# --- sliders


@pytest.mark.parametrize(
    ("dimension", "most", "anchor", "end", "last", "said"),
    [
        ("fraction", "1", "0.5", 1.0, "100 %", "half, 50 %"),
        ("bytes", "3.6e6", "1e6", 5e6, "5 MB", "half, 1 MB"),
        ("seconds", "950e-6", "2e-4", 1e-3, "1,000 µs", "half, 200 µs"),
        ("seconds", "7000", "600", 9000.0, "150 min", "half, 10 min"),
        ("count", "17", "2", 20.0, "20", "half, 2"),
        ("count", "60000", "2", 80_000.0, "80,000", "half, 2"),
        ("flop_per_second", "4e12", "1e12", 5e12, "5 TFLOP/s", "half, 1 TFLOP/s"),
    ],
)
def test_a_slider_takes_the_unit_of_its_quantity(
    dimension: str, most: str, anchor: str, end: float, last: str, said: str
) -> None:
    made = experiment()
    spec = parse_run_spec(spec_with(made, own_settings(made)))
    at = made.quantities[0].anchor.model_copy(update={"value": anchor})
    asked = made.quantities[0].model_copy(update={"most": most, "anchor": at})
    slider = make_slider(asked, dimension, run_values(spec, theory_record(spec)))
    assert (slider.maximum, slider.scale.ticks[-1].text) == (pytest.approx(end), last)
    assert slider.anchor_text == said
    units = json.loads(slider.units)
    assert all(units["read"][unit] == pytest.approx(size) for unit, size, _ in units["write"])
    assert all(least >= size for _, size, least in units["write"])


def test_a_count_is_slid_in_whole_steps() -> None:
    made = experiment()
    spec = parse_run_spec(spec_with(made, own_settings(made)))
    asked = made.quantities[0].model_copy(update={"most": "17"})
    assert make_slider(asked, "count", run_values(spec, theory_record(spec))).steps == 20


@pytest.mark.parametrize(("value", "end"), [(0.0, 1.0), (1.0, 1.0), (1.01, 1.5), (47.0, 50.0), (8.1, 10.0), (0.6, 0.8)])
def test_ranges_end_at_round_numbers(value: float, end: float) -> None:
    assert rounded_up(value) == pytest.approx(end)


@pytest.mark.parametrize(
    ("predicted", "measured", "dimension", "right"),
    [
        (100.0, 124.0, "bytes", True),
        (25.99e6, 38.59e6, "bytes", False),  # two gathers and a reduce-scatter without the second gather
        (12.0, 16.0, "bytes", False),  # 2 + 2 + 12 bytes without one term of 4
        (100.0, 149.0, "seconds", True),  # a machine's pace is not known as what is counted is
        (100.0, 151.0, "seconds", False),
        (0.0, 0.0, "bytes", True),
        (1.0, 0.0, "bytes", False),
        (6.0, 6.0, "count", True),
        (8.0, 6.0, "count", False),
        (0.27, 0.3, "fraction", True),
        (0.9, 0.99, "fraction", False),
        (0.99, 0.9, "fraction", False),
        (1.0, 1.0, "fraction", True),
        (0.2, 0.31, "fraction", False),
        (0.8, 1.05, "fraction", True),
    ],
)
def test_a_prediction_is_right_by_what_it_is_of(predicted: float, measured: float, dimension: str, right: bool) -> None:
    assert is_right(predicted, measured, dimension) is right


# --- what ships


def test_every_experiment_is_among_those_that_are_run_here(content: Catalogue) -> None:
    assert set(content.experiments) == set(EXPERIMENTS)


def test_no_setting_is_offered_that_cannot_be_had(content: Catalogue) -> None:
    for each in content.experiments.values():
        assert len(reachable_settings(each)) >= 8, each.id


@pytest.mark.parametrize("key", EXPERIMENTS)
def test_an_experiment_asks_runs_and_explains(
    client: TestClient, database: Database, content: Catalogue, key: str
) -> None:
    """What was predicted right and wrong comes back with the text for it, and the card for what was wrong."""
    item = content.experiments[key]
    page = client.get(f"/lab/experiments/{key}", headers=HTML)
    assert page.status_code == 200
    assert page.text.count("data-maximum=") == len(item.quantities)
    assert "data-knob" in page.text
    form = {f"value.{each.id}": f"1 {each.unit}" for each in item.quantities}
    reply = client.post(f"/lab/experiments/{key}/runs", data={"key": "k", **form}, headers=HTML)
    assert reply.status_code == 303, reply.text
    run = client.get("/api/v1/lab/runs/1").json()
    spec = parse_run_spec(run["spec"])
    wrong, *others = (each.id for each in item.quantities)
    assert run["theory"] is None, "what was predicted is not told before the run has ended"
    with database.write() as session:
        found = service.find_run(session, 1, 1)
        measured = {name: found.theory.get(name) or 0.25 for name in quantities_of(spec)}
        prediction = {name: {"text": "so", "value": measured[name], "within": None} for name in others}
        found.prediction = prediction | {wrong: {"text": "no", "value": 3 * measured[wrong], "within": None}}
        found.status, found.ended_at, found.started_at, found.result = "finished", NOW, NOW, measured
    html = client.get("/lab/runs/1", headers=HTML).text
    is_named = "It answers what your number missed." in html
    assert is_named or "How the number comes about, step by step." in html
    assert re.findall(r'class="kind">Card (\w+)', html) == [item.quantities[0].cure]
    assert "no explanation can be computed" not in html
    assert all(each.title in html.replace("&#39;", "'") for each in item.quantities)
    again = re.search(r'href="(/lab/experiments/[^"]+)">Run again', html)
    assert again is not None
    assert 'role="alert"><b>Not started' not in client.get(again.group(1).replace("&amp;", "&"), headers=HTML).text
    with database.read() as session:
        (evidence,) = service.list_evidence(session, 1)
    assert evidence.share == len(others) / len(item.quantities)


def test_what_comes_next_is_one_change_with_what_theory_says_it_does(client: TestClient, database: Database) -> None:
    """DDP holds all of the model state on each of its 2 ranks, FSDP half of it: 4 + 4 + 8 bytes a parameter."""
    form = {"key": "k", "parallel.zero": "0", "value.model_state_bytes": "1 MB"}
    client.post("/lab/experiments/L10/runs", data=form, headers=HTML)
    with database.write() as session:
        found = service.find_run(session, 1, 1)
        measured = {name: found.theory.get(name) or 0.25 for name in quantities_of(parse_run_spec(found.spec))}
        found.status, found.ended_at, found.started_at, found.result = "finished", NOW, NOW, measured
        whole = 16 * found.theory["parameters"]
    html = " ".join(client.get("/lab/runs/1", headers=HTML).text.split())
    sizes = f"from {whole / 1e6:.2f} MB to {whole / 2e6:.2f} MB"
    assert f"Model state per rank should fall {sizes}. What does payload per rank and step do?" in html
    changed = re.search(r'<s>DDP, stage 0</s> FSDP, stage 3</h3>.*?href="([^"]+)"', html)
    assert changed is not None
    assert re.search(r'value="3"\s+checked', client.get(changed.group(1).replace("&amp;", "&"), headers=HTML).text)


def test_a_knob_turned_in_the_address_is_turned_on_the_page_and_in_the_run(client: TestClient) -> None:
    turned = {"options.schedule": "interleaved", "options.micro_batches": "8,16,4", "parallel.pipeline": "2"}
    html = client.get("/lab/experiments/L12", params=turned, headers=HTML).text
    assert 'value="8,16,4" checked' in html
    assert 'href="/reference/figures/pipeline"' in html
    assert "a pipeline of 2 ranks" in html
    client.post("/lab/experiments/L12/runs", data={"key": "k", "value.bubble_fraction": "11 %", **turned})
    run = client.get("/api/v1/lab/runs/1").json()
    assert (run["spec"]["options"]["schedule"], run["spec"]["options"]["micro_batches"]) == ("interleaved", [8, 16, 4])
    assert run["prediction"]["bubble_fraction"]["value"] == pytest.approx(0.11)


def test_a_knob_turned_too_far_starts_nothing_and_says_so(client: TestClient) -> None:
    looked = client.get("/lab/experiments/L12?parallel.pipeline=64", headers=HTML)
    assert looked.status_code == 200
    assert "Accepted: 2, 4." in looked.text
    sent = client.post("/lab/experiments/L12/runs", data={"parallel.pipeline": "64"}, headers=HTML)
    assert sent.status_code == 422
    assert "Accepted: 2, 4." in sent.text
    assert client.get("/api/v1/lab/runs/1").status_code == 404


def test_a_quantity_in_the_wrong_unit_is_refused_at_its_field(client: TestClient) -> None:
    sent = client.post("/lab/experiments/L12/runs", data={"value.bubble_fraction": "27 MB"}, headers=HTML)
    assert sent.status_code == 422
    assert 'value="27 MB"' in sent.text
    assert "That is bytes; this asks for a plain number" in sent.text


def test_the_index_proposes_what_was_not_done_yet(client: TestClient, database: Database) -> None:
    assert "Predict L01" in client.get("/lab", headers=HTML).text
    client.post("/lab/experiments/L01/runs", data={"key": "k"})
    with database.write() as session:
        found = service.find_run(session, 1, 1)
        found.status, found.ended_at, found.result = "finished", NOW, {}
    assert "Predict L02" in client.get("/lab", headers=HTML).text
