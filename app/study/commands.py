"""`rankzero study …`: the review log, checked and replayed."""

from __future__ import annotations

from typing import Annotated

import typer

from app.core.terminal import say

study_app = typer.Typer(no_args_is_help=True, help="The review log.")


@study_app.callback()
def group() -> None:
    """The review log."""


@study_app.command()
def replay(
    verify: Annotated[
        bool, typer.Option("--verify", help="Only check: compute every memory again and compare it bit for bit.")
    ] = False,
    learner: Annotated[int, typer.Option(help="Whose log.")] = 1,
) -> None:
    """Rebuild what is remembered of every card from the review log, or check it. Exit 1 where the check fails."""
    from app.core.db import open_database  # noqa: PLC0415 - commands import only what they need
    from app.core.settings import settings  # noqa: PLC0415
    from app.study.log import replay as replays  # noqa: PLC0415

    database = open_database(settings().sqlalchemy_url)
    if not verify:
        with database.write() as session:
            changed = replays.rebuild(session, learner)
        say(f"Rebuilt from the log: {changed} states were not what the log says." if changed else "Nothing to change.")
        return
    with database.read() as session:
        report = replays.verify(session, learner)
    for mismatch in report.named:
        say(str(mismatch))
    if report.mismatches:
        say(f"{report.mismatches} mismatches in {report.reviews} reviews of {report.cards} cards.")
        raise typer.Exit(1)
    say(f"{report.reviews} reviews of {report.cards} cards: every memory and every date is what the log makes it.")
