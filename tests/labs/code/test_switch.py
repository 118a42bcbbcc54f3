"""The switch by itself: what arrives where, and what can never be completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from labs.code.inside import frames
from labs.code.inside.frames import BadFrame
from labs.code.switch import Switch


class Wires:
    """A switch whose deliveries are kept."""

    def __init__(self, ranks: int) -> None:
        self.got: dict[tuple[int, int], Sequence[Tensor]] = {}
        self.switch = Switch(ranks, self._keep, lambda: 0.0)

    def _keep(self, rank: int, identity: int, tensors: Sequence[Tensor]) -> None:
        self.got[rank, identity] = tensors

    def post(
        self, rank: int, operation: str, sent: Sequence[Tensor] = (), expects: Sequence[Tensor] = (), **more: Any
    ) -> None:
        header = {
            "kind": "call",
            "id": more.pop("identity", 1),
            "operation": operation,
            "group": list(range(self.switch.ranks)),
            "sent": [frames.spec_of(each) for each in sent],
            "expects": [frames.spec_of(each) for each in expects],
            **more,
        }
        self.switch.post(rank, 0, header, b"".join(bytes(frames.raw(each)) for each in sent))


def test_an_all_reduce_waits_for_all_and_adds():
    wires = Wires(2)
    wires.post(0, "all_reduce", [torch.ones(3)], [torch.ones(3)])
    assert not wires.got
    wires.post(1, "all_reduce", [2 * torch.ones(3)], [torch.ones(3)])
    assert [each[0].tolist() for each in wires.got.values()] == [[3.0] * 3] * 2


def test_an_all_to_all_goes_by_its_splits():
    wires = Wires(2)
    wires.post(0, "all_to_all", [torch.arange(3.0)], [torch.empty(3)], input_splits=[1, 2], output_splits=[1, 2])
    wires.post(1, "all_to_all", [torch.arange(10.0, 13.0)], [torch.empty(3)], input_splits=[2, 1], output_splits=[2, 1])
    assert torch.cat(list(wires.got[0, 1])).tolist() == [0, 10, 11]
    assert torch.cat(list(wires.got[1, 1])).tolist() == [1, 2, 12]


def test_a_message_is_a_rendezvous():
    wires = Wires(2)
    wires.post(0, "send", [torch.arange(2)], peer=1)
    assert not wires.got
    wires.post(1, "recv", (), [torch.empty(2, dtype=torch.int64)], peer=0)
    assert set(wires.got) == {(0, 1), (1, 1)}
    assert wires.got[1, 1][0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (("all_reduce", torch.ones(3)), ("all_gather", torch.ones(3)), "operation"),
        (("all_reduce", torch.ones(3)), ("all_reduce", torch.ones(4)), "size"),
        (("all_reduce", torch.ones(3)), ("all_reduce", torch.ones(3).double()), "dtype"),
    ],
)
def test_calls_that_do_not_fit_are_a_mismatch(one, other, what):
    wires = Wires(2)
    for rank, (operation, tensor) in enumerate((one, other)):
        wires.post(rank, operation, [tensor], [tensor])
    assert wires.switch.mismatch is not None
    assert wires.switch.mismatch.what == what
    assert not wires.got


@pytest.mark.parametrize(
    "header",
    [
        {"operation": "all_reduce", "group": [1]},
        {"operation": "all_reduce", "group": [0, 0]},
        {"operation": "all_reduce", "group": [0, 7]},
        {"operation": "open the door", "group": [0, 1]},
        {"operation": "send", "group": [0, 1], "peer": 0},
        {"operation": "send", "group": [0, 1], "peer": True},
        {"operation": "all_reduce", "group": [0, 1], "sent": [["float32", [2**40]]]},
        {"operation": "all_reduce", "group": [0, 1], "sent": [["float32", [-1]]]},
        {"operation": "all_reduce", "group": [0, 1], "sent": [["object", [1]]]},
        {"operation": "all_reduce", "group": [0, 1], "sent": [["float32", [5]]]},
    ],
)
def test_what_no_rank_of_ours_sends_is_refused(header):
    switch = Switch(2, lambda *_: None, lambda: 0.0)
    with pytest.raises(BadFrame):
        switch.post(0, 0, {"id": 1, "sent": [], "expects": [], **header}, b"")
