"""What each pipeline schedule takes: the one table of its rules, and the one check of them.

Training runs, the program that measures schedules, plans, the simulator and the diagrams all ask `violations`. The
rules are the schedules' own, as their papers have them and torch, our simulator and our labs run them: Huang et al.
2019 (GPipe), Narayanan et al. 2021 (1F1B and interleaved, section 2.2), Lamy-Poirier 2022 (looped BFS), Qi et al. 2023
(zero bubble, ZB-V in section 6), DeepSeek-AI 2024 (DualPipe-V).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Literal

from labs.violations import Violation

Schedule = Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "looped-bfs", "zbv", "dualpipev"]
UNSCHEDULED: Schedule = "1f1b"  # what a plan without a pipeline says


@dataclass(frozen=True)
class ScheduleRule:
    """Virtual stages are the chunks of the model that every rank holds; `most_virtual_stages` None is any number.

    v_shaped: a rank holds the chunk on the way down and the one on the way back; otherwise chunks go round the ranks.
    in_rounds: with several chunks a rank, micro-batches move in groups of as many as there are ranks.
    least_micro_batches_a_rank: so many times the ranks are needed to fill the pipeline from both ends.
    """

    least_virtual_stages: int = 1
    most_virtual_stages: int | None = None
    v_shaped: bool = False
    in_rounds: bool = False
    least_micro_batches_a_rank: int = 0

    @property
    def accepted_virtual_stages(self) -> str:
        least, most = self.least_virtual_stages, self.most_virtual_stages
        if most is None:
            return f"{least} or more"
        return str(least) if least == most else f"{least} to {most}"

    def least_micro_batches(self, stages: int) -> int:
        """How many micro-batches a step on `stages` ranks needs."""
        return max(1, self.least_micro_batches_a_rank * stages)

    def micro_batches_come_in(self, stages: int, virtual_stages: int) -> int:
        """The number of which a step's micro-batches are a multiple."""
        return stages if self.in_rounds and virtual_stages > 1 else 1


SCHEDULE_RULES: Mapping[str, ScheduleRule] = {
    "gpipe": ScheduleRule(most_virtual_stages=1),
    "1f1b": ScheduleRule(most_virtual_stages=1),
    "interleaved": ScheduleRule(least_virtual_stages=2, in_rounds=True),
    "zero-bubble": ScheduleRule(in_rounds=True),  # with one chunk a rank it is ZB-H1
    "looped-bfs": ScheduleRule(),
    "zbv": ScheduleRule(least_virtual_stages=2, most_virtual_stages=2, v_shaped=True),
    "dualpipev": ScheduleRule(
        least_virtual_stages=2, most_virtual_stages=2, v_shaped=True, least_micro_batches_a_rank=2
    ),
}
V_SHAPED = tuple(
    name for name, rule in SCHEDULE_RULES.items() if rule.v_shaped
)  # the first rank has the last stage as well


@dataclass(frozen=True)
class ScheduleFields:
    """What whoever asks calls the four things that a schedule's rules are about."""

    schedule: str = "schedule"
    stages: str = "stages"
    virtual_stages: str = "virtual_stages"
    micro_batches: str = "micro_batches"

    def besides(self, field: str) -> tuple[str, ...]:
        return tuple(name for name in astuple(self) if name != field)


def schedule_violations(
    schedule: str,
    stages: int,
    micro_batches: int | None,
    virtual_stages: int,
    fields: ScheduleFields = ScheduleFields(),
    micro_batch_sequences: int = 1,
) -> list[Violation]:
    """Everything that keeps `schedule` from running on so many pipeline ranks; none if it runs.

    `micro_batches` None: as many as suit it. Where `fields.micro_batches` counts sequences, a micro-batch of all ranks
    has `micro_batch_sequences` of them.
    """
    rule = SCHEDULE_RULES.get(schedule)
    if rule is None:
        return [Violation(fields.schedule, schedule, f"{schedule!r} is no schedule.", ", ".join(SCHEDULE_RULES))]
    return list(_broken(rule, schedule, stages, micro_batches, virtual_stages, fields, micro_batch_sequences))


def _broken(
    rule: ScheduleRule,
    schedule: str,
    stages: int,
    micro_batches: int | None,
    virtual_stages: int,
    fields: ScheduleFields,
    sequences: int,
) -> Iterator[Violation]:
    if stages < 1:
        yield Violation(fields.stages, stages, "A pipeline has stages.", "1 or more")
    most = rule.most_virtual_stages or virtual_stages
    if not rule.least_virtual_stages <= virtual_stages <= most:
        message = f"{schedule} does not run with {_counted(virtual_stages, 'virtual stage')} a rank."
        involves = (fields.schedule,)
        yield Violation(fields.virtual_stages, virtual_stages, message, rule.accepted_virtual_stages, involves)
    if micro_batches is None or stages < 1:
        return
    field, given = fields.micro_batches, micro_batches * sequences
    least, together = rule.least_micro_batches(stages), rule.micro_batches_come_in(stages, virtual_stages)
    of_each = f" of {sequences:,} sequences" if sequences > 1 else ""
    if micro_batches < least:
        message = f"{schedule} needs {_counted(least, 'micro-batch', 'es')}{of_each} for {_counted(stages, 'rank')}."
        yield Violation(field, given, message, f"{least * sequences:,} or more", fields.besides(field))
    elif micro_batches % together:
        message = (
            f"With several virtual stages a rank, {schedule} moves micro-batches{of_each} in groups of as many as "
            "there are ranks."
        )
        yield Violation(field, given, message, multiples_near(given, together * sequences), fields.besides(field))


def unscheduled_violations(
    schedule: str, virtual_stages: int, fields: ScheduleFields = ScheduleFields()
) -> Iterator[Violation]:
    """What a plan or a run without a pipeline must not ask for."""
    because = "Without a pipeline there is nothing to schedule or interleave."
    if virtual_stages != 1:
        yield Violation(fields.virtual_stages, virtual_stages, because, "1", (fields.stages,))
    if schedule != UNSCHEDULED:
        yield Violation(fields.schedule, schedule, because, UNSCHEDULED, (fields.stages,))


def multiples_near(value: int, unit: int) -> str:
    """What is accepted where `value` should have been a multiple of `unit`, with the nearest ones."""
    nearest = sorted({max(unit, value // unit * unit), (value // unit + 1) * unit})
    return f"a multiple of {unit:,}, such as {' or '.join(f'{each:,}' for each in nearest)}"


def _counted(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{'' if number == 1 else plural}"
