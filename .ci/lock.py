"""`make lock`: every package we install, by version and digest, for every platform and Python we run on.

Writes `.ci/locks/base.txt` (what the product needs) and `dev.txt` (what working on it needs besides). PyTorch itself is
not in them: its pin in pyproject.toml is exact, and which file that is depends on whether the machine has CUDA. What it
needs besides is. uv resolves, since pip cannot for platforms other than its own; pip installs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
LOCKS = HERE / "locks"
# What torch asks for beside its CUDA libraries; setuptools builds our own package without fetching one.
BESIDE_TORCH = ("filelock", "fsspec", "jinja2", "networkx", "setuptools>=77.0.3", "sympy", "typing-extensions")
HEAD = "# Written by `make lock`: versions and digests of everything but torch. Do not edit.\n"


def main() -> None:
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    base = [*(each for each in project["dependencies"] if not each.startswith("torch==")), *BESIDE_TORCH]
    resolve(base, LOCKS / "base.txt", oldest)
    resolve([*base, *project["optional-dependencies"]["dev"]], LOCKS / "dev.txt", oldest, LOCKS / "base.txt")


def resolve(wanted: list[str], lock: Path, oldest: str, besides: Path | None = None) -> None:
    """Resolve `wanted` into `lock`; with `besides`, at that lock's versions."""
    with tempfile.TemporaryDirectory() as folder:
        asked, found = Path(folder) / "asked.txt", Path(folder) / "found.txt"
        asked.write_text("\n".join(wanted))
        command = [sys.executable, "-m", "uv", "pip", "compile", str(asked), "--output-file", str(found), "--universal"]
        command += ["--python-version", oldest, "--generate-hashes", "--no-annotate", "--no-header", "--no-config"]
        command += ["--constraint", str(besides)] if besides else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(HEAD + found.read_text())


if __name__ == "__main__":
    main()
