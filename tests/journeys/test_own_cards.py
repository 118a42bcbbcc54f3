"""Own cards in a real browser: written by keyboard with a live preview, taken out, deleted, brought back."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Dialog, Page, Route, expect

from tests.support.product import Site


def test_a_card_is_written_by_keyboard_and_survives_a_mistake(page: Page) -> None:
    page.goto("/study/own/new?deck=Keyboard")
    page.get_by_label("Question", exact=True).focus()
    page.keyboard.type("What does $16N$ stand for?")
    preview = page.locator('[data-part="preview"]')
    expect(preview.locator("math")).to_be_visible()
    page.errors.clear()  # type: ignore[attr-defined]
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answer-help")).to_contain_text("It is empty")
    expect(page.get_by_label("Question", exact=True)).to_have_value("What does $16N$ stand for?")
    page.errors.clear()  # type: ignore[attr-defined] - the browser notes the 422
    page.get_by_label("Answer", exact=True).focus()
    page.keyboard.type("Bytes of state, <script>alert(1)</script>{{ 7*7 }}")
    expect(preview).to_contain_text("<script>alert(1)</script>{{ 7*7 }}")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Added")
    page.goto("/study/own?q=stand")
    page.get_by_role("link", name="What does 16N stand for?").click()
    page.get_by_text("Delete this card").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Deleted")


def test_what_was_typed_before_the_script_came_is_previewed_and_not_lost(page: Page) -> None:
    late: list[Route] = []
    script = re.compile(r"own[^/]*[.]js")

    def hold(route: Route) -> None:
        late.append(route)

    page.route(script, hold)
    page.goto("/study/own/new", wait_until="commit")
    page.get_by_label("Question", exact=True).fill("Early $x$?")
    assert len(late) == 1, "the script was to come late"
    late[0].continue_()
    page.unroute(script)
    expect(page.locator('[data-part="preview"] math')).to_be_visible()

    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_role("link", name="Your own cards").click(no_wait_after=True)
    expect(page.get_by_label("Question", exact=True)).to_have_value("Early $x$?")
    page.wait_for_timeout(200)
    assert asked == ["beforeunload"]
    page.remove_listener("dialog", stay)

    # refused and sent back with an error, it still is unsaved
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#answer-help")).to_contain_text("It is empty")
    page.errors.clear()  # type: ignore[attr-defined] - the browser notes the 422
    asked.clear()
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.get_by_role("link", name="Your own cards").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your own cards")
    assert asked == ["beforeunload"]


def test_cards_go_out_and_come_back(page: Page, tmp_path: Path) -> None:
    page.goto("/study/exchange")
    table = tmp_path / "cards.csv"
    table.write_text("question,answer,deck\nOne?,Eins.,Languages\nTwo?,Zwei.,Languages\nThree?,,Languages\n")
    page.get_by_label("File").set_input_files(table)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 new cards")
    expect(page.get_by_text("Row 4: Three?")).to_be_visible()
    page.goto("/study/exchange")
    page.get_by_text("Your 2", exact=False).click()
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download rankzero.apkg").click()
    begun.value.save_as(tmp_path / "cards.apkg")
    page.goto("/study/own?deck=Languages")
    page.get_by_text("Delete this deck").click()
    page.get_by_role("button", name="Delete 2 cards").click()
    page.goto("/study/exchange")
    page.get_by_label("File").set_input_files(tmp_path / "cards.apkg")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 new cards")
    page.goto("/study/own?deck=Languages")
    page.get_by_text("Delete this deck").click()
    page.get_by_role("button", name="Delete 2 cards").click()


def test_the_editor_works_without_script(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/study/own/new")
    page.get_by_label("Question", exact=True).fill("Without $x$?")
    page.get_by_label("Answer", exact=True).fill("Yes.")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator('[data-part="preview"] math')).to_be_visible()
    expect(page.get_by_label("Answer", exact=True)).to_have_value("Yes.")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("link", name="Change it").click()
    page.get_by_text("Delete this card").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Deleted")
    context.close()
