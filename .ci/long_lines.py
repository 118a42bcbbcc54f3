"""No line of a template is longer than 120 characters, as no line of our Python is."""

import sys
from pathlib import Path

LIMIT = 120
ROOT = Path(__file__).resolve().parents[1]


def long_lines(folder: Path) -> list[str]:
    """Where lines are too long, and how long they are."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} characters, {LIMIT} are the limit"
        for path in sorted(folder.rglob("*.html"))
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)
        if len(line) > LIMIT
    ]


if __name__ == "__main__":
    sys.exit("\n".join(long_lines(ROOT / "app")) or None)
