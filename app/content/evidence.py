"""One thing a learner did that says how well they know an item, whatever the item is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["card", "problem", "free answer", "interview", "run", "code lab", "puzzle"]


@dataclass(frozen=True)
class Evidence:
    """What was done at `at` with an item. `share` says how right it was, 0 to 1; None where nothing was asked.

    A run without a prediction was done and says nothing of what the learner knew.
    """

    kind: Kind
    item_id: str
    at: datetime
    share: float | None
