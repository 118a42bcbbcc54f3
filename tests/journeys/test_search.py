"""Finding things by keyboard, and reading what a marked word means."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from tests.support.product import Site


def test_search_by_keyboard_from_any_page(page: Page) -> None:
    page.goto("/planner")
    page.locator("body").press("/")
    field = page.get_by_role("dialog", name="Search").get_by_role("searchbox")
    expect(field).to_be_focused()
    field.press_sequentially("reduce-sca")
    expect(page.locator("#search [data-hit]").first).to_be_visible()
    expect(page.locator("#search mark").first).to_be_visible()
    field.press("ArrowDown")
    hits = page.locator("#search [data-hit]")
    expect(hits.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(hits.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    address = hits.first.get_attribute("href")
    assert address
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address}")


def test_enter_opens_what_was_typed_even_before_its_results_came(page: Page) -> None:
    page.goto("/reference")
    page.locator("body").press("/")
    page.keyboard.type("C62")
    page.keyboard.press("Enter")
    page.wait_for_url("**/study/cards/C62")


def test_escape_closes_search_and_a_slash_in_a_field_stays_a_slash(page: Page) -> None:
    page.goto("/practice/P03")
    answer = page.locator(".parts input").first
    answer.press("/")
    expect(answer).to_have_value("/")
    expect(page.locator("#search")).not_to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_visible()
    page.keyboard.type("zero")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).not_to_be_visible()


def test_the_search_page_answers_while_one_types_and_keeps_its_address(page: Page) -> None:
    page.goto("/search")
    page.keyboard.press("/")
    field = page.locator("main").get_by_role("searchbox")
    expect(field).to_be_focused()
    field.fill("bubble")
    expect(page.locator("main [data-count]")).to_contain_text("results for “bubble”")
    expect(page).to_have_url("/search?q=bubble")
    page.reload()
    expect(page.locator("main mark").first).to_have_text("bubble", ignore_case=True)


def test_search_works_without_script(context: BrowserContext, site: Site) -> None:
    plain = context.browser.new_context(base_url=site.url, java_script_enabled=False)  # type: ignore[union-attr]
    page = plain.new_page()
    page.goto("/")
    page.get_by_role("link", name="Search").click()
    page.locator("main").get_by_role("searchbox").fill("zero stages")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("main [data-hit]").first).to_be_visible()
    plain.close()


def test_a_marked_term_says_what_it_means_by_keyboard_and_by_mouse(page: Page) -> None:
    page.goto("/reference/zero-and-fsdp")
    term = page.locator("button.gloss").first
    says = term.get_attribute("title")
    assert says
    term.focus()
    expect(page.get_by_role("tooltip")).to_have_text(says)
    expect(term).to_have_attribute("aria-describedby", "gloss")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    page.locator("button.gloss").nth(1).hover()
    expect(page.get_by_role("tooltip")).to_be_visible()
    page.locator("h1").hover()
    expect(page.get_by_role("tooltip")).to_have_count(0)
    broken = page.locator(".nobr").evaluate_all("all => all.filter((each) => each.getClientRects().length > 1).length")
    assert broken == 0, "a full stop begins a line"


def test_a_long_list_is_sifted_and_opens_what_is_linked(page: Page) -> None:
    page.goto("/reference/glossary#reduce-scatter")
    expect(page.locator("#reduce-scatter")).to_be_visible()
    page.goto("/reference")
    expect(page.locator("[data-sift-item]:visible", has_text="F02,")).to_have_count(0)
    page.get_by_role("searchbox", name="Find a page or a formula").fill("zero state")
    expect(page.locator("[data-sift-item]:visible", has_text="F02,")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollHeight < 2 * innerHeight")
    page.keyboard.press("Escape")
    expect(page.locator("details[open]")).to_have_count(0)


def test_a_page_says_where_its_numbers_are_from_in_place(page: Page) -> None:
    page.goto("/reference/zero-and-fsdp")
    page.locator("a.live", has_text="38.5 GB").first.click()
    panel = page.get_by_role("dialog", name="Where this number comes from")
    expect(panel.locator('[data-part="result"]')).to_have_text("38.5 GB")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    contents = page.get_by_role("navigation", name="On this page")
    contents.get_by_role("link", name="What it costs in traffic").click()
    expect(contents.locator("[aria-current]")).to_have_text("What it costs in traffic")
    expect(contents.locator("[aria-current]")).to_be_in_viewport()
    page.get_by_role("link", name="Study these").click()
    expect(page.get_by_text("Only the cards of “ZeRO and FSDP”.")).to_be_visible()


def test_an_answer_is_said_aloud_against_the_clock(page: Page) -> None:
    page.clock.install()
    page.goto("/reference/sixty-second-answers")
    first = page.locator("[data-aloud]").first
    button = first.get_by_role("button", name="Say it, 60 s")
    button.focus()
    page.keyboard.press("Enter")
    page.clock.run_for(20_500)
    expect(first.locator("[data-left]")).to_have_text("40 s left")
    page.clock.run_for(30_000)
    expect(first.locator("[data-said]")).to_have_text("10 seconds left.")
    expect(first.locator("details")).not_to_have_attribute("open", "")
    page.clock.run_for(15_000)
    expect(first.locator("details")).to_have_attribute("open", "")
    expect(first.locator("summary")).to_be_focused()
    expect(first.get_by_role("button", name="Say it again, 60 s")).to_be_visible()
    second = page.locator("[data-aloud]").nth(1)
    second.get_by_role("button").click()
    page.keyboard.press("Escape")
    expect(second.locator("[data-left]")).to_have_text("")
    expect(second.locator("details")).not_to_have_attribute("open", "")
