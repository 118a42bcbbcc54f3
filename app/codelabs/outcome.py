"""What a program comes to where it is one task among others: in an interview. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.codelabs.models import ENDED, CodeSubmission
from app.codelabs.shown import ShownCheck
from app.codelabs.words import checks_in_words, mistake_in_words
from app.content.code_labs import FINISHES, CodeLab
from app.grading.levels import percent
from labs.spec.code import Check, CodeError, Verdict

PUZZLE_SHARE = 0.5  # what putting a program together counts of what writing it counts
SIZES = 3  # numbers of ranks that a submission is judged on: 2, 3 and 4
BESIDE_A_WRONG_RESULT = 0.5  # what a check counts where the lab's first, its result, failed


@dataclass(frozen=True)
class Outcome:
    """`share` of the lab's own checks that held, 0 to 1; `checks` by what they are called, whether each held on every
    number of ranks. `why_not` says why there is no verdict, where there is none; nothing is said before it `ended`."""

    ended: bool
    share: float = 0.0
    checks: tuple[tuple[str, bool], ...] = ()
    mistake: str = ""
    says: str = ""
    cure: str | None = None
    why_not: str = ""


def outcome(row: CodeSubmission, lab: CodeLab) -> Outcome:
    """Where a submission stands, and what it is worth."""
    if row.status not in ENDED:
        return Outcome(False)
    if row.verdict is None:
        return Outcome(True, why_not=row.detail or "It was taken back before it was judged.")
    verdict = Verdict.model_validate(row.verdict)
    mistake = mistake_in_words(verdict.mistake, lab)
    titled = checks_in_words(verdict.checks, lab)
    names = dict.fromkeys(each.title for each in titled)
    checks = tuple(_held([each for each in titled if each.title == name]) for name in names)
    share, raised = share_of(verdict, lab), _raised(verdict.error)
    if mistake is None:
        return Outcome(True, share, checks, "", raised)
    says = raised if verdict.mistake == "crash" and raised else " ".join(filter(None, (mistake.says, raised)))
    return Outcome(True, share, checks, mistake.title, says, mistake.cure)


def _held(checks: Sequence[ShownCheck]) -> tuple[str, bool]:
    """A check by what it is called, and whether it held on every number of ranks. One that nothing was there for says
    so."""
    failed = [each for each in checks if not each.passed]
    beside = f" ({failed[0].seen})" if failed and not any(each.expected for each in failed) else ""
    if failed and (share := sum(map(_share_held, checks)) / SIZES):
        beside = f" (in {percent(share)} % of the cases)"
    return checks[0].title + beside, not failed


def _raised(error: CodeError | None) -> str:
    """An error with where it was raised."""
    if error is None:
        return ""
    rank = f" on rank {error.rank}" if error.rank is not None else ""
    line = f"Line {error.line}" if error.line else "The program"
    return f"{line} raised {error.type}{rank}: {error.message.rstrip('.')}."


def share_of(verdict: Verdict, lab: CodeLab) -> float:
    """The share of a lab's own checks that held. The first, the result, counts by the cases in which it is right. What
    else is looked at is how it was made: it holds on every number of ranks or not at all, for on two every way costs
    the same; beside a wrong result it counts half, for a program that does nothing sends few bytes. That a program
    returns is worth nothing."""
    if verdict.passed:
        return 1.0
    result, *others = [check.id for check in lab.head.checks]
    right = _mean_held([each for each in verdict.checks if each.name == result])
    beside = BESIDE_A_WRONG_RESULT + (1 - BESIDE_A_WRONG_RESULT) * right
    held = right
    for name in others:
        checks = [each for each in verdict.checks if each.name == name and name != FINISHES]
        held += 0.0 if any(_fails(each) for each in checks) else beside * _mean_held(checks)
    return round(held / (1 + len(others)), 4)


def _mean_held(checks: Sequence[Check]) -> float:
    return sum(map(_share_held, checks)) / SIZES


def _fails(check: Check) -> bool:
    """Whether it was looked at in a run that ended, and did not hold."""
    return not check.passed and bool(check.expected)


def _share_held(check: Check) -> float:
    return 1.0 if check.passed else check.held
