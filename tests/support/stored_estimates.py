"""Estimates of varied plans as they were answered once, so that their JSON stays what programs rely on.

`python -m tests.support.stored_estimates` answers the same requests anew. Do that only where an estimate is meant to
change, and read the difference.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STORED = Path(__file__).parents[1] / "theory" / "stored_estimates.json"


def stored() -> list[dict[str, Any]]:
    """Each `{name, request, estimate}`; of a search `{name, request, search}` without its seconds."""
    records: list[dict[str, Any]] = json.loads(STORED.read_text())
    return records


def answered(record: dict[str, Any]) -> dict[str, Any]:
    """The record with what its request is answered with now."""
    from app.planner.service import answer_request, answer_search

    if "search" in record:
        found = answer_search(record["request"], now=lambda: 0.0)
        return {**record, "search": {name: value for name, value in found.items() if name != "seconds"}}
    return {**record, "estimate": answer_request(record["request"]).to_json()}


def main() -> None:
    STORED.write_text(json.dumps([answered(record) for record in stored()], indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{STORED}\n")


if __name__ == "__main__":
    main()
