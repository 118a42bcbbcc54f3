"""The schedules one may ask for, which combinations they take, and which chunk of the model lies on which rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from app.theory.pipeline import orders
from app.theory.pipeline.orders import Plan
from app.theory.pipeline.passes import Order, Pass
from labs.spec import SpecError, Violation

MAX_PASSES = 300_000  # more would hold the process that asks for seconds
_MOST = MAX_PASSES // 3  # times every micro-batch passes a chunk, which takes three passes at most


@dataclass(frozen=True)
class _Schedule:
    """How a schedule orders its passes and which combinations it takes."""

    passes: Callable[[Plan], Iterable[Pass]]
    least_chunks: int = 1
    most_chunks: int | None = None  # None: any number
    v_shaped: bool = False  # otherwise chunks go round the ranks
    in_rounds: bool = False  # with several chunks, micro-batches move in groups of as many as there are stages
    least_micro_batches_per_stage: int = 0

    @property
    def accepted_chunks(self) -> str:
        if self.least_chunks == self.most_chunks:
            return str(self.least_chunks)
        return (
            f"{self.least_chunks} or more" if self.most_chunks is None else f"{self.least_chunks} to {self.most_chunks}"
        )


_SCHEDULES: Mapping[str, _Schedule] = {
    "gpipe": _Schedule(orders.gpipe, most_chunks=1),
    "1f1b": _Schedule(orders.one_f_one_b, most_chunks=1),
    "interleaved": _Schedule(orders.interleaved, least_chunks=2, in_rounds=True),
    "zero-bubble": _Schedule(orders.zero_bubble, in_rounds=True),
    "looped-bfs": _Schedule(orders.looped_bfs),
    "zbv": _Schedule(orders.zbv, least_chunks=2, most_chunks=2, v_shaped=True),
    "dualpipev": _Schedule(
        orders.dualpipev, least_chunks=2, most_chunks=2, v_shaped=True, least_micro_batches_per_stage=2
    ),
}
SCHEDULES = tuple(_SCHEDULES)


def chunk_of(schedule: str, rank: int, stages: int, virtual_stages: int = 1) -> tuple[int, ...]:
    """The chunks `rank` holds, in the order of the model: round-robin, or in a V that ends on the rank it began on.

    Raises SpecError for a combination the schedule does not take.
    Source: Narayanan et al. 2021 (Megatron-LM), section 2.2; the V: Qi et al. 2023, section 6.
    """
    violations = _placement_violations(schedule, stages, virtual_stages)
    if not violations and not 0 <= rank < stages:
        violations.append(Violation("rank", rank, "There is no such rank.", f"0 to {stages - 1}"))
    if violations:
        raise SpecError(violations)
    return _held(_SCHEDULES[schedule], rank, stages, virtual_stages)


def order(schedule: str, stages: int, micro_batches: int, virtual_stages: int = 1) -> Order:
    """For every rank, its passes of one step in the order it runs them. `virtual_stages` are chunks per rank.

    Raises SpecError for a combination the schedule does not take, and for more than `MAX_PASSES` passes.
    Source: Huang et al. 2019 (`gpipe`), Narayanan et al. 2021 (`1f1b`, `interleaved`), Qi et al. 2023 (`zero-bubble`,
    which is ZB-H1 with one chunk a rank, and `zbv`), Lamy-Poirier 2022 (`looped-bfs`), DeepSeek-AI 2024 (`dualpipev`,
    whose overlapped pairs are written one after the other).
    """
    violations = _placement_violations(schedule, stages, virtual_stages)
    violations = violations or _micro_batch_violations(schedule, stages, micro_batches, virtual_stages)
    if violations:
        raise SpecError(violations)
    rule = _SCHEDULES[schedule]
    plans = (Plan(rank, stages, micro_batches, _held(rule, rank, stages, virtual_stages)) for rank in range(stages))
    return tuple(tuple(rule.passes(plan)) for plan in plans)


def _held(rule: _Schedule, rank: int, stages: int, virtual_stages: int) -> tuple[int, ...]:
    if rule.v_shaped:
        return rank, 2 * stages - 1 - rank
    return tuple(range(rank, stages * virtual_stages, stages))


def _placement_violations(schedule: str, stages: int, virtual_stages: int) -> list[Violation]:
    rule = _SCHEDULES.get(schedule)
    if rule is None:
        return [Violation("schedule", schedule, f"{schedule!r} is no schedule.", ", ".join(SCHEDULES))]
    found = []
    if stages < 1:
        found.append(Violation("stages", stages, "A pipeline has stages.", "1 or more"))
    if virtual_stages < rule.least_chunks or virtual_stages > (rule.most_chunks or virtual_stages):
        message = f"{schedule} does not run with {virtual_stages} chunks a rank."
        found.append(Violation("virtual_stages", virtual_stages, message, rule.accepted_chunks))
    if not found and stages * virtual_stages > _MOST:
        message = "These are more chunks than a page can wait for."
        found.append(Violation("stages", stages, message, f"stages × virtual_stages up to {_MOST:,}"))
    return found


def _micro_batch_violations(schedule: str, stages: int, micro_batches: int, virtual_stages: int) -> list[Violation]:
    rule = _SCHEDULES[schedule]
    least = max(1, rule.least_micro_batches_per_stage * stages)
    if micro_batches < least:
        message = f"{schedule} needs {least} micro-batches for {stages} stages."
        return [Violation("micro_batches", micro_batches, message, f"{least} or more")]
    if rule.in_rounds and virtual_stages > 1 and micro_batches % stages:
        message = f"With several chunks a rank, {schedule} moves micro-batches in groups of {stages}."
        return [Violation("micro_batches", micro_batches, message, f"multiples of {stages}")]
    if stages * virtual_stages * micro_batches > _MOST:
        message = "This makes more passes than a page can wait for."
        accepted = f"stages × virtual_stages × micro_batches up to {_MOST:,}"
        return [Violation("micro_batches", micro_batches, message, accepted)]
    return []
