"""Code labs in the browser: a wrong program is called by its name, the reference passes; and puzzles on a phone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.journeys.conftest import PHONE
from tests.support.product import Product

LAB = Path(__file__).parents[2] / "cards" / "labs" / "CL01"
JUDGED_MS = 120_000


@pytest.fixture(scope="module")
def site(product: Product) -> Product:
    """It takes a worker to judge."""
    return product


def _type(page: Page, name: str) -> None:
    expect(page.locator("[data-editor]")).to_be_visible()  # until then the text field is what bears the name
    page.get_by_role("textbox", name=re.compile("Your program")).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text((LAB / name).read_text())


def test_a_lab_from_a_hang_to_the_reference(page: Page) -> None:
    page.goto("/practice")
    page.get_by_role("link", name=re.compile("All .* code labs")).click()
    page.get_by_role("link", name="CL01, Ring all-reduce").click()
    _type(page, "wrong/all-send-first.py")
    page.get_by_role("button", name=re.compile("^Submit")).click()
    outcome = page.locator("[data-outcome]")
    expect(outcome).to_contain_text("Everyone sends first", timeout=JUDGED_MS)
    expect(page.get_by_role("link", name="Read C33")).to_be_visible()
    page.get_by_role("region", name="Where each rank was").get_by_role("link").first.click()
    editor = page.get_by_role("textbox", name=re.compile("Your program"))
    expect(editor).to_be_focused()
    expect(page.locator(".solutions")).to_have_count(0)

    # what was handed in is there after a reload; the starter can be had back, and that undone
    page.reload()
    expect(editor).to_contain_text("mistake: everyone-sends-first")
    page.get_by_role("button", name="Back to the starter").click()
    expect(editor).not_to_contain_text("mistake")
    page.keyboard.press("Control+z")
    expect(editor).to_contain_text("mistake: everyone-sends-first")

    # Tab indents; after Escape it leaves
    _type(page, "reference.py")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^Run"))).to_be_focused()
    editor.press("Control+Shift+Enter")
    expect(outcome).to_contain_text("Passed", timeout=JUDGED_MS)
    expect(outcome).to_be_in_viewport()
    expect(page.get_by_text("The reference", exact=True)).to_be_visible()

    # its run beside the reference's: a message is lit on both of its ranks, and the other rank has it too
    film = page.locator(".films [data-film]")
    expect(film).to_have_count(2)
    film.last.locator("[data-reel]").focus()
    page.keyboard.press("Home")
    expect(film.last.locator("[data-name]")).to_have_text("Send to rank 1, no. 1")
    expect(film.last.locator(".on:not([hidden])")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(film.last.locator("[data-name]")).to_have_text("Receive from rank 0, no. 1")
    expect(film.last.locator("[data-says]")).to_contain_text("the reference’s line")


def test_puzzles_on_a_phone_by_thumb_and_by_keys(browser: Browser, product: Product) -> None:
    context = browser.new_context(base_url=product.url, viewport=PHONE, has_touch=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("/labs")
    page.locator("a[href$='ring-all-reduce/puzzle']").tap()
    outcome, run = page.locator("[data-outcome]"), page.get_by_role("button", name=re.compile("^Run it"))
    for letter in "fjdeag":  # everyone sends, then receives
        page.locator(f"[data-spare] [data-letter={letter}] .code").tap()
    run.tap()
    expect(outcome).to_contain_text("Everyone sends first", timeout=JUDGED_MS)
    page.reload()
    page.get_by_role("button", name="Take out: send(outgoing, right)", exact=True).tap()
    for letter in "hc":
        page.locator(f"[data-spare] [data-letter={letter}] .code").press("Enter")
    for _ in range(3):  # f j d a g h c
        page.keyboard.press("ArrowUp")
    expect(page.locator("[data-moved]")).to_contain_text("now 4 of 7")
    page.get_by_role("button", name=re.compile("^Move down: growing.copy_")).press("Enter")
    run.press("Enter")
    expect(outcome).to_contain_text("Solved", timeout=JUDGED_MS)
    expect(page.locator("[data-status]")).to_contain_text("Solved")

    page.goto("/labs/write-the-1f1b-schedule/puzzle")
    run.tap()
    expect(outcome).to_contain_text("GPipe", timeout=JUDGED_MS)
    page.locator("input[name=cell]").first.focus()
    page.keyboard.type("ffffbf fffbfb ffbfbf fbfbfb".replace(" ", ""))
    run.press("Enter")
    expect(outcome).to_contain_text("Solved", timeout=JUDGED_MS)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert not errors, errors
    context.close()


def _write(page: Page, code: str) -> Locator:
    editor = page.get_by_role("textbox", name=re.compile("Your program"))
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    return editor


def test_two_tabs_lose_nothing_of_each_other(page: Page) -> None:
    second = page.context.new_page()
    for tab in (page, second):
        tab.goto("/labs/CL02")
        expect(tab.locator("[data-editor]")).to_be_visible()
    _write(page, "first = 1")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    editor = _write(second, "second = 2")
    other = second.locator("[data-other]")
    expect(other).to_contain_text("Yours is below and not saved")
    other.get_by_text("The other text").click()
    expect(other).to_contain_text("first = 1")

    # the one that is not chosen stays at hand, over a reload as well
    other.get_by_role("button", name="Save mine").click()
    expect(second.get_by_text("Saved", exact=True)).to_be_visible()
    page.evaluate("dispatchEvent(new Event('focus'))")  # back at the first, where nothing was typed since
    expect(page.get_by_role("textbox", name=re.compile("Your program"))).to_contain_text("second = 2")
    second.reload()
    expect(editor).to_contain_text("second = 2")
    other.get_by_role("button", name="Swap the two").click()
    expect(editor).to_contain_text("first = 1")
    expect(other).to_contain_text("second = 2")
    expect(second.get_by_text("Saved", exact=True)).to_be_visible()
    other.get_by_role("button", name="Forget the other").click()
    expect(other).to_be_hidden()
    second.close()
