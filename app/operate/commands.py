"""`rankzero backup`, `restore`, `copy`, `reset` and `doctor`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from app.core.terminal import say

DOCTOR_SUBJECTS = ("gpu",)


def add_operate_commands(app: typer.Typer) -> None:
    app.command()(backup)
    app.command()(restore)
    app.command("copy")(copy_database)
    app.command()(reset)
    app.command()(doctor)


def backup(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write, such as rankzero.zip.")],
) -> None:
    """All data of this install as one file; it may be running. Working files of runs and logs are left out."""
    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.private import keep_to_ourselves  # noqa: PLC0415
    from app.core.release import release  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.operate.backup import back_up_install  # noqa: PLC0415

    keep_to_ourselves()
    made = back_up_install(open_database(settings().sqlalchemy_url), out, release(), utc_now())
    say(f"{made.rows:,} rows of {len(made.tables)} tables at schema {made.schema} in {out}.")


def restore(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file that `rankzero backup` wrote.")],
) -> None:
    """Put a backup in place of all this install holds, which is backed up first. RankZero must not be running."""
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.operate.backup import restore_install  # noqa: PLC0415

    with _held_install():
        database = open_database(settings().sqlalchemy_url)
        kept = _keep_first("before-restore")
        made = restore_install(database, source)
    say(f"{made.rows:,} rows of {made.made_at[:16].replace('T', ' ')} UTC restored from {source}.")
    if kept:
        say(f"What was here before is in {kept}.")


def copy_database(
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://user:password@host/name, an empty database.")],
) -> None:
    """Copy this install's database into an empty one, such as PostgreSQL. RankZero must not be running."""
    import tempfile  # noqa: PLC0415

    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.errors import DomainError  # noqa: PLC0415
    from app.core.release import release  # noqa: PLC0415
    from app.core.settings import Settings, settings  # noqa: PLC0415
    from app.operate.backup import back_up_install, holds_anything, restore_install  # noqa: PLC0415

    target = open_database(Settings(database_url=url).sqlalchemy_url)
    if holds_anything(target):
        raise DomainError("The database at that address holds something. Name an empty one.")
    with _held_install(), tempfile.TemporaryDirectory(prefix="rankzero-copy-") as folder:
        file = Path(folder) / "copy.zip"
        back_up_install(open_database(settings().sqlalchemy_url), file, release(), utc_now())
        made = restore_install(target, file)
    say(f"{made.rows:,} rows copied. Start with RANKZERO_DATABASE_URL set to that address to use them.")


def reset(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget everything: an install as after its first start. A backup is kept. RankZero must not be running."""
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.operate.backup import reset_install  # noqa: PLC0415

    if not yes:
        typer.confirm(f"Forget all that the install in {settings().data.resolve()} holds?", abort=True)
    with _held_install():
        kept = _keep_first("before-reset")
        reset_install(open_database(settings().sqlalchemy_url))
        for name in ("runs", "log", "redis"):
            shutil.rmtree(settings().data.resolve() / name, ignore_errors=True)
    say(f"All is forgotten.{f' What was here before is in {kept}.' if kept else ''}")


def doctor(
    subject: Annotated[str, typer.Argument(metavar="gpu", help="What to look at: gpu.")] = "gpu",
) -> None:
    """What this machine has for runs and what is in the way: driver, GPUs, PyTorch's view of them, NCCL."""
    if subject not in DOCTOR_SUBJECTS:
        raise typer.BadParameter(f"{subject!r} is not known here. Accepted: {', '.join(DOCTOR_SUBJECTS)}.")
    from app.operate import processes  # noqa: PLC0415

    command = processes.doctor()
    os.execv(command[0], command)  # noqa: S606 - our own interpreter


@contextmanager
def _held_install() -> Iterator[None]:
    """This install, to oneself: what runs would write into what is replaced. Raises DomainError while it does."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from app.core.db import database_time, open_database  # noqa: PLC0415
    from app.core.errors import DomainError  # noqa: PLC0415
    from app.core.private import close_to_others, keep_to_ourselves  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.lab.service import workers_present  # noqa: PLC0415
    from app.operate.install import Install  # noqa: PLC0415

    keep_to_ourselves()
    folder = settings().data.resolve()
    close_to_others(folder)
    install = Install(folder)
    try:
        if not install.hold():
            raise DomainError(f"{install.running() or 'RankZero is running.'} Stop it first.")
        # a new database has no such table
        with suppress(SQLAlchemyError), open_database(settings().sqlalchemy_url).read() as session:
            names = ", ".join(worker.name for worker in workers_present(session, database_time(session)))
            if names:
                raise DomainError(f"Workers use this database: {names}. Stop them first.")
        yield
    finally:
        install.let_go()


def _keep_first(why: str) -> Path | None:
    """A backup of what is here, before it is replaced; None where there is nothing."""
    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.migrate import migrate, refuse_newer  # noqa: PLC0415
    from app.core.release import release  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.operate.backup import back_up_install, holds_anything  # noqa: PLC0415

    database, now = open_database(settings().sqlalchemy_url), utc_now()
    if refuse_newer(database)[0] is None or not holds_anything(database):
        return None
    folder = settings().data.resolve() / "backups"
    migrate(database, now, folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = folder / f"{why}-{now:%Y%m%d-%H%M%S-%f}.zip"
    back_up_install(database, kept, release(), now)
    return kept
