"""`python -m labs.measure`: how fast this machine multiplies, copies and reduces, as `cluster.measured` JSON.

Each figure is what a large operation keeps up: a product of squares, attention under a causal mask, a copy that reads
and writes, and an all-reduce between the devices of this machine (or two processes of it, where it has no GPUs), of
which 2(n−1)/n times the tensor over the time is what a rank sends a second.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from labs.command import LOOPBACK

SIDES = {"cuda": 8192, "cpu": 1024}
COPIED_BYTES = {"cuda": 2**30, "cpu": 2**27}
REDUCED_BYTES = {"cuda": 2**28, "cpu": 2**25}
ATTENDED = {"cuda": (1, 16, 8192, 128), "cpu": (1, 4, 1024, 64)}  # batch, heads, tokens, head size
REPEATS, MOST_RANKS = 7, 8


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """The fastest of several after one to warm up: what disturbs a measurement only ever adds to it."""
    work()
    return min(_once(work, device) for _ in range(REPEATS))


def _once(work: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def matmul_flops(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of a square product."""
    side = SIDES[device.type]
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty(side, side, device=device, dtype=dtype)
    return 2.0 * side**3 / seconds(lambda: torch.mm(left, right, out=out), device)


def attention_flops(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of a fused kernel forward, the causal half counted."""
    batch, heads, tokens, size = shape = ATTENDED[device.type]
    query, key, value = (torch.randn(shape, device=device).to(dtype) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    flops = 2.0 * batch * heads * tokens**2 * size
    with torch.no_grad():
        return flops / seconds(lambda: attend(query, key, value, is_causal=True), device)


def memory_bytes_per_second(device: torch.device) -> float:
    """Bytes a second that a copy reads and writes together."""
    source = torch.ones(COPIED_BYTES[device.type] // 4, device=device)
    target = torch.empty_like(source)
    return 2.0 * COPIED_BYTES[device.type] / seconds(lambda: target.copy_(source), device)


def bus_bytes_per_second(kind: str, ranks: int) -> float:
    """What one of `ranks` sends a second in a large all-reduce between them."""
    with tempfile.TemporaryDirectory(prefix="rankzero-measure-") as folder:
        spawn(_reduce, args=(kind, ranks, folder), nprocs=ranks)  # type: ignore[no-untyped-call]
        with open(os.path.join(folder, "seconds")) as found:
            return 2.0 * (ranks - 1) / ranks * REDUCED_BYTES[kind] / float(found.read())


def _reduce(rank: int, kind: str, ranks: int, folder: str) -> None:
    # All on this machine: they listen on loopback only, and meet in a file.
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = LOOPBACK
    device = torch.device(kind, rank) if kind == "cuda" else torch.device("cpu")
    if kind == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), ranks)  # type: ignore[attr-defined]
    dist.init_process_group("nccl" if kind == "cuda" else "gloo", store=store, rank=rank, world_size=ranks)
    tensor = torch.zeros(REDUCED_BYTES[kind] // 4, device=device)
    took = seconds(lambda: dist.all_reduce(tensor), device)
    if rank == 0:
        with open(os.path.join(folder, "seconds"), "w") as found:
            found.write(repr(took))
    dist.destroy_process_group()


def measure() -> dict[str, float | str]:
    """All figures of this machine, of its first GPU where it has one."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    kind, dtype, precision = ("cuda", torch.bfloat16, "bf16-mixed") if gpus else ("cpu", torch.float32, "fp32")
    device = torch.device(kind, 0) if gpus else torch.device(kind)
    found = {
        "matmul_flops": matmul_flops(device, dtype),
        "attention_flops": attention_flops(device, dtype),
        "memory_bytes_per_second": memory_bytes_per_second(device),
    }
    ranks = min(gpus, MOST_RANKS) if gpus else 2
    if ranks > 1:
        found["intra_node_bytes_per_second"] = bus_bytes_per_second(kind, ranks)
    return {**{name: float(f"{value:.4g}") for name, value in found.items()}, "precision": precision}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(), indent=2) + "\n")
