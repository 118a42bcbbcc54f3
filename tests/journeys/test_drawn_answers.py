"""Answers that are drawn: axes placed on a cluster by keys and by touch, and a whiteboard beside words."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.journeys.conftest import PHONE
from tests.journeys.test_pages import AXE
from tests.support.product import Site

LAID = "tensor 8, data 4, context 1, pipeline 2"


def test_a_board_and_a_layout_from_drawing_to_debrief(page: Page, browser: Browser, site: Site) -> None:
    page.goto("/interview/M4")
    page.get_by_role("button", name="Start, 25 min").click()
    page.wait_for_url(re.compile(r"/interview/sittings/\d+"))
    says = _draws_by_keyboard(page)
    _places_by_keyboard(page)
    _changes_by_touch(browser, site, page.url)
    page.reload()
    expect(page.locator("[data-said]")).to_have_value(LAID)  # what another tab placed is there
    page.get_by_role("button", name=re.compile("Give this answer")).click()
    expect(page.locator(".ask-s")).to_contain_text("You took 2 stages and 4 replicas")
    page.get_by_text("End the interview").click()
    page.get_by_role("button", name="End it now").click()
    page.get_by_label("Hire", exact=True).check()
    page.get_by_role("button", name="See the debrief").click()
    drawn = page.locator("#part-mlp .board")
    expect(drawn).to_have_attribute("aria-label", " ".join(says["said"]))
    assert (
        drawn.locator("polyline").evaluate_all("all => all.map((each) => each.getAttribute('points'))") == says["lines"]
    )
    expect(page.locator("#part-mlp .ans")).to_contain_text("one all-reduce in forward")
    expect(page.locator("#part-layout")).to_contain_text("Held tensor 8 × data 4 × pipeline 2 = all 64 GPUs.")
    expect(page.locator("#part-layout .laid")).to_have_count(2)
    assert _violations(page) == []


def _draws_by_keyboard(page: Page) -> dict[str, list[str]]:
    """Two boxes and an arrow, one thing undone; there again after a reload. Returns what it says and its lines."""
    for label in ("Partial sums", "Z whole", "not needed"):
        page.get_by_role("button", name="Box", exact=True).press("Enter")
        page.keyboard.type(label)
        page.keyboard.press("Enter")
    page.keyboard.press("Delete")
    whole = page.get_by_role("button", name="Box: Z whole")
    for _ in range(3):
        whole.press("ArrowDown")
    page.get_by_role("button", name="Box: Partial sums").press("c")
    whole.press("Enter")
    page.keyboard.type("one all-reduce in forward")
    page.keyboard.press("Enter")
    whole.press("ArrowRight")
    whole.press("Control+z")
    said = page.locator("[data-says] li")
    expect(said).to_have_text(["Partial sums → Z whole: one all-reduce in forward."])
    lines = page.locator(".board polyline").evaluate_all("all => all.map((each) => each.getAttribute('points'))")
    assert _violations(page) == []
    expect(page.locator("[data-saved]")).to_contain_text("Saved")
    page.reload()
    expect(page.locator(".board button.item")).to_have_count(2)
    return {"said": said.all_inner_texts(), "lines": lines}


def _places_by_keyboard(page: Page) -> None:
    page.get_by_role("link", name="Lay them out").click()
    axis = {name: page.get_by_role("button", name=name, exact=True) for name in ("Tensor", "Data", "Pipeline")}
    for _ in range(3):
        axis["Tensor"].press("ArrowRight")
    axis["Data"].press("End")
    axis["Data"].press("ArrowUp")
    axis["Data"].press("ArrowUp")
    expect(page.locator("[data-said]")).to_have_value("data 8, tensor 8, context 1, pipeline 1")
    expect(page.locator(".nodes")).to_have_attribute("aria-label", "data 8: within a node. tensor 8: over 8 nodes.")
    assert page.locator(".gpu.g-data").count() == 7
    assert _violations(page) == []
    expect(page.locator("[data-saved]")).to_contain_text("Saved")


def _changes_by_touch(browser: Browser, site: Site, address: str) -> None:
    """On a phone: tensor innermost again by its button, the data axis up to GPU 31, and the rest typed."""
    phone = browser.new_context(base_url=site.url, viewport=PHONE, has_touch=True, is_mobile=True)
    page = phone.new_page()
    page.goto(address)
    expect(page.locator("[data-said]")).to_have_value("data 8, tensor 8, context 1, pipeline 1")
    page.get_by_label("Move tensor further in").tap()
    page.get_by_role("button", name="Data", exact=True).tap()
    page.locator(".gpu").nth(31).tap()
    page.get_by_label("Pipeline degree").fill("2")
    expect(page.locator("[data-said]")).to_have_value(LAID)
    expect(page.locator("[data-sum]")).to_have_text("tensor 8 × data 4 × pipeline 2 = 64 of 64 GPUs")
    with page.expect_response(lambda reply: "pipeline+2" in (reply.request.post_data or "")):
        page.get_by_label("Pipeline degree").blur()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    phone.close()


def _violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    report = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in report["violations"]]
