"""The learner's time zone: the one that was set, else the machine's."""

from __future__ import annotations

import os
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def learner_zone(named: str) -> ZoneInfo:
    """The zone of this name, as the settings have checked it; the machine's where none is named."""
    return ZoneInfo(named) if named else _machine_zone()


def _machine_zone() -> ZoneInfo:
    link = os.path.realpath("/etc/localtime")
    name = os.environ.get("TZ") or (link.split("/zoneinfo/")[1] if "/zoneinfo/" in link else "")
    try:
        return ZoneInfo(name) if name else ZoneInfo("UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
