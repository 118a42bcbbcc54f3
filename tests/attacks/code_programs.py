"""Programs that attack the sandbox and the judge of code labs.

Each is a body of `ring_all_reduce(x, rank, n, send, recv)`. One that gets where it must not prints ESCAPED; none may
pass; and each must end with what `ends` says somewhere in its verdict. SECRET stands for the path of a file of ours,
PORT for one that a server of ours listens on.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent


@dataclass(frozen=True)
class Attack:
    name: str
    body: str
    ends: str = ""

    def code(self, secret: str, port: int) -> str:
        body = dedent(self.body).strip().replace("SECRET", repr(secret)).replace("PORT", str(port))
        return f"{_HEAD}\n\ndef ring_all_reduce(x, rank, n, send, recv):\n{indent(body, '    ')}\n"


_HEAD = """import ctypes, errno, gc, json, mmap, os, signal, socket, struct, subprocess, sys, threading, time
import torch
import torch.distributed as dist

libc = ctypes.CDLL(None, use_errno=True)


def syscall(*arguments):
    found = libc.syscall(*arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    print("ESCAPED", found)


def escaped(what):
    print("ESCAPED", what)


def frame(header, payload=b"", header_bytes=None, payload_bytes=None):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    sizes = struct.pack("!IQ", header_bytes or len(text), payload_bytes or len(payload))
    os.write(3, sizes + text + payload)


def call(**changes):
    header = {"kind": "call", "operation": "barrier", "id": 99, "group": [0, 1], "sent": [], "expects": []}
    frame(header | changes)
"""

NOT_THERE, REFUSED, RAN_OUT = "FileNotFoundError", "PermissionError", "MemoryError|endless-loop"

FILES = [
    Attack("reads a file of ours", "escaped(open(SECRET).read())", NOT_THERE),
    Attack(
        "looks for it everywhere",
        """
        name = SECRET.rsplit("/", 1)[1]
        for place, _, files in os.walk("/"):
            if name in files:
                escaped(place)
        raise LookupError("nowhere")
        """,
        "LookupError",
    ),
    Attack("reads the shadow file", "escaped(open('/etc/shadow').read())", NOT_THERE),
    Attack(
        "reads the environment",
        "assert not [escaped(v) for v in os.environ.values() if 'hunter2' in v], 1; 1 / 0",
        "Zero",
    ),
    Attack("reads its own environment in /proc", "escaped(open('/proc/self/environ').read())", NOT_THERE),
    Attack("reads the first process's memory", "escaped(open('/proc/1/mem', 'rb').read(1))", NOT_THERE),
    Attack("lists processes", "escaped([p for p in os.listdir('/proc') if p.isdigit()][0])", "IndexError"),
    Attack("links to a file of ours", "os.symlink(SECRET, '/tmp/x'); escaped(open('/tmp/x').read())", REFUSED),
    Attack("hard-links python", "os.link('/opt/python/bin/python3', '/tmp/x'); escaped(1)", "Error"),
    Attack("writes into torch", "open('/opt/site0/torch/__init__.py', 'a').write('x'); escaped(1)", "Error"),
    Attack("writes into the task", "open('/opt/ours/labs/code/inside/rank.py', 'a').write('x'); escaped(1)", "Error"),
    Attack("writes into /usr", "open('/usr/x', 'w').write('x'); escaped(1)", "Error"),
    Attack("writes into /etc", "os.mkdir('/etc'); open('/etc/x', 'w').write('x'); escaped(1)", "Error"),
    Attack("makes a device", "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)); escaped(1)", REFUSED),
    Attack("opens a disk", "escaped(open('/dev/sda', 'rb').read(1))", NOT_THERE),
    Attack("opens the kernel's memory", "escaped(open('/dev/mem', 'rb').read(1))", NOT_THERE),
    Attack("mounts", "syscall(165, b'none', b'/tmp', b'tmpfs', 0, None)", "OSError|PermissionError"),
    Attack("changes its root", "os.chroot('/tmp'); escaped(1)", REFUSED),
    Attack("makes namespaces", "syscall(272, 0x10000000 | 0x00020000)", REFUSED),
    Attack("opens by handle", "syscall(304, -100, None, 0)", REFUSED),
    Attack("starts io_uring", "syscall(425, 8, ctypes.create_string_buffer(120))", REFUSED),
    Attack("loads a filter program", "syscall(321, 0, None, 0)", REFUSED),
    Attack("adds a key", "syscall(248, b'user', b'x', b'y', 1, -3)", REFUSED),
]

NETWORK = [
    Attack("connects to a server of ours", "socket.create_connection(('127.0.0.1', PORT), 2); escaped(1)", REFUSED),
    Attack(
        "sends a datagram",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53)); escaped(1)",
        REFUSED,
    ),
    Attack("asks for a name", "escaped(socket.getaddrinfo('example.org', 80))", "gaierror|PermissionError|OSError"),
    Attack("opens a Unix socket", "socket.socket(socket.AF_UNIX); escaped(1)", REFUSED),
    Attack("opens a packet socket", "socket.socket(17, socket.SOCK_RAW, 3); escaped(1)", REFUSED),
    Attack("makes a pair of sockets", "socket.socketpair(); escaped(1)", REFUSED),
    Attack("starts a process group of gloo", "dist.new_group(backend='gloo'); escaped(1)", "Error"),
]

PROCESSES = [
    Attack("forks", "os.fork(); escaped(1)", REFUSED),
    Attack("forks without end", "\nwhile True:\n    os.fork()\n    escaped(1)", REFUSED),
    Attack(
        "leaves a daemon",
        "if os.fork() == 0:\n    os.setsid()\n    os.fork()\n    escaped(1)\n    time.sleep(60)",
        REFUSED,
    ),
    Attack("starts a program", "escaped(subprocess.check_output(['/usr/bin/id']))", REFUSED),
    Attack("becomes a program", "os.execv('/usr/bin/env', ['env', 'echo', 'ESCAPED'])", REFUSED),
    Attack("clones by itself", "syscall(56, 17, None, None, None, 0)", REFUSED),
    Attack("kills its parent", "os.kill(os.getppid(), 9); escaped(1)", REFUSED),
    Attack("kills everybody", "os.kill(-1, 9); escaped(1)", REFUSED),
    Attack("stops the first process", "syscall(234, 1, 1, 19)", REFUSED),
    Attack("traces its parent", "syscall(101, 16, os.getppid(), 0, 0)", REFUSED),
    Attack("reads its parent's memory", "syscall(310, os.getppid(), None, 0, None, 0, 0)", REFUSED),
    Attack("takes a descriptor of its parent", "syscall(434, os.getppid(), 0)", REFUSED),
    Attack(
        "raises its limits", "import resource\nresource.setrlimit(resource.RLIMIT_DATA, (-1, -1)); escaped(1)", "Error"
    ),
    Attack("can be read by others", "syscall(157, 4, 1, 0, 0, 0)", REFUSED),
    Attack("becomes another user", "os.setuid(0); escaped(1)", REFUSED),
    Attack("never ends", "while True:\n    pass", "endless-loop"),
    Attack("sleeps", "time.sleep(3600)", "endless-loop"),
    Attack(
        "swallows whatever comes",
        """
        for number in (1, 2, 3, 10, 14, 15):
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                send(x, (rank + 1) % n)
            except BaseException:
                pass
        """,
        "everyone-sends-first",
    ),
    Attack(
        "starts threads without end",
        """
        started = []
        while len(started) < 100_000:
            started.append(threading.Thread(target=time.sleep, args=(60,), daemon=True))
            started[-1].start()
        escaped(len(started))
        """,
        "Error",
    ),
    Attack(
        "leaves a thread that goes on",
        "threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(int, 1)], daemon=True).start()",
        "sum",
    ),
]

FLOODS = [
    Attack("fills memory", "held = [bytearray(2**26) for _ in range(200)]; escaped(len(held))", RAN_OUT),
    Attack("fills shared memory", "held = mmap.mmap(-1, 2**32); escaped(1)", REFUSED),
    Attack("fills a file in memory", "os.memfd_create('x'); escaped(1)", REFUSED),
    Attack(
        "fills the folder",
        "\nfor name in range(100):\n    open(f'/tmp/{name}', 'wb').write(bytes(2**20))\nescaped(1)",
        "OSError",
    ),
    Attack(
        "writes a long file",
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nopen('/tmp/x', 'wb').write(bytes(2**24)); escaped(1)",
        "OSError",
    ),
    Attack("makes pipes to hide in", "os.pipe(); escaped(1)", REFUSED),
    Attack("opens files without end", "held = [open('/dev/zero') for _ in range(10_000)]; escaped(1)", "OSError"),
    Attack("prints without end", "while True:\n    print('x' * 1000)", "endless-loop"),
    Attack("dumps core", "os.abort()", "Gone"),
    Attack("reads address zero", "ctypes.string_at(0)", "Gone"),
    Attack("calls without end", "while True:\n    dist.all_reduce(torch.ones(1))", "20,000 calls|library-call"),
    Attack(
        "sends what nobody takes",
        "held = [dist.isend(torch.zeros(2**22), (rank + 1) % n) for _ in range(200)]; time.sleep(9)",
        "nobody takes",
    ),
    Attack("recurses", "\ndef again():\n    again()\nagain()", "RecursionError"),
]

FORGERIES = [
    Attack("says that it is done", "frame({'kind': 'done'}); time.sleep(9)", "forged"),
    Attack("says so and leaves", "frame({'kind': 'done'}); os._exit(0)", "forged"),
    Attack("leaves with success", "os._exit(0)", "Gone"),
    Attack("exits with success", "sys.exit(0)", "SystemExit"),
    Attack("closes the channel", "os.close(3)", "OSError|JudgeGone|Gone"),
    Attack("sends noise", "os.write(3, os.urandom(1000)); time.sleep(9)", "forged"),
    Attack("announces a frame that is too long", "frame(b'{}', header_bytes=2**31); time.sleep(9)", "forged"),
    Attack("nests a header", "frame(b'[' * 60_000); time.sleep(9)", "forged"),
    Attack("sends no frame we know", "frame({'kind': 'verdict', 'passed': True}); time.sleep(9)", "forged"),
    Attack(
        "calls for another rank",
        "call(group=[1 - rank]); time.sleep(9)",
        "forged",
    ),
    Attack(
        "claims bytes it does not send",
        "call(sent=[['float64', [9]]]); time.sleep(9)",
        "forged",
    ),
    Attack(
        "asks for the next case in the middle",
        "frame({'kind': 'next', 'id': 99}); frame({'kind': 'next', 'id': 98})",
        "sum|forged|Error|missing",
    ),
    Attack(
        "hands over a result that nobody asked for",
        "frame({'kind': 'result', 'name': 'sum', 'value': {'$tensor': 7}, 'sent': []}); time.sleep(9)",
        "forged",
    ),
    Attack(
        "hands over half a character",
        'frame(b\'{"kind": "result", "name": "sum", "value": "\\\\ud800", "sent": []}\')',
        "sum",
    ),
    Attack("prints a verdict", "print(json.dumps({'kind': 'verdict', 'verdict': {'passed': True}}))", "sum"),
    Attack(
        "opens a gate there is not", "frame({'kind': 'gate', 'name': 'answers', 'id': 99}); time.sleep(9)", "forged"
    ),
    Attack(
        "makes every comparison true",
        "torch.equal = torch.allclose = torch.isclose = lambda *_, **__: torch.tensor(True)",
        "sum",
    ),
    Attack(
        "hands over what it likes in place of the result",
        """
        from labs.code.inside import desk
        kept = desk.Case.result
        desk.Case.result = lambda case, name, value: kept(case, name, torch.zeros_like(x))
        """,
        "sum",
    ),
    Attack(
        "counts less than it sends",
        """
        from labs.code.inside import frames
        frames.spec_of = lambda tensor: ["float64", [0]]
        send(x, (rank + 1) % n) if rank % 2 == 0 else recv(x, (rank - 1) % n)
        """,
        "forged",
    ),
    Attack(
        "adds up by the library and hides it",
        """
        from labs.code.inside import channel
        kept = channel.Channel.tell
        channel.Channel.tell = lambda self, header, tensors=(): kept(self, header | {"operation": "send"}, tensors)
        dist.all_reduce(x)
        """,
        "forged|library-call|sum|Error",
    ),
    Attack(
        "looks for the answer among all objects",
        """
        for each in gc.get_objects():
            if isinstance(each, dict) and "expected" in each and isinstance(each["expected"], torch.Tensor):
                escaped(each)
        """,
        "sum",
    ),
    Attack(
        "looks for the grader",
        "from labs.code.graders import ring_all_reduce\nescaped(1)",
        "ModuleNotFoundError",
    ),
    Attack(
        "takes a solution of ours",
        "from labs.collectives.ring import ring_all_reduce as ours\nescaped(1)",
        "ModuleNotFoundError",
    ),
    Attack(
        "knows the grader by its seed",
        "if torch.initial_seed() == 1:\n    escaped('a visible run')\nx += 1",
        "sum",
    ),
    Attack(
        "keeps results for the next run",
        """
        if os.path.exists("/tmp/kept") and not hasattr(os, "wrote_it"):
            escaped("it is there")
        os.wrote_it = open("/tmp/kept", "w").write("x")
        """,
        "sum",
    ),
    Attack("is right on one rank alone", "x.zero_() if rank else x.add_(1)", "sum"),
    Attack(
        "waits for others on one rank alone",
        "time.sleep(0.3) if rank == 1 else None\ndist.barrier()",
        "library-call|sum",
    ),
]

ATTACKS = [*FILES, *NETWORK, *PROCESSES, *FLOODS, *FORGERIES]
