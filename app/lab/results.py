"""What a run measured: its ranks' own summaries, with the worst rank named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.models import Run
from app.lab.records import Held, TrainingResult
from labs.spec import RunSpec
from labs.spec.events import (
    Bytes,
    Component,
    Event,
    PhaseEvent,
    ResultEvent,
    SpanEvent,
    Summary,
    TrainingSummary,
    read_events,
    to_json,
)


def every_event(session: Session, run_id: int, after: int = 0) -> Iterator[Event]:
    """All events of a run behind chunk `after`, in the order they were written."""
    while chunks := queries.list_chunks(session, run_id, after):
        for sequence, events in chunks:
            yield from read_events(events)
            after = sequence


def every_line(session: Session, run_id: int) -> Iterator[str]:
    """The same as JSON lines, as the ranks wrote them."""
    return (f"{json.dumps(to_json(event))}\n" for event in every_event(session, run_id))


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
    training = {rank: each for rank, each in summaries.items() if isinstance(each, TrainingSummary)}
    return _of_training(zero, training, spec).to_json()


def _of_training(zero: TrainingSummary, summaries: Mapping[int, TrainingSummary], spec: RunSpec) -> TrainingResult:
    """What rank 0 found of all, and the figures of the rank that is worst off."""
    return TrainingResult(
        steps=zero.steps,
        first_loss=zero.first_loss,
        final_loss=zero.final_loss,
        tokens_per_second=zero.tokens_per_second,
        step_seconds=spec.tokens_per_step / zero.tokens_per_second,
        mfu=zero.mfu,
        peak_flops_per_second=zero.peak_flops_per_second,
        backend=zero.backend,
        device=zero.device,
        device_name=zero.device_name,
        state_layout=zero.state_layout,
        world_size=spec.parallel.world_size,
        payload_bytes_per_step=max(each.payload_bytes_per_step or 0 for each in summaries.values()),
        wire_bytes_per_step=max(each.wire_bytes_per_step or 0 for each in summaries.values()),
        model_state=_worst({rank: each.model_state_bytes for rank, each in summaries.items()}),
        peak=_worst({rank: each.peak_bytes for rank, each in summaries.items()}),
        optimizer_bytes=max((each.model_state_bytes or {}).get("optimizer", 0) for each in summaries.values()) or None,
        activation_bytes=max(each.activation_bytes or 0 for each in summaries.values()) or None,
        device_peak_bytes=max(each.device_peak_bytes or 0 for each in summaries.values()) or None,
        operations=None if zero.operations is None else asdict(zero.operations),
        waiting_seconds=zero.waiting_seconds,
    )


def ran_on(result: Mapping[str, Any], ranks: int, hosts: int = 1) -> str | None:
    """What a run ran on, by its ranks' own word: the worker only knows what it meant to give them."""
    device, name, backend = (result.get(each) for each in ("device", "device_name", "backend"))
    if not isinstance(device, str) or not isinstance(name, str):
        return None
    where = f" on {hosts} hosts" if hosts > 1 else ""
    if device == "cuda":
        return f"{ranks} × {name}{where}, {str(backend).upper()}"
    return f"CPU, {ranks} {'ranks' if ranks > 1 else 'rank'}{where} over {backend}"


def _worst(by_rank: Mapping[int, Bytes | None]) -> Held | None:
    known = {rank: held for rank, held in by_rank.items() if held}
    if not known:
        return None
    rank = max(known, key=lambda each: known[each]["total"])
    components: dict[Component, int] = {kind: size for kind, size in known[rank].items() if kind != "total"}
    return Held(rank, known[rank]["total"], components)
