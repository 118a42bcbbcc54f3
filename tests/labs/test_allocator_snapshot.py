"""What a GPU's allocator did: asked for on CUDA alone, recorded, kept whole or not at all, and handed on as it is.

No GPU is here: torch's two functions are replaced by ones that take what the real ones take.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from labs.command import SNAPSHOTS
from labs.probes import allocator
from labs.probes.allocator import MOST_ENTRIES, recorded
from labs.probes.report import Reporter
from labs.snapshots import MOST_BYTES, file_of, list_snapshots, open_snapshot
from labs.spec import SpecError, parse_run_spec
from labs.spec.events import Event, LogEvent

SPEC: dict[str, Any] = {"model": "gpt-mini", "probes": ["memory", "allocator"]}
Recorder = tuple[list[dict[str, Any]], list[Event], Reporter]


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """What the allocator was told, and what rank 1 reports."""
    told, said = list[dict[str, Any]](), list[Event]()
    memory = torch.cuda.memory
    # the outer one passes on whatever it is given
    takes = inspect.signature(memory._record_memory_history_impl)  # type: ignore[attr-defined]
    dumps = inspect.signature(memory._dump_snapshot)

    def record(*args: Any, **kwargs: Any) -> None:
        told.append(dict(takes.bind(*args, **kwargs).arguments))

    def dump(*args: Any, **kwargs: Any) -> None:
        Path(dumps.bind(*args, **kwargs).arguments["filename"]).write_bytes(b"what happened")

    monkeypatch.setattr(memory, "_record_memory_history", record)
    monkeypatch.setattr(memory, "_dump_snapshot", dump)
    monkeypatch.setenv(SNAPSHOTS, str(tmp_path))
    return told, said, Reporter(1, said.append)


@pytest.mark.parametrize("more", [{}, {"device": "cpu"}, {"device": "auto"}, {"device": "cuda", "mode": "dry"}])
def test_it_is_refused_where_no_gpu_is_sure(more: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec({**SPEC, **more}, dry="mode" in more)
    (violation,) = refused.value.violations
    assert (violation.field, violation.value, violation.involves) == ("probes.1", "allocator", ("device",))
    assert violation.accepted == "memory, communication, timeline; allocator with device cuda"


def test_it_is_taken_on_cuda_and_asked_for_by_nobody_else() -> None:
    assert "allocator" in parse_run_spec({**SPEC, "device": "cuda"}).probes
    assert "allocator" not in parse_run_spec({"model": "gpt-mini", "device": "cuda"}).probes
    with pytest.raises(SpecError, match="probes"):
        parse_run_spec({"program": "gemm", "device": "cuda", "probes": ["allocator"]})


def test_it_is_recorded_within_bounds_and_written_at_the_end(recorder: Recorder, tmp_path: Path) -> None:
    told, said, reporter = recorder
    with recorded(reporter):
        assert told == [{"enabled": "all", "context": "all", "stacks": "python", "max_entries": MOST_ENTRIES}]
        assert not os.listdir(tmp_path)
    assert told[1:] == [{"enabled": None}]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"allocator-1.pickle": b"what happened"}
    assert not said


def test_it_is_written_when_memory_runs_out_and_for_no_other_failure(recorder: Recorder, tmp_path: Path) -> None:
    told, _, reporter = recorder
    with pytest.raises(ValueError, match="no memory matter"), recorded(reporter):
        raise ValueError("no memory matter")
    assert not os.listdir(tmp_path)
    with pytest.raises(torch.OutOfMemoryError), recorded(reporter):
        raise torch.OutOfMemoryError("CUDA out of memory")
    assert os.listdir(tmp_path) == [file_of(1)]
    assert [each["enabled"] for each in told] == ["all", None, "all", None]


def _no_room(_name: str) -> None:
    raise OSError(28, "No space left on device")


def _not_built(_name: str) -> None:
    raise RuntimeError("not recorded")


def _huge(name: str) -> None:
    with open(name, "wb") as file:
        file.truncate(MOST_BYTES + 1)


@pytest.mark.parametrize("dump", [_no_room, _not_built, _huge])
def test_what_cannot_be_kept_is_said_leaves_nothing_and_fails_no_run(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dump: Callable[[str], None]
) -> None:
    monkeypatch.setattr(torch.cuda.memory, "_dump_snapshot", dump)
    with recorded(recorder[2]):
        pass
    (log,) = recorder[1]
    assert isinstance(log, LogEvent)
    assert log.line.startswith("no snapshot of the allocator is kept: ")
    assert not os.listdir(tmp_path)


def test_by_hand_it_is_written_where_one_works(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SNAPSHOTS)
    monkeypatch.chdir(tmp_path)
    with recorded(recorder[2]):
        pass
    assert os.listdir(tmp_path) == [file_of(1)]


def test_a_snapshot_is_read_as_a_file_of_its_name_and_no_other(tmp_path: Path) -> None:
    assert list_snapshots(tmp_path / "nowhere") == {}
    for rank, content in ((10, b"ten"), (2, b"second")):
        (tmp_path / file_of(rank)).write_bytes(content)
    (tmp_path / "allocator-3.part").write_bytes(b"half")
    (tmp_path / file_of(4)).symlink_to(tmp_path / file_of(2))
    os.mkfifo(tmp_path / file_of(5))
    with (tmp_path / file_of(6)).open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert dict(list_snapshots(tmp_path)) == {2: 6, 10: 3}
    found = open_snapshot(tmp_path, 2)
    assert found is not None
    with (tmp_path / file_of(2)).open("ab") as file:
        file.write(b" and more")
    assert b"".join(found.pieces()) == b"second", "no more than was announced"
    assert found.file.closed
    assert all(open_snapshot(tmp_path, rank) is None for rank in (3, 4, 5, 6))


def test_a_cpu_has_no_allocator_to_count() -> None:
    allocator.count_peak_from_now(torch.device("cpu"))
    assert allocator.peak_bytes(torch.device("cpu")) is None
