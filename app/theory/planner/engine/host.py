"""Offload: what crosses the host link, and the update on the CPU (F57).

Figures are typical of a server with eight GPUs, one direction and per GPU; real hosts differ by a factor of two.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.hardware import LINKS
from app.theory.planner.engine.memory import StageMemory, updated_parameters
from app.theory.planner.engine.plan import Plan


@dataclass(frozen=True)
class Host:
    """One GPU's share of its host."""

    link_bytes_per_second: float
    memory_bytes_per_second: float
    file_bytes_per_second: float


# PCIe reaches about 80 % of its rate; eight GPUs share some 200 GB/s of memory and a few fast drives.
TYPICAL = Host(0.8 * LINKS["pcie-4-x16"].bytes_per_second, 25e9, 3e9)
UPDATE_PASSES = 2.0  # optimizer state is read and written back


def offload_seconds(plan: Plan, memory: StageMemory, host: Host = TYPICAL) -> tuple[float, float]:
    """(transfers, update) seconds per step on one rank; zero without offload.

    Gradients go down and updated weights come up, sharded; with all state away the weights also come up for every
    forward and backward. Source: Ren et al. 2021 (ZeRO-Offload), section 4; Rajbhandari et al. 2021 (ZeRO-Infinity).
    """
    offload = plan.training.offload
    if offload == "none":
        return 0.0, 0.0
    mine = updated_parameters(plan, memory.held)
    fetches = 2 * plan.micro_batches if offload == "all" else 0
    moved = mine * plan.compute_bytes * (2 + fetches)
    state = mine * plan.optimizer_bytes * UPDATE_PASSES
    update = state / host.memory_bytes_per_second
    if offload == "file":
        update = max(update, state / host.file_bytes_per_second)
    return moved / host.link_bytes_per_second, update
