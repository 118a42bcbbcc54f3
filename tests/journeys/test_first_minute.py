"""The first sixty seconds of an empty install, as newcomers live them: by keyboard, on a phone, without motion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.journeys.conftest import DESKTOP, PHONE
from tests.journeys.test_pages import AXE
from tests.support.product import Product, Site
from tests.support.served import served

MOST_BYTES = 150_000  # of the first page, over the wire


@pytest.fixture(scope="module")
def empty(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(sqlite_template, tmp_path_factory.mktemp("empty")) as site:
        yield site


@pytest.fixture
def emptied(product: Product) -> Iterator[Product]:
    """The session's product, which has workers, as if nobody had met it yet."""
    _forget(product)
    yield product
    _forget(product)
    product.post_form("/first/skip")


def _forget(site: Site) -> None:
    site.post_form("/progress/delete", confirmation="delete")


def _serious(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    report = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [each["id"] for each in report["violations"] if each["impact"] in ("serious", "critical")]


def test_by_keyboard_a_newcomer_predicts_sees_and_runs_it(browser: Browser, emptied: Product) -> None:
    context = browser.new_context(base_url=emptied.url, viewport=DESKTOP, bypass_csp=True)
    page = context.new_page()
    page.goto("/")
    page.wait_for_url("**/first")
    expect(page.get_by_role("heading", level=1)).to_have_text("How much memory does training a 7B model take?")
    expect(page.locator(".nav")).to_have_count(0)
    assert not _serious(page)
    page.get_by_role("slider").focus()
    for _ in range(115):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Your guess in GB")).to_have_value("14")
    page.keyboard.press("Enter")
    expect(page.locator("[data-gpus] > div")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("You counted the weights alone")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page).to_have_title("You counted the weights alone · RankZero")
    expect(page.locator(".terms tfoot")).to_contain_text("112 GB")
    expect(page.locator("[data-over]")).to_have_text("32 GB over")

    page.locator("#ranks").focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("status")).to_contain_text("Still 112 GB each: eight copies")
    page.keyboard.press("3")
    expect(page.get_by_role("status")).to_contain_text("14 GB each: it fits")
    expect(page.locator("[data-gpus] > div")).to_have_count(8)
    expect(page.locator(".terms tfoot")).to_contain_text("2 bytes")
    expect(page.get_by_role("img")).to_have_attribute("aria-label", re.compile("8 GPUs, ZeRO stage 3.*together 14 GB"))
    page.keyboard.press("End")
    expect(page.locator("[data-gpus] > div")).to_have_count(64)
    assert not _serious(page)

    page.reload()  # the guess stays, and so does what it left out
    expect(page.get_by_role("heading", level=1)).to_have_text("You counted the weights alone")
    page.get_by_role("button", name="Check it on two real ranks").click()
    page.wait_for_url("**/lab/runs/*")
    expect(page.locator(".pill.finished")).to_be_visible(timeout=90_000)
    page.goto("/")
    expect(page.locator(".nav")).to_be_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_with_a_finger_nothing_scrolls_sideways(browser: Browser, empty: Site, scheme: str) -> None:
    context = browser.new_context(
        base_url=empty.url, viewport=PHONE, has_touch=True, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Your guess in GB").tap()
    page.keyboard.type("28")
    page.get_by_role("button", name=re.compile("Lock my guess")).tap()
    expect(page.get_by_role("heading", level=1)).to_contain_text("not the optimizer")
    expect(page.locator("[data-free]")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert not _serious(page)
    page.get_by_role("link", name="I know this: place me").tap()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memory anatomy")
    context.close()
    _forget(empty)


def test_whoever_wants_no_motion_sees_the_end_at_once_and_may_skip(browser: Browser, empty: Site) -> None:
    context = browser.new_context(base_url=empty.url, viewport=DESKTOP, reduced_motion="reduce")
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="Skip").click()
    page.wait_for_url(empty.url + "/")
    page.goto("/first")
    page.get_by_label("Your guess in GB").fill("2000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("from 1 to 1,000")
    page.get_by_label("Your guess in GB").fill("112")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("You counted all 16 bytes")
    assert page.evaluate("document.body.dataset.built") is None
    running = "document.getAnimations().filter((each) => each.playState === 'running').length"
    assert page.evaluate(running) == 0
    context.close()
    _forget(empty)


def test_it_works_without_a_script(browser: Browser, empty: Site) -> None:
    context = browser.new_context(base_url=empty.url, viewport=DESKTOP, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Your guess in GB").fill("56")
    page.get_by_role("button", name=re.compile("Lock my guess")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You left out the optimizer's moments")
    page.get_by_label("Stage 3").check(force=True)
    page.get_by_role("button", name="Redraw").click()
    expect(page.get_by_role("status")).to_contain_text("nobody to share with")
    context.close()
    _forget(empty)


def test_the_first_page_is_light(browser: Browser, empty: Site) -> None:
    """Everything the question and its answer load, in bytes as they are sent."""
    context = browser.new_context(base_url=empty.url, viewport=DESKTOP)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    sent: list[float] = []
    session.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
    page.route("**/*", lambda route: _only_ours(route, empty))
    page.goto("/")
    page.get_by_label("Your guess in GB").fill("14")
    page.keyboard.press("Enter")
    expect(page.locator("[data-free]")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    context.close()
    _forget(empty)
    assert len(sent) > 5
    assert sum(sent) <= MOST_BYTES, f"{sum(sent):,.0f} bytes"


def _only_ours(route: Route, site: Site) -> None:
    assert route.request.url.startswith(site.url)
    route.continue_()
