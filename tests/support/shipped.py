"""The content we ship, read once by a test process however many tests and doors look at it."""

from __future__ import annotations

from app.content.catalogue import Catalogue, catalogue
from app.core.settings import ROOT, Settings


def shipped() -> Catalogue:
    """The catalogue that an application with no folder of its own serves, mistakes and all."""
    return catalogue(Settings(cards=ROOT / "cards"))
