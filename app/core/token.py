"""An install's token: who has it is let in."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import quote

from app.core.settings import Settings

OFF = "off"


def install_token(settings: Settings) -> str | None:
    """The token of this install, made when there is none; None where RANKZERO_TOKEN is `off`."""
    given = settings.token.get_secret_value()
    if given:
        return None if given == OFF else given
    path = settings.data.resolve() / "token"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return _read_token(path)
    with os.fdopen(made, "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    return _read_token(path)


def _read_token(path: Path) -> str:
    """The token in our own private file; one that somebody else could have written or read is made anew."""
    found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(found) as file:
        status, text = os.fstat(file.fileno()), file.read(1000).strip()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or len(text) < 32:
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        text = secrets.token_urlsafe(32)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text + "\n")
        partial.replace(path)
    return text


def with_token(address: str, token: str | None) -> str:
    """The address to open in a browser."""
    return address if token is None else f"{address}/?token={quote(token, safe='')}"
