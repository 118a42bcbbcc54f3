"""Code cards show programs that run, and answer with exactly what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from app.content.cards import fenced
from app.content.kinds.code import OUTPUT, RUN
from tests.support.shipped import shipped

LONGEST_SECONDS = 100  # for all of them on a busy machine
CARDS = {card.id: card for card in shipped().cards.values() if card.head.kind == "code"}

# Importing torch takes seconds: it is done once, and every program runs in a fork of its own.
DRIVER = """
import json, os, sys, traceback
import torch
outputs = {}
for name, program in json.load(sys.stdin).items():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(writing, 1); os.dup2(writing, 2)
        try:
            exec(compile(program, name, "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        outputs[name] = pipe.read()
    os.wait()
json.dump(outputs, sys.stdout)
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What every card's program prints, or how it fails."""
    programs = {card.id: fenced(card.source.sections["Question"], RUN)[0] for card in CARDS.values()}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER],
        cwd=tmp_path_factory.mktemp("programs"),
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        timeout=LONGEST_SECONDS,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_there_are_code_cards() -> None:
    assert CARDS


@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_a_program_prints_what_its_card_says(card: str, outputs: dict[str, str]) -> None:
    said, *_ = fenced(CARDS[card].source.sections["Answer"], OUTPUT)
    assert [line.rstrip() for line in outputs[card].strip().splitlines()] == said.strip().splitlines()
