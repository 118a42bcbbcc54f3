"""Runs of real ranks, each done once and shared by every test that asks for the same one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from labs.command import torchrun_command
from labs.spec import parse_run_spec
from tests.labs.ranks import PROGRAMS, Run, call, parse_events, run_now, torchrun
from tests.support.shared import made_once


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """run(spec): the finished run. The same spec is run only once in a session."""
    folder = tmp_path_factory.getbasetemp()

    def run_once(data: Mapping[str, Any]) -> Run:
        def make(place: Path) -> None:
            ended = run_now(data)
            (place / "run.json").write_text(json.dumps([ended.returncode, ended.stderr, ended.events]))

        place = made_once(folder, json.dumps(data, sort_keys=True), make)
        returncode, stderr, events = json.loads((place / "run.json").read_text())
        return Run(parse_run_spec(data), returncode, stderr, events)

    return run_once


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Run]:
    """program(name, spec, **env): torchrun's own command line, with a script of ours in place of labs.train."""

    def run_program(name: str, data: Mapping[str, Any], **env: str) -> Run:
        spec = parse_run_spec(data)
        command = torchrun_command(spec, tmp_path)
        at = command.index("labs.train")
        command[at - 1 : at + 1] = [str(PROGRAMS / name)]
        ended = torchrun(command, env)
        text = "".join(path.read_text() for path in sorted(tmp_path.glob("events-*.jsonl")))
        return Run(spec, ended.returncode, ended.stderr, parse_events(text))

    return run_program


@pytest.fixture
def train_alone() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`python -m labs.train ARGUMENTS` as torchrun would start one rank of `world_size`, without torchrun."""

    def start(*arguments: str, world_size: str | None = "1") -> subprocess.CompletedProcess[str]:
        env = {"RANK": "0", "WORLD_SIZE": world_size} if world_size else {}
        return call([sys.executable, "-m", "labs.train", *arguments], env)

    return start
