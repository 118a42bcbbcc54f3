"""Known vulnerabilities of what is installed: `python -m tests.support.audit`. Exit 1 where there is one.

Where no source of advisories answers, that is said in one line and nothing fails: a machine without a network has its
tests all the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SECONDS = 180
COMMAND = ("-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--timeout", "5", "--format", "json")


def audit(said: str) -> tuple[int, str]:
    """Exit code and words for what pip-audit wrote; a package it knows nothing of has no list of vulnerabilities."""
    try:
        found: list[dict[str, Any]] = json.loads(said)["dependencies"]
    except (ValueError, KeyError, TypeError):
        found = []
    known = [each for each in found if "vulns" in each]
    if not known:
        return 0, "SKIPPED: vulnerabilities were not looked up; no source of advisories answers."
    bad = [
        f"{each['name']} {each['version']}: {_words(vulnerability)}"
        for each in known
        for vulnerability in each["vulns"]
    ]
    return int(bool(bad)), "\n".join([*bad, f"{len(known)} packages looked up, {len(bad)} known vulnerabilities."])


def _words(vulnerability: dict[str, Any]) -> str:
    fixed = ", ".join(vulnerability.get("fix_versions", ())) or "no release yet"
    return f"{vulnerability['id']} (fixed in: {fixed})"


def main() -> int:
    try:
        done = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, timeout=SECONDS, check=False)
        said = done.stdout
    except subprocess.TimeoutExpired:
        said = ""
    code, words = audit(said)
    sys.stdout.write(words + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
