"""What a run measured: its ranks' own summaries, with the worst rank named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.models import Run
from labs.spec import RunSpec


def every_event(session: Session, run_id: int, after: int = 0) -> Iterator[dict[str, Any]]:
    """All events of a run behind chunk `after`, in the order they were written."""
    while chunks := queries.list_chunks(session, run_id, after):
        for chunk in chunks:
            yield from chunk.events
        after = chunks[-1].sequence


def summarise(session: Session, run: Run) -> dict[str, Any] | None:
    """The run's result from its ranks' `result` events; None unless every rank reported one."""
    summaries: dict[int, Mapping[str, Any]] = {}
    for event in every_event(session, run.id):
        if event["kind"] == "result":
            summaries[event["rank"]] = event["summary"]
    spec = RunSpec.model_validate(run.spec)
    world = spec.parallel.world_size
    if len(summaries) < world:
        return None
    zero = summaries[0]
    if spec.options is not None:
        return dict(zero)
    result: dict[str, Any] = {
        "steps": zero["steps"],
        "first_loss": zero["first_loss"],
        "final_loss": zero["final_loss"],
        "tokens_per_second": zero["tokens_per_second"],
        "step_seconds": spec.tokens_per_step / zero["tokens_per_second"],
        "mfu": zero.get("mfu"),
        "peak_flops_per_second": zero.get("peak_flops_per_second"),
        "backend": zero["backend"],
        "device": zero["device"],
        "device_name": zero["device_name"],
        "state_layout": zero["state_layout"],
        "world_size": world,
    }
    result |= _worst(summaries, "model_state_bytes", "total")
    result |= _worst(summaries, "peak_bytes", "total")
    for name in ("payload_bytes_per_step", "wire_bytes_per_step"):
        result[name] = max((summary.get(name) or 0 for summary in summaries.values()), default=0)
    kept = [summary["activation_bytes"] for summary in summaries.values() if summary.get("activation_bytes")]
    result |= {"activation_bytes": max(kept)} if kept else {}
    return result


def _worst(summaries: Mapping[int, Mapping[str, Any]], name: str, by: str) -> dict[str, Any]:
    """The figure of the rank that holds most: averages would hide it."""
    known = {rank: summary[name] for rank, summary in summaries.items() if summary.get(name)}
    if not known:
        return {}
    rank = max(known, key=lambda each: known[each][by])
    short = name.removesuffix("_bytes")
    return {name: known[rank][by], short: {k: v for k, v in known[rank].items() if k != by}, f"{short}_rank": rank}
