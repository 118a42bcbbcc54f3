"""What a rank of a test's program found, as JSON lines that the test reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Findings:
    """Appends to `events-<rank>.jsonl`, each finding with a single write: a rank that is ended loses none."""

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rank = rank
        self._file = os.open(folder / f"events-{rank}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, kind: str, **fields: Any) -> None:
        record = {"kind": kind, "rank": self.rank, **fields}
        os.write(self._file, (json.dumps(record, allow_nan=False) + "\n").encode())
