"""Which host was lost, told from what its ranks did not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labs.pulse import pulse_file
from labs.spec import parse_run_spec
from labs.spec.events import Event, Failure, HostEvent, PhaseEvent
from tests.support.events import step
from worker import slurm
from worker.over_hosts import find_lost, host_lost, hosts_of_ranks, silent_hosts
from worker.pulses import Pulses
from worker.slurm import Host

SPEC = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 4}, "hosts": 2})
SEATS: list[Event] = [HostEvent(0.1, rank, f"n{1 + rank // 2}") for rank in range(4)]
KILLED = "  time      : 2026-11-21_11:27:16\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: 123)\n"


def lost_a_peer(rank: int) -> PhaseEvent:
    return PhaseEvent(5.0, rank, "failed", Failure("lost another rank", "connection closed by peer"))


def test_a_host_of_which_nobody_left_a_word_is_the_one_that_is_lost() -> None:
    assert find_lost([*SEATS, lost_a_peer(0), lost_a_peer(1)], "", SPEC) == "n2"
    assert find_lost([lost_a_peer(2)], "", SPEC) == "number 1", "none of its ranks has said where it sits"


@pytest.mark.parametrize(
    ("said", "output"),
    [
        ([], ""),  # nobody: torchrun itself was ended
        ([lost_a_peer(0), lost_a_peer(2)], ""),  # of each host somebody
        ([lost_a_peer(0)], KILLED),  # of a host that is there torchrun reports
        ([PhaseEvent(5.0, 0, "failed", Failure("out of memory", "no more"))], ""),  # a cause of its own
    ],
)
def test_no_host_is_blamed_where_anybody_says_otherwise(said: list[Event], output: str) -> None:
    assert find_lost([*SEATS, *said], output, SPEC) is None


def test_a_lost_host_is_named_with_its_ranks_and_the_step() -> None:
    failure = host_lost([*SEATS, step(7)], ("n2",), SPEC)
    assert failure.cause == "host lost"
    assert failure.message == "Host n2 was lost after step 7, and ranks 2, 3 with it."
    assert (failure.rank, failure.step) == (2, 7)


def test_one_rank_that_has_said_where_it_sits_speaks_for_its_host() -> None:
    assert hosts_of_ranks([HostEvent(0.1, 3, "n2")], SPEC) == {2: "n2", 3: "n2"}


def test_a_host_is_silent_where_all_of_its_ranks_are_and_others_are_not(tmp_path: Path) -> None:
    now = [0.0]
    for rank in range(4):
        pulse_file(tmp_path, rank).touch()
    pulses = Pulses(tmp_path, 4, lambda: now[0])

    def live(seconds: int, ranks: tuple[int, ...]) -> None:
        for _ in range(seconds):
            now[0] += 1
            for rank in ranks:
                pulse_file(tmp_path, rank).write_text(str(now[0]))
            pulses.find_silent(is_running=True)

    running = [*SEATS, step(1)]
    live(3, (0, 1, 2, 3))
    live(17, (0, 1, 2))
    assert silent_hosts(running, pulses, SPEC) == (), "one rank of n2 lives"
    live(9, (0, 1))
    assert silent_hosts(running, pulses, SPEC) == ()
    assert silent_hosts([*running, lost_a_peer(0)], pulses, SPEC) == ("n2",), "and is missed: sooner"
    live(8, (0, 1))
    assert silent_hosts(running, pulses, SPEC) == ("n2",)
    assert silent_hosts(SEATS, pulses, SPEC) == (), "torch may still be loaded there"
    assert silent_hosts([*running, lost_a_peer(2)], pulses, SPEC) == (), "a rank of it has said why it ended"
    assert silent_hosts(running, pulses, SPEC, lambda: KILLED) == (), "its torchrun has reported on a rank"
    live(17, ())
    assert silent_hosts(running, pulses, SPEC) == (), "all of them: it is us who see nothing"


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("n1 idle 64 515000 gpu:h100:8(S:0-1)", Host("n1", "idle", 64, 515000 * 2**20, 8)),
        ("n2 down* 2 2000 (null)", Host("n2", "down*", 2, 2000 * 2**20, 0)),
        ("n3 mixed 32 1000 gpu:4", Host("n3", "mixed", 32, 1000 * 2**20, 4)),
        ("n4 allocated 8 1000 gpu:a100:2,gpu:t4:1,license:1", Host("n4", "allocated", 8, 1000 * 2**20, 3)),
    ],
)
def test_a_hosts_line_is_read(monkeypatch: pytest.MonkeyPatch, line: str, host: Host) -> None:
    said: Any = lambda *_: f"{line}\n"  # noqa: E731
    monkeypatch.setattr(slurm, "_ask", said)
    assert slurm.hosts_of("lab") == (host,)
    assert host.is_usable == (host.name != "n2")
