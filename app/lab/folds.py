"""The runs looked at lately, each folded once: whoever shows one reads only the chunks that are new since."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.folding import RunFold
from app.lab.models import Run
from app.lab.view import RunView
from labs.spec.events import read_events

MOST_RUNS = 16  # a fold holds one step's spans and a program's points: some megabytes at most

_Key = tuple[int, datetime]  # a database that was restored or reset counts its runs anew


@dataclass
class _Folded:
    """A run's events up to chunk `sequence`."""

    fold: RunFold
    sequence: int = 0
    lock: Lock = field(default_factory=Lock)


class Folds:
    """Thread-safe; one of a process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, _Folded] = OrderedDict()
        self._lock = Lock()

    def view(self, session: Session, run: Run) -> RunView:
        """Where `run` stands, by all chunks that are there."""
        kept = self._of(run)
        with kept.lock:
            # as many as the run counts, so that one without anything new costs no question
            while kept.sequence < run.chunks and (fresh := queries.list_chunks(session, run.id, kept.sequence)):
                for sequence, events in fresh:
                    kept.fold.take(read_events(events))
                    kept.sequence = sequence
            return kept.fold.view()

    def _of(self, run: Run) -> _Folded:
        key = (run.id, run.created_at)
        with self._lock:
            kept = self._kept.setdefault(key, _Folded(RunFold(run.theory)))
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_RUNS:
                self._kept.popitem(last=False)
            return kept
