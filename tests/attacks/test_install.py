"""The install as a whole: what one part does to itself, or a stranger to a part, does not end the rest."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.operate.install import Install, troubles_of
from app.operate.supervisor import MANY_CRASHES, Child, Supervisor
from tests.attacks.conftest import ClientOf
from tests.support.audit import audit

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    """A supervisor over two real processes, with pauses too short to wait for."""
    monkeypatch.setattr("app.operate.supervisor.FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("app.operate.supervisor.LONGEST_PAUSE_SECONDS", 0.01)
    said: list[str] = []
    supervisor = Supervisor({}, tmp_path / "log", said.append)
    supervisor.said = said  # type: ignore[attr-defined]
    install = Install(tmp_path)
    assert install.hold()
    supervisor.on_change = lambda: install.note("http://127.0.0.1:1", supervisor.pids(), supervisor.troubles())
    supervisor.start("victim", SLEEPER)
    supervisor.start("neighbour", SLEEPER)
    yield supervisor
    supervisor.stop()


def _kill(supervisor: Supervisor, child: Child) -> None:
    """Kill the process that does the child's work, and watch until another one is there."""
    assert child.process is not None
    before = child.process.pid
    os.killpg(before, signal.SIGKILL)
    child.process.wait()
    deadline = time.monotonic() + 120
    while child.process.pid == before:
        supervisor.revive(child)
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
def test_a_part_that_dies_again_and_again_does_not_end_the_product(supervisor: Supervisor, tmp_path: Path) -> None:
    victim, neighbour = supervisor.children
    assert neighbour.process is not None
    alive = neighbour.process.pid
    for _ in range(MANY_CRASHES - 1):
        _kill(supervisor, victim)
    assert troubles_of(tmp_path) == {}
    for _ in range(3):
        _kill(supervisor, victim)
    assert neighbour.process.pid == alive
    assert psutil.pid_exists(alive)
    assert victim.process is not None
    assert victim.process.poll() is None, "it was started once more"
    troubles = troubles_of(tmp_path)
    assert list(troubles) == ["victim"]
    assert "ended 7 times in a row, last with signal SIGKILL" in troubles["victim"]
    assert sum("The rest goes on" in line for line in supervisor.said) == 1  # type: ignore[attr-defined]


def test_the_pauses_grow_to_an_end_and_one_that_stays_up_has_recovered(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = supervisor.children[0]
    for _ in range(6):
        _kill(supervisor, victim)
    said = " ".join(supervisor.said)  # type: ignore[attr-defined]
    for pause in ("0.001 s", "0.002 s", "0.004 s", "0.008 s", "0.01 s"):
        assert f"starting it again in {pause}" in said
    assert troubles_of(tmp_path)
    monkeypatch.setattr("app.operate.supervisor.STEADY_SECONDS", 0.0)
    supervisor.revive(victim)
    assert victim.crashes == 0
    assert troubles_of(tmp_path) == {}


def test_a_product_whose_parts_keep_dying_is_not_ready(tmp_path: Path, client_of: ClientOf) -> None:
    install = Install(tmp_path / "var")
    client = client_of()
    assert client.get("/readyz").json()["troubles"] == {}
    install.note("http://127.0.0.1:1", {}, {"web": "ended 5 times in a row, last with signal SIGSEGV"})
    reply = client.get("/readyz")
    assert reply.status_code == 503
    assert "SIGSEGV" in reply.json()["troubles"]["web"]
    assert "rankzero_ready 0" in client.get("/metrics").text


@pytest.mark.parametrize(
    "said", ["", "no network", "[]", '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}']
)
def test_without_a_source_of_advisories_the_audit_says_so_in_one_line(said: str) -> None:
    code, words = audit(said)
    assert code == 0
    assert words.startswith("SKIPPED: vulnerabilities were not looked up")
    assert "\n" not in words


def test_a_known_vulnerability_fails_the_audit_and_names_its_cure() -> None:
    known = {"name": "h11", "version": "0.1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["0.16"]}]}
    code, words = audit(json.dumps({"dependencies": [known, {"name": "b", "version": "1", "vulns": []}]}))
    assert code == 1
    assert "h11 0.1: PYSEC-1 (fixed in: 0.16)" in words
    assert "2 packages looked up, 1 known" in words
