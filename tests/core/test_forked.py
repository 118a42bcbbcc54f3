"""The processes of `pytest --processes`: what they find is counted as if there were one; a dead one is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ALONE = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
FILES = {
    "one": """
        import os, signal, warnings
        def test_before(): warnings.warn("odd", FutureWarning)
        def test_that_ends_its_process(): os.kill(os.getpid(), signal.SIGKILL)
        def test_after(tmp_path): assert tmp_path.is_dir()
    """,
    "two": """
        import pytest
        @pytest.fixture(scope="module", autouse=True)
        def made():
            yield
            open("torn_down", "w").close()
        def test_fails():
            print("said before")
            assert [1, 2] == [1, 3]
        @pytest.mark.parametrize("n", range(3))
        def test_holds(n): pass
        def test_cannot_be_set_up(missing): pass
        @pytest.mark.skip
        def test_skipped(): pass
    """,
}


def test_every_test_runs_once_and_whatever_goes_wrong_is_counted(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / f"test_{name}.py").write_text("\n".join(line[8:] for line in text.splitlines()))
    options = ["-p", "tests.support.forked", "-p", "no:cacheprovider", "--processes", "2", "--rootdir", ".", "-rA"]
    command = [sys.executable, "-m", "pytest", *options, "."]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **ALONE}, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 5 passed, 1 skipped, 1 warning, 1 error in" in done.stdout
    assert "its process ended: SIGKILL" in done.stdout
    assert "FutureWarning: odd" in done.stdout
    assert "At index 1 diff: 2 != 3" in done.stdout
    assert "said before" in done.stdout
    assert (tmp_path / "torn_down").exists()
