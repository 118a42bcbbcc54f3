"""A verdict in words: what its checks and its mistake are called, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable

from app.codelabs.shown import MistakeWords, ShownCheck, ShownVerdict
from app.content.code_labs import CodeLab
from labs.spec.code import Check, Verdict

# Mistakes that any lab can show; those of one lab have their words in its folder.
SHARED: dict[str, tuple[str, str]] = {
    "crash": ("The program failed", "A rank raised an error. Its line and message stand with the verdict."),
    "wrong-order": ("Calls in another order", "Every rank must make the calls of a group in the same order."),
    "missing-call": (
        "A call that not every rank makes",
        "A collective is over when every rank of its group called it.",
    ),
    "wrong-dtype": ("Tensors of different types meet", "All ranks must hand the same dtype to a call."),
    "wrong-shape": ("Tensors of different sizes meet", "What is sent must be as long as what is received."),
    "wrong-root": ("Different roots", "All ranks must name the same root."),
    "wrong-reduction": ("Different reductions", "All ranks must ask for the same reduction."),
    "endless-loop": ("It never ends", "A rank was still computing when its time was over."),
    "everyone-sends-first": (
        "Everyone sends first",
        "A send is over when its receive has been called: somebody must receive first.",
    ),
    "everyone-receives-first": ("Everyone receives first", "Nobody is left to send: somebody must send first."),
    "messages-do-not-meet": ("Messages that do not meet", "A rank waits for one that waits for somebody else."),
    "missing-message": (
        "A message that never comes",
        "A rank waits for a message that nobody sends, or sends one that nobody takes.",
    ),
    "syntax-error": ("Not Python", "The file cannot be read as a program."),
    "wrong-signature": ("Another signature", "Keep the names and parameters of the starter."),
    "unreadable": ("Not a file we can judge", "It is too long, or not a text."),
    "forged": (
        "It spoke past torch.distributed",
        "The verdict goes by what the judge carried from rank to rank; what pretends to be more is not believed.",
    ),
}


def verdict_in_words(verdict: Verdict, lab: CodeLab) -> ShownVerdict:
    """The verdict with words for its checks and its mistake."""
    return ShownVerdict(
        lab=verdict.lab,
        passed=verdict.passed,
        score=verdict.score,
        checks=checks_in_words(verdict.checks, lab),
        mistake=verdict.mistake,
        autopsy=verdict.autopsy,
        error=verdict.error,
        seed=verdict.seed,
        mode=verdict.mode,
        seconds=verdict.seconds,
        mistake_says=mistake_in_words(verdict.mistake, lab),
    )


def checks_in_words(checks: Iterable[Check], lab: CodeLab) -> tuple[ShownCheck, ...]:
    """Checks with what each of them is called."""
    said = {check.id: check.says for check in lab.head.checks}
    return tuple(ShownCheck(**dict(check), title=said.get(check.name, "Every rank returns")) for check in checks)


def mistake_in_words(name: str | None, lab: CodeLab) -> MistakeWords | None:
    """Title, words and cure of a mistake."""
    if name is None:
        return None
    own = lab.head.mistakes.get(name)
    if own is not None:
        return MistakeWords(title=own.title, says=own.says, cure=own.cure)
    title, says = SHARED[name]
    return MistakeWords(title=title, says=says, cure=None)
