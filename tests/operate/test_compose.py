"""The compose file, as far as it can be proved without an engine: it is complete, and everything it starts starts."""

from __future__ import annotations

import contextlib
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.core.clock import utc_now
from app.core.db import Database
from app.core.settings import ROOT
from app.lab.service import workers_present
from tests.support.product import environment, free_port

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
SECONDS = 180.0  # a busy machine is slow, not wrong
RUNNING = ("web", "control", "beat", "worker-cpu", "worker-gpu")


def test_every_part_is_there() -> None:
    assert set(SERVICES) == {"postgres", "redis", "migrate", *RUNNING}
    assert SERVICES["worker-gpu"]["profiles"] == ["gpu"], "without GPUs nothing asks for them"
    assert set(COMPOSE["volumes"]) == {"database", "queue", "data"}


@pytest.mark.parametrize("name", [*RUNNING, "postgres", "redis"])
def test_everything_that_stays_up_has_a_health_check_and_comes_back(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_nothing_is_published_beyond_this_machine() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:${PORT:-8000}:8000"]


def test_named_volumes_and_dependencies_exist() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"]
        for other in service.get("depends_on", {}):
            assert other in SERVICES


def test_the_image_copies_what_the_package_needs() -> None:
    dockerfile = OURS["web"]["build"]["dockerfile_inline"]
    copied = set(re.findall(r"^COPY \S+ (.+) \./?\S*$", dockerfile, re.MULTILINE))
    names = {name for line in copied for name in line.split()}
    assert {"pyproject.toml", "README.md", "app", "labs", "worker", "migrations", "cards"} <= names
    for name in names:
        assert (ROOT / name).exists(), name


@pytest.fixture
def stack(postgres: Database, redis_url: str, tmp_path: Path) -> dict[str, str]:
    """PostgreSQL and Redis as the file asks for them; returns the services' environment, addressed to here."""
    given = dict(OURS["web"]["environment"])
    assert given["RANKZERO_DATABASE_URL"].startswith("postgresql://")
    given["RANKZERO_DATABASE_URL"] = postgres.engine.url.render_as_string(hide_password=False)
    given["RANKZERO_REDIS_URL"] = redis_url
    given["RANKZERO_ALLOWED_HOSTS"], given["RANKZERO_TIME_ZONE"] = "", "UTC"
    # what is passed on from whoever starts it: nothing here, so each takes the default that the file gives
    given = {name: re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", str(value)) for name, value in given.items()}
    return environment(tmp_path / "data", RANKZERO_WARM="0", **given)


def _here(command: list[str]) -> list[str]:
    """A container's command with this environment's programs."""
    program = Path(sys.executable).with_name(command[0])
    assert program.exists(), f"the image would have no {command[0]}"
    return [str(program), *command[1:]]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_command_starts_and_gets_healthy(stack: dict[str, str], postgres: Database) -> None:
    migrated = subprocess.run(_here(SERVICES["migrate"]["command"]), env=stack, check=False, timeout=SECONDS)
    assert migrated.returncode == 0
    port = free_port()
    started: dict[str, subprocess.Popen[bytes]] = {}
    with contextlib.ExitStack() as cleanup:
        for name in RUNNING:
            command = [str(port) if part == "8000" else part for part in SERVICES[name]["command"]]
            process = subprocess.Popen(_here(command), env=stack, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cleanup.callback(_end, process)
            started[name] = process
        # Checks are programs that take seconds to start: each is asked once there is something to be found.
        _wait(started, lambda: _answers(port))
        announced = {started[name].pid for name in ("control", "worker-cpu", "worker-gpu")}
        _wait(started, lambda: announced <= _present(postgres))
        for check in {tuple(SERVICES[name]["healthcheck"]["test"][1:]) for name in RUNNING}:
            here = _here([part.replace(":8000/", f":{port}/") for part in check])
            _wait(started, lambda here=here: _is_healthy(here, stack))  # type: ignore[misc]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=SECONDS) as reply:
            assert reply.status == 200
        assert {name: process.poll() for name, process in started.items()} == dict.fromkeys(RUNNING)


def _wait(started: dict[str, subprocess.Popen[bytes]], is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        for name, process in started.items():
            assert process.poll() is None, f"{name} ended: {shlex.join(SERVICES[name]['command'])}"
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _is_healthy(check: list[str], env: dict[str, str]) -> bool:
    return subprocess.run(check, env=env, capture_output=True, check=False).returncode == 0


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _present(database: Database) -> set[int]:
    """The processes of workers that have said they are there."""
    with database.read() as session:
        return {int(each.name.rpartition("-")[2]) for each in workers_present(session, utc_now())}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS)
    process.kill()
