"""The film of a run's step, and figures one steps through: by keys and by thumb, at both widths."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.conftest import DESKTOP, PHONE
from tests.support.product import Product

RUN_SECONDS = 90.0
SPEC = {"model": "gpt-mini", "training": {"steps": 3, "sequence": 32}, "parallel": {"data": 2, "zero": 3}}


@pytest.fixture(scope="module")
def site(product: Product) -> Product:
    """Journeys here need workers."""
    return product


@pytest.fixture(scope="module")
def run_id(product: Product) -> int:
    """A finished run of FSDP on two ranks, with the default probes."""
    _, run = product.post_json("/api/v1/lab/runs", {"spec": SPEC})
    until = time.monotonic() + RUN_SECONDS
    while product.get_json(f"/api/v1/lab/runs/{run['id']}")["status"] not in ("finished", "failed"):
        assert time.monotonic() < until
        time.sleep(0.3)
    return int(run["id"])


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def at_width(browser: Browser, product: Product, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(base_url=product.url, viewport=request.param, has_touch=request.param is PHONE)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert page.evaluate("document.documentElement.scrollWidth") == request.param["width"]
    assert not errors, errors
    context.close()


def test_a_playhead_lights_a_collective_everywhere(at_width: Page, run_id: int) -> None:
    page = at_width
    phone = page.viewport_size == PHONE
    page.goto(f"/lab/runs/{run_id}")
    reel, name = page.locator("[data-reel]"), page.locator("[data-film] [data-name]")
    reel.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowRight")
    expect(name).to_have_text("All-gather, embedding and head")
    page.keyboard.press("Shift+ArrowRight")
    expect(name).to_have_text("All-gather, layer 0")
    expect(page.locator("[data-film] [data-says]")).to_contain_text("Each rank keeps 1/2 and fetches the rest")
    expect(page.locator(".lanebox .on:not([hidden])")).to_have_count(2)  # on both ranks at once
    assert page.locator("[data-bump]").get_attribute("d")  # its memory
    expect(page.locator("[data-film] [data-sent]")).to_have_text(
        re.compile(r"Sent so far [\d.]+ kB of [\d.]+ MB, 2 of 8")
    )
    expect(page.locator("[data-rows] tr.sel th")).to_have_text("All-gather, layer 0")
    lit = page.locator("[data-ledger].sel")
    expect(lit).to_have_count(1)
    assert lit.get_attribute("data-ledger") == "all_gather forward data"
    expect(reel).to_have_attribute("aria-valuetext", re.compile(r"All-gather, layer 0\. [\d.]+ [kM]B alive\."))

    page.keyboard.press("ArrowDown")  # the same collective on the other rank
    expect(reel).to_have_attribute("aria-label", "Playhead, Rank 1")
    expect(name).to_have_text("All-gather, layer 0")
    if phone:
        page.get_by_role("button", name="Rank 0").tap()
        expect(reel).to_have_attribute("aria-label", "Playhead, Rank 0")
        page.get_by_role("button", name="Next event").tap()
        expect(name).not_to_have_text("All-gather, layer 0")
        expect(page.locator(".rk:visible")).to_have_count(1)
        return
    box = page.locator(".rk.cur .lanebox").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.98, box["y"] + 10, steps=5)
    page.mouse.up()
    expect(name).to_have_text("Optimizer step")
    page.locator("[data-rows] tr").first.click()
    expect(name).to_have_text("All-gather, embedding and head")


def test_a_figure_is_stepped_through_where_it_is_taught(at_width: Page) -> None:
    page = at_width
    page.goto("/reference/collectives")
    ring = page.locator("[data-player=collective]").first
    forward = ring.get_by_role("button", name="One step on")
    forward.focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    expect(ring.locator("[data-counter]").nth(1)).to_have_text("1.5 S of 1.5 S")
    expect(ring.locator("[data-say]")).to_contain_text("Every rank holds the whole sum.")
    expect(forward).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("ArrowLeft")
    expect(ring.locator("[data-counter]").first).to_have_text("5 of 6")

    ranks = ring.locator("[data-setting=ranks]")
    ranks.focus()
    page.keyboard.press("End")
    expect(ring.locator(".top b")).to_have_text("Ring all-reduce on 8 ranks")
    expect(ranks).to_be_focused()
    expect(ring.locator("[data-counter]").first).to_have_text("12 of 14")  # as far on as it was
    ring.get_by_label("Collective", exact=True).select_option("tree")
    expect(ring.locator(".top b")).to_have_text("Double-tree all-reduce on 8 ranks")

    page.emulate_media(reduced_motion="reduce")
    expect(ring.locator(".multi > div")).to_have_count(9)
    expect(ring.locator("[data-counter]").first).to_have_text(re.compile(r"^(\d+) of \1$"))  # as the pictures end
    expect(ring.locator(".go")).to_be_hidden()


def test_without_a_script_a_figure_is_complete_and_its_arrows_lead_on(browser: Browser, product: Product) -> None:
    context = browser.new_context(base_url=product.url, viewport=DESKTOP, java_script_enabled=False)
    page = context.new_page()
    page.goto("/reference/figures/pipeline?schedule=gpipe&at=3")
    expect(page.locator("[data-say]")).to_contain_text("Rank 0 forward 3")
    page.get_by_role("button", name="One step on").click()
    expect(page.locator("[data-counter]").last).to_contain_text("4 of 33")
    context.close()


def test_the_axis_of_a_live_curve_stays_while_its_points_come(page: Page) -> None:
    page.goto("/reference/figures/tensor")
    losses = [5.55, 5.1, 3.9, 2.2, 5.6, 0.4]
    ranges = page.evaluate(
        """async (losses) => {
            const { steadyRange } = await import("/static/scales.js");
            return losses.map((_, at) => steadyRange(losses[0], Math.max(...losses.slice(0, at + 1))));
        }""",
        losses,
    )
    assert ranges == [[0, 6]] * len(losses)
