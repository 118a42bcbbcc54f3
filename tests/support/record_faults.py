"""`python -m tests.support.record_faults [ID ...]`: runs with a planted fault, recorded anew into cards/recordings/.

An interview that hands out a log hands out one of these. What is recorded is the ranks' own: see `planted`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile
from math import prod
from pathlib import Path
from typing import Any

import torch
import yaml

from app.content.recordings import Recording
from app.core.settings import ROOT
from labs.command import torchrun_command
from labs.spec import parse_run_spec
from tests.labs.ranks import torchrun

FOLDER = ROOT / "cards" / "recordings"
PROGRAM = Path(__file__).with_name("planted.py")
MOST_CALLS = 3  # of each rank that are kept, the last
ELEMENT_BYTES = {"Float": 4, "Half": 2, "Long": 8, "Int": 4, "Byte": 1}
# Frames that say nothing of what a rank was doing: torch's wrappers, and what plants the fault.
LEFT_OUT = {"main", "wrapper", "planted_step", "draw_or_wait", "wait", "run_path", "all_reduce", "all_gather"}

SMALL = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 256}


def _spec(ranks: int, steps: int, **training: Any) -> dict[str, Any]:
    return {
        "model": SMALL,
        "training": {"sequence": 32, "steps": steps, "learning_rate": 1e-3, "bucket_bytes": 100_000, **training},
        "parallel": {"data": ranks},
        "device": "cpu",
        "probes": [],
    }


FP16 = {"precision": "fp16-mixed", "state_layout": "torch-amp", "loss_scaling": True}
RUNS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{
        f"stuck-loader-{rank}": (_spec(8, 60), {"kind": "stuck-loader", "rank": rank, "step": step})
        for rank, step in ((3, 42), (5, 27), (6, 51))
    },
    **{
        f"one-rank-validates-{rank}": (_spec(8, 60), {"kind": "one-rank-validates", "rank": rank, "step": step})
        for rank, step in ((0, 31), (4, 51))
    },
    **{
        f"overflow-{step}": (_spec(2, step + 13, **FP16), {"kind": "overflow", "rank": 0, "step": step})
        for step in (21, 34)
    },
}


def record(identity: str, spec: dict[str, Any], planted: dict[str, Any]) -> dict[str, Any]:
    """The recording of one run, as its file has it. Raises ValidationError where it does not show its fault."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = torchrun_command(parse_run_spec(spec), place)
        at = command.index("labs.train")
        command[at - 1 : at + 1] = [str(PROGRAM)]
        more = {"PLANTED": json.dumps(planted), "FLIGHT": folder, "TORCH_FR_BUFFER_SIZE": "2000"}
        torchrun(command, more)
        events = {rank: _events(place / f"events-{rank}.jsonl") for rank in range(spec["parallel"]["data"])}
        found: dict[str, Any] = {"id": identity, "torch": str(torch.__version__), "spec": spec, "planted": planted}
        if planted["kind"] == "overflow":
            found["steps"] = list(_steps(events[0]))
        else:
            found["ranks"] = [
                _rank(rank, json.loads((place / f"flight-{rank}.json").read_text()), events[rank]) for rank in events
            ]
    Recording.model_validate(found)
    return found


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _rank(rank: int, flight: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    entries = flight["entries"]
    first_open = next((index for index, each in enumerate(entries) if not each["retired"]), len(entries))
    last = entries[max(0, first_open - MOST_CALLS + 1) : first_open + 1]
    return {
        "rank": rank,
        "collectives": [_called(each) for each in last],
        "stands_in": list(_names(flight["stack"])),
        "said": next((each["detail"]["message"] for each in events if each.get("phase") == "failed"), "").rpartition(
            "] "
        )[2],
    }


def _called(entry: Mapping[str, Any]) -> dict[str, Any]:
    sizes = zip(entry["input_sizes"], entry["input_dtypes"], strict=True)
    frames = [(frame["filename"], frame["name"]) for frame in reversed(entry["frames"])]
    return {
        "number": entry["collective_seq_id"],
        "operation": entry["profiling_name"].partition(":")[2],
        "bytes": sum(prod(size) * ELEMENT_BYTES[kind] for size, kind in sizes),
        "called_from": list(_names(frames)),
        "done": entry["retired"],
    }


def _names(frames: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Functions of ours and torch's `backward` from the training on, each once, the outermost first."""
    before = ""
    for file, name in dropwhile(lambda frame: frame[1] != "train", frames):
        ours = Path(file).is_relative_to(ROOT) and ".venv" not in Path(file).parts
        if (ours or name == "backward") and name not in LEFT_OUT | {before} and name[0] not in "_<":
            yield name
            before = name


def _steps(events: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Steps with the loss scale after each; a step was skipped where the count of skipped ones grew."""
    losses, scales, counts = {}, {}, {0: 0.0}
    for each in events:
        if each["kind"] == "step":
            losses[each["step"]] = each["loss"]
        elif each["kind"] == "measurement":
            into = {"loss scale": scales, "steps skipped": counts}.get(each["name"])
            if into is not None:
                into[int(each["x"])] = each["y"]
    for step, loss in losses.items():
        skipped = counts[step] > counts[step - 1]
        yield {
            "step": step,
            "loss": None if loss is None else round(loss, 3),
            "loss_scale": scales[step],
            "skipped": skipped,
        }


def main(wanted: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for identity in wanted or RUNS:
        text = yaml.safe_dump(record(identity, *RUNS[identity]), sort_keys=False, default_flow_style=None, width=118)
        head = "# Recorded by `python -m tests.support.record_faults`; not for editing.\n"
        (FOLDER / f"{identity}.yaml").write_text(head + text)
        sys.stdout.write(f"{identity}: recorded\n")


if __name__ == "__main__":
    main(sys.argv[1:])
