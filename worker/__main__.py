"""`python -m worker`: one device worker, the control consumer (`--control`) or the clock (`--beat`)."""

from __future__ import annotations

import argparse
import platform
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from celery import Celery, signals
from sqlalchemy.exc import SQLAlchemyError

from app.core import queue
from app.core.db import open_database
from app.core.errors import DomainError
from app.core.logs import configure_logs
from app.core.migrate import check_schema
from app.core.priority import give_way
from app.core.private import keep_to_ourselves
from app.core.queue import Queue
from app.core.settings import Settings, settings, without_password
from worker.celery_app import make_celery
from worker.context import Context, open_context
from worker.devices import Devices, UnknownDevice, find_devices
from worker.presence import announce_forever, is_alive, retire

if TYPE_CHECKING:
    from worker.over_hosts import SeveralHosts

# Each skips a round of messages that only matters to many workers; together they cut the start to 0.3 s.
QUICK_START = {"without_mingle": True, "without_gossip": True, "without_heartbeat": True}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="rankzero worker", description=__doc__)
    parser.add_argument("--devices", default="auto", help="auto, cpu, or cuda:0,1")
    parser.add_argument(
        "--backend", choices=("here", "slurm", "cluster"), default="here", help="where its runs are carried out"
    )
    parser.add_argument("--partition", default="", help="of Slurm: where its runs over several hosts go")
    parser.add_argument("--control", action="store_true", help="sweeps and closings instead of runs")
    parser.add_argument("--beat", action="store_true", help="the clock that sends sweeps")
    parser.add_argument("--check", action="store_true", help="exit 0 when a worker of this host is alive, else 1")
    asked = parser.parse_args(arguments)
    keep_to_ourselves()
    configuration = settings()
    configure_logs(configuration.log_format, configuration.log_level)
    if asked.check:
        return 0 if is_alive(open_database(configuration.sqlalchemy_url), platform.node()) else 1
    if not Queue(configuration.redis).answers():
        sys.stderr.write(
            f"No Redis answers at {without_password(configuration.redis)}, or not with that password. "
            "`make start` brings one up; RANKZERO_REDIS_URL names another.\n"
        )
        return 2
    kind = "beat" if asked.beat else "control" if asked.control else "device"
    if kind != "device":  # whose ranks would inherit it
        give_way(configuration.give_way)
    app = make_celery(configuration, kind)
    try:
        with suppress(SQLAlchemyError):  # one that cannot be asked may be there in a moment
            check_schema(open_database(configuration.sqlalchemy_url))
        if asked.beat:
            return _beat(app, configuration)
        devices = _devices(asked, configuration)
    except (UnknownDevice, DomainError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return _work(app, open_context(configuration, devices, kind, asked.devices))


def _devices(asked: argparse.Namespace, configuration: Settings) -> Devices | SeveralHosts:
    """Raises UnknownDevice."""
    if asked.partition and asked.backend != "slurm":
        raise UnknownDevice(f"--partition {asked.partition}: is of Slurm, and accepted with --backend slurm alone.")
    if asked.control:
        return Devices(False, ())
    if asked.backend == "slurm":
        from worker.slurm_jobs import find_partition  # noqa: PLC0415 - only where there is one

        return find_partition(asked.partition, configuration.sqlalchemy_url)
    if asked.backend == "cluster":
        from worker.namespaces import find_cluster  # noqa: PLC0415 - only where there is one

        return find_cluster(configuration.cluster_file)
    return find_devices(asked.devices)


def _beat(app: Celery, configuration: Settings) -> int:
    context = open_context(configuration, Devices(False, ()), "beat")
    announce_forever(context)
    # the plain scheduler keeps its times in memory: a sweep missed while down is done by the next one
    app.Beat(loglevel="WARNING", scheduler="celery.beat:Scheduler", quiet=True).run()
    context.stopping.set()
    retire(context)
    return 0


def _work(app: Celery, context: Context) -> int:
    _connect_signals(context)
    listens_to = [queue.CONTROL_QUEUE] if context.kind == "control" else _run_queues(context)
    # Two threads: one run at a time, and beside it one submission of a code lab. Threads leave this process free to be
    # told to stop while a run is under way; a prefork child could not be, nor could it start processes of
    # multiprocessing. Made here and not by Celery's own command line, which loads all of its commands.
    threads = 2 if context.kind == "device" else 1
    app.Worker(
        loglevel="WARNING",
        pool="threads",
        concurrency=threads,
        queues=listens_to,
        hostname=context.name,
        quiet=True,  # its banner is no line of a log
        **QUICK_START,
    ).start()
    return 0


def _run_queues(context: Context) -> list[str]:
    """Also those of devices that may come later."""
    if not isinstance(context.devices, Devices):
        return [queue.HOST_RUNS]
    may_have_gpus = context.asked != "cpu"
    return [name for name, has in ((queue.CPU_RUNS, context.devices.cpu), (queue.GPU_RUNS, may_have_gpus)) if has]


def _connect_signals(context: Context) -> None:
    def ready(**_: Any) -> None:
        announce_forever(context)
        if context.kind == "device":
            context.queue.nudge_workers()  # runs may wait since before we came
            context.queue.nudge_judges()
            if context.host is not None:
                context.host.warm_up()

    def stopping(**_: Any) -> None:
        context.stopping.set()

    def gone(**_: Any) -> None:
        if context.host is not None:
            context.host.close()
        if context.kind == "device":
            from worker import judging  # noqa: PLC0415 - the clock has none

            judging.let_go(context)
        retire(context)

    signals.worker_ready.connect(ready, weak=False)
    signals.worker_shutting_down.connect(stopping, weak=False)
    signals.worker_shutdown.connect(gone, weak=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
