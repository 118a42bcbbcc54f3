"""A code lab in the browser: a wrong program is called by its name, the reference passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

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
    expect(page.get_by_text("The reference", exact=True)).to_be_visible()
