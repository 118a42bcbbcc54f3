"""The product's figures in the text format of Prometheus. `docs/operate/` has a dashboard and alerts that read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from app.core.db import Database
from app.core.latency import BUCKETS, Histogram
from app.core.queue import Queue
from app.lab import service as lab
from app.operate.service import readiness

Labels = Mapping[str, str]
Samples = Sequence[tuple[Labels, float]]
KINDS = ("device", "control", "beat")
QUANTILES = (0.5, 0.9, 1.0)


def metrics(
    database: Database,
    queue: Queue,
    now: datetime,
    troubles: Mapping[str, str],
    latency: Mapping[tuple[str, str, str], Histogram],
) -> str:
    """All figures. What the database does not tell is left out while it is away: a monitor must hear "not ready"."""
    ready, checks = readiness(database, queue, now, troubles)
    kinds = [worker["kind"] for worker in checks["workers"]]
    lines = [
        *_gauge("ready", "1 when database, Redis and every part answer and none keeps dying.", [({}, int(ready))]),
        *_gauge("workers", "Workers that beat recently.", [({"kind": kind}, kinds.count(kind)) for kind in KINDS]),
        *_of_workers(checks["workers"], now),
    ]
    with suppress(SQLAlchemyError), database.read() as session:
        counts, seen = lab.count_by_status(session), lab.activity(session, now)
        lines += [
            *_gauge("runs", "Runs of the lab.", [({"status": each}, counts[each]) for each in sorted(counts)]),
            *_gauge("queue_length", "Runs that wait for a worker.", [({}, seen.waiting)]),
            *_gauge(
                "queue_oldest_seconds", "For how long the oldest of them has waited.", [({}, seen.longest_wait_seconds)]
            ),
            *_gauge("run_wait_seconds", "How long runs waited, of the last 200.", _quantiles(seen.waits_seconds)),
            *_gauge(
                "rank_seconds_last_day",
                "Ranks times seconds of the runs that ended within 24 hours.",
                [({"status": each}, seconds) for each, seconds in sorted(seen.rank_seconds.items())],
            ),
            *_gauge(
                "event_lag_seconds",
                "Since a run under way was last heard of, the longest.",
                [({}, seen.behind_seconds)],
            ),
        ]
    return "\n".join([*lines, *_of_latency(latency)]) + "\n"


def _of_workers(workers: Sequence[Mapping[str, object]], now: datetime) -> Iterator[str]:
    seen, hosts = [], []
    for worker in workers:
        at = datetime.fromisoformat(str(worker["seen_at"]))
        name = str(worker["name"])
        seen.append(({"worker": name, "kind": str(worker["kind"])}, (now - at).total_seconds()))
        for device in worker["devices"]:  # type: ignore[attr-defined]
            usable = [bool(host["is_usable"]) for host in device.get("hosts", ())]
            if usable:
                hosts += [({"worker": name, "usable": "yes"}, sum(usable))]
                hosts += [({"worker": name, "usable": "no"}, len(usable) - sum(usable))]
    yield from _gauge("worker_seen_seconds", "Since a worker last said that it is there.", seen)
    yield from _gauge("hosts", "Hosts of workers for runs over several.", hosts)


def _quantiles(values: Sequence[float]) -> Samples:
    """Of sorted values."""
    return [
        ({"quantile": f"{each:g}"}, values[min(len(values) - 1, int(each * len(values)))])
        for each in QUANTILES
        if values
    ]


def _of_latency(latency: Mapping[tuple[str, str, str], Histogram]) -> Iterator[str]:
    name = "http_response_seconds"
    yield from _head(name, "Until an answer begins, in this process since it started.", "histogram")
    for (method, route, status), found in sorted(latency.items()):
        labels = {"method": method, "route": route, "status": status}
        count = 0
        for limit, more in zip((*map(str, BUCKETS), "+Inf"), found.counts, strict=True):
            count += more
            yield _sample(f"{name}_bucket", {**labels, "le": limit}, count)
        yield _sample(f"{name}_sum", labels, found.total_seconds)
        yield _sample(f"{name}_count", labels, count)


def _gauge(name: str, says: str, samples: Samples) -> Iterator[str]:
    yield from _head(name, says, "gauge")
    for labels, value in samples:
        yield _sample(name, labels, value)


def _head(name: str, says: str, kind: str) -> Iterator[str]:
    yield f"# HELP rankzero_{name} {says}"
    yield f"# TYPE rankzero_{name} {kind}"


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"rankzero_{name}{f'{{{inside}}}' if inside else ''} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
