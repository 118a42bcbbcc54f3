"""`rankzero labs`: code labs from one's own editor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.core.errors import DomainError, refused_as_json
from app.core.terminal import say

if TYPE_CHECKING:  # commands import only what they need
    from app.content.code_labs import CodeLab
    from labs.spec.code import Check, Mode, Verdict

labs_app = typer.Typer(no_args_is_help=True, help="Code labs, from your own editor.")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of `rankzero labs new`.")]


@labs_app.command("list")
def list_labs() -> None:
    """Every lab: its id, minutes, title and what you write."""
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above

    for lab in catalogue().labs.values():
        say(f"{lab.id}  {lab.head.minutes:>3} min  {lab.title:32} {lab.head.signature.splitlines()[0]}")


@labs_app.command("new")
def new(
    identity: Annotated[str, typer.Argument(metavar="ID")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder to make.")],
) -> None:
    """A folder with the statement and a starter to write in."""
    from app.codelabs.folder import find_lab, make_folder  # noqa: PLC0415 - see above
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above

    with refused_as_json():
        lab = find_lab(catalogue(), identity)
        make_folder(lab, folder, lab.statement_text)
    say(f"Write in {folder}/solution.py.")
    say(f"`rankzero labs run {folder}` tries it, `rankzero labs submit {folder}` judges it.")


@labs_app.command("run")
def run(folder: Folder) -> None:
    """The visible checks on 2 and 3 ranks, with what your program prints."""
    from app.codelabs.folder import read_folder  # noqa: PLC0415 - see above
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above

    with refused_as_json():
        lab, code = read_folder(catalogue(), folder)
        verdict = _judged(lab, code, "run", None, aloud=True)
    raise typer.Exit(0 if verdict.passed else 1)


@labs_app.command("submit")
def submit(
    folder: Folder,
    proof: Annotated[Path | None, typer.Option(help="Where to write a proof that `verify` can check.")] = None,
) -> None:
    """All checks on 2, 3 and 4 ranks with hidden inputs; the verdict as JSON, exit 0 when passed."""
    from app.codelabs.folder import read_folder  # noqa: PLC0415 - see above
    from app.codelabs.proof import make_proof  # noqa: PLC0415 - see above
    from app.codelabs.words import verdict_in_words  # noqa: PLC0415 - see above
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above

    with refused_as_json():
        lab, code = read_folder(catalogue(), folder)
        verdict = _judged(lab, code, "submit", None, aloud=False)
        if proof is not None:
            proof.write_text(json.dumps(make_proof(lab, code, verdict).model_dump(mode="json"), indent=2) + "\n")
    say(json.dumps(verdict_in_words(verdict, lab).model_dump(mode="json"), indent=2, ensure_ascii=False))
    raise typer.Exit(0 if verdict.passed else 1)


@labs_app.command("verify")
def verify(proof: Annotated[Path, typer.Argument(metavar="PROOF", help="A file of `submit --proof`.")]) -> None:
    """Run a proof's program again with its inputs: exit 0 where verdict and ledger come out the same."""
    from app.codelabs.folder import find_lab  # noqa: PLC0415 - see above
    from app.codelabs.proof import read_proof, same_verdict  # noqa: PLC0415 - see above
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above

    with refused_as_json():
        claimed = read_proof(proof)
        lab = find_lab(catalogue(), claimed.lab)
        again = _judged(lab, claimed.code, "submit", claimed.seed, aloud=False)
        differences = same_verdict(lab, claimed, again)
    say(json.dumps({"lab": lab.id, "verified": not differences, "differences": differences}, indent=2))
    raise typer.Exit(1 if differences else 0)


def _judged(lab: CodeLab, code: str, mode: Mode, seed: int | None, aloud: bool) -> Verdict:
    from app.codelabs.judging import judge  # noqa: PLC0415 - see above
    from labs.spec.code import CheckEvent, OutputEvent, Submission, VerdictEvent  # noqa: PLC0415 - see above

    for event in judge(Submission(lab=lab.id, code=code, mode=mode, seed=seed)):
        if isinstance(event, VerdictEvent):
            if aloud:
                _tell_end(event.verdict, lab)
            return event.verdict
        if aloud and isinstance(event, CheckEvent):
            _tell_check(event.check, lab)
        if aloud and isinstance(event, OutputEvent):
            for line in event.text.splitlines():
                say(f"    rank {event.rank} | {line}")
    raise DomainError("The judge ended without a verdict.")


def _tell_check(check: Check, lab: CodeLab) -> None:
    from app.codelabs.words import checks_in_words  # noqa: PLC0415 - see above

    (shown,) = checks_in_words([check], lab)
    standing = "passed" if check.passed else "FAILED" if check.expected else "  -   "
    say(f"{standing}  {check.ranks} ranks: {shown.title}")
    if standing == "FAILED":
        say(f"    expected {check.expected}\n    seen     {check.seen}")
        if check.meaning:
            say(f"    {check.meaning}")
    elif not check.passed:
        say(f"    {check.seen}")


def _tell_end(verdict: Verdict, lab: CodeLab) -> None:
    from app.codelabs.words import mistake_in_words  # noqa: PLC0415 - see above

    said = mistake_in_words(verdict.mistake, lab)
    error = verdict.error
    if error is not None and error.line is not None:
        say(f"solution.py:{error.line}: {error.type}: {error.message}")
        if error.text:
            say(f"    {error.text}\n    {' ' * max(0, (error.column or 1) - 1)}^")
    if said is not None:
        say(f"{said.title}. {said.says}")
    say(f"{'Passed' if verdict.passed else 'Not passed'}: {verdict.score:.0%} of the checks, {verdict.seconds:.1f} s.")
