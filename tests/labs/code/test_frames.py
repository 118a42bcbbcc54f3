"""Frames as a hostile rank may send them: read, or refused; nothing in between."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs.code.inside import frames
from labs.code.inside.frames import BadFrame, FrameReader

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_noise_is_frames_or_refused(data: bytes) -> None:
    reader = FrameReader()
    try:
        found = list(reader.feed(data))
    except BadFrame:
        return
    assert all(isinstance(header["kind"], str) for header, _ in found)


@settings(max_examples=40)
@given(JSON)
def test_any_json_is_specs_or_refused(value: object) -> None:
    try:
        specs = frames.check_specs(value)
    except BadFrame:
        return
    assert all(frames.spec_bytes(spec) >= 0 for spec in specs)


@settings(max_examples=40)
@given(JSON)
def test_any_json_is_a_value_that_can_be_written_or_refused(value: object) -> None:
    parsed = json.loads(json.dumps(value))
    try:
        found = frames.unflatten(parsed, [torch.ones(2)])
    except BadFrame:
        return
    json.dumps(found, default=str).encode()


@settings(max_examples=40)
@given(VALUES, st.integers(1, 40))
def test_a_frame_arrives_as_it_was_sent_however_it_is_cut(value: object, size: int) -> None:
    tensors: list[torch.Tensor] = []
    flat = frames.flatten({"value": value, "t": [torch.arange(3), torch.zeros(0), torch.tensor(2.5)]}, tensors)
    header = {"kind": "result", "value": flat, "sent": [frames.spec_of(each) for each in tensors]}
    data = b"".join(bytes(part) for part in frames.pack(header, tensors))
    reader, found = FrameReader(), []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    ((arrived, payload),) = found
    back = frames.unflatten(arrived["value"], frames.unpack_tensors(arrived["sent"], payload))
    assert [each.tolist() for each in back["t"]] == [[0, 1, 2], [], 2.5]
    assert json.dumps(back["value"]) == json.dumps(value).replace("\\u0000", "\\ufffd")


@pytest.mark.parametrize("specs", [[["float64", [2]]], [["float64", [1]], ["int8", [1]]], []])
def test_a_payload_is_as_long_as_its_tensors(specs: list[list[object]]) -> None:
    with pytest.raises(BadFrame):
        frames.unpack_tensors(specs, b"12345678") if specs != [] else frames.unpack_tensors(specs, b"1")
