"""Predict, run, explain: real ranks under torchrun, streamed into the page."""

from __future__ import annotations

import re
import subprocess
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from app.core.settings import ROOT
from tests.journeys.conftest import PHONE
from tests.support.pace import slack_seconds
from tests.support.product import Product

RUN_SECONDS = 90_000
# Keeps which stages of the reveal a page came by, and what its heading said then: each is over in a second or two.
NOTES_STAGES = """
const stages = (window.stages = []), titles = (window.titles = []);
new MutationObserver((all) => {
  for (const { target } of all) stages.push(target.dataset.reveal);
  titles.push(document.querySelector("h1").textContent);
}).observe(document, { subtree: true, attributeFilter: ["data-reveal"] });
"""
QUESTION, FINDING = "What will FSDP on 2 ranks hold and move?", "You left out the second gather"


@pytest.fixture(scope="module")
def site(product: Product) -> Product:
    """Journeys here need workers."""
    return product


def _finish(page: Page) -> None:
    expect(page.locator(".pill.finished")).to_be_visible(timeout=RUN_SECONDS)


def test_a_prediction_a_run_a_reload_and_the_comparison(page: Page, product: Product) -> None:
    page.context.add_init_script(NOTES_STAGES)
    page.goto("/lab")
    page.get_by_role("link", name=re.compile("L10, ZeRO by the byte")).click()
    page.get_by_label("FSDP, stage 3").check(force=True)
    page.get_by_label("Model state per rank", exact=False).first.fill("26 MB")
    page.get_by_text("× 1.1").first.click()
    page.get_by_label("Model state per rank", exact=False).first.press("Enter")  # locks nothing while one is blank
    expect(page.locator("[data-enter]")).to_have_text(re.compile("^Still blank: Payload per rank and step"))
    page.locator("[name='value.payload_bytes_per_step']").fill("26 MB")
    expect(page.locator("[data-count]")).to_have_text("2 of 2 set.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/lab/runs/\d+$"))

    expect(page.locator(".waits .now")).to_contain_text(re.compile(r"Step [1-9]\d* of 20"), timeout=RUN_SECONDS)
    expect(page.locator("[data-curve-table] tbody tr").first).to_be_attached()
    page.reload()  # mid-run: everything so far must be there again
    expect(page.locator("[data-curve-table] tbody tr td").first).to_have_text("1")
    expect(page.locator(".curve canvas")).to_have_count(2)
    expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
    expect(page.locator(".meter .prediction")).to_have_count(2)
    assert page.locator(".meter .th, .meter .got, .meter .gapname").count() == 0
    expect(page.get_by_role("heading", name="Memory per rank")).to_have_count(0)
    _finish(page)
    expect(page.locator("[data-reveal='4']")).to_have_count(1)
    assert page.evaluate("titles")[0] == QUESTION, "the finding comes behind its gap"

    assert page.locator("[data-curve-table] tbody tr").count() == 20
    rows = page.locator("table.pm tbody tr")
    expect(rows.nth(0)).to_contain_text("25.99 MB")
    expect(rows.nth(0)).to_contain_text("exact")
    expect(rows.nth(1)).to_contain_text("38.59 MB")
    expect(rows.nth(1)).to_contain_text("1.48 ×")
    expect(page.get_by_role("heading", level=1)).to_have_text(FINDING)
    expect(page).to_have_title(f"{FINDING} · RankZero")
    expect(page.locator(".gapname")).to_have_text(["nothing missing", "second gather, 12.6 MB"])
    before = len(page.evaluate("stages"))
    page.keyboard.press("r")  # once more
    page.wait_for_function("before => stages.length > before", arg=before)
    assert (page.evaluate("stages")[before], page.evaluate("titles").count(QUESTION) > 1) == ("0", True)
    page.keyboard.press("Escape")
    expect(page.locator("[data-reveal='4']")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text(FINDING)
    expect(page.locator("#h-pm + .note, .panel-head .note", has_text="layout fp32").first).to_be_visible()
    expect(page.get_by_role("heading", name="Communication")).to_be_visible()  # the fold stays as it was
    expect(page.locator("table", has_text="Reduce-scatter, gradients")).to_contain_text("12.99 MB")
    expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    expect(page.get_by_role("link", name="all of it as one file")).to_be_visible()

    run = product.get_json(f"/api/v1/lab/runs/{page.url.rsplit('/', 1)[1]}")
    assert run["result"]["payload_bytes_per_step"] == run["theory"]["payload_bytes_per_step"]
    assert abs(run["result"]["model_state_bytes"] / run["theory"]["model_state_bytes"] - 1) < 0.01


def test_on_a_phone_without_motion_the_result_is_there_at_once(browser: Browser, product: Product) -> None:
    spec = {"model": "gpt-mini", "training": {"steps": 6, "sequence": 32}, "parallel": {"data": 2, "zero": 3}}
    prediction = {"model_state_bytes": {"value": "3 MB", "within": 1.5}}
    _, run = product.post_json("/api/v1/lab/runs", {"spec": spec, "prediction": prediction})
    context = browser.new_context(base_url=product.url, viewport=PHONE, reduced_motion="reduce")
    context.add_init_script(NOTES_STAGES)
    page = context.new_page()
    page.goto(f"/lab/runs/{run['id']}")
    _finish(page)
    expect(page.locator("[data-reveal='4']")).to_have_count(1)
    assert set(page.evaluate("stages")) <= {"0", "4"}, "none of those between"
    expect(page.locator(".gapname").first).to_be_visible()
    expect(page.locator(".ends .v").first).to_contain_text("range")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    context.close()


def test_an_experiment_over_a_program_by_keyboard_alone(page: Page, product: Product) -> None:
    """Knobs of a program's options, a share, a time and a count: turned, typed, slid, run and compared."""
    page.goto("/lab/experiments/L12")
    page.get_by_label("1F1B", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("options.schedule=gpipe"))
    page.get_by_label("4", exact=True).last.focus()  # ranks are before it
    page.keyboard.press("Space")
    page.wait_for_url(re.compile("options.micro_batches=8%2C16%2C4"))

    idle = page.locator("[name='value.bubble_fraction']")
    idle.focus()
    page.keyboard.type("27 %")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")  # on the slider now
    expect(idle).to_have_value("27.1 %")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator("[data-said]").first).to_have_text("24.6 % to 29.8 %")
    page.locator("[name='value.in_flight']").focus()
    page.keyboard.type("4")
    expect(page.locator("[data-count]")).to_have_text("2 of 3 set.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/lab/runs/\d+$"))
    _finish(page)

    rows = page.locator("table.pm tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("27.1 %")
    expect(rows.nth(0)).to_contain_text("42.86 %")
    expect(rows.nth(2)).to_contain_text("exact")
    expect(page.get_by_text("How the number comes about, step by step.")).to_be_visible()
    expect(page.get_by_role("link", name="Read the card")).to_have_attribute("href", "/study/cards/C55")
    expect(page.locator(".explained")).to_contain_text("GPipe and 1F1B idle alike")
    run = product.get_json(f"/api/v1/lab/runs/{page.url.rsplit('/', 1)[1]}")
    assert run["spec"]["options"]["schedule"] == "gpipe"
    assert run["result"]["in_flight"] == 4
    page.get_by_role("link", name="Run again with a change").click()
    expect(page.get_by_label("GPipe")).to_be_checked()


def test_the_command_on_the_page_does_the_same_run_without_us(page: Page, product: Product) -> None:
    """The line as it is pasted into a shell: no events, progress and closing tables for people."""
    spec = {
        "model": "gpt-mini",
        "training": {"steps": 5, "sequence": 32, "seed": 7},
        "parallel": {"data": 2, "zero": 0},
    }
    _, run = product.post_json("/api/v1/lab/runs", {"spec": spec})
    page.goto(f"/lab/runs/{run['id']}")
    _finish(page)
    page.get_by_role("button", name="Copy").click()
    command = page.evaluate("navigator.clipboard.readText()")
    assert "--rdzv-conf store_type=file --nproc-per-node 2 -m labs.train" in command
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    by_hand = [float(loss) for loss in re.findall(r"^step \d/5   loss +([\d.]+) ", done.stdout, re.MULTILINE)]
    table = page.locator("[data-curve-table] tbody tr")
    on_page = [float(table.nth(i).locator("td").nth(1).text_content() or "nan") for i in range(table.count())]
    assert len(by_hand) == 5
    assert all(abs(a - b) < 1e-3 for a, b in zip(by_hand, on_page, strict=True))
    for word in ("gradients", "optimizer", "all_reduce", "tokens/s", "finished"):
        assert word in done.stdout
    assert "Traceback" not in done.stderr


def test_a_run_can_be_cancelled_and_its_processes_are_gone(page: Page, product: Product) -> None:
    spec = {"model": "gpt-small", "training": {"steps": 500}, "parallel": {"data": 2}}
    _, run = product.post_json("/api/v1/lab/runs", {"spec": spec})
    page.goto(f"/lab/runs/{run['id']}")
    expect(page.locator(".waits .now")).to_contain_text(re.compile("Step [1-9]"), timeout=RUN_SECONDS)
    page.get_by_role("button", name="Cancel run").press("Enter")
    expect(page.locator(".pill.cancelled")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Cancelled after")
    expect(page.get_by_role("link", name="Run again with a change")).to_be_focused()
    _expect_devices_to_follow(page, product)
    _expect_no_ranks(product)


def _expect_devices_to_follow(page: Page, product: Product) -> None:
    """The page of devices goes on by itself, and keeps the focus of who drains a worker by keyboard."""
    page.goto("/lab/devices")
    page.get_by_role("button", name=re.compile("^Drain ")).press("Enter")
    resume = page.get_by_role("button", name=re.compile("^Resume "))
    expect(resume).to_be_focused()
    _, run = product.post_json("/api/v1/lab/runs", {"spec": {"model": "gpt-mini", "training": {"steps": 1}}})
    expect(page.get_by_role("link", name=re.compile(f"^{run['id']}, "))).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 run waits")
    expect(resume).to_be_focused()
    product.post_json(f"/api/v1/lab/runs/{run['id']}/cancel", {})
    expect(page.get_by_role("heading", level=1)).to_contain_text("nothing waits")
    resume.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^Drain "))).to_be_focused()


def test_a_rank_that_dies_is_named_with_its_cause(page: Page, product: Product) -> None:
    spec = {
        "model": "gpt-mini",
        "training": {"steps": 20, "sequence": 32},
        "parallel": {"data": 2},
        "faults": [{"kind": "kill", "rank": 1, "step": 5}],
    }
    _, run = product.post_json("/api/v1/lab/runs", {"spec": spec})
    page.goto(f"/lab/runs/{run['id']}")
    expect(page.locator(".pill.failed")).to_be_visible(timeout=RUN_SECONDS)
    expect(page.get_by_role("heading", level=1)).to_have_text("Rank 1 was killed at step 5, as this run asked")
    expect(page.locator(".ended")).to_contain_text("at step 5 of 20")
    expect(page.get_by_role("link", name="Set it up")).to_have_attribute("href", re.compile("from-checkpoint"))
    expect(page.locator(".said-last li").first).to_contain_text("fault on purpose")
    assert page.locator("[data-curve-table] tbody tr").count() == 4
    _expect_no_ranks(product)


def test_an_impossible_run_is_refused_with_every_reason_at_its_field(page: Page) -> None:
    runs = page.locator('ul.rows a[href^="/lab/runs/"]')
    page.goto("/lab")
    before = runs.count()
    page.get_by_label("Layers").fill("1000000000")
    page.get_by_label("Heads").fill("7")
    page.get_by_label("Micro-batch").fill("0")
    page.get_by_role("button", name="Run it").click()
    expect(page.locator("#h-layers")).to_contain_text("Accepted")
    expect(page.locator("#h-heads")).to_contain_text("does not divide")
    expect(page.locator("#h-micro_batch")).to_contain_text("0 is out of range")
    expect(page.get_by_label("Heads")).to_have_value("7")
    page.errors.clear()  # type: ignore[attr-defined] - the browser logs the 422
    page.goto("/lab")
    assert runs.count() == before


def _expect_no_ranks(product: Product) -> None:
    """Nothing of a run is alive any more."""
    deadline = time.monotonic() + 10 + slack_seconds()
    while time.monotonic() < deadline:
        alive = [p for p in product.children() if "labs.train" in " ".join(_command(p))]
        if not alive:
            return
        time.sleep(0.2)
    raise AssertionError(f"ranks are alive: {alive}")


def _command(process: object) -> list[str]:
    try:
        return process.cmdline()  # type: ignore[attr-defined, no-any-return]
    except Exception:  # it ended while we looked
        return []
