"""What can be had of a run as a file: trace, spec, events, checkpoint, snapshots, all of it in one, and what is kept of
it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, StreamingResponse

from app.core.errors import NotFound
from app.core.release import release
from app.core.web import JsonLines, LearnerId, Now, ReadSession, RowId
from app.lab import artifacts, findings, opening, reading, results, run_page
from app.lab.trace import chrome_trace

MOST_RANK = 1023

router = APIRouter(prefix="/runs")


@router.get("/{run_id}/trace")
def trace(session: ReadSession, learner: LearnerId, run_id: RowId) -> JSONResponse:
    """What its ranks did when, in the trace event format that Chrome and Perfetto open. Empty without the timeline."""
    run = reading.find_run(session, learner, run_id)
    spans = results.every_span(session, run.id)
    name = f'attachment; filename="run-{run.id}-trace.json"'
    return JSONResponse(chrome_trace(spans), headers={"Content-Disposition": name})


@router.get("/{run_id}/spec")
def spec(session: ReadSession, learner: LearnerId, run_id: RowId) -> JSONResponse:
    """The RunSpec alone, as `rankzero run` and the form take it."""
    run = reading.find_run(session, learner, run_id)
    return JSONResponse(run.spec, headers={"Content-Disposition": f'attachment; filename="run-{run.id}.json"'})


@router.get("/{run_id}/record", response_class=JsonLines)
def record(session: ReadSession, learner: LearnerId, run_id: RowId) -> JsonLines:
    """Everything its ranks reported, a JSON object a line, in the order it was written down. Nothing that a prediction
    under way is about is given away: until then it is empty."""
    run = reading.find_run(session, learner, run_id)
    lines = "" if findings.is_hidden(run) else "".join(results.every_line(session, run.id))
    name = f'attachment; filename="run-{run.id}.jsonl"'
    return JsonLines(lines, headers={"Content-Disposition": name})


@router.get("/{run_id}/checkpoint")
def checkpoint(request: Request, session: ReadSession, learner: LearnerId, run_id: RowId) -> StreamingResponse:
    """The last whole checkpoint of an ended run, as a tar of what `torch.distributed.checkpoint` wrote."""
    run = reading.find_run(session, learner, run_id)
    found = artifacts.last_checkpoint(run, request.app.state.run_folder)
    if found is None:
        raise NotFound(
            f"Run {run_id} has no checkpoint here: it asked for none, has not ended, ran where this server does not "
            "see, or its folder was let go of."
        )
    name = f"run-{run_id}-checkpoint-step-{found.step}.tar"
    return _file(name, found.size_bytes, found.pieces(), "application/x-tar")


@router.get("/{run_id}/snapshot/{rank}")
def snapshot(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    run_id: RowId,
    rank: Annotated[int, Path(ge=0, le=MOST_RANK)],
) -> StreamingResponse:
    """What one GPU's allocator did, as torch pickled it, for the viewer at pytorch.org/memory_viz. Of an ended run on
    CUDA with the probe `allocator`."""
    run = reading.find_run(session, learner, run_id)
    found = artifacts.snapshot_of(run, request.app.state.run_folder, rank)
    if found is None:
        raise NotFound(
            f"Run {run_id} has no snapshot of rank {rank}'s allocator here: it ran without that probe, has not ended, "
            "ran where this server does not see, or its folder was let go of."
        )
    return _file(f"run-{run_id}-allocator-rank-{rank}.pickle", found.size_bytes, found.pieces())


def _file(
    name: str, size_bytes: int, pieces: Iterator[bytes], kind: str = "application/octet-stream"
) -> StreamingResponse:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(size_bytes),
        "Cache-Control": "no-store",
    }
    return StreamingResponse(pieces, headers=headers, media_type=kind)


@router.get("/{run_id}/artifacts")
def list_artifacts(session: ReadSession, learner: LearnerId, run_id: RowId) -> dict[str, int]:
    """What is kept of an ended run elsewhere, bytes by name."""
    return {name: int(size) for name, size in (reading.find_run(session, learner, run_id).artifacts or {}).items()}


@router.get("/{run_id}/artifacts/{name}")
def artifact(
    request: Request, session: ReadSession, learner: LearnerId, run_id: RowId, name: Annotated[str, Path(max_length=80)]
) -> StreamingResponse:
    """One of them."""
    run = reading.find_run(session, learner, run_id)
    pieces = artifacts.read_kept(run, request.app.state.artifacts, name)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)


@router.get("/{run_id}/file", response_class=JsonLines)
def run_file(session: ReadSession, learner: LearnerId, now: Now, run_id: RowId) -> JsonLines:
    """An ended run as one file that another install opens."""
    name, pieces = opening.export_run(session, learner, run_id, release(), now)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return JsonLines(b"".join(pieces), headers=headers)


@router.get("/{run_id}/script")
def script(session: ReadSession, learner: LearnerId, run_id: RowId) -> dict[str, Any]:
    """The torchrun command that does the same run without us, and the spec it carries."""
    run = reading.find_run(session, learner, run_id)
    return {"command": run_page.command(run), "spec": run.spec}
