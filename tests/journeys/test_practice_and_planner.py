"""Problems and plans in the browser."""

from __future__ import annotations

import re
import time
import urllib.parse

from playwright.sync_api import Page, Route, expect

from app.content.catalogue import Catalogue
from app.practice.variants import make_variant
from tests.journeys.conftest import DESKTOP


def test_a_problem_from_fresh_numbers_to_another_variant(page: Page, content: Catalogue) -> None:
    page.goto("/practice")
    page.locator("summary", has_text="Data parallelism").click()
    page.locator("details[open]").get_by_role("link", name=re.compile("P03")).click()
    page.wait_for_url(re.compile(r"/practice/zero-bytes-per-gpu/\d+$"))
    seed = int(page.url.rsplit("/", 1)[1])
    parts = {part.id: part for part in make_variant(content.problems["P03"], seed).parts}
    slip = next(slip for slip in parts["b"].question.slips if slip.id == "everything-sharded")

    page.get_by_label(re.compile("Stage 1")).fill(parts["a"].key_text)
    page.keyboard.press("Enter")  # perhaps not meant for the whole: a first answer counts
    expect(page.locator("[data-enter]")).to_have_text(re.compile("^Still blank: b, c. Enter once more checks the rest"))
    expect(page.locator("#say-a")).to_have_count(0)
    page.get_by_label(re.compile("Stage 2")).fill(f"{slip.value / 1e9:.6g} GB")
    page.get_by_label(re.compile("Stage 3")).fill("26 GB/s")
    page.keyboard.press("Enter")
    expect(page.locator("#say-a")).to_contain_text("Correct")
    expect(page.locator("#say-b")).to_contain_text("everything sharded")
    named = re.compile(r"^everything sharded(, or [a-z ]+)?: [\d.]+ GB too little$")  # at some numbers two slips agree
    expect(page.locator("#say-b .gapname")).to_have_text(named)
    expect(page.locator("#say-a .meter")).to_have_count(0)  # what is right needs no picture
    expect(page.locator("#say-c")).to_contain_text("Not counted")
    expect(page.locator("#say-c")).to_contain_text("bandwidth")
    expect(page.get_by_role("heading", name="Worked solution")).to_have_count(0)
    expect(page.get_by_label(re.compile("Stage 3"))).to_be_focused()

    page.get_by_role("button", name="Open hint 1").click()
    expect(page.locator(".hints details")).to_have_count(1)
    expect(page.get_by_label(re.compile("Stage 3"))).to_have_value("26 GB/s")

    page.get_by_label(re.compile("Stage 3")).fill(f"{parts['c'].key / 2**30:.6g} GiB")
    page.get_by_role("button", name="Check c again").click()
    expect(page.locator("#say-c")).to_contain_text("Correct")
    expect(page.get_by_role("heading", level=1)).to_contain_text("everything sharded")
    expect(page.locator("header .sub")).to_contain_text("2 of 3 right, 1 hint opened: score 58 %")
    expect(page.locator(".solution")).to_contain_text(parts["b"].key_text)

    page.reload()
    expect(page.locator("#say-b")).to_contain_text("everything sharded")
    page.locator("body").press("n")
    page.wait_for_url(re.compile(rf"/practice/zero-bytes-per-gpu/(?!{seed}$)\d+$"))
    expect(page.get_by_label(re.compile("Stage 1"))).to_have_value("")


def test_ticks_a_scratch_pad_and_the_history_of_attempts(page: Page) -> None:
    page.goto("/practice/P11")
    page.wait_for_url(re.compile(r"/practice/missing-division/\d+$"))
    page.locator("body").press("c")
    pad = page.get_by_label("Calculate")
    expect(pad).to_be_focused()
    for line, shown in (
        ("13e9 × 16 B", "208 GB"),
        ("ans / 8", "26 GB"),
        ("bubble(stages=8, micro_batches=32)", "0.179"),
    ):
        pad.fill(line)
        pad.press("Enter")
        expect(page.locator(".calc li").last).to_contain_text(shown)
    pad.press("ArrowUp")
    expect(pad).to_have_value("bubble(stages=8, micro_batches=32)")
    pad.fill("26 GB + 1 s")
    pad.press("Enter")
    expect(page.locator(".calc li").last).to_contain_text("do not add up")

    page.get_by_label(re.compile("Norm of the accumulated")).fill("lots")
    page.get_by_label("Clipping now acts").check()
    page.get_by_label("With Adam nothing").check()
    page.get_by_role("button", name=re.compile("Check")).click()
    expect(page.locator("#say-e")).to_contain_text("Wrong")
    expect(page.locator("#p-e")).to_contain_text("logged before clipping")
    expect(page.locator("#say-a")).to_contain_text("Not counted")
    expect(page.locator(".calc li").first).to_contain_text("208 GB")  # outlives the check

    page.get_by_role("button", name="Show the solution").click()
    expect(page.get_by_role("heading", name="Worked solution")).to_be_visible()
    page.get_by_role("link", name="All attempts").click()
    expect(page.locator(".tried > li", has_text="P11").first).to_contain_text("not counted")
    page.get_by_role("link", name="P11, The missing division").first.click()
    expect(page.locator("#p-e")).to_contain_text("logged before clipping")


def test_a_plan_recomputes_while_it_is_changed_and_lives_in_its_address(page: Page) -> None:
    page.goto("/planner")
    page.get_by_label("Model", exact=True).select_option("own")
    page.get_by_label("Parameters").fill("70B")
    page.get_by_label("GPUs", exact=True).fill("64")
    expect(page.locator(".trail")).to_contain_text("70B parameters on 64 GPUs")
    expect(page.get_by_role("heading", level=1)).to_have_text("The state fits, with 67.4 GB left")
    row = page.locator("table.stages tr", has_text="ZeRO-2")
    expect(row).to_contain_text("155.3 GB")
    expect(row).to_contain_text("no number")  # its whole weights alone are over 80 GB
    address = urllib.parse.urlsplit(page.url)
    assert urllib.parse.parse_qs(address.query)["ranks"] == ["64"]
    page.reload()
    expect(page.locator(".trail")).to_contain_text("70B parameters on 64 GPUs")
    expect(page.get_by_role("heading", level=1)).to_have_text("The state fits, with 67.4 GB left")


def test_a_field_that_cannot_be_read_says_so_at_its_place(page: Page) -> None:
    page.goto("/planner?ranks=many")
    expect(page.locator("#e-ranks")).to_contain_text("Showing 8")
    page.get_by_label("GPUs", exact=True).fill("16")
    expect(page.locator("#e-ranks")).to_have_count(0)
    page.get_by_label("GPUs", exact=True).fill("0")
    expect(page.locator("#e-ranks")).to_contain_text("out of range")


def test_a_pipeline_is_planned_by_keyboard(page: Page) -> None:
    page.goto("/planner?model=llama-3-70b&ranks=64&tensor=8&zero=1")
    memory, time = (page.get_by_role("heading", name=name) for name in ("Memory per GPU, by Z", "Where does a step"))
    page.set_viewport_size({"width": 1920, "height": 1080})  # tables beside the pictures where there is room
    assert time.bounding_box()["x"] > memory.bounding_box()["x"] + 400  # type: ignore[index] - both are shown
    page.set_viewport_size(DESKTOP)
    assert time.bounding_box()["x"] == memory.bounding_box()["x"]  # type: ignore[index]
    expect(page.get_by_label("Schedule", exact=True)).to_be_hidden()
    page.get_by_label("Pipeline", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("4")
    expect(page.get_by_label("Schedule", exact=True)).to_be_visible()
    expect(page.get_by_role("status").first).to_contain_text("Tensor 8, pipeline 4, data 2, ZeRO-1")
    expect(page.get_by_role("img", name=re.compile("A step of .*Bubble"))).to_be_visible()
    page.get_by_label("Tensor", exact=True).fill("3")
    expect(page.locator("#e-tensor")).to_contain_text("3 does not divide heads = 64.")
    expect(page.get_by_label("Tensor", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Tensor", exact=True).fill("4")
    expect(page.locator("#e-tensor")).to_have_count(0)
    page.get_by_label("Sequence parallel").check()
    expect(page.locator("[data-part=request]")).to_contain_text('"sequence_parallel": true')
    page.reload()
    expect(page.get_by_label("Sequence parallel")).to_be_checked()
    expect(page.get_by_role("status").first).to_contain_text("Tensor 4, pipeline 4, data 4, ZeRO-1")


def test_the_planners_number_opens_its_formula(page: Page) -> None:
    page.goto("/planner?model=own&parameters=7e9&ranks=8&zero=1")
    page.get_by_role("link", name="38.5 GB").first.click()
    expect(page.locator(".derivation")).to_contain_text("Model state per rank under ZeRO")
    expect(page.locator(".derivation [data-part=result]")).to_have_text("38.5 GB")
    page.route("**/live.js*", _come_late)
    page.get_by_role("link", name="Formula F02").click()
    page.wait_for_url("**/reference/formulas/zero_state**", wait_until="commit")
    page.get_by_role("textbox", name="Data-parallel ranks").fill("12")  # before the page's script is there
    expect(page.locator("[data-part=doubled]")).to_contain_text("31.5 GB")  # 4 × 7 and 12 × 7 over 24


def _come_late(route: Route) -> None:
    reply = route.fetch()
    time.sleep(1)
    route.fulfill(response=reply)
