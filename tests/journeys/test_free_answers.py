"""Answers in free text in the browser: by keyboard, graded with quotes, judged where the grader is unsure."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from app.content.catalogue import Catalogue
from tests.journeys.conftest import PHONE
from tests.support.product import Site

UNSURE = (
    "With 5 stages and 4 micro-batches (p−1)/(m+p−1) is 4/8, half idle. With 16 micro-batches it becomes 20 %.\n"
    "I'd move a layer from the embedding stage to others."
)


def test_an_answer_is_written_and_graded_by_keyboard_alone(page: Page, content: Catalogue) -> None:
    page.goto("/practice")
    page.locator("summary", has_text="Short questions").press("Enter")
    page.get_by_role("link", name=re.compile("R04")).press("Enter")
    page.wait_for_url("**/rubrics/ring-all-reduce")
    expect(page.locator(".nav [aria-current]")).to_contain_text("Practice")
    field = page.get_by_label("Your answer")
    field.focus()
    page.keyboard.insert_text(content.rubrics["R04"].exemplar("hire"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/rubrics/ring-all-reduce/\d+$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Hire, 67 %")  # 6 of 9 points
    factor = page.locator(".notes > li").filter(has_text="which tends to 2S")
    expect(factor.locator("b")).to_have_text("Met")
    number = factor.locator(".n").inner_text()  # leads to the words it rests on, underlined in the answer, and back
    evidence = page.locator(".ans .ev.ok").filter(has_text="twice that in total")
    expect(evidence.get_by_role("link", name=f"Note {number}", exact=True)).to_have_count(1)
    evidence.get_by_role("link", name=f"Note {number}", exact=True).press("Enter")
    expect(page).to_have_url(re.compile(f"#note-{number}$"))
    expect(page.locator(".notes > li").filter(has_text="Missed").first).to_contain_text(
        "Not heard. Half of it would be"
    )


def test_what_is_unsure_is_judged_beside_the_exemplar(page: Page) -> None:
    page.goto("/rubrics/idle-pipeline")
    page.get_by_label("Your answer").fill(UNSURE)
    page.get_by_label("Your answer").press("Control+Enter")
    page.wait_for_url(re.compile(r"/idle-pipeline/\d+$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("No hire to lean no hire, 33 to 44 %")  # 3 of 9 points
    expect(page.get_by_text("Strong hire", exact=True)).to_be_visible()
    row = page.locator(".notes > li").filter(has_text="Stages that are not equal")
    row.get_by_label("Yes").check(force=True)
    page.get_by_role("button", name="Keep what I judged").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lean no hire, 44 %")  # and one more
    expect(page.get_by_role("heading", name="Your answer, point by point")).to_be_focused()
    expect(page.locator(".notes > li").filter(has_text="Stages that are not equal")).to_contain_text("you judged")
    page.goto("/rubrics")
    expect(page.get_by_role("row").filter(has_text="R09")).to_contain_text("Lean no hire")


def test_it_works_without_script_on_a_phone(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url, viewport=PHONE, java_script_enabled=False)
    page = context.new_page()
    page.goto("/rubrics/hang-at-a-step")
    page.get_by_label("Your answer").fill("I would raise the timeout to two hours so that it recovers.")
    page.get_by_role("button", name="Grade it").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("No hire")
    expect(page.get_by_role("heading", level=1)).to_contain_text("it raises the time-out as the cure")
    expect(page.locator(".critical q")).to_contain_text("two hours")
    expect(page.locator(".ans .ev.no").first).to_contain_text("two hours")
    context.close()
