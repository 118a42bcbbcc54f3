"""What the tests of code labs share: one pool of sandboxes."""

from __future__ import annotations

import pytest

from labs.code.sandbox import why_not

# one process takes all files with sandboxes: torch is loaded into each of them once
needs_sandboxes = [
    pytest.mark.slow,
    pytest.mark.together("code labs"),
    pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}"),
]
