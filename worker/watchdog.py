"""Whether a warm start hangs. A fork of a process with as much in it as torch may: then it is started anew.

Only until the ranks have done something: later than that, a rank that hangs is found by its pulse (worker.pulses).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from labs.spec import RunSpec
from labs.spec.events import Event, MeasurementEvent, PhaseEvent, StepEvent
from labs.spec.limits import approximate_parameters
from worker.launcher import Launch

LOADING_SECONDS = 90.0  # of the host, from a cold disk
FIRST_STEP_SECONDS = 20.0  # beside the arithmetic: a warm start takes half a second
_SLOWEST_FLOPS_PER_SECOND = 1e9  # of all ranks together


class Watchdog:
    """Of one launch."""

    def __init__(self, spec: RunSpec, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._since = clock, clock()
        self._is_program = spec.options is not None
        self._is_forked = False
        self._seconds = FIRST_STEP_SECONDS
        if not self._is_program:
            parameters = approximate_parameters(spec.model, spec.training.sequence)
            self._seconds += 6 * parameters * spec.tokens_per_step / _SLOWEST_FLOPS_PER_SECOND

    def has_worked(self, seen: Iterable[Event]) -> bool:
        """Whether the ranks have got as far as doing what they are for."""
        return any(
            isinstance(event, StepEvent | MeasurementEvent)
            or (isinstance(event, PhaseEvent) and (event.phase in ("failed", "finished") or self._is_running(event)))
            for event in seen
        )

    def _is_running(self, event: PhaseEvent) -> bool:
        return self._is_program and event.phase == "running"

    def hangs(self, launched: Launch, seen: Iterable[Event]) -> bool:
        """Whether too long has passed since it was started, without any work."""
        if not self._is_forked and launched.process.pid is not None:
            self._is_forked, self._since = True, self._clock()
        waited = self._clock() - self._since
        return waited > (self._seconds if self._is_forked else LOADING_SECONDS) and not self.has_worked(seen)
