"""Events of a run with every field, of which a test says what matters to it."""

from __future__ import annotations

from typing import Any

from labs.spec.events import (
    Collectives,
    CommunicationEvent,
    DetailEvent,
    Failure,
    Held,
    HostEvent,
    LayerPass,
    LogEvent,
    MeasurementEvent,
    MemoryEvent,
    PhaseEvent,
    ResultEvent,
    SpanEvent,
    Split,
    StepEvent,
    TrainingSummary,
)


def step(number: int, t: float = 0.0, rank: int = 0, loss: float | None = 1.0) -> StepEvent:
    return StepEvent(t, rank, number, loss, 128, 0.1, 1280.0, False)


def log(line: str, t: float = 0.0, rank: int = 0) -> LogEvent:
    return LogEvent(t, rank, "stderr", line)


def failed(rank: int, cause: str, message: str = "", t: float = 0.0) -> PhaseEvent:
    return PhaseEvent(t, rank, "failed", Failure(cause, message))


def memory(rank: int, number: int, at: Any, **sizes: int) -> MemoryEvent:
    during = "backward" if at == "peak" else None
    return MemoryEvent(1.0, rank, number, at, {**sizes, "total": sum(sizes.values())}, during)  # type: ignore[typeddict-item]


def communication(operation: Any, number: int = 2, **rest: Any) -> CommunicationEvent:
    fields = {"phase": "forward", "group": "data", "group_size": 2, "count": 1, "wire_bytes": 0, "seconds": 0.0} | rest
    return CommunicationEvent(1.0, fields.pop("rank", 0), number, operation, **fields)


def span(rank: int, what: Any, start: float, end: float, number: int = 3, **rest: Any) -> SpanEvent:
    alone = what in ("idle", "optimizer", "communication")
    stage = None if what == "communication" else rank
    return SpanEvent(end, rank, number, what, stage, None if alone else 0, start, end, **rest)


def measurement(name: str, x: float, y: float | None, unit: str = "", rank: int = 0, **rest: Any) -> MeasurementEvent:
    return MeasurementEvent(1.0, rank, name, x, y, unit, **rest)


def training_summary(**changes: Any) -> TrainingSummary:
    fields: dict[str, Any] = {
        "world_size": 2,
        "backend": "gloo",
        "device": "cpu",
        "device_name": "CPU",
        "steps": 10,
        "first_loss": 5.5,
        "final_loss": 3.0,
        "tokens_per_second": 1000.0,
        "model_flops_per_second": 1e9,
        "peak_flops_per_second": None,
        "mfu": None,
        "parameters": 1000,
        "state_layout": "fp32",
        "model_state_bytes": {"parameters": 1, "gradients": 1, "optimizer": 2, "total": 4},
        "peak_bytes": {"parameters": 1, "gradients": 1, "optimizer": 2, "activations": 5, "temporary": 1, "total": 10},
        "activation_bytes": None,
        "payload_bytes_per_step": 100,
        "wire_bytes_per_step": 50,
        "collectives": [],
        "device_peak_bytes": None,
    }
    return TrainingSummary(**fields | changes)


def result(rank: int, summary: Any) -> ResultEvent:
    return ResultEvent(1.0, rank, summary)


def one_of_each() -> list[Any]:
    """An event of every kind, and of those that have optional fields one with and one without."""
    collectives = Collectives("all_reduce", "backward", "data", 2, 3, 100, 100, 0.001)
    return [
        PhaseEvent(0.1, 0, "ready"),
        failed(1, "ValueError", "boom"),
        HostEvent(0.1, 1, "n2"),
        step(1),
        StepEvent(0.2, 0, 2, None, 128, 0.1, 1280.0, True, Split(0.1, 0.2, 0.3, 0.0, 0.1)),
        memory(0, 2, "step_end", parameters=1, gradients=2),
        memory(0, 2, "peak", parameters=1, activations=2),
        communication("all_gather", payload_bytes=100),
        measurement("loss scale", 1, 65536.0),
        measurement("fp32", 32, None, "FLOP/s", figure="rate"),
        span(0, "F", 1.0, 1.5),
        span(0, "communication", 1.0, 1.5, operation="send", group="pipeline", payload_bytes=64),
        span(
            0, "communication", 1.0, 1.5, operation="all_gather", group="data", held=[Held("temporary", 8, 1.0, None)]
        ),
        DetailEvent(1.0, 0, 3, 0.0, 1.0, [LayerPass(0, "F", 0.1, 0.2)], [[0.3, 0.4]], [0.0], {"parameters": [8]}, 1),
        log("a line"),
        result(0, training_summary(collectives=[collectives])),
        result(
            0, {"program": "gemm", "world_size": 1, "backend": "gloo", "device": "cpu", "device_name": "CPU", "x": 1.5}
        ),
    ]
