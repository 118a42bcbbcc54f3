"""How a run ended that we did not end, and which of its hosts are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.lab.work import Claim, RunFailure
from labs.spec import RunSpec
from labs.spec.events import Event
from labs.warm import WarmRun
from worker import failures, untrusted
from worker.launcher import Launch
from worker.over_hosts import RanksOverHosts, find_lost, host_lost, silent_hosts
from worker.pulses import Pulses

REPORT_LINES = 500  # of torchrun's own words, which end with its report on the ranks


@dataclass
class Ending:
    """Why a run ends. Where it is to be started again, `again` says why the run itself is not to blame."""

    status: str
    failure: RunFailure | None = None
    again: str = ""


def verdict(claim: Claim, launched: Launch, seen: Sequence[Event]) -> Ending:
    """Of a launch that has ended by itself. What torchrun does on one host is done here over several: where a rank has
    failed, all start again, as often as the run asks for."""
    spec = claim.spec
    if launched.exit_code() == 0:
        return Ending("finished")
    if isinstance(launched.process, RanksOverHosts) and (told := launched.process.failure()):
        return Ending("failed", told[0], again=told[0].message if told[1] else "")
    if lost_its_host(launched):
        return Ending("failed", failures.host_lost(seen))
    output = _torchruns_words(launched)
    if spec.hosts > 1 and (lost := find_lost(seen, output, spec)):
        return of_lost_hosts(spec, seen, (lost,))
    failure = failures.explain(seen, output, launched.logs, launched.exit_code() or 1, spec.faults)
    starts_again = spec.hosts > 1 and claim.starts <= spec.restarts
    return Ending("failed", failure, again=failure.message if starts_again else "")


def find_lost_hosts(spec: RunSpec, launched: Launch, seen: Sequence[Event], pulses: Pulses) -> tuple[str, ...]:
    """Hosts of which nothing is heard any more, neither of any of their ranks nor otherwise."""
    if not isinstance(launched.process, RanksOverHosts):
        return ()
    lost = launched.process.lost_hosts()
    return lost or silent_hosts(seen, pulses, spec, lambda: _torchruns_words(launched))


def of_lost_hosts(spec: RunSpec, seen: Sequence[Event], lost: tuple[str, ...]) -> Ending:
    """The run itself is not to blame: it starts again."""
    failure = host_lost(seen, lost, spec)
    return Ending("failed", failure, again=failure.message)


def lost_its_host(launched: Launch) -> bool:
    """Whether a warm launch ended because its host was killed."""
    return isinstance(launched.process, WarmRun) and launched.process.is_lost


def _torchruns_words(launched: Launch) -> str:
    """Of all hosts."""
    names = untrusted.matching(launched.folder, "torchrun*.log")
    return "\n".join(line for name in names for line in untrusted.last_lines(launched.folder, name, REPORT_LINES))
