"""Which release this is: its version, and a digest of what a web server and its workers must agree on."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata

from app.core.settings import ROOT

# The schema they share, and the words in which runs and their events are told.
_SHARED = ("migrations/versions", "labs/spec")


def version() -> str:
    """The version in pyproject.toml."""
    return metadata.version("rankzero")


@cache
def release() -> str:
    """Such as `0.1.0+3f29a1c0`: equal where two processes understand each other's runs."""
    digest = hashlib.sha256()
    for folder in _SHARED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    return f"{version()}+{digest.hexdigest()[:8]}"
