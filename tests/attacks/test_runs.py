"""What ranks are given, and what they may take."""

from __future__ import annotations

import pytest

from labs.command import environment

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
