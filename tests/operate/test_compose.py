"""The compose file, as far as it can be proved without an engine: it is complete, and everything it starts starts."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.core.db import Database
from app.core.settings import ROOT
from app.operate import redis_server
from tests.support.product import environment, free_port

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
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
def stack(postgres: Database, tmp_path: Path) -> Iterator[dict[str, str]]:
    """PostgreSQL and Redis as the file asks for them; yields the services' environment, addressed to here."""
    folder = tmp_path / "redis"
    redis = subprocess.Popen(
        redis_server.command(redis_server.find_server(), folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    redis_server.wait_until_it_answers(redis_server.url(folder))
    given = dict(OURS["web"]["environment"])
    assert given["RANKZERO_DATABASE_URL"].startswith("postgresql://")
    given["RANKZERO_DATABASE_URL"] = postgres.engine.url.render_as_string(hide_password=False)
    given["RANKZERO_REDIS_URL"] = redis_server.url(folder)
    given["RANKZERO_ALLOWED_HOSTS"], given["RANKZERO_TIME_ZONE"] = "", "UTC"
    # what is passed on from whoever starts it: nothing here, so each takes the default that the file gives
    given = {name: re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", str(value)) for name, value in given.items()}
    yield environment(tmp_path / "data", **given)
    redis.terminate()
    redis.wait(10)


def _here(command: list[str]) -> list[str]:
    """A container's command with this environment's programs."""
    program = Path(sys.executable).with_name(command[0])
    assert program.exists(), f"the image would have no {command[0]}"
    return [str(program), *command[1:]]


@pytest.mark.slow
def test_every_command_starts_and_gets_healthy(stack: dict[str, str]) -> None:
    migrated = subprocess.run(_here(SERVICES["migrate"]["command"]), env=stack, check=False, timeout=60)
    assert migrated.returncode == 0
    port = free_port()
    started = []
    with contextlib.ExitStack() as cleanup:
        for name in RUNNING:
            command = [str(port) if part == "8000" else part for part in SERVICES[name]["command"]]
            process = subprocess.Popen(_here(command), env=stack, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cleanup.callback(_end, process)
            started.append((name, process))
        for name, process in started:
            _wait_until_healthy(name, port, stack, process)


def _wait_until_healthy(name: str, port: int, env: dict[str, str], process: subprocess.Popen[bytes]) -> None:
    check = [part.replace(":8000/", f":{port}/") for part in SERVICES[name]["healthcheck"]["test"][1:]]
    deadline = time.monotonic() + 120
    while subprocess.run(_here(check), env=env, capture_output=True, check=False).returncode != 0:
        assert process.poll() is None, f"{name} ended: {shlex.join(SERVICES[name]['command'])}"
        assert time.monotonic() < deadline, f"{name} did not get healthy"
        time.sleep(0.3)
    if name == "web":
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as reply:
            assert reply.status == 200


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    process.kill()
