"""What tests of the worker share: a warm host is loaded once, and again only where a test ended it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labs.warm import WarmHost


@pytest.fixture(scope="session")
def host() -> Iterator[WarmHost]:
    """A warm host. Who kills or closes it harms nobody: it starts again when it is asked."""
    host = WarmHost()
    yield host
    host.close()
