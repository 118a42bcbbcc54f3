"""How a run is started: the torchrun command line, for a program and for a person. Torch-free."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labs.spec import (
    LAB_MODELS,
    Model,
    RunSize,
    RunSpec,
    SpecError,
    Violation,
    of_any_size,
    on_a_laptop,
    parse_run_spec,
)

_PACKAGE_PARENT = Path(__file__).resolve().parent.parent
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"

# torchrun's usual meeting place is a TCP store that listens on every interface, and its agent unpickles what is in it:
# anybody who reaches the machine could run code as us. Ranks of one host meet in a file instead, which is only ours.
_MEET_IN_A_FILE = [
    *("--nnodes", "1", "--local-addr", "localhost"),
    *("--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file"),
]
_NO_TCP_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
# How much memory all ranks of a run may take on a CPU, set by whoever looked at the run's size; empty on GPUs.
RUN_BYTES = "RANKZERO_RUN_BYTES"
RUN_STARTED_AT = "RANKZERO_RUN_STARTED_AT"  # Unix time in seconds, set by whoever started the run
CHECKPOINTS = "RANKZERO_CHECKPOINTS"  # a folder that all ranks share, and all starts of the run
SNAPSHOTS = "RANKZERO_SNAPSHOTS"  # a folder for those of the allocator; else the one that ranks work in
GANG_RESTARTS = "RANKZERO_GANG_RESTARTS"  # how often all ranks of all hosts were started again


def read_spec(given: str, dry: bool = False) -> RunSpec:
    """The RunSpec in `given`: a JSON object, or the path of a file that holds one. `dry` is for a dry run.

    Raises SpecError with every violation.
    """
    if given.lstrip().startswith("{"):
        return parse_spec(given, dry)
    try:
        text = Path(given).read_text()
    except (OSError, ValueError) as error:
        raise SpecError([Violation("spec", given, f"{error}.", "a JSON object or a file with one")]) from error
    return parse_spec(text, dry)


def parse_spec(text: str, dry: bool = False) -> RunSpec:
    """The RunSpec in JSON text, for a dry run if `dry` or if it says so. Raises SpecError with every violation."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError([Violation("spec", text[:80], f"{error}.", "a JSON object")]) from error
    return parse_run_spec(data, dry, _sizes)


def _sizes(spec: RunSpec) -> Sequence[RunSize]:
    """How large a run may be that is started here, unless somebody has looked at that (worker.by_hand, a worker). By
    hand a laptop's, where it cannot be for GPUs, whose memory torch alone knows here: there it fails as on any machine
    that has too little."""
    may_have_gpus = spec.device != "cpu" and shutil.which("nvidia-smi") is not None
    return of_any_size(spec) if RUN_BYTES in os.environ or may_have_gpus else on_a_laptop(spec)


def torchrun_command(spec: RunSpec, events_dir: Path | None = None, log_dir: Path | None = None) -> list[str]:
    """torchrun's argument list for a program to start: this very Python, no PATH, no shell.

    `events_dir`: where the ranks append `events-<rank>.jsonl`; without it rank 0 prints for people.
    `log_dir`: where torchrun puts each rank's output, in a folder of its own for each attempt; without
    it the ranks write to this process's output.
    """
    command = [*local_torchrun(spec.parallel.world_size), *_restarts(spec)]
    if events_dir is not None:  # else in a temporary file of its own
        # an id of its own, so that nothing which an earlier run left in the same folder is taken for this one's
        command += ["--rdzv-endpoint", str(events_dir / "rendezvous"), "--rdzv-id", uuid.uuid4().hex]
    if log_dir is not None:
        command += ["--log-dir", str(log_dir), "--redirects", "3"]  # 3 = stdout and stderr
    command += ["-m", "labs.train", "--spec", compact(spec)]
    if events_dir is not None:
        command += ["--events", str(events_dir)]
    return command


def _restarts(spec: RunSpec) -> list[str]:
    return ["--max-restarts", str(spec.restarts)] if spec.restarts else []


def torchrun_over_hosts(
    spec: RunSpec, events_dir: Path, log_dir: Path, meeting: tuple[str, str], node_rank: str
) -> list[str]:
    """torchrun's argument list for one of the run's hosts, the `node_rank`-th: each host starts its own.

    `meeting` is the address and the port of the first host, where all meet. Static, for everybody knows who is who
    beforehand. The store there listens on the hosts' network, and what is in it is believed: that network must be ours.
    """
    command = [*TORCHRUN, *_one_of_hosts(spec, meeting, node_rank), "--log-dir", str(log_dir), "--redirects", "3"]
    return [*command, "-m", "labs.train", "--spec", compact(spec), "--events", str(events_dir)]


def _one_of_hosts(spec: RunSpec, meeting: tuple[str, str], node_rank: str) -> list[str]:
    sizes = ["--nnodes", str(spec.hosts), "--nproc-per-node", str(spec.ranks_per_host)]
    return [*sizes, "--node-rank", node_rank, "--master-addr", meeting[0], "--master-port", meeting[1]]


def restart_count() -> int:
    """How often these ranks were started again: by torchrun on one host, by whoever started it on each of several."""
    return torchrun_restart_count() + int(os.environ.get(GANG_RESTARTS, "0"))


def torchrun_restart_count() -> int:
    """How often torchrun has. What the ranks report goes on then; otherwise it begins anew."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def local_torchrun(ranks: int) -> list[str]:
    """torchrun of this very Python for `ranks` ranks on this host, up to where the script comes.

    Needs `environment`, without which torchrun would open a TCP store all the same.
    """
    return [*TORCHRUN, *_MEET_IN_A_FILE, "--nproc-per-node", str(ranks)]


def plain_command(spec: RunSpec) -> str:
    """The line a person pastes into a shell to do the same run by hand: the torchrun of this very environment."""
    beside = Path(sys.executable).with_name("torchrun")
    torchrun = str(beside) if beside.exists() else "torchrun"
    what = ["-m", "labs.train", "--spec", compact(spec)]
    if spec.hosts > 1:  # once on each host: N counts them from 0, HOST is the first of them
        shared = ["env", f"{CHECKPOINTS}=FOLDER"] if spec.training.checkpoint_every is not None else []
        return shlex.join([*shared, torchrun, *_one_of_hosts(spec, ("HOST", "29500"), "N"), *what])
    words = ["env", *(f"{name}={value}" for name, value in _NO_TCP_STORE.items()), torchrun, *_MEET_IN_A_FILE]
    return shlex.join([*words, "--nproc-per-node", str(spec.parallel.world_size), *_restarts(spec), *what])


def compact(spec: RunSpec) -> str:
    """The spec as short JSON: a lab model by its name, and nothing that is the default anyway."""
    data = spec.model_dump(mode="json", exclude_defaults=True)
    if spec.options is None:
        data["model"] = _short_model(spec.model)
    else:
        del data["model"]  # it trains none
        data = {name: value for name, value in data.items() if value != {}}
    return json.dumps(data, separators=(",", ":"))


def _short_model(model: Model) -> str | dict[str, Any]:
    for name, known in LAB_MODELS.items():
        if model == known:
            return name
    shape: dict[str, object] = model.model_dump(mode="json", exclude_defaults=True)
    if model.kv_heads == model.heads:
        del shape["kv_heads"]
    if model.ffn_hidden == 4 * model.hidden:
        del shape["ffn_hidden"]
    return shape


# What of our own environment a rank is given: what a program needs to be found and to find its libraries and devices.
# Anything else may be a secret of somebody's, and ranks run what a learner wrote.
_PASSED_ON = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT"),
        *("VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "XDG_CACHE_HOME", "TRITON_CACHE_DIR"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"),
    }
)
_PASSED_ON_PREFIXES = (
    "LC_",
    "OMP_",
    "KMP_",
    "GOMP_",
    "MKL_",
    "OPENBLAS_",
    "CUDA_",
    "NCCL_",
    "GLOO_",
    "TORCH_",
    "PYTORCH_",
)
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for `torchrun_command`: it finds this package from any folder, and runs quietly.

    Of our own it has what is on a list, and `extra`: neither the product's settings nor anybody's keys.
    """
    found = {name: value for name, value in os.environ.items() if _is_passed_on(name)}
    found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH")]))
    found.setdefault("OMP_NUM_THREADS", "1")  # torchrun's own choice, made here so that it does not warn
    # A rank with a core for each of its threads lets them spin while they wait for each other; where anything else runs
    # too, a step of a small model then takes ten times as long, and most of it is spinning.
    found.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return {**found, **_NO_TCP_STORE, **(extra or {})}


def _is_passed_on(name: str) -> bool:
    if any(word in name.upper() for word in _SECRETS):
        return False
    return name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
