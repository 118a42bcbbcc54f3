"""The filter of system calls, read as the kernel reads it."""

from __future__ import annotations

import errno
import struct

import pytest

from labs.code.inside.seal import CannotSeal, filter_program

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
PID = 4242


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter says of a call: the program carried out step by step."""
    data = struct.pack("<IIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *(*arguments, *[0] * 6)[:6])
    steps = list(struct.iter_unpack("<HBBI", filter_program(machine, PID)))
    at = loaded = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            loaded &= value
        elif code == 0x06:
            return value
        else:
            holds = loaded == value if code == 0x15 else loaded >= value
            at += yes if holds else no


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        ("x86_64", {"read": 0, "sendto": 44, "openat": 257, "futex": 202}),
        ("aarch64", {"read": 63, "sendto": 206, "openat": 56, "futex": 98}),
    ],
)
def test_what_a_rank_needs_is_allowed(machine: str, numbers: dict[str, int]) -> None:
    assert {verdict(machine, number) for number in numbers.values()} == {ALLOW}


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        (
            "x86_64",
            {"socket": 41, "fork": 57, "execve": 59, "kill": 62, "ptrace": 101, "mount": 165, "memfd": 319, "new": 999},
        ),
        ("aarch64", {"socket": 198, "execve": 221, "kill": 129, "ptrace": 117, "mount": 40, "memfd": 279, "new": 999}),
    ],
)
def test_anything_else_is_refused_even_what_no_kernel_has_yet(machine: str, numbers: dict[str, int]) -> None:
    assert {verdict(machine, number) for number in numbers.values()} == {REFUSE | errno.EPERM}


@pytest.mark.parametrize(
    ("number", "arguments", "says"),
    [
        (56, (0x00010000 | 0x100 | 0x800,), ALLOW),  # clone: a thread
        (56, (17,), REFUSE | errno.EPERM),  # a process
        (
            56,
            (0x00010000 | 0x100 | 0x10000000,),
            ALLOW,
        ),  # what goes with a thread and makes no sense the kernel refuses
        (435, (), REFUSE | errno.ENOSYS),
        (9, (0, 4096, 3, 0x22), ALLOW),  # mmap: private
        (9, (0, 4096, 3, 0x21), REFUSE | errno.EPERM),  # shared
        (234, (PID, 1, 6), ALLOW),  # tgkill: oneself
        (234, (1, 1, 9), REFUSE | errno.EPERM),
        (157, (15,), ALLOW),  # prctl: one's name
        (157, (4, 1), REFUSE | errno.EPERM),  # to be read by others
        (302, (0, 2, 0), ALLOW),  # prlimit: to ask
        (302, (0, 2, 0x7FFF00000000), REFUSE | errno.EPERM),
        (72, (1, 3), ALLOW),  # fcntl: flags
        (72, (1, 1031), REFUSE | errno.EPERM),  # a larger pipe
        (16, (1, 0x5401), ALLOW),  # ioctl: is it a terminal
        (16, (1, 0x5412), REFUSE | errno.EPERM),  # to type into one
    ],
)
def test_some_calls_are_allowed_with_some_arguments(number: int, arguments: tuple[int, ...], says: int) -> None:
    assert verdict("x86_64", number, *arguments) == says


def test_another_convention_ends_the_process() -> None:
    assert verdict("x86_64", 0, architecture=0x40000003) == KILL
    assert verdict("x86_64", 0x40000000 | 0) == KILL
    with pytest.raises(CannotSeal, match="riscv64"):
        filter_program("riscv64", PID)
