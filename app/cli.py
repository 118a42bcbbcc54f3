"""The `rankzero` command. Starts workers and labs as processes; imports neither."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.codelabs.commands import labs_app
from app.core.errors import DomainError, refused_as_json
from app.core.terminal import become, say
from app.exchange.commands import add_export_commands, import_app
from app.operate.commands import add_operate_commands
from app.operate.running_commands import add_running_commands, cluster_app
from app.study.commands import study_app

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
add_running_commands(app)
content_app = typer.Typer(no_args_is_help=True, help="The content files.")
app.add_typer(content_app, name="content")
export_app = typer.Typer(no_args_is_help=True, help="What an install holds, as files.")
app.add_typer(export_app, name="export")
add_export_commands(export_app)
app.add_typer(import_app, name="import")
app.add_typer(cluster_app, name="cluster")
app.add_typer(study_app, name="study")
app.add_typer(labs_app, name="labs")
add_operate_commands(app)

TextArgument = Annotated[str, typer.Argument(help="A text file, or - for standard input.")]
FileArgument = Annotated[str, typer.Argument(help="A JSON file, or - for standard input.")]


def main() -> None:
    """Entry point: a domain error becomes a message and exit code 2, never a traceback."""
    try:
        app()
    except Exception as error:
        lines = _said_of(error)
        if lines is None:
            raise
    else:
        return
    sys.exit(_complain("\n".join(lines)))


def _said_of(error: Exception) -> list[str] | None:
    """What a person is told of an error that they can do something about; None of any other."""
    if isinstance(error, DomainError):
        return [error.message, *(f"  {violation}" for violation in error.violations)]
    from pydantic import ValidationError  # noqa: PLC0415 - commands import only what they need

    from app.content.files import ContentError  # noqa: PLC0415

    if isinstance(error, ContentError):
        return ["The content has mistakes; `rankzero content check` lists them as well.", *map(str, error.problems)]
    if isinstance(error, ValidationError):  # only settings are validated outside of a command's own handling
        return [_setting_mistake(each) for each in error.errors()]
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415

    if isinstance(error, OperationalError):
        from app.core.settings import settings, without_password  # noqa: PLC0415

        why = " ".join(str(error.orig).split())
        return [f"The database at {without_password(settings().sqlalchemy_url)} does not answer: {why}"]
    return None


def _setting_mistake(error: Any) -> str:
    from app.core.settings import Settings, without_password  # noqa: PLC0415

    name = "_".join(map(str, error["loc"]))
    value = without_password(str(error["input"]))
    why = error["msg"].removeprefix("Value error, ")
    about = Settings.model_fields[name].description
    return f"RANKZERO_{name.upper()}={value} cannot be used: {why}. It is: {about}"


def _complain(message: str) -> int:
    sys.stderr.write(message + "\n")
    return 2


@content_app.command()
def check() -> None:
    """Check every content file: schema, numbers, references, keys. Exit 1 with `file:line field: reason`."""
    from app.content.checks import check_content  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.interview.checks import check_interviews  # noqa: PLC0415
    from app.lab.checks import check_experiments  # noqa: PLC0415
    from app.practice.checks import check_problems  # noqa: PLC0415
    from app.rubrics.checks import check_claims, check_misconceptions, check_rubrics  # noqa: PLC0415

    rooms = (
        check_problems,
        check_rubrics,
        check_misconceptions,
        check_claims,
        check_interviews,
        check_experiments,
    )
    catalogue, problems = check_content(settings().cards, rooms)
    for problem in problems:
        say(str(problem))
    if problems:
        raise typer.Exit(1)
    things = {
        "card": catalogue.cards,
        "problem": catalogue.problems,
        "interview": catalogue.interviews,
        "experiment": catalogue.experiments,
        "rubric": catalogue.rubrics,
        "code lab": catalogue.labs,
    }
    counts = [f"{len(found)} {name}{'' if len(found) == 1 else 's'}" for name, found in things.items()]
    say(f"{', '.join(counts)}: all in order.")


@export_app.command("log")
def export_log(
    out: Annotated[str, typer.Argument(metavar="OUT.jsonl", help="A file to write, or - for standard output.")],
) -> None:
    """The learner's whole log as JSON lines: reviews, attempts, free answers, sittings and runs, oldest first."""
    from app.core.clock import utc_now  # noqa: PLC0415
    from app.core.settings import settings  # noqa: PLC0415
    from app.progress.export import open_existing, write_log  # noqa: PLC0415

    count = write_log(open_existing(settings()), out, utc_now())
    if out != "-":
        say(f"{count:,} {'record' if count == 1 else 'records'} in {out}.")


@app.command()
def estimate(
    file: FileArgument,
    form: Annotated[
        Literal["json", "table"], typer.Option("--format", help="JSON for programs, a table to read.")
    ] = "json",
) -> None:
    """An EstimateRequest to an Estimate, as JSON or as a table."""
    from app.planner.service import answer_request, answer_request_as_table  # noqa: PLC0415

    if form == "table":
        _print(lambda: answer_request_as_table(_read_json(file)))
    else:
        _print_json(lambda: answer_request(_read_json(file)).to_json())


@app.command()
def measure() -> None:
    """How fast this machine multiplies, copies and reduces, as JSON for `cluster.measured` of an EstimateRequest."""
    become([sys.executable, "-m", "labs.measure"])


@app.command()
def search(
    file: FileArgument,
    form: Annotated[
        Literal["json", "csv", "front"],
        typer.Option("--format", help="JSON, CSV, or the front of time, memory and GPUs as JSON."),
    ] = "json",
) -> None:
    """A SearchRequest to the configurations that fit, the best first, as JSON or CSV."""
    from app.planner.service import answer_front, answer_search, answer_search_as_csv  # noqa: PLC0415

    if form == "csv":
        _print(lambda: answer_search_as_csv(_read_json(file)))
    else:
        _print_json(lambda: (answer_front if form == "front" else answer_search)(_read_json(file)))


@app.command()
def run(file: FileArgument) -> None:
    """Run a RunSpec here under torchrun, without web or Redis; events as JSON lines."""
    become([sys.executable, "-m", "worker.by_hand", file])


@app.command()
def dryrun(file: FileArgument) -> None:
    """What a RunSpec would hold and send on up to 1,024 ranks, without any of them, as JSON."""
    become([sys.executable, "-m", "labs.dryrun", file])


@app.command()
def problem(
    identity: Annotated[str, typer.Argument(metavar="ID")], seed: Annotated[int, typer.Option(help="The variant.")]
) -> None:
    """A problem's variant with its key, as JSON."""
    from app.content.catalogue import catalogue  # noqa: PLC0415
    from app.practice.export import variant_json  # noqa: PLC0415

    _print_json(lambda: variant_json(catalogue(), identity, seed))


@app.command()
def answer(
    identity: Annotated[str, typer.Argument(metavar="ID")],
    parts: Annotated[list[str], typer.Argument(metavar="PART=TEXT")],
    seed: Annotated[int, typer.Option(help="The variant.")],
) -> None:
    """Grade answers to a variant as over HTTP, as JSON."""
    from app.content.catalogue import catalogue  # noqa: PLC0415
    from app.practice.export import grade_json  # noqa: PLC0415

    answers = {name: text for name, _, text in (each.partition("=") for each in parts)}
    _print_json(lambda: grade_json(catalogue(), identity, seed, answers))


@app.command()
def grade(identity: Annotated[str, typer.Argument(metavar="ID")], file: TextArgument) -> None:
    """Grade a free-text answer against a rubric with the built-in grader, as JSON."""
    from app.content.catalogue import catalogue  # noqa: PLC0415
    from app.core.texts import storable  # noqa: PLC0415
    from app.rubrics.grading import find_rubric, grade_json, grade_text  # noqa: PLC0415

    _print_json(lambda: grade_json(grade_text(find_rubric(catalogue(), identity), storable(_read_text(file)))))


def _read_text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise DomainError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise DomainError(f"{file} is not text in UTF-8.") from None


def _read_json(file: str) -> object:
    try:
        return json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
    except OSError as error:
        raise DomainError(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise DomainError(f"{file} is not JSON that can be read: {error}.") from None


def _print_json(work: Any) -> None:
    """`_print` of a result as JSON."""
    _print(lambda: json.dumps(work(), indent=2))


def _print(work: Callable[[], str]) -> None:
    """Print the result; bad input is problem-details JSON on standard error and exit code 2."""
    with refused_as_json():
        say(work())


if __name__ == "__main__":
    main()
