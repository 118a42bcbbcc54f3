"""Ranks over hosts: who sits where, what goes across, what is refused, and the command line."""

from __future__ import annotations

import shlex
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from labs.command import plain_command, torchrun_over_hosts
from labs.joining import interface_towards
from labs.parallel.mesh import AXES, axis_sizes, coordinates_of
from labs.spec import Parallel, SpecError, axes_across, host_of, parse_run_spec, said_of_hosts
from tests.labs.ranks import call, spec_of


def across(parallel: Parallel, hosts: int) -> set[str]:
    """By looking at every pair of ranks that differ on one axis only."""
    sizes, each = axis_sizes(parallel), parallel.world_size // hosts
    places = [coordinates_of(rank, sizes) for rank in range(parallel.world_size)]
    return {
        {"shard": "data", "replicate": "data"}.get(axis, axis)
        for axis in AXES
        for a, one in enumerate(places)
        for b, other in enumerate(places)
        if [name for name in AXES if one[name] != other[name]] == [axis] and a // each != b // each
    }


@pytest.mark.parametrize(
    ("layout", "hosts"),
    [
        ({"data": 4}, 2),
        ({"tensor": 4}, 2),
        ({"tensor": 2, "data": 2}, 2),
        ({"tensor": 2, "pipeline": 2}, 2),
        ({"tensor": 2, "data": 2, "pipeline": 2}, 4),
        ({"tensor": 4, "pipeline": 3}, 2),
        ({"tensor": 3, "data": 4}, 2),
        ({"context": 2, "data": 4}, 4),
    ],
)
def test_an_axis_goes_across_where_two_of_a_group_sit_on_different_hosts(layout: dict[str, int], hosts: int) -> None:
    parallel = Parallel(**layout)
    assert set(axes_across(parallel, hosts)) == across(parallel, hosts)


def test_tensor_parallelism_across_hosts_is_allowed_and_explained() -> None:
    inside = parse_run_spec(spec_of({"tensor": 2, "pipeline": 2}, hosts=2))
    assert said_of_hosts(inside) == (
        "2 hosts with 2 ranks each: pipeline goes across hosts, tensor stays inside of one."
    )
    assert "each of them waits for the network" in said_of_hosts(parse_run_spec(spec_of({"tensor": 4}, hosts=2)))
    assert [host_of(rank, inside) for rank in range(4)] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"hosts": 3}, "hosts", "4 ranks cannot be spread evenly over 3 hosts. Accepted: 1, 2, 4."),
        ({"hosts": 8}, "hosts", "4 ranks cannot be spread evenly over 8 hosts. Accepted: 1, 2, 4."),
        ({"hosts": 0}, "hosts", "0 is out of range. Accepted: 1 or more."),
        ({"link": {"nodes": 2}}, "link", "A link is between hosts, and this run has one. Accepted: null."),
        ({"hosts": 4, "link": {"nodes": 2}}, "link.nodes", "The link joins 2 hosts, the run has 4. Accepted: 4."),
    ],
)
def test_hosts_that_cannot_be_are_refused_by_field(changed: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec(spec_of({"data": 4}, **changed))
    assert [str(each) for each in refused.value.violations] == [f"{field}: {said}"]


def test_a_host_has_as_many_ranks_as_a_run_without_hosts_may_have() -> None:
    assert parse_run_spec(spec_of({"data": 16}, hosts=2)).ranks_per_host == 8
    with pytest.raises(SpecError, match="at most 16 on 2 hosts"):
        parse_run_spec(spec_of({"data": 32}, hosts=2))


def test_only_programs_that_may_span_hosts_take_them() -> None:
    asked = {"program": "collectives", "parallel": {"data": 2}, "hosts": 2}
    assert parse_run_spec(asked).hosts == 2
    with pytest.raises(SpecError, match="hosts: The program 'gemm' has no use for this"):
        parse_run_spec({"program": "gemm", "hosts": 2})


def test_each_host_starts_its_ranks_and_meets_the_others_at_the_first() -> None:
    spec = parse_run_spec(spec_of({"data": 4}, hosts=2))
    words = torchrun_over_hosts(spec, Path("/run/events"), Path("/run/logs"), ("10.0.0.1", "29500"), "1")
    said = dict(pairwise(words))
    wanted = {"--nnodes": "2", "--nproc-per-node": "2", "--node-rank": "1", "--master-addr": "10.0.0.1"}
    assert wanted.items() <= said.items()
    assert "c10d" not in words, "which started twice in one of three tries"
    plain = shlex.split(plain_command(spec))
    assert plain[1:9] == ["--nnodes", "2", "--nproc-per-node", "2", "--node-rank", "N", "--master-addr", "HOST"]


def test_run_by_hand_is_for_this_host_alone(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(parse_run_spec(spec_of({"data": 4}, hosts=2)).model_dump_json())
    ended = call([sys.executable, "-m", "labs.run", str(file)])
    assert ended.returncode == 2
    assert ended.stderr.startswith("hosts: This starts ranks on this host alone")


def test_the_interface_is_the_one_that_leads_there() -> None:
    assert interface_towards("127.0.0.1") == "lo"
    assert interface_towards("no such host") is None
