"""Whether who is at the other end of a loopback connection is the user this server runs as, by the kernel's word.

The user who runs the server can read its token anyway and is not asked for it; everybody else is. Linux lists every TCP
socket with the user who owns it in `/proc/net/tcp` and `tcp6`. Elsewhere, and whenever anything is unclear, the answer
is no. docs/decisions/same-user.md says what this rests on.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

Address = tuple[str, int]
_ESTABLISHED = "01"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_READINGS = 3  # the kernel writes its tables page by page: while sockets come and go, one can be passed over
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")


def is_same_user(client: Address, server: Address) -> bool:
    """Whether the process that connected from `client` to us at `server` runs as our user."""
    if not (_is_loopback(client[0]) and _is_loopback(server[0])):
        return False
    try:
        ours, unknown = os.geteuid(), int(_OVERFLOW.read_text())
        owners = next(filter(None, (_owners(client, server) for _ in range(_READINGS))), set())
    except (OSError, ValueError):
        return False
    # users of another namespace are all shown as one: whoever runs as that one cannot be told from them
    return ours != unknown and owners == {ours}


def _owners(client: Address, server: Address) -> set[int]:
    return {uid for table in _TABLES if table.exists() for uid in owners_of(_lines(table), client, server)}


def owners_of(lines: Iterable[str], client: Address, server: Address) -> Iterator[int]:
    """Owners of established sockets whose own end is `client` and whose other end is `server`, of a kernel's table.

    One that was closed has no owner any more and is listed as root's, without an inode: it does not count.
    """
    ends = {_hex(client, mapped) + " " + _hex(server, mapped) for mapped in (False, True)}
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and f"{fields[1]} {fields[2]}" in ends and fields[3] == _ESTABLISHED and fields[9] != "0":
            yield int(fields[7])


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:]


def _is_loopback(host: str) -> bool:
    try:
        return _plain(host).is_loopback
    except ValueError:
        return False


def _plain(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address; one of IPv4 written in IPv6 is that of IPv4."""
    found = ipaddress.ip_address(host)
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _hex(address: Address, mapped: bool) -> str:
    """An address as the kernel's table writes it: words of 32 bits in the machine's byte order, then the port."""
    host, port = _plain(address[0]), address[1]
    packed = host.packed
    if mapped and host.version == 4:
        packed = bytes(10) + b"\xff\xff" + packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    text = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    return f"{text}:{port:04X}"
