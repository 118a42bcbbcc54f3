"""What ranks are given, and what they may take."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from labs.command import environment, torchrun_command
from labs.failures import OUT_OF_MEMORY
from labs.spec import parse_run_spec
from labs.warm import WarmHost
from worker.failures import explain
from worker.launcher import launch
from worker.tail import Follower

KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "HF_TOKEN",
    "NVIDIA_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "SSH_AUTH_SOCK",
    "DATABASE_URL",
    "PGPASSWORD",
    "RANKZERO_GRADER_KEY",
    "RANKZERO_DATABASE_URL",
    "TORCH_SECRET",
    "SLURM_JWT",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "NCCL_TOKEN",
)


@pytest.mark.parametrize("name", KEYS)
def test_no_secret_of_ours_reaches_a_rank(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "the-secret")
    assert "the-secret" not in environment().values()


@pytest.mark.parametrize("name", ["PATH", "HOME", "TMPDIR", "LC_ALL", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG"])
def test_a_rank_has_what_it_needs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/somewhere")
    assert environment()[name] == "/somewhere"


@pytest.mark.slow
@pytest.mark.together("attacked runs")  # with tests/attacks/test_sockets.py, on one warm host
def test_a_rank_that_takes_more_than_its_cap_ends_with_the_cause_named(
    tmp_path: Path, host: WarmHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the product starts it; only what the ranks do is another program's, which takes a gigabyte after the other."""
    hog = Path(__file__).with_name("programs") / "hog.py"
    spec = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 2}, "device": "cpu"})

    def with_the_hog(*given: object) -> list[str]:
        command = torchrun_command(*given)  # type: ignore[arg-type]
        at = command.index("labs.train")
        return [*command[: at - 1], str(hog), *command[at + 1 :]]

    monkeypatch.setattr("worker.launcher.torchrun_command", with_the_hog)
    launched = launch(spec, tmp_path / "run", {"CUDA_VISIBLE_DEVICES": ""}, host)
    try:
        deadline = time.monotonic() + 90
        while launched.exit_code() is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        launched.end()
    found = explain(Follower(launched.events, 2).read(), launched.output.read_text(), launched.logs)
    assert found.cause == OUT_OF_MEMORY
    assert found.rank == 1
