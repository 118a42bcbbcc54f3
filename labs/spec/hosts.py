"""Which hosts a run's ranks sit on, and which kinds of parallelism therefore talk between hosts.

Ranks are spread evenly, in the order of their numbers: the first host has the first of them. The grid numbers ranks
with tensor fastest, then context, data and pipeline (`labs.parallel.mesh`), so tensor parallelism, which talks most,
stays inside a host as long as it fits there, and the pipeline, which talks least, is what goes across first.
"""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.run import RunSpec
from labs.spec.vocabulary import Parallel
from labs.violations import Violation

_FASTEST_FIRST = ("tensor", "context", "data", "pipeline")
_FIELDS = tuple(f"parallel.{axis}" for axis in _FASTEST_FIRST)


def host_of(rank: int, spec: RunSpec) -> int:
    """Which of the run's hosts, counted from 0, rank `rank` sits on."""
    return rank // spec.ranks_per_host


def axes_across(parallel: Parallel, hosts: int) -> tuple[str, ...]:
    """The axes of which some group has ranks on more than one host: those that use the network."""
    ranks_per_host, apart, found = parallel.world_size // hosts, 1, []
    for axis in _FASTEST_FIRST:
        size = getattr(parallel, axis)
        if size > 1 and ranks_per_host % (apart * size):  # else whole groups lie side by side inside of a host
            found.append(axis)
        apart *= size
    return tuple(found)


def said_of_hosts(spec: RunSpec) -> str:
    """In a sentence or two, where the ranks sit and what that means; nothing of a run on one host."""
    if spec.hosts == 1:
        return ""
    each, across = spec.ranks_per_host, axes_across(spec.parallel, spec.hosts)
    inside = [axis for axis in _FASTEST_FIRST if getattr(spec.parallel, axis) > 1 and axis not in across]
    said = f"{spec.hosts} hosts with {each} {'ranks' if each > 1 else 'rank'} each: {_listed(across)} goes across hosts"
    said += f", {_listed(inside)} stays inside of one." if inside else "."
    if "tensor" in across:
        said += (
            " Tensor parallelism waits for four all-reduces a layer and micro-batch, and here each of them waits for "
            "the network: it runs, and it is slow."
        )
    return said


def _listed(axes: tuple[str, ...] | list[str]) -> str:
    return ", ".join(axes)


def check_hosts(spec: RunSpec) -> Iterator[Violation]:
    """What is wrong with the hosts that are asked for, and with the link between them."""
    ranks, hosts = spec.parallel.world_size, spec.hosts
    if spec.mode == "dry" and hosts > 1:
        yield Violation("hosts", hosts, "A dry run is one process; its ranks are nowhere.", "1")
    elif ranks % hosts:
        message = f"{ranks} {'ranks' if ranks > 1 else 'rank'} cannot be spread evenly over {hosts} hosts."
        fine = ", ".join(str(each) for each in range(1, ranks + 1) if ranks % each == 0)
        yield Violation("hosts", hosts, message, fine, _FIELDS)
    if spec.link is None:
        return
    if hosts == 1:
        yield Violation("link", spec.link.model_dump(), "A link is between hosts, and this run has one.", "null")
    elif spec.link.nodes != hosts:
        message = f"The link joins {spec.link.nodes} hosts, the run has {hosts}."
        yield Violation("link.nodes", spec.link.nodes, message, str(hosts), ("hosts",))
