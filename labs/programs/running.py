"""What every rank of a program does: join the others, measure, report."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist

from labs.joining import choose_device, circumstances, join, joining
from labs.probes.report import Reporter
from labs.probes.timeline import Span, report_spans
from labs.spec import Options, RunSpec
from labs.spec.events import MeasurementEvent, ResultEvent

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Bench:
    """Where a program measures: this rank's device, its place among the others, and where points are written down."""

    def __init__(self, options: Options, reporter: Reporter, device: torch.device, seed: int) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.device, self.seed = device, seed
        self._options, self._reporter = options, reporter

    def point(self, figure: str, name: str, x: float, y: float) -> None:
        """One point of the series `name` in one of the program's figures. Raises KeyError for an unknown figure."""
        unit = self._options.figures[figure].y_unit
        self._reporter.emit(MeasurementEvent, name, x, y, unit, figure)

    def spans(self, step: int, spans: Iterable[Span]) -> None:
        """What this rank did in a step, for the timeline."""
        report_spans(self._reporter, step, spans)

    def point_of_all(self, figure: str, name: str, x: float, y: float) -> None:
        """A point that every rank found alike: rank 0 speaks for them all."""
        if self.rank == 0:
            self.point(figure, name, x, y)

    def say(self, line: str) -> None:
        """A line of the run's log, from rank 0."""
        if self.rank == 0:
            self._reporter.log("stdout", line)

    def seconds(self, work: Callable[[], Any], repeats: int) -> float:
        """The fastest of `repeats` after one to warm up: what disturbs a measurement only ever adds to it."""
        work()
        return min(self._once(work) for _ in range(repeats))

    def seconds_together(self, work: Callable[[], Any], repeats: int) -> float:
        """The same of work that ranks do together: all begin at once, and the slowest counts. Collective."""
        work()
        times = []
        for _ in range(repeats):
            dist.barrier()
            times.append(self._once(work))
        return min(self.largest(times))

    def largest(self, values: Sequence[float]) -> list[float]:
        """Each of `values` (as many on every rank) as it is on the rank where it is largest. Collective."""
        found = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.tolist()

    def seconds_once(self, work: Callable[[], Any]) -> float:
        """How long `work` takes this time."""
        return self._once(work)

    def _once(self, work: Callable[[], Any]) -> float:
        self._wait()
        started = time.perf_counter()
        work()
        self._wait()
        return time.perf_counter() - started

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def run_program(spec: RunSpec, reporter: Reporter) -> None:
    """Measure what `spec.options` ask for, together with the other ranks. Raises whatever goes wrong."""
    assert spec.options is not None
    device = choose_device(spec)
    reporter.phase("starting", joining(spec.parallel.world_size))
    join(device)
    torch.manual_seed(spec.training.seed)
    measure = importlib.import_module(f"labs.programs.{spec.program}").measure
    reporter.phase("ready")
    bench = Bench(spec.options, reporter, device, spec.training.seed)
    reporter.phase("running", "measuring")
    quantities: dict[str, float] = measure(spec.options, bench)
    reporter.emit(ResultEvent, {"program": spec.program, **asdict(circumstances(device)), **quantities})
    dist.barrier()  # no rank leaves while another may still need it
    reporter.phase("finished")
