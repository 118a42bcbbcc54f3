"""How fast one process trains a small GPT, how much of its machine's peak that is, and what it waits for.

FLOPs are counted as the products are dispatched, forward and backward: what the model needs, and what is done with
recomputation. Over the time of a step and over the peak, the rate of one large product on this machine, they are MFU
and HFU (Chowdhery et al. 2022, PaLM, section 4.1 and appendix B).

A step has to have its data. A loader that takes d seconds for a batch adds d to every step that asks only when it needs
it. One that works ahead, behind a step of c seconds, adds what is left of d: max(0, d − c).
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from labs.data import draw_passages, load_text
from labs.model import GPT, build_model, write_attention_out
from labs.programs.running import Bench
from labs.spec import SpeedOptions

_PEAK_SIDE = 1024
_PEAK_REPEATS = 5


def measure(options: SpeedOptions, bench: Bench) -> dict[str, float]:
    """FLOPs of a step, the peak, steps at every batch without a loader, then steps with it."""
    if bench.device.type == "cpu":
        torch.set_num_threads(1)  # as in a run of many ranks; the peak is one thread's, too
    needed, done = flops_of_a_step(options, "none"), flops_of_a_step(options, options.recompute)
    peak = _peak(bench)
    training = Training.of(options, bench)
    seconds: dict[int, float] = {}
    for batch in sorted({1, options.batch, *options.batches}):
        seconds[batch] = bench.seconds(partial(training.step_of, batch), options.steps // 2 + 1)
        bench.point("rate", "model FLOPs", batch, needed * batch / options.batch / seconds[batch])
        bench.point("rate", "FLOPs done", batch, done * batch / options.batch / seconds[batch])
    waits, works = _steps_with_loader(options, bench, training)
    waiting, computing = statistics.median(waits[1:]), statistics.median(works[1:])
    return {
        "model_flops_per_step": needed,
        "hardware_flops_per_step": done,
        "mfu": needed / seconds[options.batch] / peak,
        "hfu": done / seconds[options.batch] / peak,
        "compute_seconds": computing,
        "waiting_seconds": waiting,
        "busy_share": computing / (computing + waiting),
        "single_share": seconds[options.batch] / (options.batch * seconds[1]),
        "peak_flops_per_second": peak,
    }


@dataclass(frozen=True)
class Training:
    """A model, its optimizer, and the text it reads."""

    options: SpeedOptions
    model: GPT
    optimizer: torch.optim.Optimizer
    text: Tensor
    device: torch.device
    seed: int

    @staticmethod
    def of(options: SpeedOptions, bench: Bench) -> Training:
        model = build_model(options.model, options.sequence, bench.seed).to(bench.device)
        if options.recompute == "full":
            _recompute(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return Training(options, model, optimizer, load_text(), bench.device, bench.seed)

    def batch(self, sequences: int, step: int = 0) -> Tensor:
        """(sequences, sequence + 1) tokens on the device."""
        return draw_passages(self.text, self.options.sequence, sequences, (self.seed, step)).to(self.device)

    def step_of(self, sequences: int) -> None:
        self.step(self.batch(sequences))

    def step(self, passages: Tensor) -> None:
        self.optimizer.zero_grad()
        _loss(self.model, passages).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def _loss(model: nn.Module, passages: Tensor) -> Tensor:
    loss: Tensor = model(passages[:, :-1].long(), passages[:, 1:].long())
    return loss


def _recompute(model: GPT) -> None:
    """Have every layer keep its input alone, and run forward again when backward comes to it."""
    for block in model.blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def flops_of_a_step(options: SpeedOptions, recompute: str) -> float:
    """FLOPs of the products of forward and backward, counted as they are dispatched, recomputed ones as well. With
    attention written out, for fused kernels say nothing of what they do."""
    model = build_model(options.model, options.sequence, seed=0)
    write_attention_out(model)
    if recompute == "full":
        _recompute(model)
    with FlopCounterMode(display=False) as counter:
        _loss(model, torch.zeros(options.batch, options.sequence + 1, dtype=torch.uint8)).backward()  # type: ignore[no-untyped-call]
    return float(counter.get_total_flops())


def _peak(bench: Bench) -> float:
    """FLOP/s of a large fp32 product."""
    left, right = (torch.randn(_PEAK_SIDE, _PEAK_SIDE, device=bench.device) for _ in range(2))
    return 2.0 * _PEAK_SIDE**3 / bench.seconds(lambda: left @ right, _PEAK_REPEATS)


# --- what a step waits for


def _steps_with_loader(options: SpeedOptions, bench: Bench, training: Training) -> tuple[list[float], list[float]]:
    """Seconds that each step waited for its data, and that it computed."""
    waits, works = list[float](), list[float]()
    with _loader(options, training) as load:
        for step in range(1, options.steps + 1):
            began = time.perf_counter()
            passages = load()
            loaded = time.perf_counter()
            works.append(bench.seconds_once(partial(training.step, passages)))
            waits.append(loaded - began)
            bench.point("step", "waiting for data", step, waits[-1])
            bench.point("step", "computing", step, works[-1])
    return waits, works


@contextmanager
def _loader(options: SpeedOptions, training: Training) -> Iterator[Callable[[], Tensor]]:
    """What gives the next batch: now, or, with `prefetch`, from a thread that is one batch ahead."""

    def load(step: int) -> Tensor:
        time.sleep(options.loader_seconds)
        return training.batch(options.batch, step)

    if not options.prefetch:
        steps = iter(range(1, options.steps + 1))
        yield lambda: load(next(steps))
        return
    ready: queue.Queue[Tensor] = queue.Queue(maxsize=1)

    def work_ahead() -> None:
        for step in range(1, options.steps + 1):
            ready.put(load(step))

    threading.Thread(target=work_ahead, daemon=True).start()
    yield ready.get
