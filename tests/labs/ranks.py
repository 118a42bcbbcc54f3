"""Starting real ranks, and what came of them."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from labs.command import RUN_STARTED_AT, environment, torchrun_command
from labs.spec import RunSpec, parse_run_spec
from labs.warm import WarmHost

PROGRAMS = Path(__file__).with_name("programs")

# Small enough for any number of ranks. No size is divisible by three, so three ranks have to pad.
SMALL = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 256}
TRAINING = {"sequence": 32, "steps": 4, "learning_rate": 1e-3}


@dataclass(frozen=True)
class Run:
    spec: RunSpec
    returncode: int
    stderr: str
    events: list[dict[str, Any]]

    def of_kind(self, kind: str, rank: int | None = None) -> list[dict[str, Any]]:
        return [e for e in self.events if e["kind"] == kind and rank in (None, e["rank"])]

    def losses(self) -> list[float]:
        return [event["loss"] for event in self.of_kind("step")]

    def summary(self, rank: int = 0) -> dict[str, Any]:
        (result,) = self.of_kind("result", rank)
        return result["summary"]

    def memory(self, at: str, rank: int = 0) -> dict[str, int]:
        """The bytes by component in the last probed step."""
        return [event for event in self.of_kind("memory", rank) if event["at"] == at][-1]["bytes"]

    def collectives(self, rank: int = 0) -> dict[tuple[str, str], dict[str, Any]]:
        return {(entry["operation"], entry["phase"]): entry for entry in self.summary(rank)["collectives"]}


# Twelve rows a step, cut in every way: (ranks, micro-batches, rows in a micro-batch).
LAYOUTS = [(1, 2, 6), (2, 3, 2), (3, 1, 4), (4, 1, 3)]
DDP, FSDP = 0, 3


def twelve_rows(zero: int, ranks: int, micro_batches: int, micro_batch: int, **rest: Any) -> dict[str, Any]:
    training = {"micro_batches": micro_batches, "micro_batch": micro_batch}
    if zero == DDP:
        training["bucket_bytes"] = 100_000
    return spec_of({"data": ranks, "zero": zero}, training=training, **rest)


def kept_blocks() -> dict[str, Any]:
    """FSDP without resharding, and every other shape a model can have: grouped queries, a gated MLP, an own head."""
    shape = {**SMALL, "kv_heads": 2, "gated_mlp": True, "tied_embeddings": False, "ffn_hidden": 96}
    return spec_of({"data": 2, "zero": FSDP}, model=shape, training={"reshard_after_forward": False})


def spec_of(parallel: Mapping[str, Any], *, model: Any = None, training: Any = None, **rest: Any) -> dict[str, Any]:
    return {
        "model": model or SMALL,
        "training": {**TRAINING, **(training or {})},
        "parallel": dict(parallel),
        "device": "cpu",
        **rest,
    }


def parse_events(text: str) -> list[dict[str, Any]]:
    """Events as they come, one a line. A constant that JSON does not have, such as NaN, is an error here."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


@cache
def warm_host() -> WarmHost:
    """The host of this test process: ranks need not load torch each time (`test_host.py`: they are none the less what
    those of a cold start are)."""
    host = WarmHost()
    atexit.register(host.close)
    return host


def torchrun(
    command: Sequence[str], env: Mapping[str, str] | None = None, timeout: float = 100
) -> subprocess.CompletedProcess[str]:
    """torchrun by its command line, from the warm host; what it and its ranks wrote is all in `stderr`. Raises
    subprocess.TimeoutExpired, having ended it."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        run = warm_host().start(command, Path(folder), environment(env), output)
        try:
            code = run.wait(timeout)
        finally:
            run.end()
        return subprocess.CompletedProcess(list(command), code, "", output.read_text(errors="replace"))


def run_now(data: Mapping[str, Any]) -> Run:
    """The run of a spec, from the warm host."""
    spec = parse_run_spec(data)
    with tempfile.TemporaryDirectory() as folder:
        ended = torchrun(torchrun_command(spec, Path(folder)), {RUN_STARTED_AT: repr(time.time())})
        lines = [line for path in sorted(Path(folder).glob("events-*.jsonl")) for line in path.read_text().splitlines()]
    events = sorted(parse_events("\n".join(lines)), key=lambda event: event["t"])
    return Run(spec, ended.returncode, ended.stderr, events)


def run_cold(data: Mapping[str, Any]) -> Run:
    """The same by `python -m labs.run`, as the command `rankzero run` does it."""
    ended = call([sys.executable, "-m", "labs.run", "-"], input=json.dumps(data))
    return Run(parse_run_spec(data), ended.returncode, ended.stderr, parse_events(ended.stdout))


def call(
    command: list[str] | str, env: Mapping[str, str] | None = None, **rest: Any
) -> subprocess.CompletedProcess[str]:
    limited = {"timeout": 100, **rest}
    return subprocess.run(command, env=environment(env), capture_output=True, text=True, check=False, **limited)


def pid_is_alive(pid: int) -> bool:
    """Whether `pid` still does anything: a zombie, which nobody has collected, does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:  # it went while it was read
        return False
    except FileNotFoundError:
        if Path("/proc").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state not in "ZX"
