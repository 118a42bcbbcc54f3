"""`rankzero export` and `rankzero import`: cards and runs as files, on the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.core.errors import DomainError
from app.core.terminal import say

if TYPE_CHECKING:
    from app.core.db import Database

import_app = typer.Typer(no_args_is_help=True, help="Read cards, or a run, from a file.")

OutArgument = Annotated[Path, typer.Argument(help="The file to write.")]
InArgument = Annotated[Path, typer.Argument(help="The file to read.")]
WhichCards = Annotated[Literal["all", "own", "catalogue"], typer.Option(help="Whose cards.")]
Scheduling = Annotated[bool, typer.Option(help="With what is remembered of each card.")]


def add_export_commands(export_app: typer.Typer) -> None:
    """Put the commands that write cards under `rankzero export`."""
    export_app.command("anki")(export_anki)
    export_app.command("cards")(export_cards)
    export_app.command("run")(export_run)


def export_anki(out: OutArgument, scheduling: Scheduling = True, which: WhichCards = "all") -> None:
    """The cards as an .apkg that Anki opens."""
    from app.content.catalogue import catalogue  # noqa: PLC0415
    from app.core.clock import current_moment  # noqa: PLC0415
    from app.core.models import LOCAL_LEARNER  # noqa: PLC0415
    from app.exchange.service import export_anki as export  # noqa: PLC0415

    with _database().read() as session, _file_errors(out):
        done = export(session, LOCAL_LEARNER, catalogue(), out, current_moment(), scheduling=scheduling, which=which)
    say(f"{out}: {done.notes:,} cards, {done.scheduled:,} with their schedule, {done.answers:,} answers.")


def export_cards(out: OutArgument) -> None:
    """Your own cards: as a table (.csv), or as text files in the format of cards/decks (.zip)."""
    from app.core.models import LOCAL_LEARNER  # noqa: PLC0415
    from app.exchange.service import own_cards_file  # noqa: PLC0415

    with _database().read() as session, _file_errors(out):
        count, data = own_cards_file(session, LOCAL_LEARNER, out.suffix.lower())
        out.write_bytes(data)
    say(f"{out}: {count:,} cards.")


def export_run(run_id: Annotated[int, typer.Argument(help="Its number.")], out: OutArgument) -> None:
    """A run that has ended, as one file (.rzrun) that another install opens."""
    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.models import LOCAL_LEARNER  # noqa: PLC0415
    from app.core.release import release  # noqa: PLC0415
    from app.lab.service import export_run as export  # noqa: PLC0415

    with _database().read() as session, _file_errors(out):
        _, pieces = export(session, LOCAL_LEARNER, run_id, release(), utc_now())
        with out.open("wb") as file:
            file.writelines(pieces)
    say(f"{out}: run {run_id}.")


@import_app.command("anki")
def import_anki(file: InArgument, scheduling: Scheduling = True) -> None:
    """The cards of an .apkg. A second import updates in place."""
    _import(file, scheduling)


@import_app.command("cards")
def import_cards(file: InArgument) -> None:
    """Own cards from a table (.csv), a card's text file (.md) or a .zip of decks."""
    _import(file, False)


@import_app.command("run")
def import_run(file: InArgument) -> None:
    """A run from a file (.rzrun), to look at and to compare."""
    from app.lab.service import RUN_FILE_ENDING, is_run_file  # noqa: PLC0415

    if not is_run_file(file.name):
        raise DomainError(
            f"{file}: its name does not say that it is a run. Accepted: a file ending in {RUN_FILE_ENDING}."
        )
    _import(file, False)


def _import(file: Path, scheduling: bool) -> None:
    from app.content.catalogue import catalogue  # noqa: PLC0415
    from app.core.clock import current_moment  # noqa: PLC0415
    from app.core.models import LOCAL_LEARNER  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.exchange import imports, service  # noqa: PLC0415

    database, folder = _database(), settings().data.resolve() / "imports"
    url, known = database.engine.url.render_as_string(hide_password=False), service.revisions_of(catalogue())
    order = imports.Order(file.name[-200:], url, LOCAL_LEARNER, known, current_moment(), scheduling)
    with _file_errors(file), file.open("rb") as opened:
        job_id = imports.start(folder, opened, order)
    try:
        while (job := imports.find(folder, job_id)).state == "running":
            time.sleep(0.05)
    except KeyboardInterrupt:
        job = imports.cancel(folder, job_id)
    if job.state != "done":
        raise job.error
    *_, place, number = job.leads_to.split("/")
    if place == "runs":
        say(f"{file}: opened as run {number}, {job.leads_to} in the browser.")
        return
    with database.read() as session:
        say("\n".join(service.report_lines(service.find_report(session, LOCAL_LEARNER, int(number)))))


def _database() -> Database:
    """The install's database, at this release's schema."""
    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.db import open_database  # noqa: PLC0415
    from app.core.migrate import migrate as bring_up  # noqa: PLC0415
    from app.core.private import close_to_others  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415

    close_to_others(settings().data.resolve())
    database = open_database(settings().sqlalchemy_url)
    bring_up(database, utc_now(), settings().data.resolve() / "backups")
    return database


@contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DomainError(f"{file}: {error.strerror or error}.") from None
