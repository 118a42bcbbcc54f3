"""Who is in a group with whom: every rank's place in the grid, told by a process group that only pretends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from labs.parallel.mesh import Axis, Mesh
from labs.spec import Parallel

Ask = Callable[[Callable[[Mesh], Axis]], dict[int, list[int]]]


@pytest.fixture
def meshes() -> Iterator[Callable[..., Ask]]:
    """meshes(**parallel)(axis): the ranks in every rank's group on `axis`; a rank alone is in a group of its own."""

    def of(**parallel: Any) -> Ask:
        layout = Parallel(**parallel)

        def ask(axis: Callable[[Mesh], Axis]) -> dict[int, list[int]]:
            return {rank: _members(layout, rank, axis) for rank in range(layout.world_size)}

        return ask

    yield of
    assert not dist.is_initialized()


def _members(layout: Parallel, rank: int, axis: Callable[[Mesh], Axis]) -> list[int]:
    dist.init_process_group("fake", rank=rank, world_size=layout.world_size, store=FakeStore())
    try:
        found = axis(Mesh(layout, "cpu"))
        members = [rank] if found.group is None else dist.get_process_group_ranks(found.group)
        assert (found.size, members[found.index]) == (len(members), rank)
        return members
    finally:
        dist.destroy_process_group()


def test_tensor_ranks_are_neighbours_and_context_ranks_next(meshes: Callable[..., Ask]) -> None:
    ask = meshes(data=2, context=2, tensor=2)
    assert ask(lambda mesh: mesh.tensor)[5] == [4, 5]
    assert ask(lambda mesh: mesh.context)[5] == [5, 7]
    assert ask(lambda mesh: mesh.shard)[5] == [1, 5]
    assert ask(lambda mesh: mesh.data)[5] == [1, 3, 5, 7], "everybody who has the same part of the matrices"


def test_experts_are_shared_out_among_neighbours_in_data_and_repeated_by_the_others(
    meshes: Callable[..., Ask],
) -> None:
    ask = meshes(data=4, expert=2)
    assert ask(lambda mesh: mesh.expert) == {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}
    assert ask(lambda mesh: mesh.expert_replicas) == {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]}
    alone = meshes(data=2, expert=2)
    assert alone(lambda mesh: mesh.expert_replicas) == {0: [0], 1: [1]}


def test_context_ranks_send_their_tokens_to_experts_apart_and_repeat_each_others_experts(
    meshes: Callable[..., Ask],
) -> None:
    ask = meshes(data=2, expert=2, context=2)
    assert ask(lambda mesh: mesh.expert) == {0: [0, 2], 2: [0, 2], 1: [1, 3], 3: [1, 3]}
    assert ask(lambda mesh: mesh.expert_replicas) == {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}


def test_without_experts_there_is_no_such_group(meshes: Callable[..., Ask]) -> None:
    assert meshes(data=2)(lambda mesh: mesh.expert) == {0: [0], 1: [1]}


def test_a_ring_has_a_group_of_its_own_beside_the_gradients() -> None:
    """The same ranks, but what goes through it is the ring's."""
    layout = Parallel(context=2)
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        mesh = Mesh(layout, "cpu")
        ring, data = mesh.context.group, mesh.data.group
        assert ring is not None
        assert data is not None
        assert (mesh.label_of(ring), mesh.label_of(data)) == ("context", "data")
    finally:
        dist.destroy_process_group()
