"""Learners' programs against the sandbox and the judge: none escapes, none passes, each ends named.

A sixth of them in each run of the tests, another one each day; all of them with RANKZERO_ALL_ROWS or in `make bench`.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from labs.code.grading import judge
from labs.code.sandbox import Pool
from labs.spec.code import CodeEvent, OutputEvent, Submission, Verdict
from tests.attacks.code_programs import ATTACKS, Attack
from tests.support.code_labs import needs_sandboxes
from tests.support.todays import todays

PARTS = 6
ENDLESS_SECONDS, LONGEST_SECONDS = 1.0, 60.0  # of what never ends by itself, and of the rest on a busy machine

pytestmark = needs_sandboxes


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ours") / "rankzero-secret-of-ours"
    path.write_text("hunter2")
    path.chmod(0o644)
    return path


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def attacked(attack: Attack, code_pool: Pool, secret: Path, port: int) -> tuple[Verdict, str]:
    """The verdict, and all that was printed."""
    said: list[CodeEvent] = []
    longest = ENDLESS_SECONDS if "endless-loop" in attack.ends else LONGEST_SECONDS
    submission = Submission(lab="CL01", code=attack.code(str(secret), port))
    verdict = judge(submission, code_pool, said.append, deadline_seconds=longest)
    return verdict, "".join(event.text for event in said if isinstance(event, OutputEvent))


def test_there_are_forty_and_each_has_a_name() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 40


@pytest.mark.parametrize("attack", todays(ATTACKS, PARTS), ids=lambda attack: attack.name)
def test_an_attack_comes_to_nothing(
    attack: Attack, code_pool: Pool, secret: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKZERO_TOKEN", "hunter2")
    verdict, printed = attacked(attack, code_pool, secret, port)
    assert "ESCAPED" not in printed
    assert not verdict.passed
    assert re.search(attack.ends, verdict.model_dump_json()), verdict
