"""The control group around a submission's sandboxes: why there is none, and what holds in it where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labs.code.cgroup import MOST_BYTES, NoGroup, make_group, why_no_group

LITTLE_BYTES, LITTLE_PROCESSES = 64 * 2**20, 8
TOUCHES = "held = bytearray(40 * 2**20)\nheld[::4096] = bytes(len(held[::4096]))\nimport time\ntime.sleep({})"
FORKS = "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)"
NOT_HERE = why_no_group()


@pytest.mark.parametrize(
    ("controllers", "says"),
    [(None, "is not mounted"), ("cpu io", "does not have memory and pids"), ("memory", "does not have pids")],
)
def test_why_there_is_none(tmp_path: Path, controllers: str | None, says: str) -> None:
    if controllers is not None:
        (tmp_path / "cgroup.controllers").write_text(controllers + "\n")
    with pytest.raises(NoGroup, match=says):
        make_group(tmp_path)


@pytest.mark.skipif(NOT_HERE is not None, reason=f"no control group here: {NOT_HERE}")
def test_all_ranks_of_a_program_share_what_there_is() -> None:
    group = make_group()
    assert (group.folder / "memory.max").read_text().strip() == str(MOST_BYTES)
    (group.folder / "memory.max").write_text(str(LITTLE_BYTES))
    (group.folder / "pids.max").write_text(str(LITTLE_PROCESSES))

    def started(code: str) -> subprocess.Popen[bytes]:
        command = group.entering([sys.executable, "-S", "-c", code])
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    assert started(TOUCHES.format(0)).wait(60) == 0, "one has room"
    both = [started(TOUCHES.format(3)) for _ in range(2)]
    assert -9 in [each.wait(60) for each in both], "two together have not"
    assert started(FORKS).wait(60) == 1, "no more processes than may be"
    group.end()
    assert not group.folder.exists(), "with all that was left in it"
