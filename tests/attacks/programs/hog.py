"""Ranks of which the last takes memory without end, one gigabyte after the other, and the others wait for it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist

from labs.command import read_spec
from labs.failures import fail
from labs.joining import choose_device, join
from labs.probes.report import EventFile, Reporter

parser = argparse.ArgumentParser()
parser.add_argument("--spec")
parser.add_argument("--events", type=Path)
asked = parser.parse_args()
rank = int(os.environ["RANK"])
reporter = Reporter(rank, EventFile(asked.events, rank))
try:
    device = choose_device(read_spec(asked.spec))
    join(device)
    taken = []
    while rank == 1 and len(taken) < 200:
        taken.append(torch.empty(2**30, dtype=torch.uint8, device=device))  # untouched: the machine is not strained
    dist.barrier()
except BaseException as error:
    fail(reporter, error)
os._exit(0)
