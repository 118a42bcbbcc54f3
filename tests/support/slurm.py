"""A real Slurm of two hosts for tests, in namespaces of this machine: installed where that can be done, gone with them.

Where it can be neither found nor installed, tests that need it are skipped, and say so, unless
RANKZERO_TEST_SLURM=required, as in continuous integration.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import psutil
import pytest

PROGRAMS = ("slurmctld", "slurmd", "munged", "ip", "nsenter", "unshare")
PACKAGES = ("slurm-wlm", "munge", "iproute2", "util-linux")
NEEDS = "Tests over several hosts need"
CLIENTS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue")
SECONDS = 120.0  # a busy machine is slow, not wrong
_SCRIPT = Path(__file__).with_name("slurm_site.sh")


@cache
def why_not() -> str:
    """Why there can be no Slurm here; nothing where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return f"{NEEDS} root on Linux, for network namespaces"
    if _missing() and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *PACKAGES]):
            subprocess.run(command, check=False, timeout=900, stdout=subprocess.DEVNULL, env=environment)
    if missing := _missing():
        return f"{NEEDS} {', '.join(missing)} (Debian: apt install {' '.join(PACKAGES)})"
    probe = subprocess.run(["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "true"], check=False)
    return f"{NEEDS} namespaces, which this machine refuses" if probe.returncode else ""


def _missing() -> list[str]:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


class Site:
    """A running cluster: partition `lab` with the hosts n1 and n2, of two cores each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unshared = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with (folder / "site.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*unshared, "sh", str(_SCRIPT), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"Slurm did not come up:\n{(folder / 'site.log').read_text()}")
        (inside,) = psutil.Process(self._process.pid).children()
        self._enter = ["nsenter", f"--target={inside.pid}", "--mount", "--net", "--uts", "--pid"]
        self._write_clients()

    @property
    def path(self) -> str:
        """A PATH on which Slurm's clients work from outside of the cluster, too."""
        return f"{self.folder / 'bin'}:{os.environ['PATH']}"

    def _write_clients(self) -> None:
        (self.folder / "bin").mkdir()
        for name in CLIENTS:
            program = self.folder / "bin" / name
            program.write_text(
                f"#!/bin/sh\nexport SLURM_CONF={self.folder}/slurm.conf\n"
                f'[ -e /run/netns/n2 ] && exec /usr/bin/{name} "$@"\n'
                f'exec {" ".join(self._enter)} /usr/bin/{name} "$@"\n'
            )
            program.chmod(0o755)

    def call(self, *command: str) -> str:
        """What a command says inside of the cluster."""
        environment = {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": f"{self.path}:/usr/sbin:/sbin",
        }
        done = subprocess.run([*self._enter, *command], capture_output=True, text=True, check=False, env=environment)
        return done.stdout

    def processes_on(self, host: str) -> list[str]:
        """The ids, inside of the cluster, of all processes of a host."""
        return self.call("ip", "netns", "pids", host).split()

    def lose(self, host: str) -> None:
        """Everything on a host dies at once."""
        self.call("kill", "-KILL", *self.processes_on(host))

    def bring_back(self, host: str) -> None:
        self.call("sh", str(self.folder / "start_host.sh"), host)
        self.call("scontrol", "update", f"nodename={host}", "state=resume")
        self.wait_until(lambda: self.idle_hosts() == 2)

    def restart_controller(self) -> None:
        """As an upgrade does it, while jobs run."""
        pid = (self.folder / "slurmctld.pid").read_text().strip()
        self.call("kill", pid)
        is_there = f"grep -qs '^State:.[^Z]' /proc/{pid}/status && echo there"  # nobody collects a zombie here
        self.wait_until(lambda: not self.call("sh", "-c", is_there))
        self.call("slurmctld")

    def idle_hosts(self) -> int:
        return sum(int(line) for line in self.call("sinfo", "-h", "-t", "idle", "-o", "%D").split())

    def jobs(self) -> list[str]:
        return self.call("squeue", "-h", "-o", "%i").split()

    def ranks(self) -> list[str]:
        """Command lines of what runs started on the hosts and is still there."""
        pids = [pid for host in ("n1", "n2") for pid in self.processes_on(host)]
        said = self.call("ps", "-o", "args=", "-p", ",".join(pids)).splitlines() if pids else []
        return [line for line in said if "labs" in line]

    def wait_until(self, condition: Callable[[], bool], seconds: float = SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, (self.folder / "slurmctld.log").read_text()[-3000:]
            time.sleep(0.3)  # to look starts several programs

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)


def need_namespaces() -> None:
    """Skips the test that asks where there can be neither Slurm nor a local cluster."""
    if why := why_not():
        if os.environ.get("RANKZERO_TEST_SLURM") == "required":
            pytest.fail(why)
        pytest.skip(why)


@contextlib.contextmanager
def running_slurm() -> Iterator[Site]:
    """A cluster. Skips the test that asks where there can be none."""
    need_namespaces()
    folder = Path(tempfile.mkdtemp(prefix="rankzero-slurm-"))  # a socket's path must be short
    try:
        site = Site(folder)
        try:
            yield site
        finally:
            site.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
