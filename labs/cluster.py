"""`python -m labs.cluster up|down --state FILE`: hosts as network namespaces of this machine, joined by shaped links.

Each host is a namespace with one interface, a veth pair whose other end is on a bridge. The bridge has a namespace of
its own: the machine's own interfaces and routes stay as they are, and its programs, a browser for one, are not told of
a changed network. Both ends send at the rate that is asked for (tbf): neither what a host sends nor what it is sent is
faster. A delay needs netem, which not every kernel has. Linux and root only. What is up stands in FILE, for those who
start ranks there.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

MOST_HOSTS = 8
_RATES = {"bit": 1 / 8, "kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_SLOWEST, _FASTEST = 1e5, 1.25e10  # bytes per second
_LONGEST_SECONDS = 1.0
_QUEUE_SECONDS = 0.4  # what waits for longer is dropped
# Ranks send in bursts and both ways at once. A rate that is guessed from answers, as BBR does, or begun anew after each
# pause, is below the link's. Every kernel has reno.
_TCP = {"tcp_congestion_control": "reno", "tcp_slow_start_after_idle": "0"}
_TOOLS = ("ip", "tc", "nsenter")
_NETWORK = "10.77.0"  # of the hosts alone: no route of the machine leads there


class CannotCluster(Exception):
    """It cannot be done here, or not as asked."""


@dataclass(frozen=True)
class Host:
    """A namespace, its address, and the bridge's end of its link."""

    name: str
    namespace: str
    address: str
    link: str

    @property
    def is_up(self) -> bool:
        """Whether both ends of its link are."""
        command = ["ip", "-n", self.namespace, "-json", "link", "show", "eth0"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        return shown.returncode == 0 and json.loads(shown.stdout)[0]["operstate"] == "UP"

    def entering(self) -> list[str]:
        """What to put before a command to start it there. (`ip netns exec` would hide cgroups.)"""
        return ["nsenter", f"--net=/run/netns/{self.namespace}"]


@dataclass(frozen=True)
class Cluster:
    """What is up, and how fast its links are unless a run asks for others."""

    bridge: str
    hosts: tuple[Host, ...]
    bytes_per_second: float
    latency_seconds: float
    can_delay: bool

    def shape(self, bytes_per_second: float, latency_seconds: float) -> None:
        """Set every link. Raises CannotCluster."""
        for host in self.hosts:
            _shape([*_IN, host.namespace], "eth0", bytes_per_second, latency_seconds)
            _shape([*_IN, switch_of(self.bridge)], host.link, bytes_per_second, 0.0)  # one way is delayed once


_IN = ["ip", "netns", "exec"]


def switch_of(bridge: str) -> str:
    """The namespace that a bridge is in."""
    return f"{bridge}-switch"


def load(state: Path) -> Cluster | None:
    """The cluster that stands in `state` and is there; None without one."""
    try:
        data = json.loads(state.read_text())
        cluster = Cluster(**{**data, "hosts": tuple(Host(**each) for each in data["hosts"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_there = all(Path(f"/run/netns/{host.namespace}").exists() for host in cluster.hosts)
    return cluster if is_there else None


def up(state: Path, hosts: int, bytes_per_second: float, latency_seconds: float) -> Cluster:
    """Make a cluster. Raises CannotCluster, and leaves nothing then."""
    _check_possible()
    if load(state) is not None:
        raise CannotCluster("A cluster is up already. `rankzero cluster down` takes it down.")
    name = f"rz{hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:6]}"
    _remove(name)  # what a restart of the machine or a crash left
    found = tuple(Host(f"h{i}", f"{name}-{i}", f"{_NETWORK}.{i + 1}", f"{name}-{i}") for i in range(1, hosts + 1))
    try:
        switch = switch_of(name)
        _run("ip", "netns", "add", switch)
        _run("ip", "-n", switch, "link", "add", name, "type", "bridge")
        _run("ip", "-n", switch, "link", "set", name, "up")
        for host in found:
            _join(host, name)
        can_delay = _can_delay(found[0])
        cluster = Cluster(name, found, bytes_per_second, latency_seconds if can_delay else 0.0, can_delay)
        cluster.shape(cluster.bytes_per_second, cluster.latency_seconds)
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(json.dumps(asdict(cluster), indent=2))
    except (CannotCluster, OSError):
        _remove(name)
        raise
    return cluster


def down(state: Path) -> bool:
    """End everything on the hosts and remove them; False where there was nothing."""
    try:
        bridge = json.loads(state.read_text())["bridge"]
    except (OSError, ValueError, KeyError):
        return False
    _check_possible()
    _remove(bridge)
    state.unlink()
    return True


def _check_possible() -> None:
    if sys.platform != "linux":
        raise CannotCluster("Network namespaces are Linux's: a cluster can be made there only.")
    if os.geteuid() != 0:
        raise CannotCluster("Network namespaces and shaped links need root: start this with sudo.")
    if missing := [name for name in _TOOLS if shutil.which(name) is None]:
        raise CannotCluster(f"{', '.join(missing)} is not on PATH (Debian: apt install iproute2 util-linux).")


def _join(host: Host, bridge: str) -> None:
    inside, at_switch = ["ip", "-n", host.namespace], ["ip", "-n", switch_of(bridge)]
    _run("ip", "netns", "add", host.namespace)
    _run(*at_switch, "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
    _run(*at_switch, "link", "set", host.link, "master", bridge, "up")
    _run(*inside, "addr", "add", f"{host.address}/24", "dev", "eth0")
    for link in ("lo", "eth0"):
        _run(*inside, "link", "set", link, "up")
    for name, value in _TCP.items():
        _run(*host.entering(), "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{name}")


def _can_delay(host: Host) -> bool:
    inside = [*_IN, host.namespace, "tc", "qdisc"]
    done = subprocess.run(
        [*inside, "add", "dev", "eth0", "root", "netem", "delay", "1ms"], capture_output=True, check=False
    )
    subprocess.run([*inside, "del", "dev", "eth0", "root"], capture_output=True, check=False)
    return done.returncode == 0


def _shape(inside: list[str], link: str, bytes_per_second: float, latency_seconds: float) -> None:
    command = [*inside, "tc", "qdisc"]
    subprocess.run([*command, "del", "dev", link, "root"], capture_output=True, check=False)
    parent = ["root"]
    if latency_seconds:
        most_packets = str(max(1000, int(2 * bytes_per_second * latency_seconds / 1500)))
        delay = ["netem", "delay", f"{latency_seconds * 1e6:.0f}us", "limit", most_packets]
        _run(*command, "add", "dev", link, "root", "handle", "1:", *delay)
        parent = ["parent", "1:", "handle", "2:"]
    burst = max(16_384, int(bytes_per_second / 1000))  # a millisecond's; a packet as large as they come at least
    rate = ["rate", f"{8 * bytes_per_second:.0f}bit", "burst", str(burst), "latency", f"{_QUEUE_SECONDS * 1e3:.0f}ms"]
    _run(*command, "add", "dev", link, *parent, "tbf", *rate)


def _remove(bridge: str) -> None:
    for path in sorted(Path("/run/netns").glob(f"{bridge}-*")):
        pids = subprocess.run(["ip", "netns", "pids", path.name], capture_output=True, text=True, check=False).stdout
        for pid in pids.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", path.name], capture_output=True, check=False)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotCluster(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def read_rate(text: str) -> float:
    """1gbit as bytes per second."""
    return _read(text, _RATES, "--rate", "0.8mbit to 100gbit, such as 200mbit", _SLOWEST, _FASTEST)


def read_delay(text: str) -> float:
    """1ms as seconds."""
    return 0.0 if text == "0" else _read(text, _TIMES, "--delay", "0s to 1s, such as 500us", 0.0, _LONGEST_SECONDS)


def _read(text: str, units: dict[str, float], name: str, accepted: str, least: float, most: float) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([a-z]+)", text)
    value = float(found[1]) * units[found[2]] if found and found[2] in units else -1.0
    if not least <= value <= most:
        raise CannotCluster(f"{name} {text}: accepted is {accepted}.")
    return value


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="rankzero cluster", description="Hosts as network namespaces of this machine."
    )
    parser.add_argument("what", choices=("up", "down"))
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--delay", default="0")
    asked = parser.parse_args(arguments)
    try:
        if asked.what == "down":
            sys.stdout.write("The cluster is down.\n" if down(asked.state) else "No cluster is up.\n")
            return 0
        if not 2 <= asked.hosts <= MOST_HOSTS:
            raise CannotCluster(f"--hosts {asked.hosts}: accepted is 2 to {MOST_HOSTS}.")
        delay = read_delay(asked.delay)
        cluster = up(asked.state, asked.hosts, read_rate(asked.rate), delay)
    except CannotCluster as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if delay and not cluster.can_delay:
        sys.stderr.write(
            f"--delay {asked.delay} is left out: this kernel has no netem (sch_netem). Links have the rate alone.\n"
        )
    each = ", ".join(f"{host.name} at {host.address}" for host in cluster.hosts)
    sys.stdout.write(f"{each}; {asked.rate} each way. Runs get there by: rankzero worker --backend cluster\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
