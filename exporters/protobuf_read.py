"""Protobuf's wire format as answers have it: numbers and byte strings, whatever a stranger sent; nothing raises."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["read_fields", "read_varint"]


def read_fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message, numbers and byte strings; up to where it is none."""
    at = 0
    while at < len(content):
        tag, at = read_varint(content, at)
        kind = tag & 7
        if kind == 0:
            number, at = read_varint(content, at)
            yield tag >> 3, number
        elif kind == 2:
            size, at = read_varint(content, at)
            if at + size > len(content):
                return
            yield tag >> 3, content[at : at + size]
            at += size
        else:
            at += {1: 8, 5: 4}.get(kind, len(content))


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the varint at *at* and the place after it; a truncated one is what is there."""
    number = shift = 0
    while at < len(content) and shift < 64:
        byte = content[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    return number, at
