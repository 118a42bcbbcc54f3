"""A verdict in words: what its checks and its mistake are called, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.content.code_labs import CodeLab
from labs.spec.code import Verdict

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
    "missing-message": ("A message that never comes", "A rank waits for one that has already returned."),
    "syntax-error": ("Not Python", "The file cannot be read as a program."),
    "wrong-signature": ("Another signature", "Keep the names and parameters of the starter."),
    "unreadable": ("Not a file we can judge", "It is too long, or not a text."),
    "forged": (
        "It spoke past torch.distributed",
        "The verdict goes by what the judge carried from rank to rank; what pretends to be more is not believed.",
    ),
}


def verdict_json(verdict: Verdict, lab: CodeLab) -> dict[str, Any]:
    """The verdict with words for its checks and its mistake."""
    found = verdict.model_dump(mode="json", exclude={"ledger", "trace", "beside"})
    found["checks"] = checks_json(found["checks"], lab)
    found["mistake_says"] = mistake_says(verdict.mistake, lab)
    return found


def checks_json(checks: Iterable[dict[str, Any]], lab: CodeLab) -> list[dict[str, Any]]:
    """Checks with what each of them is called."""
    said = {check.id: check.says for check in lab.head.checks}
    return [check | {"title": said.get(check["name"], "Every rank returns")} for check in checks]


def mistake_says(name: str | None, lab: CodeLab) -> dict[str, Any] | None:
    """Title, words and cure of a mistake."""
    if name is None:
        return None
    own = lab.head.mistakes.get(name)
    if own is not None:
        return {"title": own.title, "says": own.says, "cure": own.cure}
    title, says = SHARED[name]
    return {"title": title, "says": says, "cure": None}
