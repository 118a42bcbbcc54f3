"""`rankzero start`: the whole product on one machine, from an empty folder to an answered page."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from app.core.clock import utc_now
from app.core.db import open_database
from app.core.errors import DomainError
from app.core.migrate import migrate
from app.core.private import close_to_others, keep_to_ourselves
from app.core.settings import Settings, unknown_variables
from app.core.token import install_token, with_token
from app.operate import processes, redis_server
from app.operate.install import Install, who_listens
from app.operate.supervisor import Child, Supervisor

READY_SECONDS = 120.0  # a busy machine is slow, not wrong
DEVICES_SECONDS = 90.0  # a driver that hangs is given up on long before


class CannotStart(DomainError):
    """Something outside the product is in the way."""

    code = "cannot-start"


def say(line: str) -> None:
    with suppress(OSError):  # who pipes us into a file on a full disk
        print(line, flush=True)  # noqa: T201 - a command talks to its terminal


def start(settings: Settings) -> int:
    """Bring everything up, keep it up, and end it. Returns the exit code. Raises DomainError when it cannot begin."""
    address = settings.address
    install = _open_install(settings.data.resolve())
    if not install.hold():
        note = install.running()
        say(str(note) if note else f"Another start is under way in {install.folder}.")
        return 0 if note and note.address == address else 1
    for name in install.end_leftovers():
        say(f"  ended {name}, left over from a start that was killed")
    _check_port(settings.bind, settings.port)
    if settings.devices not in ("auto", "cpu"):
        _check_devices(settings.devices)
    say(f"RankZero is starting. Data: {install.folder}")
    for unknown in unknown_variables(os.environ):
        say(f"  {unknown}")
    supervisor = Supervisor(_environment(settings), settings.log_folder, say)
    supervisor.listen_to_signals()
    supervisor.on_change = lambda: _note(install, address, supervisor)
    try:
        _bring_up(settings, supervisor)
        supervisor.on_change()
        _wait_for_page(f"{address}/healthz", supervisor)
        if not supervisor.asked_to_stop:
            opened = with_token(address, install_token(settings))
            say(f"RankZero is at {opened}   (Ctrl-C ends it; logs in {settings.log_folder})")
        return supervisor.watch()
    finally:
        say("RankZero is ending what it started.")
        supervisor.stop()
        install.note_path.unlink(missing_ok=True)


def _note(install: Install, address: str, supervisor: Supervisor) -> None:
    try:
        install.note(address, supervisor.pids(), supervisor.troubles())
    except OSError as error:  # on a full disk the last note stands
        say(f"What runs could not be noted: {error.strerror}.")


def _open_install(folder: Path) -> Install:
    keep_to_ourselves()
    try:
        close_to_others(folder)
        return Install(folder)
    except OSError as error:
        raise CannotStart(
            f"The data folder {folder} cannot be written: {error.strerror}. Name another: RANKZERO_DATA=/some/folder"
        ) from None


def _environment(settings: Settings) -> dict[str, str]:
    """What the children must agree on with us, whatever our own environment says."""
    folder = settings.data.resolve() / "redis"
    return {
        "RANKZERO_DATA": str(settings.data.resolve()),
        "RANKZERO_CARDS": str(settings.cards.resolve()),
        "RANKZERO_BIND": settings.bind,
        "RANKZERO_PORT": str(settings.port),
        "RANKZERO_REDIS_URL": settings.redis_url or redis_server.url(folder),
        "PYTHONUNBUFFERED": "1",
    }


def _check_port(bind: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in bind else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except OSError as error:
            raise CannotStart(
                f"Port {port} on {bind} cannot be used: {error.strerror or error} ({who_listens(port)} may have it). "
                f"Free it, or choose another: make start PORT={port + 1}"
            ) from None


def _check_devices(asked: str) -> None:
    """Devices that the worker could not be bound to: said now, not by a worker that ends again and again."""
    command = processes.device_check(asked)
    found = subprocess.run(command, capture_output=True, text=True, timeout=DEVICES_SECONDS, check=False)
    if found.returncode:
        raise CannotStart(f"RANKZERO_DEVICES: {found.stderr.strip()}")


def _bring_up(settings: Settings, supervisor: Supervisor) -> None:
    """Redis first, then the schema, then everything that needs both."""
    redis_url = supervisor.environment["RANKZERO_REDIS_URL"]
    if not settings.redis_url:
        server = redis_server.find_server()
        supervisor.start("redis", redis_server.command(server, settings.data.resolve() / "redis"), is_service=True)
        say(f"  redis     {server.path.name} {server.version}, private socket")
    redis_server.wait_until_it_answers(redis_url)
    database = open_database(settings.sqlalchemy_url)
    done = migrate(database, utc_now(), settings.data.resolve() / "backups")
    database.engine.dispose()
    say(f"  database  {database.engine.dialect.name}, {done or 'schema is current'}")
    supervisor.start("web", processes.web())
    supervisor.start("worker", processes.worker(settings.devices))
    if os.geteuid() == 0 and _cluster_is_up(settings.cluster_file):
        supervisor.start("cluster", processes.worker_over_hosts("cluster"))
    supervisor.start("control", processes.control())
    supervisor.start("beat", processes.beat())


def _cluster_is_up(file: Path) -> bool:
    """Whether the local cluster that `file` tells of is there: a restart of the machine leaves the file alone."""
    try:
        bridge = str(json.loads(file.read_text())["bridge"])
    except (OSError, ValueError, KeyError):
        return False
    return Path(f"/run/netns/{bridge}-switch").exists()


def _wait_for_page(url: str, supervisor: Supervisor) -> None:
    """Until the web process answers; if it dies instead, say what it wrote."""
    web = next(child for child in supervisor.children if child.name == "web")
    deadline = time.monotonic() + READY_SECONDS
    while not supervisor.asked_to_stop:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own address
                return
        except (urllib.error.URLError, OSError):
            _fail_if_dead(web, supervisor)
        if time.monotonic() > deadline:
            raise CannotStart(f"The web process does not answer at {url}. Its log:\n{supervisor.last_lines(web)}")
        time.sleep(0.05)


def _fail_if_dead(web: Child, supervisor: Supervisor) -> None:
    assert web.process is not None
    if web.process.poll() is not None:
        raise CannotStart(f"The web process ended while starting. Its log:\n{supervisor.last_lines(web, 30)}")
