"""A learner's own folder for a lab: `rankzero labs new` makes it, `run` and `submit` read it."""

from __future__ import annotations

import json
from pathlib import Path

from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.core.errors import DomainError, NotFound
from labs.spec.code import MOST_CODE_BYTES

SOLUTION, STATEMENT, MARK = "solution.py", "README.md", ".rankzero-lab.json"


def find_lab(catalogue: Catalogue, key: str) -> CodeLab:
    """A lab by its id or slug. Raises NotFound."""
    lab = catalogue.lab(key)
    if lab is None:
        raise NotFound(f"There is no code lab {key}; there are {', '.join(catalogue.labs)}.")
    return lab


def make_folder(lab: CodeLab, folder: Path, statement: str) -> None:
    """The starter, the statement and which lab it is. Raises DomainError rather than write over anything."""
    if (folder / SOLUTION).exists():
        raise DomainError(f"{folder / SOLUTION} is there already; name another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SOLUTION).write_text(lab.starter)
        (folder / STATEMENT).write_text(_read_me(lab, statement))
        (folder / MARK).write_text(json.dumps({"lab": lab.id, "revision": lab.head.revision}) + "\n")
    except OSError as error:
        raise DomainError(f"{folder} cannot be written: {error.strerror}.") from None


def _read_me(lab: CodeLab, statement: str) -> str:
    checked = "\n".join(f"- {check.says}" for check in lab.head.checks)
    return f"# {lab.id} {lab.title}\n\n{statement.rstrip()}\n\nWhat is checked:\n\n- Every rank returns\n{checked}\n"


def read_folder(catalogue: Catalogue, folder: Path) -> tuple[CodeLab, str]:
    """The lab of a folder and the learner's program. Raises DomainError."""
    try:
        mark = json.loads((folder / MARK).read_text())
        key = str(mark["lab"])
    except OSError:
        raise DomainError(f"{folder} is no folder of `rankzero labs new`: it has no {MARK}.") from None
    except (ValueError, KeyError, TypeError):
        raise DomainError(f"{folder / MARK} does not name a lab.") from None
    return find_lab(catalogue, key), read_code(folder / SOLUTION)


def read_code(path: Path) -> str:
    """A program as it is. Raises DomainError naming what is wrong, and where."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_CODE_BYTES + 1)
        size = path.stat().st_size
    except OSError as error:
        raise DomainError(f"{path} cannot be read: {error.strerror}.") from None
    if size > MOST_CODE_BYTES:
        raise DomainError(f"{path} has {size:,} bytes; {MOST_CODE_BYTES:,} are the most.")
    return as_text(data, str(path))


def as_text(data: bytes, name: str) -> str:
    """UTF-8, with the line where it is not. Raises DomainError."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DomainError(f"{name}:{line} is not UTF-8: {error.reason} (byte 0x{data[error.start]:02x}).") from None
