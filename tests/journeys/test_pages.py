"""Every page at desktop and phone width, light and dark: nothing scrolls sideways, fails or is out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.journeys.conftest import DESKTOP, PHONE
from tests.support.product import Product

AXE = Path(__file__).parents[1] / "support" / "vendor" / "axe" / "axe-4.14.1.min.js"
PAGES = (
    "/",
    "/first",
    "/study",
    "/study/cards",
    "/study/cram?deck=DK7&reveal=true",
    "/study/placement/DK7",
    "/settings",
    "/study?deck=DK7",
    "/study/cards/C62",
    "/study/cards/C09",
    "/practice",
    "/practice/P01",
    "/practice/P15",
    "/lab",
    "/lab/experiments/L10",
    "/lab/experiments/L12",
    "/lab/strategies",
    "/planner",
    "/planner?model=llama-3-70b&ranks=64&tensor=8&pipeline=3&zero=1",
    "/interview",
    "/interview/M5",
    "/reference",
    "/reference/formulas/zero_state?parameters=7e9&ranks=8&stage=3",
    "/nothing-here",
    "/reference/memory-anatomy",
    "/reference/pipeline-parallelism",
    "/reference/scaling-laws",
    "/reference/sixty-second-answers",
    "/reference/cheat-sheet",
    "/reference/glossary",
    "/reference/errata",
    "/study/own",
    "/study/own/new",
    "/study/exchange",
    "/study/reports",
    "/study/reports/new?card_id=C62",
    "/progress",
    "/progress/plan",
    "/progress/delete",
    "/search?q=bubble",
    "/rubrics",
    "/rubrics/memory-walk",
)


@pytest.fixture(scope="module")
def made_pages(browser: Browser, product: Product) -> Iterator[tuple[str, ...]]:
    """Pages there are only once something was done: runs that ended, a sitting, its scorecard, a settled problem."""
    small = {"model": "gpt-mini", "training": {"steps": 6, "sequence": 32}, "parallel": {"data": 2, "zero": 3}}
    specs = (small, {**small, "faults": [{"kind": "kill", "rank": 1, "step": 5}]})
    prediction = {"model_state_bytes": {"value": "5 MB", "within": 1.5}}
    runs = [product.post_json("/api/v1/lab/runs", {"spec": spec, "prediction": prediction})[1]["id"] for spec in specs]
    context = browser.new_context(base_url=product.url)
    page = context.new_page()
    page.goto("/interview/M9")
    page.get_by_role("button", name="Start, 10 min").click()
    page.wait_for_url("**/sittings/*")
    scorecard = page.url
    page.get_by_text("End the interview").click()
    page.get_by_role("button", name="End it now").click()
    page.locator("#sc").wait_for()
    page.goto("/interview/M9")
    page.get_by_role("button", name="Start, 10 min").click()
    page.wait_for_url("**/sittings/*")
    sitting = page.url
    page.goto("/practice/P03")
    for field in page.locator(".parts input").all():
        field.fill("1 B")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Worked solution")).to_be_visible()
    settled = page.url
    for run in runs:
        page.goto(f"/lab/runs/{run}")
        page.locator(".pill.finished, .pill.failed").wait_for(timeout=90_000)
    yield (sitting, scorecard, settled, *(f"/lab/runs/{run}" for run in runs))
    page.goto(sitting)
    page.get_by_text("End the interview").click()
    page.get_by_role("button", name="End it now").click()
    context.close()


# Everything once, on a desktop in light. What can differ in the dark is contrast; on a phone contrast again, how large
# what one touches is, and what scrolls by itself.
ON_A_PHONE = ("color-contrast", "target-size", "scrollable-region-focusable")
AT_ONCE = "*, ::before, ::after { transition: none !important }"  # a colour halfway to the other theme is nobody's
WIDTHS: dict[str, tuple[ViewportSize, dict[Literal["light", "dark"], tuple[str, ...]]]] = {
    "desktop": (DESKTOP, {"light": (), "dark": ("color-contrast",)}),
    "phone": (PHONE, {"light": ON_A_PHONE, "dark": ON_A_PHONE}),
}


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_is_accessible(
    browser: Browser, product: Product, made_pages: tuple[str, ...], width: str
) -> None:
    """Each page is loaded once a width, and turned dark under the reader's eyes, as a machine does at dusk."""
    viewport, rules = WIDTHS[width]
    context = browser.new_context(
        base_url=product.url, viewport=viewport, has_touch=viewport is PHONE, bypass_csp=True
    )  # axe is injected; the policy itself is tested elsewhere
    context.add_init_script(path=AXE)
    page = context.new_page()
    found = [problem for path in (*PAGES, *made_pages) for problem in problems_of(page, path, rules)]
    context.close()
    assert not found, "\n".join(found)


def problems_of(page: Page, path: str, rules: dict[Literal["light", "dark"], tuple[str, ...]]) -> Iterator[str]:
    """`rules` by theme; none are all."""
    for scheme, some in rules.items():
        page.emulate_media(color_scheme=scheme)
        if scheme == "light":
            page.goto(path)
            page.add_style_tag(content=AT_ONCE)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if overflow > 0:
            yield f"{path} scrolls sideways by {overflow} px ({scheme})"
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if some:
            options["runOnly"] = {"type": "rule", "values": some}
        report = page.evaluate("options => axe.run(document, options)", options)
        for violation in report["violations"]:
            if violation["impact"] in ("serious", "critical"):
                target = violation["nodes"][0]["target"]
                yield f"{path} ({scheme}) {violation['id']}: {violation['help']} at {target}"


def test_rooms_are_reached_by_keyboard_from_everywhere(page: Page) -> None:
    page.goto("/reference")
    for key, path in {
        "s": "/study",
        "p": "/practice",
        "l": "/lab",
        "n": "/planner",
        "i": "/interview",
        "o": "/progress",
        "t": "/",
    }.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**{path}")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()


@pytest.mark.parametrize("path", ["/", "/study", "/practice/P01", "/planner"])
def test_the_theme_turns_on_every_page_and_is_remembered(page: Page, path: str) -> None:
    page.goto(path)
    page.get_by_role("button", name="Dark").first.click()
    expect(page.get_by_role("button", name="Light").first).to_be_visible()
    page.goto("/planner")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_more_rooms_on_a_phone(browser: Browser, product: Product) -> None:
    context = browser.new_context(base_url=product.url, viewport=PHONE, has_touch=True)
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="More").tap()
    page.get_by_role("dialog").get_by_role("link", name="Planner").tap()
    page.wait_for_url("**/planner")
    context.close()


def test_an_unknown_address_has_a_page(page: Page) -> None:
    page.goto("/nothing-here")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    page.errors.clear()  # type: ignore[attr-defined] - the browser logs the 404
