"""`python -m labs.doctor`: what PyTorch sees of this machine's GPUs, and what would hold learners' programs, as JSON.

A process of its own: CUDA may hang.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import torch
import torch.distributed as dist

from labs.code import sandbox
from labs.code.cgroup import MOST_BYTES, why_no_group


def look() -> dict[str, Any]:
    """Build, devices, whether NCCL does an all-reduce on one of them, and what holds a learner's program."""
    found: dict[str, Any] = {
        "torch": torch.__version__,
        "built_for_cuda": torch.version.cuda,
        "available": torch.cuda.is_available(),
        "nccl": None,
        "devices": [],
        "all_reduce": None,
        "code_labs": {"no_sandbox": sandbox.why_not(), "no_group": why_no_group(), "most_bytes": MOST_BYTES},
    }
    if dist.is_nccl_available() and torch.version.cuda is not None:
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    if not found["available"]:
        return found
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        free_bytes, total_bytes = torch.cuda.mem_get_info(index)
        found["devices"].append(
            {
                "name": device.name,
                "uuid": str(getattr(device, "uuid", "")),
                "compute": f"{device.major}.{device.minor}",
                "total_bytes": total_bytes,
                "free_bytes": free_bytes,
                "bf16": torch.cuda.is_bf16_supported(),
            }
        )
    found["all_reduce"] = _all_reduce()
    return found


def _all_reduce() -> str:
    """What came of an all-reduce over NCCL with a single rank."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
            value = torch.ones(8, device="cuda")
            dist.all_reduce(value)
            torch.cuda.synchronize()
            dist.destroy_process_group()
        return "ok" if value.sum().item() == 8 else f"wrong: {value.tolist()}"
    except Exception as error:
        return f"failed: {str(error).splitlines()[0]}"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look()) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a driver that hangs must not keep us at the end
