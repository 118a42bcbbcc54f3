"""`make bench`: every benchmark against the running product; prints ratios and writes `var/bench/*.json`.

`python -m tests.bench mutants [package …]` is the mutation spot-check of `mutants.py`; it takes minutes, and is not one
of the benchmarks that `make bench` runs.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.core.settings import ROOT
from tests.bench import (
    capacity,
    code_labs,
    content,
    dryrun,
    estimates,
    film,
    first_step,
    interview_date,
    labs,
    planner_page,
    practice,
    progress_page,
    replay,
    review,
    rubrics,
    search,
    sittings,
    soak,
    start_up,
    viewers,
)

BENCHMARKS = {
    "start": start_up.measure,
    "review": review.measure,
    "replay": replay.measure,
    "practice": practice.measure,
    "interview-date": interview_date.measure,
    "sittings": sittings.measure,
    "progress": progress_page.measure,
    "rubrics": rubrics.measure,
    "content": content.measure,
    "estimate": estimates.measure,
    "search": search.measure,
    "planner": planner_page.measure,
    "first-step": first_step.measure,
    "viewers": viewers.measure,
    "soak": soak.measure,
    "labs": labs.measure,
    "capacity": capacity.measure,
    "film": film.measure,
    "code-labs": code_labs.measure,
    "dryrun": dryrun.measure,
}


def main(wanted: list[str]) -> int:
    if wanted[:1] == ["mutants"]:  # a process of its own, which has loaded nothing of what it changes
        return subprocess.run([sys.executable, "-m", "tests.bench.mutants", *wanted[1:]], check=False).returncode
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        sys.stderr.write(f"There is no benchmark {unknown[0]}. Accepted: {', '.join(BENCHMARKS)}.\n")
        return 2
    folder = ROOT / "var" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    for name in wanted or list(BENCHMARKS):
        with tempfile.TemporaryDirectory(prefix="rz-bench-") as data:
            found: dict[str, Any] = BENCHMARKS[name](Path(data))
        lines = found.pop("lines")
        sys.stdout.write("\n".join([f"{name}", *(f"  {line}" for line in lines)]) + "\n")
        record = {"benchmark": name, "measured_at": datetime.now(UTC).isoformat(), "on": machine, **found}
        (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    sys.stdout.write(f"Written to {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
