"""The discrete-event simulator that `pipeline.simulation` and `collectives.simulation` play their tasks on."""

from app.theory.simulator.events import Span, Task, finish_seconds, simulate

__all__ = ["Span", "Task", "finish_seconds", "simulate"]
