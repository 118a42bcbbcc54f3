"""bubblewrap, in which code labs run what learners write: found, or installed where that can be done without asking.

`python -m tests.support.bubblewrap` says what came of it. Where there can be none, the tests that need it are skipped
and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def install() -> None:
    """By apt, as root."""
    if sys.platform != "linux" or shutil.which("bwrap") or os.geteuid() or not shutil.which("apt-get"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update", "-qq"), ("install", "-y", "-qq", "bubblewrap")):
        subprocess.run(("apt-get", *words), check=False, timeout=900, stdout=subprocess.DEVNULL, env=environment)


if __name__ == "__main__":
    install()
    from labs.code.sandbox import why_not

    sys.stdout.write(why_not() or "bubblewrap works here")
    sys.stdout.write("\n")
