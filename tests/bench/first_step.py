"""From submitting a DDP run to its first streamed step, warm, beside cold torchrun of the same spec, in turns.

The machine may be busy with other things, so the processor's seconds are counted as well: those of a whole run, of
everything that it takes (the product with its worker and warm host; torchrun with its ranks).
"""

from __future__ import annotations

import contextlib
import json
import resource
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from labs.command import torchrun_command
from labs.spec import parse_run_spec
from tests.support.product import Product, environment, running_product

PAIRS = 5
RANKS = (2, 4)
TARGET = 0.15


@dataclass(frozen=True)
class Taken:
    """`first_step_seconds` on the clock, `cpu_seconds` of the whole run."""

    first_step_seconds: float
    cpu_seconds: float


def spec_of(ranks: int) -> dict[str, Any]:
    return {"model": "gpt-small", "training": {"steps": 3}, "parallel": {"data": ranks, "zero": 0}}


def measure(data: Path) -> dict[str, Any]:
    """Pairs taken in turns: (cold torchrun to its first step event, submit to first streamed step)."""
    found: dict[str, Any] = {"target": TARGET}
    lines = []
    with running_product(data, warm=True) as product:
        for ranks in RANKS:
            pairs = _pairs(product, spec_of(ranks))
            ratios = sorted(warm.first_step_seconds / cold.first_step_seconds for cold, warm in pairs)
            cpu = statistics.median(warm.cpu_seconds / cold.cpu_seconds for cold, warm in pairs)
            cold, warm = (
                statistics.median(each.first_step_seconds for each in side) for side in zip(*pairs, strict=True)
            )
            found[f"{ranks} ranks"] = {
                "pairs": [[vars(each) for each in pair] for pair in pairs],
                "ratio": statistics.median(ratios),
                "cpu_ratio": cpu,
            }
            low, high = ratios[0], ratios[-1]
            lines += [
                f"{ranks} ranks: submit to first streamed step {warm:.2f} s, cold torchrun {cold:.2f} s, {PAIRS} pairs",
                f"  ratio {statistics.median(ratios):.3f} × (target ≤ {TARGET:g} ×), {low:.3f} to {high:.3f}; "
                f"processor's seconds of the whole run {cpu:.3f} ×",
            ]
    return {**found, "lines": lines}


def _pairs(product: Product, spec: Mapping[str, Any]) -> list[tuple[Taken, Taken]]:
    _submit(product, spec)  # one of each first: files in the page cache are as warm for one as for the other
    _cold(spec)
    return [(_cold(spec), _submit(product, spec)) for _ in range(PAIRS)]


def _cold(spec: Mapping[str, Any]) -> Taken:
    """torchrun by hand until rank 0 has written its first step."""
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events-0.jsonl"
        before = _cpu_of_children()
        began = time.perf_counter()
        process = subprocess.Popen(
            torchrun_command(parse_run_spec(spec), Path(folder)),
            env=environment(Path(folder), OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while not (events.exists() and '"kind":"step"' in events.read_text()):
            assert process.poll() is None or events.exists(), "torchrun ended before its first step"
            time.sleep(0.005)
        elapsed = time.perf_counter() - began
        process.wait()
    return Taken(elapsed, _cpu_of_children() - before)


def _cpu_of_children() -> float:
    """Of those that have ended: the product is still there."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_of(product: Product) -> float:
    """Of all its processes and those of theirs that have ended."""
    found = 0.0
    for process in [psutil.Process(product.process.pid), *product.children()]:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += sum(process.cpu_times()[:4])
    return found


def _submit(product: Product, spec: Mapping[str, Any]) -> Taken:
    """POST the run, then follow its event stream to the first step; waits for the end before returning."""
    before = _cpu_of(product)
    began = time.perf_counter()
    _, run = product.post_json("/api/v1/lab/runs", {"spec": {**spec, "device": "cpu"}})
    elapsed = None
    with urllib.request.urlopen(f"{product.url}/api/v1/lab/runs/{run['id']}/events", timeout=120) as stream:
        for line in stream:
            text = line.decode()
            if elapsed is None and text.startswith("data:"):
                events = json.loads(text[5:]).get("events", [])
                if any(event["kind"] == "step" for event in events):
                    elapsed = time.perf_counter() - began
            if text.startswith("event: end"):
                break
    ended = product.get_json(f"/api/v1/lab/runs/{run['id']}")
    assert elapsed is not None, ended
    assert ended["launch"] == "warm", ended
    return Taken(elapsed, _cpu_of(product) - before)
