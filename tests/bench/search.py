"""The search beside a plain loop that estimates every plan, in CPU seconds of one process; and on large problems."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.theory import parse_search_request, search
from tests.support.exhaustive import best_of_all

TRILLION = {"layers": 128, "hidden": 25600, "heads": 160, "vocab": 51200}
SIDE_BY_SIDE = {
    "model": "llama-3-8b",
    "training": {"sequence": 8192, "global_batch": 64},
    "cluster": {"gpu": "h100-80gb", "nodes": 2},
    "axes": {"context": [1, 2]},
}
LARGE: dict[str, dict[str, Any]] = {
    "1T on 3,072 A100": {
        "model": TRILLION,
        "training": {"sequence": 2048, "global_batch": 3072},
        "cluster": {"gpu": "a100-80gb", "nodes": 384},
    },
    "405B on 16,384 H100": {
        "model": "llama-3-405b",
        "training": {"sequence": 8192, "global_batch": 2048},
        "cluster": {"gpu": "h100-80gb", "nodes": 2048},
    },
    "DeepSeek-V3 on 2,048 H800": {
        "model": "deepseek-v3",
        "training": {"sequence": 4096, "global_batch": 15360, "precision": "fp8-mixed"},
        "cluster": {"gpu": "h800-80gb", "nodes": 256},
    },
}
MOST_SECONDS = {"1T on 3,072 A100": 3.0}


def measure(_data: Path) -> dict[str, Any]:
    """Each problem once, as somebody asks it: nothing was cached by an earlier one of its kind."""
    request = parse_search_request(SIDE_BY_SIDE)
    seconds, found = _timed(lambda: search(request))
    plain_seconds, (plans, best) = _timed(lambda: best_of_all(request))
    assert [key[0] for key, _ in best] == [each.step_seconds for each in found.best], "both report the same plans"
    lines = [
        f"16 GPUs: {seconds:.2f} s for {plans:,} plans, of which {found.evaluated:,} estimated; "
        f"a loop over all {plain_seconds:.1f} s, {plain_seconds / seconds:.0f} ×"
    ]
    large = {}
    for name, data in LARGE.items():
        taken, result = _timed(lambda data=data: search(parse_search_request(data)))  # type: ignore[misc]
        large[name] = {"seconds": taken, "considered": result.considered, "evaluated": result.evaluated}
        wanted = f" (at most {MOST_SECONDS[name]:g} s wanted)" if name in MOST_SECONDS else ""
        lines.append(
            f"{name}: {taken:.2f} s{wanted}, {result.considered:,} plans considered, {result.evaluated:,} estimated"
        )
    return {
        "seconds": seconds,
        "exhaustive_seconds": plain_seconds,
        "ratio_to_exhaustive": plain_seconds / seconds,
        "plans": plans,
        "large": large,
        "lines": lines,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found
