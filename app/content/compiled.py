"""What Jinja makes of expressions, kept beside our compiled modules: a quarter of a start was compiling the same texts.

It is code, and trusted as the modules beside it are: kept with them, never with the content, which may be a stranger's.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType

import jinja2

from app.content.kept import keep


class CompiledTexts:
    """Code by text. It holds for one Python, one release of Jinja and one `environment`: the source of what sets
    Jinja's up."""

    def __init__(self, folder: Path, environment: bytes) -> None:
        made_by = f"{sys.implementation.cache_tag} {jinja2.__version__} ".encode() + environment
        self._path = folder / f"expressions.{hashlib.sha256(made_by).hexdigest()[:16]}"
        self._kept: dict[str, CodeType] | None = None
        self._asked: dict[str, CodeType] | None = None  # while they are to be kept

    def code(self, text: str, compiled: Callable[[], CodeType]) -> CodeType:
        """The code of `text`: the kept one, or what `compiled` makes of it."""
        if self._kept is None:
            self._kept = self._read()
        code = self._kept.get(text) or compiled()
        if self._asked is not None:
            self._asked[text] = code
        return code

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """What is asked for inside is written down at the end, if some of it was not there. A folder that cannot be
        written keeps nothing."""
        asked = self._asked = {}
        try:
            yield
        finally:
            self._asked = None
        if not asked.keys() <= (self._kept or {}).keys():
            self._kept = asked
            keep(self._path, marshal.dumps(asked))

    def _read(self) -> dict[str, CodeType]:
        try:
            found = marshal.loads(self._path.read_bytes())  # noqa: S302 - ours, as the compiled modules beside it
        except (OSError, EOFError, ValueError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}
