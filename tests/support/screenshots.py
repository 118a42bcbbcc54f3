"""`make screenshots`: the README's pictures, taken from the running product."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from app.core.settings import ROOT
from tests.support.browser import browser_path
from tests.support.product import Product, running_product

FOLDER = ROOT / "docs" / "screenshots"
VIEW = {"width": 1280, "height": 860}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        running_product(Path(data), warm=True) as product,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=browser_path())
        for scheme, shoot in (("light", _first), ("light", _study), ("light", _lab), ("dark", _planner)):
            context = browser.new_context(base_url=product.url, viewport=VIEW, color_scheme=scheme)
            shoot(context.new_page(), product)
            context.close()
        browser.close()


def _save(page: Page, name: str, height: int = 860) -> None:
    page.wait_for_timeout(400)
    page.screenshot(path=FOLDER / f"{name}.png", clip={"x": 0, "y": 0, "width": VIEW["width"], "height": height})


def _first(page: Page, _product: Product) -> None:
    page.goto("/")
    page.get_by_label("Your guess in GB").fill("14")
    page.keyboard.press("Enter")
    expect(page.locator("[data-free]")).to_have_count(1)
    _save(page, "first")


def _study(page: Page, _product: Product) -> None:
    page.goto("/study/cards/C62")
    page.get_by_role("link", name="14 GB").first.click()
    expect(page.locator(".derivation")).to_be_visible()
    _save(page, "card")


def _lab(page: Page, _product: Product) -> None:
    page.goto("/lab/experiments/L10?parallel.data=4")
    page.locator("[name='value.model_state_bytes']").fill("13 MB")
    page.locator("[name='value.payload_bytes_per_step']").fill("26 MB")
    page.locator("[data-lock]").click()
    page.wait_for_url(re.compile("/lab/runs/"))
    expect(page.locator(".pill.finished")).to_be_visible(timeout=120_000)
    page.locator("[data-reveal='4']").wait_for()
    page.set_viewport_size({"width": VIEW["width"], "height": 1500})
    _save(page, "run", 1010)


def _planner(page: Page, _product: Product) -> None:
    page.goto(
        "/planner?model=llama-3-70b&ranks=128&tensor=4&pipeline=4&zero=1&global_batch=128&sequence=4096&recompute=none&sequence_parallel=on"
    )
    _save(page, "planner", 760)


if __name__ == "__main__":
    main()
