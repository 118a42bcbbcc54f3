"""Formulas as pages, as the panel a live number opens, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database
from app.core.errors import NotFound
from app.core.settings import Settings
from app.main import create_app
from app.reference.service import Derivation, Section, all_formulas, derive, evaluate_inputs, find_formula, sections
from app.theory.formulas.registry import Formula, Input, evaluate
from labs.spec import SpecError
from tests.theory.points import evaluations

RING = {"size_bytes": "14 GB", "ranks": "8", "bytes_per_second": "25 GB/s"}


@pytest.fixture
def page(sqlite: Database, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    """The application on SQLite alone: formulas keep nothing."""
    with TestClient(create_app(settings_for(), sqlite), base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def opened(key: str, **typed: str) -> Derivation:
    return derive(find_formula(key), typed)


def texts(found: Derivation) -> dict[str, str]:
    return {field.input.name: field.text for field in found.fields}


def errors(found: Derivation) -> dict[str, str]:
    return {field.input.name: field.error for field in found.fields if field.error}


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("F01", {"parameters": "7B"}, 112e9),
        ("F01", {"parameters": "7 billion", "layout": "megatron-18"}, 126e9),
        ("F01", {"parameters": "7e9"}, 112e9),
        ("F10", RING, 0.98),  # 2 × 7/8 × 14 GB at 25 GB/s
        ("F10", RING | {"bytes_per_second": "200 Gb/s"}, 0.98),
        ("F10", RING | {"latency_seconds": "5 ms"}, 1.05),
        ("F12", {"size_bytes": "14 GB", "ranks": "8"}, 12.25e9),
        (
            "F32",
            {
                "parameters": "70B",
                "tokens": "2T tokens",
                "gpus": "1,024",
                "peak_flops_per_second": "312 TFLOP/s",
                "mfu": "40 %",
            },
            6_573_454.0,
        ),
        ("F53", {"gradient_bytes": "14 GB", "bucket_bytes": "25 MiB"}, 535),
    ],
)
def test_inputs_are_read_with_the_units_people_write(key: str, typed: dict[str, str], value: float) -> None:
    found = opened(key, **typed)
    assert errors(found) == {}
    assert found.evaluation is not None
    assert found.evaluation.value == pytest.approx(value, rel=1e-4)


def test_a_bare_number_is_in_base_units_as_links_carry_it() -> None:
    found = opened("F12", size_bytes="14000000000.0", ranks="8", unit="GB")
    assert found.result == "12.25 GB"
    assert texts(found) == {"size_bytes": "14 GB", "ranks": "8"}  # though 14e9 is also a whole number of KiB


@pytest.mark.parametrize(
    ("unit", "result"),
    [
        ("GB", "12.25 GB"),
        ("GiB", "11.41 GiB"),
        ("MB", "12,250 MB"),
        ("s", "12.25 GB"),
        ("%", "12.25 GB"),
        ("x", "12.25 GB"),
    ],
)
def test_the_result_is_shown_in_the_unit_that_was_asked_where_it_fits(unit: str, result: str) -> None:
    assert opened("F12", size_bytes="14 GB", ranks="8", unit=unit).result == result


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("size_bytes", "14", ""),
        ("size_bytes", "lots", "not a number"),
        ("size_bytes", "25 GB/s", "a bandwidth; this asks for bytes"),
        ("size_bytes", "-5", "out of range"),
        ("size_bytes", "-5 GB", "out of range"),
        ("size_bytes", "1e99", "out of range"),
        ("size_bytes", "inf", "out of range"),
        ("size_bytes", "nan", "out of range"),
        ("size_bytes", "", "missing"),
        ("ranks", "0", "out of range"),
        ("ranks", "2.5", "not whole"),
        ("ranks", "8 GB", "this asks for a plain number"),
        ("bytes_per_second", "25 GB", "this asks for a bandwidth"),
        ("bytes_per_second", "<b>", "not a number"),
    ],
)
def test_a_mistake_stays_at_its_field_with_what_was_typed(field: str, text: str, reason: str) -> None:
    found = opened("F10", **(RING | {field: text}))
    if not reason:
        assert errors(found) == {}
        return
    assert set(errors(found)) == {field}
    assert reason in errors(found)[field]
    assert texts(found)[field] == text
    assert found.evaluation is None
    assert found.result == "–"


def test_every_missing_input_is_named() -> None:
    found = opened("F17", size_bytes="", ranks="", strategy="")
    assert set(errors(found)) == {"size_bytes", "ranks", "strategy"}
    assert "ddp" in errors(found)["strategy"]
    assert set(errors(opened("F17", ranks="8"))) == {"size_bytes", "strategy"}


@pytest.mark.parametrize("formula", all_formulas(), ids=lambda formula: formula.name)
def test_a_formula_opens_with_its_worked_example(formula: Formula) -> None:
    found = derive(formula, {})
    assert errors(found) == {}
    assert found.evaluation is not None
    assert found.evaluation.value == evaluate(formula, formula.example).value
    assert dict(found.evaluation.inputs).items() >= formula.example.items()


def test_an_input_that_was_emptied_is_missing_on_a_page_that_opened_computed(page: TestClient) -> None:
    opens = page.get("/reference/formulas/zero_state").text
    assert "38.5 GB" in opens
    assert "This is missing" not in opens
    emptied = page.get("/reference/formulas/zero_state?parameters=&ranks=8&stage=1").text
    assert emptied.count("This is missing") == 1
    assert "38.5 GB" not in emptied


def test_an_unknown_choice_says_which_there_are() -> None:
    assert "zero-16" in errors(opened("F01", parameters="7B", layout="zero-17"))["layout"]


def test_defaults_are_written_as_a_person_would() -> None:
    assert texts(opened("F53", gradient_bytes="14 GB"))["bucket_bytes"] == "25 MiB"
    assert texts(opened("F10", **RING))["latency_seconds"] == "0 s"


@pytest.mark.parametrize(
    ("key", "name", "value", "text"),
    [
        ("F01", "parameters", "7000000000.0", "7B"),
        ("F01", "parameters", "6738415616.0", "6.738415616B"),
        ("F12", "size_bytes", "26214400.0", "25 MiB"),
        ("F12", "ranks", "65536", "65,536"),
        ("F32", "mfu", "0.4", "40 %"),
        ("F32", "tokens", "2000000000000.0", "2T tokens"),
        ("F32", "peak_flops_per_second", "312000000000000.0", "312 TFLOP/s"),
        ("F10", "latency_seconds", "5e-06", "0.000005 s"),
    ],
)
def test_a_links_number_is_written_as_a_person_would(key: str, name: str, value: str, text: str) -> None:
    assert texts(opened(key, **{name: value}))[name] == text


@pytest.mark.parametrize("formula", all_formulas(), ids=lambda formula: formula.name)
def test_what_a_panel_shows_can_be_sent_back_and_changes_nothing(formula: Formula) -> None:
    """The form sends every field as it is shown; changing one must not move the others."""
    for point in evaluations(formula, 4 if formula.name == "exposed_transfers" else 20):  # which plays whole steps
        first = derive(formula, {name: str(value) for name, value in point.inputs.items()})
        assert first.evaluation is not None
        assert first.evaluation.value == point.value
        again = derive(formula, texts(first))
        assert errors(again) == {}
        assert again.evaluation is not None
        assert again.evaluation.value == pytest.approx(first.evaluation.value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("formula", all_formulas(), ids=lambda formula: formula.name)
def test_a_formula_can_be_set_in_symbols_and_with_its_values(formula: Formula) -> None:
    for point in evaluations(formula, 4):
        shown = derive(formula, {name: str(value) for name, value in point.inputs.items()})
        assert shown.math.count("<math") == (1 if point.latex == point.latex_values else 2)
    emptied = derive(formula, {each.name: "" for each in formula.inputs})
    assert emptied.math.count("<math") == (0 if any(each.default is None for each in formula.inputs) else 2)
    assert derive(formula, {}).math.count("<math") > 0


def test_inputs_that_clash_are_marked_where_they_are_changed() -> None:
    shape = {"sequence": "4096", "micro_batch": "1", "hidden": "8192", "heads": "64"}
    found = opened("activation_layer_tensor", **shape, tensor="3")
    assert set(errors(found)) == {"tensor"}
    assert "3 does not divide heads = 64" in errors(found)["tensor"]
    assert texts(found)["tensor"] == "3"
    assert (found.evaluation, found.result, found.math) == (None, "–", "")


def test_a_limit_shown_in_percent_is_still_inside_the_limits() -> None:
    """99.9 × 0.01 is 0.9990000000000001."""
    each = Input("share", "Share", "", "fraction", minimum=1e-3, maximum=0.999)
    shown = {"function": lambda share: share, "latex": lambda inputs: ("x", "y")}
    formula = replace(find_formula("F13"), inputs=(each,), **shown)
    found = derive(formula, {"share": "99.9 %"})
    assert errors(found) == {}
    assert found.evaluation is not None
    assert found.evaluation.value == 0.999
    assert errors(derive(formula, {"share": "99.91 %"})) == {
        "share": "0.9991 is out of range. Accepted: 0.001 to 0.999."
    }


def test_evaluating_gives_the_value_and_where_it_comes_from() -> None:
    found = evaluate_inputs("F02", {"parameters": 7e9, "ranks": 8, "stage": 1})
    assert (found.value, found.unit, found.text) == (38.5e9, "bytes", "38.5 GB")
    assert found.inputs["layout"] == "zero-16"
    assert found.source.startswith("Rajbhandari et al. 2020")
    with pytest.raises(NotFound, match="F01, F02"):
        evaluate_inputs("F99", {})
    with pytest.raises(SpecError):
        evaluate_inputs("F02", {"parameters": "7 GB"})


def test_formulas_are_listed_with_their_inputs(page: TestClient) -> None:
    listed = page.get("/api/v1/formulas").json()
    assert {each["name"] for each in listed} == {formula.name for formula in all_formulas()}
    state = next(each for each in listed if each["name"] == "zero_state")
    assert (state["id"], state["unit"]) == ("F02", "bytes")
    assert [each["name"] for each in state["inputs"]] == ["parameters", "ranks", "stage", "layout", "part"]
    assert {"name", "label", "unit", "minimum", "maximum", "integer", "choices", "default"} <= set(state["inputs"][0])
    assert state["example"] == {"parameters": 7e9, "ranks": 8, "stage": 1}


@pytest.mark.parametrize("key", ["F02", "f02", "zero_state"])
def test_a_formula_is_evaluated_over_http(page: TestClient, key: str) -> None:
    inputs = {"parameters": 7e9, "ranks": 8, "stage": 3}
    found = page.post(f"/api/v1/formulas/{key}/evaluate", json={"inputs": inputs}).json()
    assert (found["value"], found["unit"]) == (14e9, "bytes")
    assert found["value"] == evaluate(find_formula("F02"), inputs).value


@pytest.mark.parametrize(
    ("key", "body", "status", "fields"),
    [
        ("F99", '{"inputs": {}}', 404, set()),
        (
            "F02",
            '{"inputs": {"parameters": 7e9, "ranks": 0, "stage": 9, "colour": 1}}',
            422,
            {"ranks", "stage", "colour"},
        ),
        ("F02", '{"inputs": {}}', 422, {"parameters", "ranks", "stage"}),
        ("F01", '{"inputs": {"parameters": NaN}}', 422, {"parameters"}),
        ("F01", '{"inputs": {"parameters": 1e400}}', 422, {"parameters"}),
        ("F01", f'{{"inputs": {{"parameters": 1{"0" * 400}}}}}', 422, {"parameters"}),
        ("F01", '{"inputs": {"parameters": "7 GB"}}', 422, {"parameters"}),
        ("F01", '{"inputs": {"parameters": [7]}}', 422, {"parameters"}),
        ("F01", '{"parameters": 7e9}', 422, {"inputs"}),
        ("F01", '{"inputs": [7]}', 422, {"inputs"}),
        ("F01", "{", 422, None),
    ],
)
def test_what_cannot_be_evaluated_is_problem_details(
    page: TestClient, key: str, body: str, status: int, fields: set[str] | None
) -> None:
    sent = {"content-type": "application/json"}
    reply = page.post(f"/api/v1/formulas/{key}/evaluate", content=body, headers=sent)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"
    if fields is not None:
        assert {error["field"] for error in reply.json()["errors"]} == fields


@pytest.mark.slow
def test_the_reference_leads_to_every_formula_and_each_opens(page: TestClient) -> None:
    html = page.get("/reference").text
    for section in sections():
        assert f'<details class="shut" id="{section.anchor}"' in html
    assert [formula for section in sections() for formula in section.formulas] == all_formulas()
    for formula in all_formulas():
        assert f'href="/reference/formulas/{formula.name}"' in html
        opened_page = page.get(f"/reference/formulas/{formula.name}")
        assert opened_page.status_code == 200
        assert formula.title in unescape(opened_page.text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fsdp_peak_weights", "parameters; data-parallel ranks; FSDP units; gathered units alive; bytes each"),
        ("zero_state", "parameters; data-parallel ranks; ZeRO stage; state layout; component"),
        ("transfer", "tensor; bandwidth, one direction; latency per message"),
    ],
)
def test_inputs_are_listed_as_they_stand_in_a_sentence(name: str, text: str) -> None:
    assert Section.inputs(find_formula(name)) == text


def test_a_formula_that_does_not_exist_is_a_page_that_says_so(page: TestClient) -> None:
    for path in ("/reference/formulas/F99", "/reference/formulas/%3Cb%3E", "/reference/nothing"):
        reply = page.get(path, headers={"accept": "text/html"})
        assert reply.status_code == 404
        assert "There is no such page" in reply.text
        assert "<b>" not in reply.text.partition("<main")[2].partition("</h1>")[0]


def test_a_panel_comes_alone_when_htmx_asks_and_as_a_page_without_script(page: TestClient) -> None:
    address = "/reference/formulas/zero_state?parameters=7000000000.0&ranks=8&stage=1&unit=GB"
    whole, part = page.get(address), page.get(address, headers={"HX-Request": "true"})
    assert "<html" in whole.text
    assert "<html" not in part.text
    for html in (whole.text, part.text):
        assert "38.5 GB" in html
        assert "Rajbhandari" in html
        assert 'value="7B"' in html


def test_a_mistake_is_shown_in_the_panel_and_escaped(page: TestClient) -> None:
    html = page.get(f"/reference/formulas/F01?parameters={quote('<b>7</b>')}").text
    assert 'value="&lt;b&gt;7&lt;/b&gt;"' in html
    assert "is not a number" in html
    assert "<b>7" not in html
