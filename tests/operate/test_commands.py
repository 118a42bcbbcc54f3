"""The `rankzero` command: what is wrong is said in a line, never in a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import cli
from app.core.settings import settings
from tests.support.cards import edit, write_cards

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """`rankzero …` in this process: exit code, output, errors."""
    settings.cache_clear()

    def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
        for name, value in variables.items():
            monkeypatch.setenv(f"RANKZERO_{name.upper()}", value)
        monkeypatch.setattr(sys, "argv", ["rankzero", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    yield run
    settings.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("port", "eighty", "integer"),
        ("port", "70000", "65535"),
        ("time_zone", "Mars/Olympus", "Europe/Berlin"),
        ("environment", "staging", "production"),
        ("log_format", "xml", "json"),
        ("grader_url", "ftp://judge/v1", "http or https"),
        ("grader_url", "judge.example/v1", "http or https"),
        ("grader_timeout_seconds", "never", "number"),
        ("database_url", "mysql://db/rankzero", "postgresql://"),
        ("redis_url", "http://cache:6379", "rediss://"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(command: Command, name: str, value: str, accepted: str) -> None:
    code, _, errors = command("settings", **{name: value})
    assert code == 2
    assert f"RANKZERO_{name.upper()}={value} cannot be used" in errors
    assert accepted in errors
    assert "Traceback" not in errors


def test_a_database_that_does_not_answer_is_said_without_its_password(command: Command, tmp_path: Path) -> None:
    url = "postgresql://learner:secret@127.0.0.1:1/rankzero"
    code, _, errors = command("migrate", data=str(tmp_path), database_url=url)
    assert code == 2
    assert errors.startswith("The database at postgresql+psycopg://learner:***@127.0.0.1:1/rankzero does not answer: ")
    assert len(errors.splitlines()) == 1


def test_every_setting_is_listed_without_passwords(command: Command) -> None:
    code, out, _ = command(
        "settings", database_url="postgresql://learner:secret@db/rankzero", redis_url="redis://:secret@cache:6379/0"
    )
    assert code == 0
    assert "secret" not in out
    assert "RANKZERO_DATABASE_URL=postgresql://learner:***@db/rankzero" in out
    assert "RANKZERO_REDIS_URL=redis://:***@cache:6379/0" in out
    assert "RANKZERO_DATA=" in out


def test_the_second_graders_key_is_never_said(command: Command) -> None:
    given = {"grader_url": "http://127.0.0.1:1/v1", "grader_model": "judge-1", "grader_key": "sk-very-secret"}
    code, out, errors = command("settings", **given)
    assert code == 0
    assert "RANKZERO_GRADER_MODEL=judge-1" in out
    assert "RANKZERO_GRADER_KEY=***" in out
    assert "very-secret" not in out + errors
    settings.cache_clear()
    code, out, errors = command("settings", **{**given, "grader_url": "http://me:very-secret@judge/v1"})
    assert code == 2
    assert "very-secret" not in out + errors


def test_a_second_grader_needs_a_model(command: Command) -> None:
    code, _, errors = command("settings", grader_url="http://127.0.0.1:1/v1")
    assert code == 2
    assert "RANKZERO_GRADER_MODEL= cannot be used" in errors
    assert "must name the model" in errors


def test_the_log_is_exported(command: Command, sqlite_template: Path, tmp_path: Path) -> None:
    out = tmp_path / "log.jsonl"
    assert "no database" in command("export", "log", str(out), data=str(tmp_path / "nothing"))[2]
    settings.cache_clear()
    assert command("export", "log", str(out), data=str(sqlite_template.parent))[:2] == (0, f"0 records in {out}.\n")
    assert out.read_text().startswith('{"record": "log"')
    assert command("export", "log", "-")[1].startswith('{"record": "log"')


def test_content_with_mistakes_is_said_by_file_and_line(command: Command, tmp_path: Path) -> None:
    cards = write_cards(tmp_path / "cards")
    edit(cards, "concepts.yaml", "concepts:", "concept:")
    code, _, errors = command("problem", "P03", "--seed", "7", cards=str(cards))
    assert code == 2
    assert "concepts.yaml:1 concepts" in errors
    assert "Traceback" not in errors


def test_json_nested_without_end_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 100_000)
    code, _, errors = command("estimate", str(file))
    assert code == 2
    assert "is not JSON that can be read" in errors
