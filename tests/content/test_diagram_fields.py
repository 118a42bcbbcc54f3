"""Diagrams are well-formed, take their colours from the style sheet, and refuse fields they cannot draw."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from app.content.diagrams.drawing import draw
from app.content.diagrams.svg import log_ticks, nice_ticks, number_text, round_around, spread
from app.content.live import ExpressionError
from app.core.templating import STATIC, environment
from tests.content.diagrams import BUBBLE, GALLERY, LANES, QUESTIONS, SVG, drawing, parsed, record, texts


@pytest.mark.parametrize("fields", GALLERY, ids=lambda each: "-".join(str(v) for v in each.values())[:40])
def test_a_picture_is_an_image_with_a_name_and_nothing_outside_it(fields: dict[str, Any]) -> None:
    drawn = draw(record(fields))
    root = parsed(drawn.svg)
    ids = {each.attrib["id"]: each.text for each in root.iter() if "id" in each.attrib}
    named, described = (ids[name] for name in root.attrib["aria-labelledby"].split())
    assert (root.attrib["role"], named, described) == ("img", "A title", drawn.says)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert min(x, y, w, h) >= 0
        assert x + w <= width + 0.01
        assert y + h <= height
    assert all(0 <= float(text.attrib["y"]) <= height for text in root.iter(f"{SVG}text"))
    assert drawn.wide == (width > 352)
    assert width <= 640
    assert drawn.rows
    assert {len(row) for row in drawn.rows} == {len(drawn.head)}


@pytest.mark.parametrize("fields", GALLERY, ids=lambda each: "-".join(str(v) for v in each.values())[:40])
def test_colours_come_from_the_style_sheet_alone(fields: dict[str, Any]) -> None:
    drawn = draw(record(fields))
    known = set[str]()
    for name in ("diagrams.css", "components.css"):
        known |= set(re.findall(r"\.([a-z][a-z0-9-]*)", (STATIC / name).read_text()))
    used = {name for each in re.findall(r'class="([^"]*)"', drawn.svg) for name in each.split()}
    assert used | {mark for mark, _ in drawn.key} <= known
    assert not re.search(r'#[0-9a-f]{3}|rgb|hsl|\bstyle=|\bfill=|\bstroke=|<script|\bon\w+="', drawn.svg)
    assert draw(record(fields)) == drawn


def test_the_style_sheet_names_no_colour() -> None:
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsl", (STATIC / "diagrams.css").read_text())


def test_texts_of_content_are_escaped() -> None:
    lanes = [{"label": "<b>&", "spans": [{"label": '"x"', "start": 0, "end": 1, "tone": "compute"}]}]
    drawn = drawing(kind="overlap", lanes=lanes, title="a < b")
    assert texts(drawn)[0] == "<b>&"
    assert "<b>" not in drawn.svg


def test_title_and_finding_may_hold_live_numbers() -> None:
    finding = "A rank holds {{ zero_state(parameters=7e9, ranks=8, stage=3) | GB }}."
    drawn = drawing(kind="shards", ranks=8, stage=3, finding=finding)
    assert drawn.finding == "A rank holds 14 GB."  # 7e9 × 16 / 8


@pytest.mark.parametrize(
    ("changed", "where", "reason"),
    [
        ({"series": [{"label": "a", "y": "nonsense(m)"}]}, ("series", 0, "y"), "nonsense"),
        ({"series": [{"label": "a", "y": "1 / (m - 1)"}]}, ("series", 0, "y"), "division by zero"),
        ({"series": [{"label": "a", "y": "m - 1"}], "y_log": True}, ("series", 0, "y"), "more than 0"),
        ({"x": {"name": "bubble", "label": "x", "from": 1, "to": 2}}, ("x", "name"), "formula"),
    ],
)
def test_a_curve_that_cannot_be_drawn_names_its_field(
    changed: dict[str, Any], where: tuple[Any, ...], reason: str
) -> None:
    with pytest.raises(ExpressionError, match=reason) as caught:
        draw(record({**BUBBLE, **changed}))
    assert caught.value.location == where


@pytest.mark.parametrize(("start", "end", "reason"), [(5, 3, "end after"), (-1, 3, "end after"), (20, 40, "before")])
def test_spans_that_cannot_be_are_refused(start: float, end: float, reason: str) -> None:
    more = {"label": "x", "start": start, "end": end, "tone": "compute"}
    lanes = [{"label": "Compute", "spans": [LANES[0]["spans"][0], more]}]
    with pytest.raises(ExpressionError, match=reason) as caught:
        drawing(kind="overlap", lanes=lanes)
    assert caught.value.location[:2] == ("lanes", 0)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": "pie"}, "does not match any of the expected tags"),
        ({"kind": "shards", "ranks": 9, "stage": 1}, "less than or equal to 8"),
        ({"kind": "shards", "ranks": 4, "stage": 4}, "less than or equal to 3"),
        ({"kind": "shards", "ranks": 4, "stage": 1, "colour": "red"}, "Extra inputs"),
        ({"kind": "ring", "ranks": 4, "phase": "all-gather", "step": 4}, "step is 0 to 3"),
        ({"kind": "pipeline", "schedule": "interleaved", "stages": 4, "micro_batches": 6}, "a multiple of 4"),
        (
            {"kind": "pipeline", "schedule": "gpipe", "stages": 4, "micro_batches": 4, "virtual_stages": 2},
            "Accepted: 1",
        ),
        ({"kind": "mesh", "tensor": 8, "pipeline": 8, "data": 4}, "256 GPUs"),
        ({"kind": "mesh", "tensor": 1, "pipeline": 1, "data": 1}, "2 to 128"),
        ({"kind": "bits", "formats": ["bf16", "bf16"]}, "twice"),
        ({"kind": "bits", "formats": ["fp64"]}, "Input should be"),
        ({**BUBBLE, "x": {"name": "m", "label": "m", "from": 4, "to": 4}}, "more than `from`"),
        ({**BUBBLE, "x": {"name": "m", "label": "m", "from": 0, "to": 4, "log": True}}, "begins above 0"),
        ({**BUBBLE, "series": BUBBLE["series"] * 5}, "at most 4"),
    ],
)
def test_fields_out_of_range_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(reason)):
        record(fields)


@pytest.mark.parametrize(
    ("no", "reason"),
    [("nowhere", "no node or leaf"), ("fits", "leads back"), ("fsdp", "nothing leads from fits to hsdp")],
)
def test_decisions_that_lead_astray_are_refused(no: str, reason: str) -> None:
    fits, link = QUESTIONS["nodes"]
    with pytest.raises(ValidationError, match=reason):
        record({**QUESTIONS, "nodes": [fits, {**link, "no": no}]})


def test_yaml_reads_yes_and_no_as_true_and_false() -> None:
    fits, link = (
        {True if k == "yes" else False if k == "no" else k: v for k, v in node.items()} for node in QUESTIONS["nodes"]
    )
    assert record({**QUESTIONS, "nodes": [fits, link]}) == record(QUESTIONS)


def test_a_page_gets_figure_key_and_table() -> None:
    macro = environment().get_template("partials/diagram.html").module.diagram
    html = macro(replace(drawing(kind="shards", ranks=2, stage=1, finding="So & so."), steps=None))
    root = parsed(html)
    assert "".join(root.find("figcaption").itertext()) == "A title. So & so."
    assert len(root.findall(".//tbody/tr")) == 2
    assert "tabindex" not in root.find("div").attrib
    pipeline = drawing(kind="pipeline", schedule="1f1b", stages=4, micro_batches=16)
    wide = parsed(macro(replace(pipeline, steps=None)))
    assert wide.find("div").attrib["tabindex"] == "0"
    played = macro(pipeline)  # a page has the figure that plays it in its place
    assert 'data-player="pipeline"' in played
    assert "<b>1F1B: 4 stages, 16 micro-batches</b>" in played
    assert "d-hatch" not in played


@pytest.mark.parametrize("fields", GALLERY, ids=lambda each: "-".join(str(v) for v in each.values())[:40])
def test_the_figure_that_plays_a_diagram_has_its_sizes(fields: dict[str, Any]) -> None:
    shown = draw(record(fields)).player
    if shown is not None:
        assert str(fields.get("ranks", fields.get("stages"))) in shown.title


def test_ticks_are_round_and_enclose_the_values() -> None:
    assert nice_ticks(0, 33, 8) == [0, 5, 10, 15, 20, 25, 30, 35]
    assert nice_ticks(0, 0.7, 6) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert log_ticks(1e3, 1e9, 4) == [1e3, 1e5, 1e7, 1e9]
    assert log_ticks(1, 8) == [1, 2, 5]
    assert round_around(1.9, 11) == (1, 20)
    assert round_around(0.002, 50) == (0.002, 50)


def test_numbers_of_axes_and_labels_that_make_way() -> None:
    assert [number_text(v) for v in (0, 0.25, 1024, 1e9, 3.4028e38, 2**-20, 9.9996e9)] == [
        "0",
        "0.25",
        "1,024",
        "10⁹",
        "3.4\u00a0×\u00a010³⁸",
        "9.54\u00a0×\u00a010⁻⁷",
        "10¹⁰",
    ]
    assert spread([5, 5, 40], gap=10, low=0, high=45) == [5, 15, 40]
    assert spread([40, 44], gap=10, low=0, high=45) == [35, 45]
