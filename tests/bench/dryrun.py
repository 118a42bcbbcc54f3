"""Dry runs of Llama 3 70B on 256 ranks: how long they take, in how much memory, and what they say beside theory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.labs.large import LAYOUTS, MOST_RESIDENT_BYTES, MOST_SECONDS, RECOMPUTE, dry_run, given, ratios


def measure(data: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for layout in LAYOUTS:
        for recompute in RECOMPUTE:
            run = dry_run(given(layout, recompute))
            peaks = [kind["peak_bytes"]["total"] for kind in run.found["kinds"]]
            rows.append(
                {
                    "layout": layout,
                    "recompute": recompute,
                    "processor_seconds": run.seconds,
                    "resident_bytes": run.found["resident_bytes"],
                    "peak_bytes": max(peaks),
                    "ratios_to_theory": ratios(run),
                }
            )
    wanted = f"at most {MOST_SECONDS:.0f} s of the processor and {MOST_RESIDENT_BYTES / 2**30:.0f} GiB wanted"
    return {"rows": rows, "lines": [wanted, *(line for row in rows for line in _lines(row))]}


def _lines(row: dict[str, Any]) -> list[str]:
    first = (
        f"{row['layout']}, recompute {row['recompute']}: {row['processor_seconds']:.0f} s, "
        f"{row['resident_bytes'] / 2**30:.2f} GiB; the largest peak of a rank is {row['peak_bytes'] / 2**30:.1f} GiB"
    )
    names = ("parameters", "gradients", "optimizer", "activations")
    return [
        first,
        *(
            f"  {each['kind']:14} over theory: "
            + ", ".join(f"{name} {each[name]:.4f}" for name in names)
            + f", payload {'equal' if each['payload_is_equal'] else 'DIFFERENT'}"
            for each in row["ratios_to_theory"]
        ),
    ]
