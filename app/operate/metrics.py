"""The product's figures for Prometheus. `docs/operate/` has a dashboard and alerts that read them.

What stands in the database is the same whichever process is asked: it is read anew with each question. How long answers
took is counted in the process that gave them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import Database
from app.core.queue import Queue
from app.lab import service as lab
from app.operate.service import readiness

Labels = Mapping[str, str]
Samples = Sequence[tuple[Labels, float]]
KINDS = ("device", "control", "beat")
QUANTILES = (0.5, 0.9, 1.0)


@dataclass(frozen=True)
class Figures(Collector):
    """All figures as of now. What the database does not tell is left out while it is away: a monitor must hear "not
    ready"."""

    database: Database
    queue: Queue
    now: datetime
    troubles: Mapping[str, str]
    latency: Histogram

    def collect(self) -> Iterable[Metric]:
        ready, checks = readiness(self.database, self.queue, self.now, self.troubles)
        kinds = [worker["kind"] for worker in checks["workers"]]
        yield _gauge("ready", "1 when database, Redis and every part answer and none keeps dying.", [({}, int(ready))])
        yield _gauge("workers", "Workers that beat recently.", [({"kind": kind}, kinds.count(kind)) for kind in KINDS])
        yield from _of_workers(checks["workers"], self.now)
        yield from self._of_runs()
        yield from self.latency.collect()

    def _of_runs(self) -> Iterator[Metric]:
        with suppress(SQLAlchemyError):
            with self.database.read() as session:
                counts, seen = lab.count_by_status(session), lab.activity(session, self.now)
            yield _gauge("runs", "Runs of the lab.", [({"status": each}, counts[each]) for each in sorted(counts)])
            yield _gauge("queue_length", "Runs that wait for a worker.", [({}, seen.waiting)])
            said = "For how long the oldest of them has waited."
            yield _gauge("queue_oldest_seconds", said, [({}, seen.longest_wait_seconds)])
            waits = _quantiles(seen.waits_seconds)
            yield _gauge("run_wait_seconds", "How long runs waited, of the last 200.", waits)
            said = "Ranks times seconds of the runs that ended within 24 hours."
            took = [({"status": each}, seconds) for each, seconds in sorted(seen.rank_seconds.items())]
            yield _gauge("rank_seconds_last_day", said, took)
            said = "Since a run under way was last heard of, the longest."
            yield _gauge("event_lag_seconds", said, [({}, seen.behind_seconds)])


def _of_workers(workers: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[Metric]:
    seen, hosts = [], []
    for worker in workers:
        name = worker["name"]
        at = datetime.fromisoformat(worker["seen_at"])
        seen.append(({"worker": name, "kind": worker["kind"]}, (now - at).total_seconds()))
        for device in worker["devices"]:
            usable = [bool(host["is_usable"]) for host in device.get("hosts", ())]
            if usable:
                hosts += [({"worker": name, "usable": "yes"}, sum(usable))]
                hosts += [({"worker": name, "usable": "no"}, len(usable) - sum(usable))]
    yield _gauge("worker_seen_seconds", "Since a worker last said that it is there.", seen)
    yield _gauge("hosts", "Hosts of workers for runs over several.", hosts)


def _quantiles(values: Sequence[float]) -> Samples:
    """Of sorted values."""
    return [
        ({"quantile": f"{each:g}"}, values[min(len(values) - 1, int(each * len(values)))])
        for each in QUANTILES
        if values
    ]


def _gauge(name: str, says: str, samples: Samples) -> Metric:
    labels = tuple(samples[0][0]) if samples else ()
    family = GaugeMetricFamily(f"rankzero_{name}", says, labels=labels)
    for known, value in samples:
        family.add_metric([known[label] for label in labels], value)
    return family
