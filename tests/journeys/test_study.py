"""Studying in the browser, by keyboard, with two tabs, and back again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.journeys.conftest import DESKTOP, PHONE
from tests.journeys.test_pages import AXE, EVERYTHING, ON_A_PHONE, OVER, SERIOUS
from tests.support.kinds import KINDS, write_kinds
from tests.support.product import Site
from tests.support.served import served


def test_today_of_whoever_skipped_the_question_teaches_and_its_numbers_open(
    page: Page, sqlite_template: Path, tmp_path: Path
) -> None:
    with served(sqlite_template, tmp_path) as fresh:  # once anything was done, Today is about that
        fresh.post_form("/first/skip")
        page.goto(fresh.url)
        _teaches(page)


def _teaches(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text("Why does a 7B model not train")
    number = page.get_by_role("link", name="112 GB")
    number.focus()
    page.keyboard.press("Enter")
    panel = page.locator(".derivation")
    expect(panel).to_contain_text("Training state")
    expect(panel.locator("math").first).to_be_visible()
    panel.get_by_label("Parameters").fill("13B")
    expect(panel.locator("[data-part=result]")).to_have_text("208 GB")
    panel.get_by_label("Parameters").fill("13 GB/s")
    expect(panel.locator(".error").first).to_contain_text("bandwidth")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(number).to_be_focused()


def test_reviewing_by_keyboard_counts_once_and_can_be_undone(page: Page, site: Site) -> None:
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/study")
    first = page.locator("[data-card]").get_attribute("data-card")
    expect(page.locator("[data-answer]")).to_be_hidden()
    page.keyboard.press("Space")
    expect(page.locator("[data-answer]")).to_be_visible()
    texts = page.locator(".rating .next").all_inner_texts()
    assert texts[:4] == ["1 min", "1 min", "6 min", "10 min"], texts
    assert re.fullmatch(r"(6|7|8|9|10) d", texts[4]), "eight days, spread over those that are as good"
    page.keyboard.press("4")
    expect(page.locator(f'[data-card="{first}"]')).to_have_count(0)
    expect(page.locator(".where")).to_contain_text("11 new, 1 again")  # what comes again does not lengthen what is new
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "a page that fits does not scroll"
    expect(page.locator("#ask")).to_be_focused()
    page.keyboard.press("u")
    expect(page.locator(f'[data-card="{first}"]')).to_be_visible()
    expect(page.locator(".notice")).to_contain_text(f"Took back the answer to {first}")
    assert site.get_json("/api/v1/study/next")["progress"]["done"] == 0


def test_two_tabs_never_review_a_card_twice(page: Page, context: BrowserContext, site: Site) -> None:
    before = site.get_json("/api/v1/study/next")["progress"]["done"]
    other = context.new_page()
    for tab in (page, other):
        tab.goto("/study")
        tab.keyboard.press("Space")
        expect(tab.locator("[data-rate]")).to_be_visible()
    page.keyboard.press("3")
    expect(page.locator(".where")).to_contain_text(f"{before + 1} answered today")
    other.bring_to_front()
    other.keyboard.press("3")
    expect(other.locator(".notice")).to_contain_text("Nothing was counted twice")
    assert site.get_json("/api/v1/study/next")["progress"]["done"] == before + 1


def test_a_double_click_rates_once(page: Page, site: Site) -> None:
    before = site.get_json("/api/v1/study/next")["progress"]["done"]
    page.goto("/study")
    page.keyboard.press("Space")
    page.locator(".rating").nth(4).dblclick()
    expect(page.locator(".where")).to_contain_text(f"{before + 1} answered today")
    page.wait_for_timeout(300)
    assert site.get_json("/api/v1/study/next")["progress"]["done"] == before + 1


def test_studying_works_without_script(context: BrowserContext, site: Site) -> None:
    plain = context.browser.new_context(base_url=site.url, java_script_enabled=False)  # type: ignore[union-attr]
    page = plain.new_page()
    page.goto("/study")
    page.get_by_role("button", name="Show the answer").click()
    expect(page.locator("[data-answer]")).to_be_visible()
    before = site.get_json("/api/v1/study/next")["progress"]["done"]
    page.locator(".rating").nth(3).click()
    assert site.get_json("/api/v1/study/next")["progress"]["done"] == before + 1
    plain.close()


@pytest.fixture(scope="module")
def kinds(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with one card of every kind."""
    cards = write_kinds(tmp_path_factory.mktemp("content") / "cards")
    with served(sqlite_template, tmp_path_factory.mktemp("kinds"), cards) as site:
        yield site


def start_again(site: Site) -> None:
    """Take back every answer."""
    while site.post_json("/api/v1/study/undo", {})[0] == 200:
        pass


@pytest.fixture
def desk(browser: Browser, kinds: Site) -> Iterator[Page]:
    """The study page over the cards of every kind, all new; errors in the console are failures."""
    start_again(kinds)
    context = browser.new_context(base_url=kinds.url, viewport=DESKTOP, locale="en-GB")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert not errors, errors


def come_to(page: Page, kind: str) -> None:
    """Pass over cards, by keyboard, until one of `kind` is shown."""
    page.goto("/study")
    for _ in range(12):
        card = page.locator("[data-card]")
        if card.get_attribute("data-kind") == kind:
            return
        before = card.get_attribute("data-card")
        page.keyboard.press("Space")
        expect(page.locator("[data-rate]")).to_be_visible()
        page.keyboard.press("5")
        expect(page.locator(f'[data-card="{before}"]')).to_have_count(0)
    raise AssertionError(f"no {kind} card comes")


def drawn(page: Page) -> tuple[float, float]:
    """Billions and ranks of the numeric card that is shown."""
    billions, ranks = re.findall(r"[\d.]+", page.locator("#ask").inner_text())
    return float(billions), float(ranks)


def test_a_number_is_typed_checked_and_rated_by_keyboard(desk: Page, kinds: Site) -> None:
    come_to(desk, "numeric")
    billions, ranks = drawn(desk)
    expect(desk.locator("[data-rate]")).to_have_count(0)
    desk.keyboard.type("1 apple")  # the first digit goes to the field
    expect(desk.get_by_role("textbox", name="Your answer")).to_have_value("1 apple")
    desk.keyboard.press("Enter")
    expect(desk.locator(".say")).to_contain_text("Not counted.")
    expect(desk.get_by_role("textbox", name="Your answer")).to_be_focused()
    assert drawn(desk) == (billions, ranks)
    desk.keyboard.type(f"{16 * billions} GB")  # what stood there is selected; all ranks' bytes is the known slip
    desk.keyboard.press("Enter")
    verdict = desk.locator("#verdict")
    expect(verdict).to_contain_text("Wrong: not divided.")
    expect(verdict).to_contain_text(f"It is {16 * billions / ranks:g} GB.")
    expect(verdict).to_be_focused()
    desk.keyboard.press("4")  # not offered after a wrong answer
    expect(verdict).to_be_visible()
    desk.keyboard.press("2")
    expect(desk.locator('[data-card="C11"]')).to_have_count(0)
    desk.keyboard.press("u")
    expect(desk.locator('[data-card="C11"]')).to_be_visible()
    billions, ranks = drawn(desk)
    desk.keyboard.type(f"{16 * billions / ranks}GB")
    desk.keyboard.press("Enter")
    expect(verdict).to_contain_text("Correct.")
    desk.keyboard.press("4")
    expect(desk.locator('[data-card="C12"]')).to_be_visible()
    expect(desk.locator("#ask")).to_be_focused()
    assert kinds.get_json("/api/v1/study/next")["progress"]["done"] == 3


def test_options_pairs_and_steps_by_keyboard(desk: Page) -> None:
    come_to(desk, "choose")
    ring = desk.locator(".option").filter(has_text="ring").locator("input")
    desk.keyboard.press(ring.get_attribute("data-letter") or "")
    expect(ring).to_be_checked()
    desk.keyboard.press("Enter")
    expect(desk.locator("#verdict")).to_contain_text("Correct. All links carry the same.")
    desk.keyboard.press("5")
    expect(desk.locator('[data-card="C13"]')).to_be_visible()
    desk.keyboard.press("a")
    desk.keyboard.press("c")
    desk.keyboard.press("Enter")
    expect(desk.locator("#verdict")).to_contain_text("You chose 1 that is wrong and left out 1 that is right.")
    desk.keyboard.press("1")

    expect(desk.locator('[data-card="C14"]')).to_be_visible()
    for left, right in (("ZeRO-1", "optimizer"), ("ZeRO-2", "optimizer, gradients"), ("ZeRO-3", "everything")):
        wanted = desk.get_by_label(left).locator("option").filter(has_text=re.compile(rf"^\w\) {right}$"))
        desk.get_by_label(left).select_option(wanted.get_attribute("value"))
    desk.get_by_label("ZeRO-3").press("Enter")
    expect(desk.locator("#verdict")).to_contain_text("Correct.")
    desk.keyboard.press("3")

    expect(desk.locator('[data-card="C15"]')).to_be_visible()
    steps = desk.locator(".step")
    for place, text in enumerate(["gather", "compute", "gather", "scatter"]):
        texts = steps.all_inner_texts()
        at = texts.index(text, place)
        steps.nth(at).focus()
        for _ in range(at - place):
            desk.keyboard.press("ArrowUp")
    assert steps.all_inner_texts() == ["gather", "compute", "gather", "scatter"]
    expect(desk.locator(".step").nth(3)).to_be_visible()
    steps.nth(0).press("Enter")
    expect(desk.locator("#verdict")).to_contain_text("Correct.")


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_every_kind_is_accessible_while_asked_and_when_answered(
    browser: Browser, kinds: Site, viewport: dict[str, int], scheme: str
) -> None:
    context = browser.new_context(
        base_url=kinds.url, viewport=viewport, color_scheme=scheme, has_touch=viewport is PHONE, bypass_csp=True
    )  # type: ignore[arg-type]
    context.add_init_script(path=AXE)
    page = context.new_page()
    start_again(kinds)
    come_to(page, "numeric")
    found: list[str] = []
    seen: set[str | None] = set()
    for _ in KINDS:
        card = page.locator("[data-card]")
        kind, identity = card.get_attribute("data-kind"), card.get_attribute("data-card")
        for state in ("asked", "answered"):
            overflow = page.evaluate(OVER)
            serious = page.evaluate(SERIOUS, ON_A_PHONE if viewport is PHONE else EVERYTHING)
            if serious or overflow > 0:
                found.append(f"{kind} {state}: {serious} {overflow} px over")
            if state == "asked":
                page.keyboard.press("Space")
                expect(page.locator("[data-rate]")).to_be_visible()
                expect(page.locator("#announce")).to_have_text(re.compile(r"^Answer: \w"))
        seen.add(kind)
        page.keyboard.press("5")
        expect(page.locator(f'[data-card="{identity}"]')).to_have_count(0)
    context.close()
    assert not found, "\n".join(found)
    assert seen == {"numeric", "choose", "match", "order", "cloze", "code"}


def test_a_placement_test_hides_what_its_blanks_hold_until_the_answer_is_shown(page: Page) -> None:
    page.goto("/study/placement/DK2")
    blank = page.locator(".placing section", has=page.locator(".blank")).first
    expect(blank.locator(".ask .gap").first).to_be_visible()
    for fill in blank.locator(".ask .fill").all():
        expect(fill).to_be_hidden()
    blank.get_by_text("Show the answer").click()
    expect(blank.locator(".ask .fill").first).to_be_visible()
    expect(blank.locator(".ask .gap").first).to_be_hidden()
    blank.get_by_text("Partly").click()
    expect(page.locator("[data-count]")).to_have_text("1 of 6 judged.")
