"""The study page in the browser beyond rating: marks by key, notes, what is announced, swipes, and lost replies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.journeys.conftest import DESKTOP, PHONE
from tests.support.product import Site
from tests.support.served import served


@pytest.fixture(scope="module")
def alone(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A learner of this file's own: the others count what was answered."""
    with served(sqlite_template, tmp_path_factory.mktemp("desk")) as site:
        yield site


@pytest.fixture
def desk(browser: Browser, alone: Site, request: pytest.FixtureRequest) -> Iterator[Page]:
    is_phone = getattr(request, "param", "") == "phone"
    context = browser.new_context(base_url=alone.url, viewport=PHONE if is_phone else DESKTOP, has_touch=is_phone)
    page = context.new_page()
    page.goto("/study")
    yield page
    context.close()


def shown(page: Page) -> str:
    return page.locator("[data-card]").get_attribute("data-card") or ""


def done(site: Site) -> int:
    found: int = site.get_json("/api/v1/study/next")["progress"]["done"]
    return found


def bring_back(desk: Page, card: str) -> None:
    """Over when the notice is gone: a key pressed before that goes nowhere."""
    desk.get_by_role("button", name="Bring it back").click()
    expect(desk.locator(".notice")).not_to_contain_text("Bring it back")
    desk.wait_for_load_state("networkidle")
    expect(desk.locator(f'[data-card="{card}"]')).to_be_visible()


def test_marks_by_key(desk: Page) -> None:
    first = shown(desk)
    desk.keyboard.press("*")
    expect(desk.locator(".flag")).to_have_text("Flagged")
    desk.keyboard.press("*")
    expect(desk.locator(".flag")).to_have_count(0)
    assert shown(desk) == first
    desk.keyboard.press("b")
    expect(desk.locator(".notice")).to_contain_text(f"{first} waits until tomorrow.")
    bring_back(desk, first)
    desk.keyboard.press("@")
    expect(desk.locator(".notice")).to_contain_text(f"{first} is suspended")
    bring_back(desk, first)


def test_undo_takes_back_the_mark_just_made_and_then_the_answer_before(desk: Page, alone: Site) -> None:
    before, answered = done(alone), shown(desk)
    desk.keyboard.press("Space")
    desk.keyboard.press("4")
    expect(desk.locator("[data-card]")).not_to_have_attribute("data-card", answered)
    for key, gone in (("b", True), ("@", True), ("*", False)):
        card = shown(desk)
        desk.keyboard.press(key)
        expect(desk.locator(".notice [data-back]")).to_be_visible()
        assert (shown(desk) != card) == gone
        desk.wait_for_load_state("networkidle")
        desk.keyboard.press("u")
        expect(desk.locator(".notice [data-back]")).to_have_count(0)
        expect(desk.locator(f'[data-card="{card}"]')).to_be_visible()
        desk.wait_for_load_state("networkidle")
    assert done(alone) == before + 1, "the answer stands"
    desk.keyboard.press("u")
    expect(desk.locator(".notice")).to_contain_text(f"Took back the answer to {answered}.")
    assert done(alone) == before


def test_keys_are_text_while_a_note_is_typed(desk: Page, alone: Site) -> None:
    first, before = shown(desk), done(alone)
    desk.keyboard.press("Space")
    desk.keyboard.press("n")
    field = desk.get_by_label(f"Your note on {first}")
    expect(field).to_be_focused()
    desk.keyboard.type("b1 u@ *4 why not?")
    assert shown(desk) == first
    desk.get_by_role("button", name="Keep it").click()
    expect(desk.locator(".as-typed")).to_have_text("b1 u@ *4 why not?")
    expect(desk.locator("[data-answer]")).to_be_visible()
    assert done(alone) == before
    desk.keyboard.press("n")
    desk.keyboard.press("Escape")
    expect(field).to_be_hidden()
    desk.keyboard.press("n")
    field.fill("")
    desk.get_by_role("button", name="Keep it").click()
    expect(desk.locator(".as-typed")).to_have_count(0)


def test_the_answer_and_the_next_card_are_announced(desk: Page) -> None:
    region = desk.locator("#announce")
    assert region.get_attribute("aria-live") == "polite"
    desk.keyboard.press("Space")
    expect(region).to_have_text(re.compile(r"^Answer: \w+"))
    desk.keyboard.press("4")
    expect(region).to_have_text(re.compile(r"^Next card: \d+ new, \d+ again$"))
    expect(desk.locator("#ask")).to_be_focused()
    desk.keyboard.press("u")


def test_the_menu_opens_and_closes_by_keyboard(desk: Page) -> None:
    menu = desk.locator("[data-menu] summary")
    menu.focus()
    desk.keyboard.press("Enter")
    expect(desk.get_by_role("button", name="Suspend")).to_be_visible()
    desk.keyboard.press("Escape")
    expect(desk.get_by_role("button", name="Suspend")).to_be_hidden()
    expect(menu).to_be_focused()


def swipe(page: Page, by: int) -> None:
    """A thumb over the card, beside what scrolls by itself."""
    box = page.locator(".sheet > .kind").bounding_box()
    assert box
    x, y = 195 - by / 2, box["y"] + box["height"] / 2
    thumb = page.context.new_cdp_session(page)
    thumb.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for part in range(1, 9):
        at = {"x": x + by * part / 8, "y": y + part / 2}
        thumb.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [at]})
    thumb.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.parametrize("desk", ["phone"], indirect=True)
def test_a_phone_is_swiped(desk: Page, alone: Site) -> None:
    first, before = shown(desk), done(alone)
    version = desk.locator("[data-card]").get_attribute("data-version")
    swipe(desk, 30)
    expect(desk.locator("[data-answer]")).to_be_hidden()
    swipe(desk, 200)
    expect(desk.locator("[data-answer]")).to_be_visible()
    swipe(desk, 200)
    expect(desk.locator(f'[data-card="{first}"]')).to_have_count(0)
    assert done(alone) == before + 1
    assert alone.get_json(f"/api/v1/study/reviews/{first}/{version}")["level"] == 4, "to the right is good"
    second = shown(desk)
    swipe(desk, -200)
    expect(desk.locator("[data-rate]")).to_be_visible()
    swipe(desk, -200)
    expect(desk.locator(f'[data-card="{second}"]')).to_have_count(0)
    for _ in range(2):
        alone.post_json("/api/v1/study/undo", {})
    assert done(alone) == before


def test_an_answer_whose_reply_was_lost_is_found_again(desk: Page, alone: Site) -> None:
    first, before = shown(desk), done(alone)

    def swallow(route: Route) -> None:
        route.fetch()  # the server gets it and commits; the page never hears
        route.abort()

    desk.route("**/study/reviews", swallow, times=1)
    desk.keyboard.press("Space")
    desk.keyboard.press("4")
    expect(desk.locator(".notice")).to_contain_text(f"Your answer to {first} was counted.")
    assert shown(desk) != first
    assert done(alone) == before + 1
    desk.keyboard.press("u")
    expect(desk.locator(f'[data-card="{first}"]')).to_be_visible()


def test_an_answer_that_never_arrived_is_rated_again(desk: Page, alone: Site) -> None:
    first, before = shown(desk), done(alone)
    desk.route("**/study/reviews", lambda route: route.abort(), times=1)
    desk.keyboard.press("Space")
    desk.keyboard.press("3")
    expect(desk.locator(".notice")).to_contain_text(f"Your answer to {first} was not counted. Rate it again.")
    desk.keyboard.press("3")
    expect(desk.locator(f'[data-card="{first}"]')).to_have_count(0)
    assert done(alone) == before + 1
    desk.keyboard.press("u")
    expect(desk.locator(f'[data-card="{first}"]')).to_be_visible()


def test_cards_are_looked_through_by_keyboard(desk: Page, alone: Site) -> None:
    before = done(alone)
    desk.goto("/study/cram?deck=DK7")
    first = desk.locator(".kind").inner_text()
    desk.keyboard.press("Space")
    expect(desk.locator("#answer")).to_be_visible()
    desk.wait_for_load_state("load")  # every key leads to another page here: no key before it is there
    desk.keyboard.press("Space")
    expect(desk.locator(".kind")).to_contain_text("2 of")
    desk.wait_for_load_state("load")
    desk.keyboard.press("ArrowLeft")
    expect(desk.locator(".kind")).to_have_text(first)
    assert done(alone) == before


def test_an_answer_faster_than_the_page_can_be_set_up_stays_on_the_page(desk: Page, alone: Site) -> None:
    """Rated in the moment a card is put in, before htmx has looked at its form: no page is loaded anew for it."""
    before, loaded = done(alone), []
    desk.on("framenavigated", lambda frame: loaded.append(frame.url))
    desk.evaluate("""() => {
        new MutationObserver(() => {
            const form = document.querySelector("[data-rate]");
            if (!form || form.dataset.sent) return;
            form.hidden = false;
            form.requestSubmit(form.querySelector('[value="3"]'));
        }).observe(document.body, { childList: true, subtree: true });
        document.body.append(document.createElement("i"));
    }""")
    expect(desk.locator("[data-check]")).to_be_visible()  # a card the machine checks has no buttons yet: it ends there
    assert done(alone) > before + 1
    assert loaded == []
