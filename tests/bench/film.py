"""Scrubbing the film strip of a step on eight ranks in Chromium: how long a frame takes, and how much of it is ours.

A key moves the playhead in every frame of the browser, to and fro; the layout is computed before the frame ends.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.support.browser import browser_path
from tests.support.product import Product, running_product

FRAMES = 240
TARGET_MILLISECONDS = 1000 / 60
SPEC = {
    "model": {"layers": 4, "hidden": 128, "heads": 4, "vocab": 512},
    "training": {"steps": 3, "sequence": 32},
    "parallel": {"data": 8, "zero": 3},
}
_SCRUB = """(frames) => new Promise((done) => {
  const reel = document.querySelector("[data-reel]");
  const between = [];
  let [last, count, work] = [performance.now(), 0, 0];
  const frame = (now) => {
    between.push(now - last);
    last = now;
    if (++count > frames) return done({ between, work: work / frames });
    const started = performance.now();
    const key = count % frames < frames / 2 ? "ArrowRight" : "ArrowLeft";
    reel.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    reel.getBoundingClientRect();
    work += performance.now() - started;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def measure(data: Path) -> dict[str, Any]:
    """Milliseconds between frames while scrubbing, and those of a frame that moving the playhead takes."""
    with running_product(data, warm=True) as product, sync_playwright() as playwright:
        run = _finished(product)
        browser = playwright.chromium.launch(executable_path=browser_path())
        page = browser.new_page(base_url=product.url, viewport={"width": 1440, "height": 900})
        page.goto(f"/lab/runs/{run}")
        page.locator("[data-reel]").wait_for()
        found = page.evaluate(_SCRUB, FRAMES)
        browser.close()
    median = statistics.median(found["between"][5:])
    return {
        "frame_milliseconds": median,
        "work_milliseconds": found["work"],
        "lines": [
            f"a frame every {median:.1f} ms (target ≤ {TARGET_MILLISECONDS:.1f} ms), {found['work']:.2f} ms ours, "
            f"scrubbing {SPEC['parallel']['data']} ranks"
        ],
    }


def _finished(product: Product) -> int:
    _, run = product.post_json("/api/v1/lab/runs", {"spec": SPEC})
    while product.get_json(f"/api/v1/lab/runs/{run['id']}")["status"] not in ("finished", "failed"):
        time.sleep(0.3)
    return int(run["id"])
