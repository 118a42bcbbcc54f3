"""Every page at desktop and phone width, light and dark: nothing scrolls sideways, fails or is out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.journeys.conftest import DESKTOP, PHONE
from tests.support.product import Product
from tests.support.todays import todays

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
    "/lab/runs",
    "/lab/sweeps",
    "/lab/fit",
    "/planner",
    "/planner/decide",
    "/planner?model=llama-3-70b&ranks=64&tensor=8&pipeline=3&zero=1",
    "/interview",
    "/interview/M5",
    "/interview/generated",
    "/interview/coding",
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
    "/reference/concepts",
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
    "/labs",
    "/labs/write-a-ring-all-reduce",
    "/labs/write-the-1f1b-schedule/puzzle",
)


MADE = ("sitting", "scorecard", "settled problem", "finished run", "failed run", "two runs")


@pytest.fixture(scope="module")
def site(product: Product) -> Product:
    """Journeys here need workers."""
    return product


@pytest.fixture(scope="module")
def made_pages(browser: Browser, product: Product) -> Iterator[dict[str, str]]:
    """Pages there are only once something was done: runs that ended, a sitting, its scorecard, a settled problem."""
    small = {"model": "gpt-mini", "training": {"steps": 6, "sequence": 32}, "parallel": {"data": 2, "zero": 3}}
    specs = (small, {**small, "faults": [{"kind": "kill", "rank": 1, "step": 5}]})
    prediction = {"model_state_bytes": {"value": "5 MB", "within": 1.5}}
    runs = [product.post_json("/api/v1/lab/runs", {"spec": spec, "prediction": prediction})[1]["id"] for spec in specs]
    context = browser.new_context(base_url=product.url)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto("/interview/M9")
    page.get_by_role("button", name="Start, 10 min").click()
    page.wait_for_url("**/sittings/*")
    scorecard = page.url
    page.get_by_text("End the interview").click()
    page.get_by_role("button", name="End it now").click()
    page.get_by_label("Hire", exact=True).check()
    page.get_by_role("button", name="See the debrief").click()
    page.locator("#sc").wait_for(timeout=60_000)
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
    compared = f"/lab/compare?run={runs[0]}&run={runs[1]}"
    made = (sitting, scorecard, settled, *(f"/lab/runs/{run}" for run in runs), compared)
    yield dict(zip(MADE, made, strict=True))
    page.goto(sitting)
    page.get_by_text("End the interview").click()
    page.get_by_role("button", name="End it now").click()
    context.close()


# Everything once, on a desktop in light. What can differ in the dark is contrast; on a phone contrast again, how large
# what one touches is, and what scrolls by itself, which no theme changes. A theme colours an element alike at either
# width, so that light on a phone and dark on a desktop are for what only one of the two shows: another quarter of the
# pages each day.
EVERYTHING: tuple[str, ...] = ()
COLOURS = ("color-contrast",)
ON_A_PHONE = (*COLOURS, "target-size", "scrollable-region-focusable")
AT_ONCE = "*, ::before, ::after { transition: none !important }"  # a colour halfway to the other theme is nobody's
DRAWN_TO_ITS_WIDTH = "[data-plot], [data-film]"  # what a script lays out once, when the page is loaded
SERIOUS = """async (rules) => {
    const some = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
    // preload is for media and for sheets of other origins, which our pages have not
    const report = await axe.run(document, { resultTypes: ["violations"], preload: false, ...some });
    const isSerious = ({ impact }) => impact === "serious" || impact === "critical";
    return report.violations.filter(isSerious).map(({ id, help, nodes }) => `${id}: ${help} at ${nodes[0].target}`);
}"""
# A row of a table may stand as a block on a phone; a list in which every value has its label is read twice.
LABELS = """[...document.querySelectorAll("td[data-l]")].filter((cell) =>
    cell.checkVisibility() && getComputedStyle(cell, "::before").content !== "none").length"""
MOST_LABELS = 12
CROSSED = todays((*PAGES, *MADE), 4)
OVER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Looker:
    """One page that is turned from a desktop's to a phone's, and dark under the reader's eyes, as at dusk."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)

    def hold(self, viewport: ViewportSize) -> None:
        """What is narrow is touched."""
        self.page.set_viewport_size(viewport)
        is_touched = viewport is PHONE
        self.session.send("Emulation.setTouchEmulationEnabled", {"enabled": is_touched})
        assert self.page.evaluate("matchMedia('(pointer: coarse)').matches") == is_touched

    def load(self, path: str) -> None:
        self.page.goto(path)
        self.page.add_style_tag(content=AT_ONCE)

    def problems(self, scheme: Literal["light", "dark"], rules: tuple[str, ...]) -> Iterator[str]:
        """What is wrong with the page as it is, in a theme."""
        self.page.emulate_media(color_scheme=scheme)
        where = f"{scheme}, {self.page.viewport_size['width']} px"  # type: ignore[index] - it was given
        over = self.page.evaluate(OVER)
        if over > 0:
            yield f"scrolls sideways by {over} px ({where})"
        for violation in self.page.evaluate(SERIOUS, rules):
            yield f"{violation} ({where})"


@pytest.fixture(scope="module")
def looker(browser: Browser, product: Product) -> Iterator[Looker]:
    """Axe is injected, past the policy, which is tested elsewhere."""
    context = browser.new_context(base_url=product.url, bypass_csp=True)
    context.set_default_timeout(60_000)
    context.add_init_script(path=AXE)
    yield Looker(context.new_page())
    context.close()


def problems_of(looker: Looker, path: str, is_crossed: bool) -> Iterator[str]:
    """A page is loaded once, and axe with it. `is_crossed`: with each theme at both widths."""
    looker.hold(DESKTOP)
    looker.page.emulate_media(color_scheme="light")
    looker.load(path)
    yield from looker.problems("light", EVERYTHING)
    if is_crossed:
        yield from looker.problems("dark", COLOURS)
    looker.hold(PHONE)
    if looker.page.locator(DRAWN_TO_ITS_WIDTH).count():
        looker.load(path)
    labels = looker.page.evaluate(LABELS)
    if labels > MOST_LABELS:
        yield f"a label for each of {labels} values on a phone"
    yield from looker.problems("dark", ON_A_PHONE)
    if is_crossed:
        yield from looker.problems("light", COLOURS)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_and_is_accessible(looker: Looker, path: str) -> None:
    found = list(problems_of(looker, path, path in CROSSED))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("made", MADE)
def test_what_was_done_has_pages_that_fit_and_are_accessible(
    looker: Looker, made_pages: dict[str, str], made: str
) -> None:
    found = list(problems_of(looker, made_pages[made], made in CROSSED))
    assert not found, "\n".join(found)


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
