"""Writes `app/theory/planner/evidence.json`: how far the engine is from every published value, by constants that never
saw its publication. `python -m tests.support.write_evidence`, after the constants or the rows have changed.
"""

from __future__ import annotations

import json
import sys

from app.core.settings import ROOT
from app.reference.validation import evidence_of
from app.theory.planner.evidence import FILE
from app.theory.planner.intervals import Evidence


def found() -> list[Evidence]:
    """Every measured value of every table."""
    return [row for rows in evidence_of(ROOT / "cards").values() for row in rows]


def main() -> None:
    lines = (
        json.dumps([row.publication, row.table, row.is_time, row.features.words, row.features.sizes, row.error])
        for row in found()
    )
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    sys.stdout.write(f"{FILE}\n")


if __name__ == "__main__":
    main()
