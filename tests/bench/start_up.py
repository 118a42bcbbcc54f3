"""`rankzero start` on a prepared environment: how long until the first page, beside a bare Python start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.product import free_port, launch

ROUNDS = 3


def measure(data: Path) -> dict[str, Any]:
    """Seconds from the command to the first answered page, on an empty data folder."""
    seconds = [_start(data / str(round_)) for round_ in range(ROUNDS)]
    bare = [_bare() for _ in range(ROUNDS)]
    median, unit = statistics.median(seconds), statistics.median(bare)
    return {
        "seconds_to_first_page": seconds,
        "bare_python_seconds": bare,
        "ratio_to_bare_import": median / unit,
        "lines": [
            f"first answered page after {median:.2f} s (of {', '.join(f'{s:.2f}' for s in seconds)})",
            f"{median / unit:.1f} × `python -c 'import fastapi, sqlalchemy'`",
        ],
    }


def _start(data: Path) -> float:
    began = time.perf_counter()
    product = launch(data, free_port(), warm=True)
    while True:
        try:
            with urllib.request.urlopen(product.url, timeout=5) as reply:
                reply.read()
            break
        except (urllib.error.URLError, OSError):
            if product.process.poll() is not None:
                raise RuntimeError(product.ended()) from None
            time.sleep(0.005)
    elapsed = time.perf_counter() - began
    product.stop()
    return elapsed


def _bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import fastapi, sqlalchemy"], check=True)
    return time.perf_counter() - began
