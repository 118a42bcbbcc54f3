"""The schedules one may ask for: the passes of every rank, and which chunk of the model lies on which rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from app.theory.pipeline import orders
from app.theory.pipeline.orders import Plan
from app.theory.pipeline.passes import Order, Pass
from labs.spec import SCHEDULE_RULES, ScheduleRule, SpecError, Violation, schedule_violations

MAX_PASSES = 300_000  # more would hold the process that asks for seconds
_MOST = MAX_PASSES // 3  # times every micro-batch passes a chunk, which takes three passes at most


_PASSES: Mapping[str, Callable[[Plan], Iterable[Pass]]] = {
    "gpipe": orders.gpipe,
    "1f1b": orders.one_f_one_b,
    "interleaved": orders.interleaved,
    "zero-bubble": orders.zero_bubble,
    "looped-bfs": orders.looped_bfs,
    "zbv": orders.zbv,
    "dualpipev": orders.dualpipev,
}
SCHEDULES = tuple(SCHEDULE_RULES)


def chunk_of(schedule: str, rank: int, stages: int, virtual_stages: int = 1) -> tuple[int, ...]:
    """The chunks `rank` holds, in the order of the model: round-robin, or in a V that ends on the rank it began on.

    Raises SpecError for a combination the schedule does not take.
    Source: Narayanan et al. 2021 (Megatron-LM), section 2.2; the V: Qi et al. 2023, section 6.
    """
    found = schedule_violations(schedule, stages, None, virtual_stages) or _too_many(stages, virtual_stages, 1)
    if not found and not 0 <= rank < stages:
        found.append(Violation("rank", rank, "There is no such rank.", f"0 to {stages - 1}"))
    if found:
        raise SpecError(found)
    return _held(SCHEDULE_RULES[schedule], rank, stages, virtual_stages)


def order(schedule: str, stages: int, micro_batches: int, virtual_stages: int = 1) -> Order:
    """For every rank, its passes of one step in the order it runs them. `virtual_stages` are chunks per rank.

    Raises SpecError for a combination the schedule does not take, and for more than `MAX_PASSES` passes.
    Source: Huang et al. 2019 (`gpipe`), Narayanan et al. 2021 (`1f1b`, `interleaved`), Qi et al. 2023 (`zero-bubble`,
    which is ZB-H1 with one chunk a rank, and `zbv`), Lamy-Poirier 2022 (`looped-bfs`), DeepSeek-AI 2024 (`dualpipev`,
    whose overlapped pairs are written one after the other).
    """
    found = schedule_violations(schedule, stages, micro_batches, virtual_stages)
    found = found or _too_many(stages, virtual_stages, micro_batches)
    if found:
        raise SpecError(found)
    rule, passes = SCHEDULE_RULES[schedule], _PASSES[schedule]
    plans = (Plan(rank, stages, micro_batches, _held(rule, rank, stages, virtual_stages)) for rank in range(stages))
    return tuple(tuple(passes(plan)) for plan in plans)


def _held(rule: ScheduleRule, rank: int, stages: int, virtual_stages: int) -> tuple[int, ...]:
    if rule.v_shaped:
        return rank, 2 * stages - 1 - rank
    return tuple(range(rank, stages * virtual_stages, stages))


def _too_many(stages: int, virtual_stages: int, micro_batches: int) -> list[Violation]:
    if stages * virtual_stages > _MOST:
        message = "These are more chunks than a page can wait for."
        return [Violation("stages", stages, message, f"stages × virtual_stages up to {_MOST:,}")]
    if stages * virtual_stages * micro_batches > _MOST:
        message = "This makes more passes than a page can wait for."
        accepted = f"stages × virtual_stages × micro_batches up to {_MOST:,}"
        return [Violation("micro_batches", micro_batches, message, accepted)]
    return []
