"""Programs that hang on three ranks, and what the autopsy must say of each. A body is the learner's function."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent


@dataclass(frozen=True)
class Hang:
    """`says`: a regular expression that names the rank, the call and the line."""

    name: str
    body: str
    kind: str
    says: str

    @property
    def code(self) -> str:
        return f"{_HEAD}\n\ndef average_grads(model):\n    rank, n = dist.get_rank(), dist.get_world_size()\n" + indent(
            dedent(self.body).strip(), "    "
        )


_HEAD = """import os, time
import torch
import torch.distributed as dist

x, y = torch.ones(4), torch.empty(4)"""

# The body begins at line 9.
HANGS = [
    Hang(
        "a call is missing",
        "dist.all_reduce(x)\nif rank != 1:\n    dist.all_reduce(x)",
        "missing call",
        r"rank 1 never called all_reduce no\. 2 \(your line 11\); ranks 0 and 2 wait there since .* has returned",
    ),
    Hang(
        "one rank returns at once",
        "if rank == 0:\n    return\ndist.broadcast(x, 1)",
        "missing call",
        r"rank 0 never called broadcast no\. 1 \(your line 11\)",
    ),
    Hang(
        "one rank goes round more often",
        "for _ in range(rank + 1):\n    dist.all_reduce(x)",
        "missing call",
        r"rank 0 never called all_reduce no\. 2 \(your line 10\)",
    ),
    Hang(
        "a barrier for one",
        "dist.all_reduce(x)\nif rank == 2:\n    dist.barrier()",
        "missing call",
        r"ranks 0 and 1 never called barrier no\. 2 \(your line 11\); rank 2 waits there",
    ),
    Hang(
        "a call in a branch on data",
        "if (torch.arange(1, 5) > rank).all():\n    dist.all_reduce(x)",
        "missing call",
        r"ranks 1 and 2 never called all_reduce no\. 1 \(your line 10\)",
    ),
    Hang(
        "two calls in another order",
        """
        if rank == 0:
            dist.broadcast(x, 0)
            dist.all_reduce(x)
        else:
            dist.all_reduce(x)
            dist.broadcast(x, 0)
        """,
        "wrong order",
        r"rank \d calls \w+ no\. 1 \(your line (10|13)\), but rank \d calls \w+ no\. 1 \(your line (10|13)\)",
    ),
    Hang(
        "gathers where others scatter",
        """
        big = torch.empty(12)
        if rank == 1:
            dist.all_gather_single(big, x)
        else:
            dist.reduce_scatter_single(y, big)
        """,
        "wrong order",
        r"all_gather no\. 1 \(your line 11\)",
    ),
    Hang(
        "a subgroup and the whole",
        "pair = dist.new_group([0, 1])\ndist.all_reduce(x, group=pair if rank == 0 else None)",
        "wrong order",
        r"rank 0 never called all_reduce no\. 1|rank 1 never called all_reduce no\. 1",
    ),
    Hang(
        "another shape",
        "dist.all_reduce(torch.ones(5 if rank == 2 else 4))",
        "wrong shape",
        r"float32\[5\]",
    ),
    Hang(
        "splits that do not agree",
        "dist.all_to_all_single(y, x, [1, 1, 2], [1, 1, 2])",
        "wrong shape",
        r"rank 0 \(your line 9\) sends 2 rows to rank 2, which expects 1 from it \(your line 9\)",
    ),
    Hang(
        "another type",
        "dist.all_reduce(x.double() if rank == 0 else x)",
        "wrong dtype",
        r"float64\[4\]",
    ),
    Hang("another root", "dist.broadcast(x, rank % 2)", "wrong root", r"broadcast no\. 1 \(your line 9\)"),
    Hang(
        "another reduction",
        "dist.all_reduce(x, op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)",
        "wrong reduction",
        r"all_reduce no\. 1 \(your line 9\)",
    ),
    Hang(
        "all send first around the ring",
        "dist.send(x, (rank + 1) % n)\ndist.recv(y, (rank - 1) % n)",
        "everyone sends first",
        r"ranks 0, 1 and 2 all wait in send \(your line 9\)",
    ),
    Hang(
        "two send first",
        "if rank < 2:\n    dist.send(x, 1 - rank)\n    dist.recv(y, 1 - rank)",
        "everyone sends first",
        r"ranks 0 and 1 all wait in send \(your line 10\)",
    ),
    Hang(
        "all receive first",
        "dist.recv(y, (rank - 1) % n)\ndist.send(x, (rank + 1) % n)",
        "everyone receives first",
        r"ranks 0, 1 and 2 all wait in recv \(your line 9\)",
    ),
    Hang(
        "only odd ranks send",
        "for _ in 1, 2:\n    if rank % 2:\n        dist.send(x, (rank + 1) % n)\n    dist.recv(y, (rank - 1) % n)",
        "missing message",
        r"waits in recv from rank [02] \(your line 12\), which waits .* has sent nothing yet, where rank 1 sent",
    ),
    Hang(
        "a message that nobody takes",
        "if rank == 0:\n    dist.send(x, 1)",
        "missing message",
        r"rank 0 waits in send to rank 1 \(your line 10\), but rank 1 has returned",
    ),
    Hang(
        "a message that nobody sends",
        "if rank == 2:\n    dist.recv(y, 0)",
        "missing message",
        r"rank 2 waits in recv from rank 0 \(your line 10\), but rank 0 has returned",
    ),
    Hang(
        "messages that pass each other",
        "if rank == 0:\n    dist.send(x, 1)\nelif rank == 1:\n    dist.recv(y, 2)\nelse:\n    dist.send(x, 0)",
        "messages that do not meet",
        r"rank \d waits in",
    ),
    Hang(
        "another tag",
        "if rank == 0:\n    dist.send(x, 1, tag=1)\nelif rank == 1:\n    dist.recv(y, 0, tag=2)",
        "messages that do not meet",
        r"(rank 0 waits in send to rank 1|rank 1 waits in recv from rank 0) \(your line 1[02]\)",
    ),
    Hang(
        "a message of another length",
        "if rank == 0:\n    dist.send(torch.ones(3), 1)\nelif rank == 1:\n    dist.recv(y, 0)",
        "wrong shape",
        r"float32\[3\].*float32\[4\]",
    ),
    Hang(
        "an exception on one rank",
        "if rank == 1:\n    raise ValueError('no batch left')\ndist.all_reduce(x)",
        "exception on one rank",
        r"rank 1 raised ValueError at your line 10: no batch left\. Ranks 0 and 2 wait for it",
    ),
    Hang(
        "an index error after some calls",
        "for i in range(3):\n    dist.all_reduce(x)\n    [1, 2, 3][i + (rank == 2)]",
        "exception on one rank",
        r"rank 2 raised IndexError at your line 11",
    ),
    Hang(
        "a process that is gone",
        "if rank == 0:\n    os._exit(1)\ndist.all_reduce(x)",
        "exception on one rank",
        r"rank 0 .*ended without a word",
    ),
    Hang(
        "an endless loop on one rank",
        "while rank == 2:\n    pass\ndist.all_reduce(x)",
        "still computing",
        r"rank 2 was still computing at your line (9|10)",
    ),
]
