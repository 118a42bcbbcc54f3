"""What a run measured: its ranks' own summaries, with the worst rank named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.models import Run
from labs.spec import RunSpec
from labs.spec.events import Bytes, Event, PhaseEvent, ResultEvent, SpanEvent, Summary, TrainingSummary, read_events


def every_event(session: Session, run_id: int, after: int = 0) -> Iterator[Event]:
    """All events of a run behind chunk `after`, in the order they were written."""
    while chunks := queries.list_chunks(session, run_id, after):
        for chunk in chunks:
            yield from read_events(chunk.events)
        after = chunks[-1].sequence


def every_span(session: Session, run_id: int) -> list[SpanEvent]:
    """What the ranks did when, of the run's last start."""
    spans: list[SpanEvent] = []
    for event in every_event(session, run_id):
        if isinstance(event, SpanEvent):
            spans.append(event)
        elif is_new_start(event):
            spans = []
    return spans


def is_new_start(event: Event) -> bool:
    """Whether the run waits again, since its worker was lost: what came before was another start's."""
    return isinstance(event, PhaseEvent) and event.phase == "queued"


def summarise(session: Session, run: Run) -> dict[str, Any] | None:
    """The run's result from its ranks' `result` events; None unless every rank reported one."""
    summaries: dict[int, Summary] = {}
    for event in every_event(session, run.id):
        if is_new_start(event):
            summaries = {}
        elif isinstance(event, ResultEvent):
            summaries[event.rank] = event.summary
    spec = RunSpec.model_validate(run.spec)
    if len(summaries) < spec.parallel.world_size:
        return None
    zero = summaries[0]
    if not isinstance(zero, TrainingSummary):
        return dict(zero)
    return _of_training(
        zero, {rank: each for rank, each in summaries.items() if isinstance(each, TrainingSummary)}, spec
    )


def _of_training(zero: TrainingSummary, summaries: Mapping[int, TrainingSummary], spec: RunSpec) -> dict[str, object]:
    """What rank 0 found of all, and the figures of the rank that is worst off."""
    result: dict[str, object] = {
        "steps": zero.steps,
        "first_loss": zero.first_loss,
        "final_loss": zero.final_loss,
        "tokens_per_second": zero.tokens_per_second,
        "step_seconds": spec.tokens_per_step / zero.tokens_per_second,
        "mfu": zero.mfu,
        "peak_flops_per_second": zero.peak_flops_per_second,
        "backend": zero.backend,
        "device": zero.device,
        "device_name": zero.device_name,
        "state_layout": zero.state_layout,
        "world_size": spec.parallel.world_size,
        "payload_bytes_per_step": max(each.payload_bytes_per_step or 0 for each in summaries.values()),
        "wire_bytes_per_step": max(each.wire_bytes_per_step or 0 for each in summaries.values()),
    }
    result |= _worst("model_state", {rank: each.model_state_bytes for rank, each in summaries.items()})
    result |= _worst("peak", {rank: each.peak_bytes for rank, each in summaries.items()})
    optimizer = max((each.model_state_bytes or {}).get("optimizer", 0) for each in summaries.values())
    result |= {"optimizer_bytes": optimizer} if optimizer else {}
    activations = max(each.activation_bytes or 0 for each in summaries.values())
    return result | ({"activation_bytes": activations} if activations else {})


def _worst(name: str, by_rank: Mapping[int, Bytes | None]) -> dict[str, object]:
    """What the rank holds that holds most: averages would hide it."""
    known = {rank: held for rank, held in by_rank.items() if held}
    if not known:
        return {}
    rank = max(known, key=lambda each: known[each]["total"])
    components = {component: size for component, size in known[rank].items() if component != "total"}
    return {f"{name}_bytes": known[rank]["total"], name: components, f"{name}_rank": rank}
