"""The browser of the journeys: found, or installed when that can be done without asking.

Order: RANKZERO_CHROMIUM, Chromium's headless shell, where we may install that (root on Debian) or have it, a Chromium
or Chrome on PATH, one Playwright installed, Playwright's own installer, or a clear failure. The shell draws the same
pages without the windows and menus around them, in two thirds of the processor time. `python -m tests.support.browser`
prints the path.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """An executable that is already there."""
    named = os.environ.get("RANKZERO_CHROMIUM")
    if named:
        if not Path(named).exists():
            raise SystemExit(f"RANKZERO_CHROMIUM names {named}, which does not exist.")
        return named
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or _from_playwright()


def _from_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if path and Path(path).exists() else None


def install_browser() -> str | None:
    """Install one: by apt as root, else by Playwright."""
    if _may_use_apt():
        _run("apt-get", "update", "-qq")
        _run("apt-get", "install", "-y", "-qq", "chromium")
    if not find_browser():
        _run(sys.executable, "-m", "playwright", "install", "chromium")
    return find_browser()


def _install_shell() -> None:
    """Debian has it as a package of its own. Where that fails, another browser does."""
    if shutil.which(SHELL) or "RANKZERO_CHROMIUM" in os.environ or not _may_use_apt():
        return
    if platform.freedesktop_os_release().get("ID") == "debian":
        _run("apt-get", "update", "-qq")
        _run("apt-get", "install", "-y", "-qq", SHELL)


def _may_use_apt() -> bool:
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=False, timeout=900, stdout=subprocess.DEVNULL, env=environment)


def browser_path() -> str:
    """The browser, installed if need be. Exits with what can be done when there is none."""
    found = find_browser() or install_browser()
    if not found:
        raise SystemExit(
            "The journeys need Chromium or Chrome. Install one (Debian: apt install chromium), or name it: "
            "RANKZERO_CHROMIUM=/path/to/chrome make test"
        )
    return found


if __name__ == "__main__":
    _install_shell()
    sys.stdout.write(browser_path() + "\n")
