"""`rankzero start`, its parts one by one, and what they run over: the schema, the settings, a cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

import typer

from app.core.terminal import become, say

cluster_app = typer.Typer(no_args_is_help=True, help="A cluster on this machine: hosts as network namespaces.")


def add_running_commands(app: typer.Typer) -> None:
    for command in (start, serve, address, worker, beat, migrate):
        app.command()(command)
    app.command("settings")(list_settings)


def start(
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    bind: Annotated[str | None, typer.Option(help="Address to listen on; loopback unless in a container.")] = None,
) -> None:
    """Everything on this machine: web, worker, control, beat and an embedded Redis."""
    from app.core.settings import Settings  # noqa: PLC0415 - commands import only what they need
    from app.operate.start import start as start_all  # noqa: PLC0415

    given = {name: value for name, value in {"port": port, "bind": bind}.items() if value is not None}
    raise typer.Exit(start_all(Settings(**given)))  # type: ignore[arg-type]


def serve(
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    bind: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
) -> None:
    """The web server alone."""
    import structlog  # noqa: PLC0415
    import uvicorn  # noqa: PLC0415
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from app.content.catalogue import catalogue  # noqa: PLC0415
    from app.core.connections import Server, TimedProtocol  # noqa: PLC0415
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.logs import configure_logs  # noqa: PLC0415
    from app.core.migrate import check_schema  # noqa: PLC0415
    from app.core.priority import give_way  # noqa: PLC0415
    from app.core.private import keep_to_ourselves  # noqa: PLC0415
    from app.core.release import release  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415

    keep_to_ourselves()
    with suppress(SQLAlchemyError):  # one that cannot be asked is said by /readyz, and may be there in a moment
        check_schema(open_database(settings().sqlalchemy_url))
    catalogue()  # mistakes are said here, without uvicorn's traceback around them
    at = settings().model_copy(update={"bind": bind or settings().bind, "port": port or settings().port})
    configure_logs(at.log_format, at.log_level)
    structlog.get_logger().info("pages are served", at=at.address, release=release())
    config = uvicorn.Config(
        "app.main:create_app",
        http=TimedProtocol,
        proxy_headers=False,
        factory=True,
        host=at.bind,
        port=at.port,
        access_log=False,
        timeout_graceful_shutdown=2,
        log_level="warning",
        server_header=False,
    )
    server = Server(config, once_up=lambda: give_way(at.give_way))  # not before: a start is waited for
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise typer.Exit(3)  # as uvicorn's own command has it


def address() -> None:
    """The address to open in a browser, with this install's token. Who has it is let in."""
    from app.core.settings import settings  # noqa: PLC0415
    from app.core.token import install_token, with_token  # noqa: PLC0415
    from app.operate.install import running_address  # noqa: PLC0415

    chosen = settings()
    say(with_token(running_address(chosen.data.resolve()) or chosen.address, install_token(chosen)))


def worker(
    devices: Annotated[str, typer.Option(help="auto, cpu, or cuda:0,1: what its runs may use.")] = "auto",
    control: Annotated[bool, typer.Option("--control", help="Take sweeps and closings instead of runs.")] = False,
    backend: Annotated[
        Literal["here", "slurm", "cluster"],
        typer.Option(help="Runs over several hosts: as jobs of a Slurm partition, or on a local cluster."),
    ] = "here",
    partition: Annotated[str, typer.Option(help="The partition of Slurm.")] = "",
) -> None:
    """One worker."""
    from app.operate import processes  # noqa: PLC0415

    if backend != "here":
        become(processes.worker_over_hosts(backend, partition))
    become(processes.control() if control else processes.worker(devices))


@cluster_app.command("up")
def cluster_up(
    hosts: Annotated[int, typer.Option(help="How many.")] = 2,
    rate: Annotated[str, typer.Option(help="Of each link, each way, such as 1gbit or 200mbit.")] = "1gbit",
    delay: Annotated[str, typer.Option(help="Of each link, such as 1ms; needs a kernel with netem.")] = "0",
) -> None:
    """Make hosts on this machine, joined by links of that rate. Needs root on Linux."""
    from app.core.settings import settings  # noqa: PLC0415
    from app.operate import processes  # noqa: PLC0415

    options = ["--hosts", str(hosts), "--rate", rate, "--delay", delay]
    become(processes.cluster("up", settings().cluster_file, *options))


@cluster_app.command("down")
def cluster_down() -> None:
    """Remove them, with everything that runs there."""
    from app.core.settings import settings  # noqa: PLC0415
    from app.operate import processes  # noqa: PLC0415

    become(processes.cluster("down", settings().cluster_file))


def beat() -> None:
    """The clock that sends sweeps."""
    from app.operate import processes  # noqa: PLC0415

    become(processes.beat())


def migrate() -> None:
    """Bring the database to this release's schema; a SQLite file is backed up first."""
    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.migrate import migrate as bring_up  # noqa: PLC0415
    from app.core.private import close_to_others, keep_to_ourselves  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415

    keep_to_ourselves()
    close_to_others(settings().data.resolve())
    database = open_database(settings().sqlalchemy_url)
    say(bring_up(database, utc_now(), settings().data.resolve() / "backups") or "The schema is current.")


def list_settings() -> None:
    """Every setting: its environment variable, its value now and what it does."""
    from app.core.settings import Settings, settings, without_password  # noqa: PLC0415

    for name, field in Settings.model_fields.items():
        say(f"RANKZERO_{name.upper()}={without_password(str(getattr(settings(), name)))}\n    {field.description}")
