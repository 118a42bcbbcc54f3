"""`rankzero run FILE`: one run from start to end, its events as JSON lines (labs.run), on this machine's devices as a
worker would put it there: no larger than what they have free, and can do in an hour.

Only where there may be GPUs: elsewhere `labs.run` takes what fits a laptop, and nothing is looked at first.
"""

from __future__ import annotations

import os
import shutil
import sys

from labs import run
from labs.command import compact, read_spec
from labs.spec import RunSpec, SpecError, Violation, check_size
from worker import smi


def main(arguments: list[str]) -> int:
    """The exit code is the run's; 2 when the spec cannot be run here."""
    if len(arguments) != 1 or shutil.which(smi.PROGRAM) is None:
        return run.main(arguments)
    try:
        spec = read_spec(sys.stdin.read() if arguments[0] == "-" else arguments[0])
        if spec.hosts == 1:  # else it is refused as such
            os.environ.update(place_here(spec))
    except SpecError as error:
        sys.stderr.write(f"{error}\n")
        return run.EXIT_USAGE
    return run.main([compact(spec)])


def place_here(spec: RunSpec) -> dict[str, str]:
    """What shows its ranks the devices that `spec` goes to, and no others. Raises SpecError where it is too large for
    them, or they are not there."""
    from app.lab import work  # noqa: PLC0415 - only where there may be GPUs
    from worker.devices import find_devices  # noqa: PLC0415

    devices = find_devices("auto")
    placement = devices.place(spec)
    if placement is not None:
        return placement.environment
    sizes = list(work.sizes_on(devices.describe(), spec, "this machine").values())
    if sizes and (too_large := check_size(spec, sizes)):
        raise SpecError(too_large)
    ranks, there = spec.parallel.world_size, len(devices.gpus)
    message = f"{ranks} ranks need a GPU each, and this machine shows {there}. {devices.trouble}".strip()
    raise SpecError([Violation("device", spec.device, message, "cpu, or fewer ranks")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
