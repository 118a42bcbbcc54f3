"""Every table of every room in one place, for migrations and tests."""

from app.codelabs import models as codelabs
from app.core import models as core
from app.core.db import Base
from app.decks import models as decks
from app.exchange import models as exchange
from app.first import models as first
from app.interview import models as interview
from app.lab import models as lab
from app.practice import models as practice
from app.rubrics import models as rubrics
from app.study import models as study

METADATA = Base.metadata

__all__ = [
    "METADATA",
    "codelabs",
    "core",
    "decks",
    "exchange",
    "first",
    "interview",
    "lab",
    "practice",
    "rubrics",
    "study",
]
