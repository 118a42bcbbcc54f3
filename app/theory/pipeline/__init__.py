"""Pipeline schedules: the bubble in closed form, the order of every rank's passes, and the same played out in time.

`bubble` has the idle time as the papers write it (F22 to F24, F63), `held_activations` the micro-batches in flight
(F25), `orders` and `catalogue` which pass every rank runs after which, `simulation` plays an order out pass by pass,
and `schedule_facts` says which closed form a schedule follows. Which combinations a schedule takes is in
`labs.spec.schedules`.
"""

from app.theory.pipeline.bubble import (
    ASKED,
    COMPARED_SCHEDULES,
    ZERO_BUBBLES,
    ZeroBubble,
    bubble,
    interleaved_bubble,
    micro_batches_for_bubble,
    pipeline_seconds,
    schedule_idle_seconds,
    zero_bubble,
)
from app.theory.pipeline.catalogue import MAX_PASSES, SCHEDULES, chunk_of, order
from app.theory.pipeline.exposed_transfers import SENT_BY, exposed_transfers
from app.theory.pipeline.held_activations import (
    CLOSED_FORM_SCHEDULES,
    in_flight_layers,
    in_flight_micro_batches,
    interleaved_activation_factor,
    zero_bubble_in_flight,
)
from app.theory.pipeline.passes import Kind, Order, Pass, peak_in_flight, split_backwards
from app.theory.pipeline.schedule_facts import FACTS, ScheduleFacts, in_flight
from app.theory.pipeline.simulation import ChunkSeconds, PipelineRun, simulate_pipeline

__all__ = [
    "ASKED",
    "CLOSED_FORM_SCHEDULES",
    "COMPARED_SCHEDULES",
    "FACTS",
    "MAX_PASSES",
    "SCHEDULES",
    "SENT_BY",
    "ZERO_BUBBLES",
    "ChunkSeconds",
    "Kind",
    "Order",
    "Pass",
    "PipelineRun",
    "ScheduleFacts",
    "ZeroBubble",
    "bubble",
    "chunk_of",
    "exposed_transfers",
    "in_flight",
    "in_flight_layers",
    "in_flight_micro_batches",
    "interleaved_activation_factor",
    "interleaved_bubble",
    "micro_batches_for_bubble",
    "order",
    "peak_in_flight",
    "pipeline_seconds",
    "schedule_idle_seconds",
    "simulate_pipeline",
    "split_backwards",
    "zero_bubble",
    "zero_bubble_in_flight",
]
