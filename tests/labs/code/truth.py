"""Every program of the labs' content before the judge.

`python -m tests.labs.code.truth [CL01 ...]` prints what each came to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.content.catalogue import catalogue
from app.content.code_labs import CodeLab
from labs.code.grading import judge
from labs.code.sandbox import Pool
from labs.spec.code import Submission, Verdict


@dataclass(frozen=True)
class Program:
    """A program of a lab, and the name of the mistake it makes; None for one that is right."""

    lab: str
    name: str
    code: str
    mistake: str | None
    also: tuple[str, ...] | None = None  # that it shows besides, where it is a program to read

    def holds(self, verdict: Verdict) -> bool:
        """Whether it was judged as what it is."""
        if self.mistake is None:
            return verdict.passed
        beside = set(verdict.shows) - {self.mistake}
        is_told = self.also is None or beside <= set(self.also)
        return not verdict.passed and verdict.mistake == self.mistake and is_told


def programs(lab: CodeLab) -> Iterator[Program]:
    yield Program(lab.id, "reference", lab.reference, None)
    yield from (Program(lab.id, f"right/{each.name}", each.code, None) for each in lab.right)
    yield from (Program(lab.id, f"wrong/{each.name}", each.code, each.says, each.also) for each in lab.wrong)
    if (puzzle := lab.puzzle) is not None:
        yield Program(lab.id, "puzzle", puzzle.program(puzzle.head.right), None)
        for wrong in puzzle.head.wrong:
            yield Program(lab.id, f"puzzle {' '.join(wrong.arranged)}", puzzle.program(wrong.arranged), wrong.mistake)


def verdict_of(program: Program, pool: Pool, seed: int | None = None) -> Verdict:
    return judge(Submission(lab=program.lab, code=program.code, seed=seed), pool, lambda _: None)


def main(labs: Iterable[str]) -> int:
    pool, missed = Pool(), 0
    wanted = set(labs)
    try:
        for lab in catalogue().labs.values():
            for program in programs(lab) if not wanted or lab.id in wanted else ():
                verdict = verdict_of(program, pool)
                holds = program.holds(verdict)
                missed += not holds
                says = "passed" if verdict.passed else verdict.mistake
                sys.stdout.write(
                    f"{'ok' if holds else 'MISSED':7} {program.lab} {program.name:32} {says}  {verdict.seconds:.1f} s\n"
                )
                if not holds:
                    _explain(verdict)
    finally:
        pool.end()
    return missed


def _explain(verdict: Verdict) -> None:
    for check in verdict.checks:
        if not check.passed:
            sys.stdout.write(f"        {check.name} on {check.ranks}: expected {check.expected}; seen {check.seen}\n")
    for line in verdict.error.traceback if verdict.error else ():
        sys.stdout.write(f"        {line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
