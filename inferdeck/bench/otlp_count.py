"""Counts spans in OTLP trace bytes by walking lengths, without building messages."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["count_spans"]

# field numbers of opentelemetry-proto: request.resource_spans, resource_spans.scope_spans, scope_spans.spans
_RESOURCE_SPANS, _SCOPE_SPANS, _SPANS = 1, 2, 2
_PARENT_SPAN_ID = 4
_FIXED_BYTES = {1: 8, 5: 4}


def count_spans(body: bytes) -> tuple[int, int]:
    """Count the spans of one ExportTraceServiceRequest.

    Args:
        body: The serialised message, uncompressed.

    Returns:
        All spans, and those among them without a parent: one per trace that starts here.

    Raises:
        ValueError: If the bytes are no protobuf message.
    """
    spans = roots = 0
    for start, end in _fields(body, 0, len(body), _RESOURCE_SPANS):
        for scope_start, scope_end in _fields(body, start, end, _SCOPE_SPANS):
            for span_start, span_end in _fields(body, scope_start, scope_end, _SPANS):
                spans += 1
                parent = next(_fields(body, span_start, span_end, _PARENT_SPAN_ID), (0, 0))
                roots += parent[0] == parent[1]
    return spans, roots


def _fields(body: bytes, at: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each length-delimited field number *wanted* of the message in `body[at:end]`."""
    while at < end:
        tag, at = _varint(body, at, end)
        kind = tag & 7
        if kind == 2:
            length, at = _varint(body, at, end)
            if at + length > end:
                raise ValueError("a field ends beyond its message")
            if tag >> 3 == wanted:
                yield at, at + length
            at += length
        elif kind == 0:
            _, at = _varint(body, at, end)
        elif kind in _FIXED_BYTES:
            at += _FIXED_BYTES[kind]
        else:
            raise ValueError(f"wire type {kind} is not in use")
    if at != end:
        raise ValueError("a field ends beyond its message")


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is cut off")
