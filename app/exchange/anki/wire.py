"""Anki's newer collections keep note types as protocol buffers; of those only a few fields are needed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field of a message. Raises ValueError where it is none."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == VARINT:
            value, at = _varint(data, at)
        elif kind == BYTES:
            length, at = _varint(data, at)
            value, at = _cut(data, at, length)
        elif kind in (FIXED64, FIXED32):
            value, at = _cut(data, at, 8 if kind == FIXED64 else 4)
        else:
            raise ValueError(f"a field of wire type {kind}")
        yield key >> 3, value


def text_field(data: bytes, number: int) -> str:
    """The text in field `number`, or nothing."""
    found = [value for each, value in fields(data) if each == number and isinstance(value, bytes)]
    return found[-1].decode(errors="replace") if found else ""


def number_field(data: bytes, number: int) -> int:
    """The whole number in field `number`, or 0."""
    found = [value for each, value in fields(data) if each == number and isinstance(value, int)]
    return found[-1] if found else 0


def _cut(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise ValueError("a field that ends too early")
    return data[at : at + length], at + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number that does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
