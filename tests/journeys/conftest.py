"""A real product, a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.browser import browser_path
from tests.support.product import Product, Site, running_product
from tests.support.served import served

expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), warm=True) as product:
        product.post_form("/first/skip")  # the first minute has a product of its own
        yield product


@pytest.fixture(scope="session")
def site(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """What pages are asked of: the web server alone. A file whose journeys need workers gives the product for it."""
    with served(sqlite_template, tmp_path_factory.mktemp("site")) as site:
        site.post_form("/first/skip")
        yield site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path())
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=site.url, viewport=DESKTOP, locale="en-GB")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(60_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that may not write errors: a refused script or a failed request is a failed test."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.errors = errors  # type: ignore[attr-defined] - a test that provokes one clears it
    yield page
    assert not errors, errors
