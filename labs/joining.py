"""Where a rank works, and how it finds the others."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from labs.command import CHECKPOINTS, LOOPBACK, RUN_BYTES
from labs.failures import CannotStartError
from labs.lifeline import cap_memory
from labs.spec import RunSpec
from labs.spec.events import Circumstances
from labs.spec.limits import MAX_RUN_BYTES

_SIOCGIFADDR = 0x8915  # <linux/sockios.h>: the address of an interface
_PEER_TIMEOUT = timedelta(seconds=120)  # after which a silent rank counts as lost


def choose_device(spec: RunSpec) -> torch.device:
    """The GPU of this rank, or the CPU: `auto` takes GPUs where there is one for each rank on this node."""
    local_rank, local_ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if spec.device == "cpu" or (spec.device == "auto" and gpus < local_ranks):
        # All ranks share the cores. More threads than cores would only make them wait for each other.
        torch.set_num_threads(max(1, _usable_cores() // local_ranks))
        cap_memory(float(os.environ.get(RUN_BYTES) or MAX_RUN_BYTES))
        return torch.device("cpu")
    if gpus < local_ranks:
        raise CannotStartError("no such device", f"{local_ranks} ranks need {local_ranks} GPUs; torch sees {gpus}.")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def joining(ranks: int) -> str:
    """What a rank is doing before it has found the others."""
    return f"joining {ranks} {'ranks' if ranks > 1 else 'rank'}"


def join(device: torch.device) -> None:
    """Find the other ranks: torchrun has put where to meet them, and who we are, into the environment."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        os.environ.setdefault("TORCH_NCCL_ENABLE_TIMING", "1")  # the ledger asks NCCL how long it took
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = None
    if os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        # All ranks are on this host, so that nobody outside has any business with them: they listen on loopback only,
        # and meet in a file. (torch's own meeting place, a TCP store, would listen on every interface.)
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = LOOPBACK
        store = dist.FileStore(str(_shared_folder() / "store"), ranks)  # type: ignore[attr-defined]
    elif interface := interface_towards(os.environ["MASTER_ADDR"]):
        # else gloo takes the one of the host's own name, which often is loopback
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    dist.init_process_group(
        backend,
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=_PEER_TIMEOUT,
        device_id=device if device.type == "cuda" else None,
    )


def interface_towards(address: str) -> str | None:
    """The network interface by which this host reaches `address`, or has it itself; None where that is not known."""
    if sys.platform != "linux":
        return None
    import fcntl  # noqa: PLC0415 - not everywhere

    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # sends nothing: it only asks for the way there
        own = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                request = struct.pack("256s", name.encode())
                if socket.inet_ntoa(fcntl.ioctl(probe, _SIOCGIFADDR, request)[20:24]) == own:
                    return name
    return None


def checkpoint_folder() -> Path:
    """Where the run's checkpoints are. Whoever starts the ranks says where, on a file system that all hosts share: then
    every start of the run finds those of the ones before. Else, on one host, every restart by torchrun does: they are
    beside torchrun's logs."""
    if given := os.environ.get(CHECKPOINTS):
        return Path(given)
    if os.environ["LOCAL_WORLD_SIZE"] != os.environ["WORLD_SIZE"]:
        said = f"Set {CHECKPOINTS} to a folder that all hosts share, for the checkpoints."
        raise CannotStartError("no shared folder", said)
    return _shared_folder().parent / "checkpoints"


def _shared_folder() -> Path:
    """The folder torchrun made for this attempt's ranks: a new one each time, which nobody else may enter."""
    report = os.environ.get("TORCHELASTIC_ERROR_FILE")  # <a folder by mkdtemp>/attempt_0/<rank>/error.json
    if not report:
        raise CannotStartError("not under torchrun", "Start the ranks with torchrun, with a folder for its logs.")
    return Path(report).parent.parent


def circumstances(device: torch.device) -> Circumstances:
    """With how many others, and on what, a rank has worked: a part of its result."""
    return Circumstances(
        world_size=dist.get_world_size(),
        backend=dist.get_backend(),
        device=device.type,
        device_name=torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
    )
