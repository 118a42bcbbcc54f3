"""Frames between a rank and the judge: a header in JSON, and the bytes of the tensors it names.

Both sides use this. The judge reads frames as hostile: what is longer, deeper or of another type than may be is refused
with `BadFrame`, and nothing is ever unpickled.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

PREFIX = struct.Struct("!IQ")  # bytes of the header, bytes of the payload
MOST_HEADER_BYTES = 64 * 2**10
MOST_PAYLOAD_BYTES = 64 * 2**20
MOST_TENSORS = 512
_MOST_DEPTH = 12
_TENSOR = "$tensor"

DTYPES = {
    name: getattr(torch, name)
    for name in ("float64", "float32", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

Header = dict[str, Any]
Spec = list[Any]  # of a tensor: its dtype's name and its shape


class BadFrame(Exception):
    """A frame that no rank of ours would send."""


def pack(header: Header, tensors: Sequence[Tensor] = ()) -> list[memoryview]:
    """A frame, in parts to be sent one after the other: no tensor is copied."""
    text = json.dumps(header, separators=(",", ":")).encode()
    parts = [raw(tensor) for tensor in tensors]
    return [memoryview(PREFIX.pack(len(text), sum(len(part) for part in parts)) + text), *parts]


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor, where they are."""
    flat = tensor.detach().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy().data) if flat.numel() else memoryview(b"")


def spec_of(tensor: Tensor) -> Spec:
    return [_NAMES[tensor.dtype], list(tensor.shape)]


def spec_bytes(spec: Spec) -> int:
    return int(DTYPES[spec[0]].itemsize) * prod(spec[1])


def check_specs(specs: object) -> list[Spec]:
    """Specs as they arrived. Raises BadFrame."""
    if not isinstance(specs, list) or len(specs) > MOST_TENSORS:
        raise BadFrame("no list of tensors")
    for spec in specs:
        if not (isinstance(spec, list) and len(spec) == 2 and spec[0] in DTYPES and isinstance(spec[1], list)):
            raise BadFrame("no description of a tensor")
        if len(spec[1]) > 8 or any(type(size) is not int or not 0 <= size < 2**31 for size in spec[1]):
            raise BadFrame("no shape of a tensor")
    return specs


def unpack_tensors(specs: Sequence[Spec], payload: bytes | bytearray) -> list[Tensor]:
    """The tensors of a payload. Raises BadFrame where there are more or fewer bytes than they have."""
    if sum(map(spec_bytes, specs)) != len(payload):
        raise BadFrame("the payload is not as long as the tensors it has")
    return list(_cut(specs, payload))


def _cut(specs: Sequence[Spec], payload: bytes | bytearray) -> Iterator[Tensor]:
    start = 0
    for spec in specs:
        end = start + spec_bytes(spec)
        dtype = DTYPES[spec[0]]
        if end == start:
            yield torch.empty(spec[1], dtype=dtype)
        else:
            yield torch.frombuffer(bytearray(payload[start:end]), dtype=dtype).reshape(spec[1])
        start = end


def flatten(value: object, tensors: list[Tensor], depth: int = 0) -> Any:
    """`value` as JSON, with each tensor in it put into `tensors`. Raises TypeError."""
    if depth > _MOST_DEPTH:
        raise TypeError("it is nested too deeply")
    if isinstance(value, Tensor):
        if value.dtype not in _NAMES:
            raise TypeError(f"a tensor of {value.dtype} cannot be handed over")
        tensors.append(value.detach().contiguous())
        return {_TENSOR: len(tensors) - 1}
    if isinstance(value, dict):
        return {str(name): flatten(each, tensors, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [flatten(each, tensors, depth + 1) for each in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} is neither a tensor nor a number, text, list or dictionary")


def unflatten(value: object, tensors: Sequence[Tensor], depth: int = 0) -> Any:
    """The inverse of `flatten`. Raises BadFrame."""
    if depth > _MOST_DEPTH + 1:
        raise BadFrame("nested too deeply")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        if set(value) == {_TENSOR}:
            index = value[_TENSOR]
            if type(index) is not int or not 0 <= index < len(tensors):
                raise BadFrame("there is no such tensor")
            return tensors[index]
        return {clean(name): unflatten(each, tensors, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [unflatten(each, tensors, depth + 1) for each in value]
    return value


def clean(text: str, most: int = 10_000) -> str:
    """A text that can be written and stored: no half of a surrogate pair, no NUL, not too long."""
    return text[:most].encode(errors="replace").decode().replace("\0", "�")


class FrameReader:
    """Cuts what arrives into frames, however it is split."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Header, bytes]]:
        """The frames that are whole now. Raises BadFrame."""
        self._waiting += data
        while len(self._waiting) >= PREFIX.size:
            header_bytes, payload_bytes = PREFIX.unpack_from(self._waiting)
            if header_bytes > MOST_HEADER_BYTES or payload_bytes > MOST_PAYLOAD_BYTES:
                raise BadFrame("a frame longer than any may be")
            end = PREFIX.size + header_bytes + payload_bytes
            if len(self._waiting) < end:
                return
            text = bytes(self._waiting[PREFIX.size : PREFIX.size + header_bytes])
            payload = bytes(self._waiting[PREFIX.size + header_bytes : end])
            del self._waiting[:end]
            yield read_header(text), payload


def read_header(text: bytes) -> Header:
    """A header from its JSON. Raises BadFrame."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame("no JSON") from error
    if not isinstance(header, dict) or not isinstance(header.get("kind"), str):
        raise BadFrame("no header")
    return header
