"""What a rank gives up before the learner's file is read: it cannot start, signal or reach anything afterwards.

The filter is a list of what is allowed (a new system call of a new kernel is refused), for x86-64 and for 64-bit ARM.
What is refused fails with EPERM, which a learner sees as PermissionError; a call in the convention of another processor
ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from dataclasses import dataclass

# By name: the numbers on x86-64 and on aarch64. None: there is none, libraries use another call.
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "open": (2, None),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "poll": (7, None),
    "lseek": (8, 62),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "select": (23, None),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "dup": (32, 23),
    "dup2": (33, None),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "shutdown": (48, 210),
    "exit": (60, 93),
    "uname": (63, 160),
    "ftruncate": (77, 46),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "rename": (82, None),
    "mkdir": (83, None),
    "rmdir": (84, None),
    "unlink": (87, None),
    "readlink": (89, None),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "time": (201, None),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "set_tid_address": (218, 96),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "openat": (257, 56),
    "mkdirat": (258, 34),
    "newfstatat": (262, 79),
    "unlinkat": (263, 35),
    "renameat": (264, 38),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "pselect6": (270, 72),
    "ppoll": (271, 73),
    "set_robust_list": (273, 99),
    "dup3": (292, 24),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "statx": (332, 291),
    "rseq": (334, 293),
    "faccessat2": (439, 439),
}
# Allowed with some arguments only: see `filter_program`.
_CLONE, _CLONE3, _TGKILL = (56, 220), (435, 435), (234, 131)
_PRCTL, _IOCTL, _PRLIMIT, _MMAP, _FCNTL = (157, 167), (16, 29), (302, 261), (9, 222), (72, 25)
_NEW_THREAD = 0x00010000 | 0x00000100  # CLONE_THREAD and CLONE_VM
_TERMINAL = (0x5401, 0x5421, 0x5451)  # TCGETS, which asks whether it is one; FIONBIO, FIOCLEX
_SET_NAME = 15
_MAP_KIND, _MAP_PRIVATE = 0x0F, 0x02  # what is shared is memory that no limit counts
_FLAGS = (0, 1, 2, 3, 4, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC: no pipe is made larger

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSED = _REFUSE | errno.EPERM
_SET_NO_NEW_PRIVILEGES, _SET_DUMPABLE, _SET_SECCOMP = 38, 4, 22


_Step = tuple[int, int, int, int]  # of a filter: code, steps to skip if so, if not, value


class CannotSeal(Exception):
    """This machine has no filter that we know how to write."""


@dataclass(frozen=True)
class Limits:
    """What a rank may use at most, whatever it does."""

    memory_bytes: int = 2**30
    file_bytes: int = 2 * 2**20
    open_files: int = 64
    processor_seconds: int = 60


def seal(limits: Limits) -> None:
    """Limit and close off this process for good. Raises CannotSeal, OSError."""
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CPU, limits.processor_seconds),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (most, most))
    hide()
    _prctl(_SET_NO_NEW_PRIVILEGES, 1)
    program = filter_program(platform.machine(), os.getpid())
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    described = Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _prctl(_SET_SECCOMP, 2, ctypes.byref(described))


def hide() -> None:
    """No other process of the same user may read or write this one's memory, nor is any of it left on a disk."""
    _prctl(_SET_DUMPABLE, 0)


def _prctl(*arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(*arguments, *(0 for _ in range(5 - len(arguments)))):
        raise OSError(ctypes.get_errno(), f"prctl {arguments[0]}")


def filter_program(machine: str, own_pid: int) -> bytes:
    """The filter as the kernel reads it. Raises CannotSeal on a processor without a table."""
    if machine not in _ARCHITECTURES:
        raise CannotSeal(f"no list of system calls for {machine}; x86_64 and aarch64 have one")
    column, architecture = _ARCHITECTURES[machine]
    steps = [_load(4), _is(architecture, 1, 0), _end(_KILL), _load(0)]
    if machine == "x86_64":
        steps += [(0x35, 0, 1, _X32), _end(_KILL)]  # at least this: the numbers of another convention
    for numbers in _ALLOWED.values():
        number = numbers[column]
        if number is not None:
            steps += [_is(number, 0, 1), _end(_ALLOW)]
    # clone3 has its flags in memory, where no filter looks; the C library falls back to clone
    thread = [_load(16), (0x54, 0, 0, _NEW_THREAD), *_only(_NEW_THREAD)]
    questions = [_load(36), _is(0, 1, 0), _end(_REFUSED), _load(32), *_only(0)]  # no new limits given
    for numbers, block in (
        (_CLONE3, [_end(_REFUSE | errno.ENOSYS)]),
        (_CLONE, thread),
        (_PRLIMIT, questions),
        (_MMAP, [_load(40), (0x54, 0, 0, _MAP_KIND), *_only(_MAP_PRIVATE)]),
        (_FCNTL, [_load(24), *_only(*_FLAGS)]),
        (_TGKILL, [_load(16), *_only(own_pid)]),
        (_PRCTL, [_load(16), *_only(_SET_NAME)]),
        (_IOCTL, [_load(24), *_only(*_TERMINAL)]),
    ):
        steps += [_is(numbers[column] or 0, 0, len(block)), *block]
    steps.append(_end(_REFUSED))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _load(offset: int) -> _Step:
    """A word of what is asked: 0 the number, 4 the architecture, 16, 24, 32, 40 the arguments' lower halves."""
    return 0x20, 0, 0, offset


def _is(value: int, if_so: int, if_not: int) -> _Step:
    """Whether the loaded word is `value`, and how many steps to skip either way."""
    return 0x15, if_so, if_not, value


def _end(verdict: int) -> _Step:
    return 0x06, 0, 0, verdict


def _only(*values: int) -> list[_Step]:
    """Allowed where the loaded word is one of `values`, else refused."""
    return [*(step for value in values for step in (_is(value, 0, 1), _end(_ALLOW))), _end(_REFUSED)]
