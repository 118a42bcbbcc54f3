"""The reveal: nothing of theory or measurement before the end, then the gap with the name of what was left out."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from app.content.structures import structure_of
from app.core.db import Database
from app.grading.omissions import Node, left_out
from app.lab import service, work
from app.lab.comparison import compare
from app.lab.meters import Facts, make_meter
from app.lab.predict import theory_record
from app.lab.quantities import quantities_of
from app.lab.terms import spoken, terms_of
from app.reveal.gap import Term, find_gap
from app.reveal.meter import Meter, finding
from labs.spec import RunSpec, parse_run_spec
from tests.conftest import NOW
from tests.support import events

HTML = {"Accept": "text/html"}
NAMES = {"All-gather, backward": "the second gather"}


def _spec(**parallel: int) -> RunSpec:
    return parse_run_spec({"model": "gpt-small", "training": {"steps": 5}, "parallel": parallel})


def _facts(spec: RunSpec, result: dict[str, float] | None = None, is_ended: bool = True) -> Facts:
    theory = theory_record(spec)
    sent = {each["title"]: each["payload_bytes"] for each in theory["transfers"]}
    return Facts(spec, theory, {"model_state": theory["model_state"], **(result or {})}, sent, {}, NAMES, is_ended)


def _meter(spec: RunSpec, name: str, predicted: float, within: float | None = None):  # type: ignore[no-untyped-def]
    facts = _facts(spec)
    said = {name: {"text": "so much", "value": predicted, "within": within}}
    (row,) = compare({name: quantities_of(spec)[name]}, said, facts.theory, facts.theory)
    return make_meter(row, facts)


def test_whoever_leaves_out_the_second_gather_is_told_so_with_its_bytes() -> None:
    spec = _spec(data=2, zero=3)
    transfers = {each["title"]: each["payload_bytes"] for each in theory_record(spec)["transfers"]}
    predicted = transfers["All-gather, forward"] + transfers["Reduce-scatter, gradients"]
    meter = _meter(spec, "payload_bytes_per_step", predicted * 1.01, 1.5)
    assert meter.gap.finding == "You left out the second gather"
    assert meter.gap_text == "second gather, 12.6 MB"
    assert [kind for kind, _ in meter.bars.yours] == ["communication", "hole", "communication"]
    assert meter.verdict == "1.47 × off, range held"
    assert "Your number lacks: second gather, 12.6 MB." in meter.aria


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (1.0, ""),
        (4 / 16, "You left out the gradients and the optimizer"),
        (8 / 16, "You left out the optimizer"),
        (12 / 16, "You left out the weights or the gradients"),
        (2.0, "ranks (2)"),
        (0.33, ""),
    ],
)
def test_model_state_is_searched_term_by_term_and_case_by_case(share: float, says: str) -> None:
    spec = _spec(data=2, zero=3)
    whole = theory_record(spec)["model_state_bytes"]
    meter = _meter(spec, "model_state_bytes", whole * share)
    assert says in meter.gap.finding
    assert bool(meter.gap.finding) == bool(says)
    assert meter.gap_text if share != 1 else not meter.gap_text


def test_the_finding_is_the_named_gap_and_then_the_furthest() -> None:
    spec = _spec(data=2, zero=3)
    theory = theory_record(spec)
    near = _meter(spec, "model_state_bytes", theory["model_state_bytes"])
    far = _meter(spec, "payload_bytes_per_step", theory["payload_bytes_per_step"] / 7)
    named = _meter(spec, "model_state_bytes", theory["model_state_bytes"] / 2)
    assert finding([near]) is None
    assert finding([near, far]) is far
    assert finding([near, far, named]) is named


def test_before_the_end_a_meter_has_the_prediction_alone() -> None:
    spec = _spec(data=2, zero=3)
    facts = _facts(spec, is_ended=False)
    name = "model_state_bytes"
    said = {name: {"text": "26 MB", "value": 26e6, "within": 1.1}}
    (row,) = compare({name: quantities_of(spec)[name]}, said, facts.theory, None)
    meter = make_meter(row, facts)
    assert (meter.terms, meter.gap, meter.bars, meter.gap_text) == ((), None, None, "")
    assert meter.aria == "Model state per rank: you said 26 MB, 23.6 to 28.6 MB."
    assert meter.scale.maximum >= 1.5 * theory_record(spec)[name], "room for what may come, before it comes"


@pytest.mark.parametrize("parallel", [{"data": 2, "zero": 0}, {"data": 2, "zero": 1}, {"data": 2, "zero": 3}])
def test_terms_add_up_to_what_theory_says(parallel: dict[str, int]) -> None:
    facts = _facts(_spec(**parallel))
    for name in ("model_state_bytes", "payload_bytes_per_step", "wire_bytes_per_step"):
        terms = terms_of(name, facts.spec, facts.theory, facts.result, facts.sent, {})
        assert sum(term.theory for term in terms) == pytest.approx(facts.theory[name])


def test_a_transfer_is_spoken_of_as_one_does() -> None:
    assert spoken("All-gather, backward") == "the all-gather in backward"
    assert spoken("All-reduce, gradients") == "the all-reduce of gradients"
    assert spoken("Send") == "the send"


def test_no_name_is_better_than_a_wrong_one() -> None:
    terms = [Term("the one", "a", 10.0, 10.0), Term("the other", "b", 30.0, 30.0)]
    assert find_gap(29.0, 40.0, terms, None).finding == "You left out the one"
    assert find_gap(20.0, 40.0, terms, None).finding == ""
    assert find_gap(50.0, 40.0, terms, None).finding == ""


def _left_out(tree: Node | None, value: float) -> list[str]:
    assert tree is not None
    return [" ".join(term.label for term in way) for way in left_out(tree, value, 1.06)]


def test_left_out_prefers_few_terms_and_those_that_end_the_sum() -> None:
    tree = Node("", 8.0, terms=tuple((1, Node(name, size)) for name, size in (("a", 2.0), ("b", 2.0), ("c", 4.0))))
    assert _left_out(tree, 4.0) == ["c"], "not a and b"
    assert _left_out(tree, 6.0) == ["a", "b"], "the one or the other"
    assert _left_out(tree, 2.0) == ["b c"], "who has one counts from the start"
    assert _left_out(tree, 5.0) == []
    assert _left_out(structure_of("2 * 3", {}, {}), 2.0) == [], "a product has no terms"


def test_one_term_comes_before_two_that_are_a_few_bytes_nearer() -> None:
    sizes = (("a", 6_497_280.0), ("b", 6_497_280.0), ("c", 12_994_960.0))
    tree = Node("", sum(size for _, size in sizes), terms=tuple((1, Node(name, size)) for name, size in sizes))
    assert _left_out(tree, 13e6) == ["c"]
    apart = Node("", 10.0, terms=tuple((1, Node(name, size)) for name, size in (("a", 3.0), ("b", 2.1), ("c", 4.9))))
    assert _left_out(apart, 4.9) == ["a b"], "what is nearer by more than bytes is the nearer"


def _measured(predicted: float) -> Meter:
    """A run in fp32 whose optimizer holds a few bytes that theory does not count."""
    spec = _spec(data=2, zero=3)
    facts = _facts(spec)
    held = {**facts.theory["model_state"]}
    held["optimizer"] += 400
    facts = replace(facts, result={"model_state": held})
    name = "model_state_bytes"
    said = {name: {"text": "so much", "value": predicted, "within": None}}
    (row,) = compare({name: quantities_of(spec)[name]}, said, facts.theory, {name: sum(held.values())})
    return make_meter(row, facts)


def test_in_fp32_half_of_the_state_lacks_the_optimizer_and_the_picture_says_so() -> None:
    meter = _measured(13e6)
    assert meter.gap is not None
    assert meter.bars is not None
    assert meter.gap.finding == "You left out the optimizer"
    assert [kind for kind, _ in meter.bars.yours] == ["parameters", "gradients", "hole"]
    assert [name for *_, name, is_missing in meter.bars.names if is_missing] == ["optimizer"]


def test_of_one_term_or_another_none_is_drawn_as_missing() -> None:
    meter = _measured(19.5e6)
    assert meter.gap is not None
    assert meter.gap.finding == "You left out the weights or the gradients"
    assert meter.gap_text == "weights or the gradients, 6.497 MB"
    assert meter.bars is not None, "who has no name for the gap sees what it is made of all the same"
    assert [kind for kind, _ in meter.bars.yours] == ["plain"], "in one part: nobody knows which"
    assert meter.bars.had(meter.terms[0]) is None


def test_while_it_runs_page_and_api_tell_the_prediction_and_nothing_else(
    client: TestClient, database: Database
) -> None:
    form = {"key": "k", "value.model_state_bytes": "17 MB", "value.payload_bytes_per_step": "19 MB"}
    client.post("/lab/experiments/L10/runs", data=form, headers=HTML)
    with database.write() as session:
        run = service.find_run(session, 1, 1)
        theory = dict(run.theory)
        claim = work.claim_next(session, "w1", lambda _spec: "CPU", NOW)
        assert claim is not None
        told = [
            events.memory(0, 3, "peak", parameters=6_497_280, gradients=6_497_280),
            events.memory(0, 3, "step_end", parameters=6_497_280, optimizer=12_994_560),
            events.communication("all_gather", payload_bytes=12_994_560, wire_bytes=6_497_280, seconds=0.1),
        ]
        work.append_chunk(session, claim, told, NOW)
    page = client.get("/lab/runs/1", headers=HTML).text
    assert "What will FSDP on 2 ranks hold and move?" in page
    assert "you 17 MB" in page
    assert 'data-reveal="0"' in page
    for hidden in ("Memory per rank", "Communication", "theory 2", "25.99 MB", "38.59 MB", "12.99 MB", "6.497 MB"):
        assert hidden not in page, hidden
    assert client.get("/api/v1/lab/runs/1").json()["theory"] is None

    with database.write() as session:
        run = service.find_run(session, 1, 1)
        held = {"model_state": theory["model_state"], "model_state_bytes": theory["model_state_bytes"]}
        run.status, run.ended_at, run.started_at = "finished", NOW, NOW
        run.result = {**held, "payload_bytes_per_step": theory["payload_bytes_per_step"]}
    page = client.get("/lab/runs/1", headers=HTML).text
    assert 'data-reveal="4"' in page
    assert "25.99 MB" in page
    assert client.get("/api/v1/lab/runs/1").json()["theory"]["model_state_bytes"] == theory["model_state_bytes"]
    drawn = re.findall(r'class="gapname[^"]*"[^>]*>([^<]+)', page)
    assert len(drawn) == 2
    assert json.dumps(drawn).count("nothing missing") == 0
    with database.write() as session:
        run = service.find_run(session, 1, 1)
        run.prediction = {"payload_bytes_per_step": {"text": "26 MB", "value": 26e6, "within": None}}
    assert "Left out: second gather" in client.get("/lab", headers=HTML).text


def test_a_run_that_nobody_predicted_shows_everything_as_it_comes(client: TestClient, database: Database) -> None:
    client.post("/api/v1/lab/runs", json={"spec": _spec(data=2, zero=3).model_dump(mode="json")})
    with database.write() as session:
        claim = work.claim_next(session, "w1", lambda _spec: "CPU", NOW)
        assert claim is not None
        work.append_chunk(session, claim, [events.memory(0, 3, "peak", parameters=6_497_280)], NOW)
    page = client.get("/lab/runs/1", headers=HTML).text
    assert "Memory per rank" in page
    assert "data-reveal=" not in page
    assert client.get("/api/v1/lab/runs/1").json()["theory"] is not None
