"""A proof of work: program, seed, versions, ledger and verdict, to be run again on another machine."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, ValidationError

from app.content.code_labs import CodeLab
from app.core.errors import DomainError
from labs.spec.code import Verdict

FORMAT = 1
_MOST_BYTES = 4_000_000


class Proof(BaseModel):
    """The file of `rankzero labs submit --proof`."""

    format: int
    lab: str
    revision: int
    code: str
    seed: int
    versions: dict[str, str]
    verdict: Verdict


def make_proof(lab: CodeLab, code: str, verdict: Verdict, revision: int | None = None) -> Proof:
    """A proof of a verdict that was reached with hidden inputs. Raises DomainError where it was not."""
    if verdict.seed is None or verdict.mode != "submit":
        raise DomainError("Only a submission that was run can be proved.")
    versions = {"python": platform.python_version(), **{name: version(name) for name in ("torch", "rankzero")}}
    verdict = verdict.model_copy(update={"trace": None, "beside": None})  # times are of one machine
    return Proof(
        format=FORMAT,
        lab=lab.id,
        revision=lab.head.revision if revision is None else revision,
        code=code,
        seed=verdict.seed,
        versions=versions,
        verdict=verdict,
    )


def read_proof(path: Path) -> Proof:
    """A proof as it was written. Raises DomainError."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DomainError(f"{path} has more than {_MOST_BYTES:,} bytes, which no proof has.")
        proof = Proof.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DomainError(f"{path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise DomainError(f"{path} is no proof: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    if proof.format != FORMAT:
        raise DomainError(f"{path} has format {proof.format}; this release reads {FORMAT}.")
    return proof


def same_verdict(lab: CodeLab, claimed: Proof, again: Verdict) -> list[str]:
    """What differs between a proof and the same program judged again; nothing where it holds."""
    found = []
    if claimed.revision != lab.head.revision:
        found.append(f"the lab has revision {lab.head.revision} here, the proof is of revision {claimed.revision}")
    before = claimed.verdict
    for name in ("passed", "score", "mistake", "ledger"):
        if getattr(before, name) != getattr(again, name):
            found.append(f"{name}: {getattr(before, name)!r} was claimed, {getattr(again, name)!r} came out"[:400])
    claims = {(each.name, each.ranks): each.passed for each in before.checks}
    comes = {(each.name, each.ranks): each.passed for each in again.checks}
    if claims != comes:
        found.append("the checks that passed are others")
    return found
