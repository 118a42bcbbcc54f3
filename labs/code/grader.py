"""What a lab's grader says: what goes in, what must come out, and which mistake a run shows.

A grader stands outside of every sandbox. It makes the cases from a seed, so that it knows the inputs of all ranks and
what one process would compute from them; looks at the record of the run afterwards; and names a mistake by what the run
did. `ring_all_reduce` is the smallest model. A new lab is one module here with a `GRADER`, one in `inside/tasks/` that
calls the learner's function, and its content in `cards/labs/`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from labs.code.record import Call, Record
from labs.code.running import Outcome
from labs.spec.code import Check


class Draw:
    """Random inputs of one seed. Everything in fp64: what is compared there is wrong, or right."""

    def __init__(self, seed: int, ranks: int) -> None:
        self.seed = seed
        self._random = random.Random(f"{seed} {ranks}")  # noqa: S311 - the seed is the secret
        self._generator = torch.Generator().manual_seed(self._random.getrandbits(62))

    def integer(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def choice(self, options: Sequence[Any]) -> Any:
        return self._random.choice(options)

    def tensor(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator, dtype=torch.float64)

    def integers(self, below: int, *shape: int) -> Tensor:
        return torch.randint(below, shape, generator=self._generator)


@dataclass(frozen=True)
class Case:
    """One call of the learner's code: the inputs by rank; what must come out, which never leaves the judge; and what is
    kept back until a rank asks for it, by name and rank."""

    inputs: Sequence[Mapping[str, Any]]
    expected: Any
    gates: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class Judged:
    """A run on so many ranks with what was found in it."""

    ranks: int
    cases: Sequence[Case]
    outcome: Outcome
    checks: Sequence[Check]

    @property
    def record(self) -> Record:
        return self.outcome.record

    @property
    def hang(self) -> str | None:
        """The kind of the autopsy, if the run never ended."""
        return self.outcome.autopsy.kind if self.outcome.autopsy else None

    def failed(self, name: str) -> bool:
        """Whether the run ended and this check failed."""
        return self.outcome.record.finished and any(each.name == name and not each.passed for each in self.checks)

    def results(self, name: str) -> Iterator[tuple[Case, int, Any]]:
        """What came out under `name`: the case, the rank, the value (None where there is none)."""
        for index, case in enumerate(self.cases):
            for rank in range(self.ranks):
                yield case, rank, self.record.results.get((index, rank, name))

    def calls(self, *operations: str) -> Iterator[tuple[Case, Call]]:
        """The calls of these operations, of all if none is given, each with its case."""
        for call in self.record.calls:
            if not operations or call.operation in operations:
                yield self.cases[call.case], call


@dataclass(frozen=True)
class Sign:
    """A mistake's name, and how it shows in the runs of a submission, those on the fewest ranks first."""

    mistake: str
    shows: Callable[[Sequence[Judged]], bool]


class Grader(ABC):
    """Of one lab. `checks_named` are the names of its checks in the order in which they are shown."""

    lab: ClassVar[str]
    task: ClassVar[str]
    checks_named: ClassVar[tuple[str, ...]]
    signs: ClassVar[tuple[Sign, ...]]  # the first that shows is the mistake
    ranks: ClassVar[tuple[int, ...]] = (2, 3, 4)
    visible_ranks: ClassVar[tuple[int, ...]] = (2, 3)
    deadline_seconds: ClassVar[float] = 10.0
    with_optimizers: ClassVar[bool] = (
        False  # whether ranks make optimizers of torch.optim, or begin backward passes from a gradient
    )

    @abstractmethod
    def cases(self, ranks: int, draw: Draw) -> Sequence[Case]:
        """The cases of a run on so many ranks."""

    @abstractmethod
    def check(self, ranks: int, cases: Sequence[Case], record: Record) -> Iterator[Check]:
        """Every check of `checks_named` on a run that has ended, in that order."""

    def mistake(self, runs: Sequence[Judged]) -> str | None:
        """The name of the mistake that the runs show; None where none of this lab's does."""
        return next((sign.mistake for sign in self.signs if sign.shows(runs)), None)
