"""When something happens to a learner, as a value: made once at the door and handed down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Moment:
    """A time in UTC, and the zone in which the learner counts days and reads clocks."""

    now: datetime
    zone: ZoneInfo
