"""How much the runs of an install may take. Set by its operator; carried by its database's sessions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.units import factor_of

_INFO = "limits"


@dataclass(frozen=True)
class Limits:
    """0: no such limit, where that is said."""

    runs_waiting: int = 20  # of a learner
    runs_at_once: int = 0  # of the install; 0: as many as there are workers
    runs_a_day: int = 0  # of a learner; 0: no such limit
    run_waits_seconds: float = factor_of("d")  # 0: for ever
    run_steps: int = 500
    run_seconds: float = factor_of("h")
    run_events: int = 200_000
    run_event_bytes: int = int(128 * factor_of("MiB"))  # of all ranks' events and log lines together
    run_log_lines: int = 2_000

    def as_info(self) -> dict[str, object]:
        """For `sessionmaker(info=…)`."""
        return {_INFO: self}


def limits_of(session: Session) -> Limits:
    """The limits of the install that `session` belongs to."""
    found = session.info.get(_INFO)
    return found if isinstance(found, Limits) else Limits()
